#!/usr/bin/env bash
# Runs what scripts/release.sh has put into dist/: checks all sums; starts the image of each architecture without an engine,
# until it is healthy and answers, under the user and in the folder that an engine would choose and with nothing
# that it could write but that; the programs of each tar.gz likewise, unpacked; the Debian package on a bare Debian (scripts/fresh.sh).
# Another architecture than this machine's runs by qemu-user, called by name: nothing is registered in the kernel.
# It needs root and takes three minutes.
#
# PARTS     what to try: "image archive package" by default
set -euo pipefail
cd "$(dirname "$0")/.."
parts=${PARTS:-image archive package}
cache=$PWD/.cache/release
fail() { echo "smoke: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || fail "only root can start an image without an engine / 需要 root"
[ -s dist/SHA256SUMS ] || fail "nothing is in dist/: make release"

# All but the package runs in namespaces of its own, with a network that holds nothing but itself, and ends with them.
if [ "${1:-}" != inside ]; then
	(cd dist && sha256sum --quiet -c SHA256SUMS) || fail "a sum is wrong / 校验和不符"
	root=$(mktemp -d "${TMPDIR:-/tmp}/xiaozhi-smoke-XXXXXX")
	chmod 0755 "$root"
	child=""
	cleanup() {
		[ -z "$child" ] || { kill -KILL "$child" && wait "$child"; } 2>/dev/null || true
		rm -rf --one-file-system "$root"
	}
	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
	unshare --mount --propagation private --pid --fork --kill-child --net --ipc -- "$0" inside "$root" &
	child=$!
	result=0
	wait $child || result=$?
	child=""
	[ $result = 0 ] || exit $result
	case " $parts " in *" package "*) FRESH=package scripts/fresh.sh ;; esac
	exit 0
fi
root=$2
mount -t proc proc /proc
ip link set lo up

# emulator ARCH: the program that runs those of an architecture; nothing where the machine does it itself.
emulator() {
	local name
	[ "$1" != "$(dpkg --print-architecture)" ] || return 0
	case $1 in arm64) name=qemu-aarch64-static ;; amd64) name=qemu-x86_64-static ;; esac
	command -v "$name" || fail "$name is not there: scripts/packages.sh release"
}

# healthy LOG PID: waits until a server answers.
healthy() {
	for _ in $(seq 300); do
		if (exec 3<>/dev/tcp/127.0.0.1/8000 && printf 'GET /healthz HTTP/1.0\r\n\r\n' >&3 && grep -q '200 OK' <&3) 2>/dev/null; then return 0; fi
		kill -0 "$2" 2>/dev/null || break
		sleep 0.2
	done
	cat "$1"
	fail "it did not become healthy / 没有启动"
}

# stop LOG PID: ends a server as an engine does, which must go well.
stop() {
	local result=0
	kill -TERM "$2"
	wait "$2" || result=$?
	[ $result = 0 ] || { cat "$1"; fail "it ended with $result"; }
}

