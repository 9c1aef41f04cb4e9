#!/bin/sh
# arm64.sh counts the instructions that the parts of the voice pipeline take on ARM64, under emulation by qemu-user. They are no
# times: how many a processor does in a second depends on it. It needs root for apt (qemu-user, gcc-aarch64-linux-gnu) and takes a
# few minutes.
set -eu
cd "$(dirname "$0")/.."
dir=$PWD/.tools/arm64
mkdir -p "$dir"
command -v qemu-aarch64 aarch64-linux-gnu-gcc >/dev/null || apt-get install -y qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
for package in libopus0 libopus-dev; do
	[ -e "$dir/$package.deb" ] || {
		uri=$(apt-get download --print-uris $package | cut -d"'" -f2 | sed 's/amd64/arm64/')
		/usr/lib/apt/apt-helper download-file "$uri" "$dir/$package.deb"
		dpkg -x "$dir/$package.deb" "$dir"
	}
done
lib=$dir/usr/lib/aarch64-linux-gnu
printf 'Name: opus\nDescription: opus\nVersion: 1.3.1\nLibs: -L%s -lopus\nCflags: -I%s/usr/include/opus\n' "$lib" "$dir" >"$dir/opus.pc"

# A plugin of qemu that counts (its API: qemu-plugin.h, version 1).
cat >"$dir/count.c" <<'C'
#include <inttypes.h>
#include <stdio.h>
typedef uint64_t id;
struct qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(id, void (*)(id, struct qemu_plugin_tb *));
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
void qemu_plugin_register_atexit_cb(id, void (*)(id, void *), void *);
#define SHOWN __attribute__((visibility("default")))
SHOWN int qemu_plugin_version = 1;
static uint64_t n;
static void translated(id self, struct qemu_plugin_tb *tb) {
	qemu_plugin_register_vcpu_tb_exec_inline(tb, 0, &n, qemu_plugin_tb_n_insns(tb));
}
static void ended(id self, void *data) { fprintf(stderr, "instructions %" PRIu64 "\n", n); }
SHOWN int qemu_plugin_install(id self, const void *info, int argc, char **argv) {
	qemu_plugin_register_vcpu_tb_trans_cb(self, translated);
	qemu_plugin_register_atexit_cb(self, ended, 0);
	return 0;
}
C
cc -shared -fPIC -O2 -o "$dir/count.so" "$dir/count.c"

# count PACKAGE BENCHMARK N: instructions of one round, from the difference of N and 3 N rounds
count() {
	program=$dir/$(echo "$1" | tr / -).test
	[ -e "$program" ] || GOOS=linux GOARCH=arm64 GOEXPERIMENT= CGO_ENABLED=1 CC=aarch64-linux-gnu-gcc PKG_CONFIG_LIBDIR=$dir \
		go test -tags nolibopusfile -c -o "$program" "./$1"
	for rounds in "$3" $((3 * $3)); do
		(cd "$1" && QEMU_LD_PREFIX=/usr/aarch64-linux-gnu qemu-aarch64 -E LD_LIBRARY_PATH="$lib" -E GOMAXPROCS=1 -plugin "$dir/count.so" \
			"$program" -test.run '^$' -test.bench "^$2\$" -test.benchtime "${rounds}x" 2>&1) | awk '/^instructions/ {print $2}'
	done | awk -v name="$2" -v n="$3" 'NR == 1 {a = $1} END {printf "%-24s %8.0f thousand instructions\n", name, ($1 - a) / (2 * n) / 1000}'
}
rm -f "$dir"/*.test
count audio BenchmarkEncode 200
count agent/speak BenchmarkDownlinkFrame 200
count audio BenchmarkDecode 400
count providers/silero BenchmarkDetector 100