# answers COMMAND...: a simulated speaker asks the server what time it is.
answers() {
	local answer
	answer=$("$@" talk --server http://127.0.0.1:8000/xiaozhi/ota/ --flash "$flash" --text "what time is it" 2>&1) || { echo "$answer"; fail "talk failed / talk 失败"; }
	echo "$answer" | grep -e ' says ' -e ' latency ' -e ' total '
	echo "$answer" | grep -q 'says .*:[0-9][0-9]' || { echo "$answer"; fail "no time of day was answered / 没有得到时间"; }
	echo "$answer" | grep -q ' total .* 0 dropped' || { echo "$answer"; fail "sound was lost"; }
}

# tryimage ARCH does what an engine does with the image: another root that nobody can write to, mounts of its own, the user
# and the environment that the image names.
tryimage() {
	local arch=$1 at=$root/image-$1 log=$root/image-$1.log flash=/data/speaker.json qemu user dir env=() args=() kind value run
	"$cache/tools/pack" unpack -oci dist/xiaozhi_*_oci.tar -arch "$arch" -to "$at" >"$at.start"
	while read -r kind value; do
		case $kind in user) user=$value ;; dir) dir=$value ;; env) env+=("$value") ;; arg) args+=("$value") ;; esac
	done <"$at.start"
	qemu=$(emulator "$arch")
	mkdir -p "$at/proc" "$at/dev"
	touch "$at"/dev/{null,zero,random,urandom}
	[ -z "$qemu" ] || cp "$qemu" "$at/.qemu"
	mount --bind "$at" "$at"
	mount -t proc proc "$at/proc"
	for name in null zero random urandom; do mount --bind "/dev/$name" "$at/dev/$name"; done
	mount -t tmpfs -o mode=1777 tmpfs "$at/tmp"
	mount -t tmpfs -o "mode=0700,uid=${user%:*},gid=${user#*:}" tmpfs "$at$dir"
	mount -o remount,ro,bind "$at"
	run=(env -i "${env[@]}" /usr/bin/setpriv --no-new-privs /usr/sbin/chroot --userspec="$user" --groups= "$at" ${qemu:+/.qemu})
	echo "smoke: the image for $arch${qemu:+ under ${qemu##*/}} / 镜像"
	"${run[@]}" "${args[@]}" --check >"$log" 2>&1 || { cat "$log"; fail "--check failed"; }
	for name in pocketsphinx flite; do
		grep -q "$name" "$log" || { cat "$log"; fail "$name was not found in the image"; }
	done
	"${run[@]}" "${args[@]}" >"$log" 2>&1 &
	healthy "$log" $!
	answers "${run[@]}" /usr/bin/xiaozhi-sim
	stop "$log" $!
	[ -s "$at$dir/xiaozhi.db" ] || fail "nothing was kept in $dir"
	[ -z "$(find "$at$dir" ! -user "${user%:*}")" ] || fail "something in $dir is not the server's"
}

# tryarchive ARCH unpacks the tar.gz and runs its programs as they stand there.
tryarchive() {
	local arch=$1 at log=$root/archive-$1.log flash=$root/speaker-$1.json qemu libc run
	mkdir "$root/archive-$arch"
	tar -xzf dist/xiaozhi_*_linux_"$arch".tar.gz -C "$root/archive-$arch"
	at=$(ls -d "$root/archive-$arch"/xiaozhi_*)
	qemu=$(emulator "$arch")
	run=()
	# The C library of that architecture is taken out of the image.
	[ -z "$qemu" ] || run=("$qemu" -L "$root/image-$arch")
	echo "smoke: the tar.gz for $arch${qemu:+ under ${qemu##*/}}"
	cd "$at"
	"${run[@]}" bin/xiaozhi version --json | tee "$log"
	for want in '"commit": "[0-9a-f]\{40\}"' "\"arch\": \"$arch\"" '"data": [1-9]' '"settings": [1-9]' '"libopus": "1'; do
		grep -q "$want" "$log" || fail "version --json does not say $want"
	done
	"${run[@]}" bin/xiaozhi serve --check >"$log" 2>&1 || { cat "$log"; fail "--check failed"; }
	"${run[@]}" bin/xiaozhi serve --listen 127.0.0.1:8000 >"$log" 2>&1 &
	healthy "$log" $!
	answers "${run[@]}" bin/xiaozhi-sim
	stop "$log" $!
	cd "$OLDPWD"
}

arches=$(ls dist/xiaozhi_*_linux_*.tar.gz | sed 's/.*_linux_\(.*\)\.tar\.gz/\1/')
for arch in $arches; do
	case " $parts " in *" image "*) tryimage "$arch" ;; esac
	case " $parts " in *" archive "*) tryarchive "$arch" ;; esac
done
echo "smoke: all that was started is well / 全部启动正常"
