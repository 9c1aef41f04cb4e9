#!/usr/bin/env bash
# Proves that the README's two commands work on a bare Debian 12: debootstrap puts
# one into a temporary folder, with gcc, make, git, ca-certificates and this
# machine's Go and nothing else. What is committed is cloned there, and root, without HOME
# and locale, runs `make test`, and `make run` until /healthz and a typed question
# are answered. Run it as root before a release. It needs debootstrap, which it
# installs, and a Debian mirror; the temporary folder, its mounts and its
# processes are gone afterwards however it ends.
#
# With FRESH=package it takes what `make release` has put into dist/ in place of compiler, Go and source: the
# Debian package is installed into a bare Debian 12 that starts systemd as a machine does
# (scripts/package-fresh.sh). That takes a minute.
#
# MIRROR    the Debian mirror; default: this machine's, else deb.debian.org
# FRESH     which commands to try: "test run" by default, or package
#
# Settings of proxies (http_proxy and the like, GOPROXY, GOSUMDB, GONOSUMDB) are passed on.
# The bare system is kept in .cache/fresh, for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."

fresh=${FRESH:-test run}
port=18765
fail() { echo "fresh: $*" >&2; exit 1; }

case "$fresh" in test | run | "test run" | package) ;; *) fail "FRESH is test, run, both, or package" ;; esac
[ "$(id -u)" = 0 ] || fail "only root can make a bare system / 需要 root"

# All that follows runs in namespaces of its own for mounts and processes, which
# end with it.
if [ "${1:-}" != inside ]; then
	[ "$fresh" = package ] || command -v go >/dev/null || fail "go is not installed"
	[ "$fresh" = package ] || command -v git >/dev/null || fail "git is not installed"
	if ! command -v debootstrap >/dev/null; then
		DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends debootstrap >/dev/null ||
			{ apt-get update >/dev/null && apt-get install -y --no-install-recommends debootstrap >/dev/null; }
	fi
	root=$(mktemp -d "${TMPDIR:-/tmp}/xiaozhi-fresh-XXXXXX")
	child=""
	cleanup() {
		[ -z "$child" ] || { kill -KILL "$child" && wait "$child"; } 2>/dev/null || true
		rm -rf --one-file-system "$root"
	}
	trap cleanup EXIT
	trap 'exit 130' INT TERM HUP
	unshare --mount --propagation private --pid --fork --kill-child -- "$0" inside "$root" &
	child=$!
	result=0
	wait $child || result=$?
	child=""
	exit $result
fi
root=$2

. scripts/debian.sh
mirror=$(mirror)
mkdir -p .cache/fresh
base=$PWD/.cache/fresh/$suite.tar packages=gcc,libc6-dev,make,git,ca-certificates
if [ "$fresh" = package ]; then
	base=$PWD/.cache/fresh/$suite-systemd.tar packages=ca-certificates,systemd,systemd-sysv,dbus
fi
if [ ! -s "$base" ]; then
	echo "fresh: making a bare Debian 12 / 正在制作干净的 Debian 12"
	debootstrap --variant=minbase --include=$packages "$suite" "$root" "$mirror" >"$base.log" 2>&1 ||
		fail "debootstrap failed, see $base.log"
	rm -rf "$root"/var/cache/apt/archives/*.deb
	tar -C "$root" -cf "$base.new" . && mv "$base.new" "$base"
else
	tar -C "$root" -xf "$base"
fi
chmod 0755 "$root" # the tests run PostgreSQL as its own user

if [ "$fresh" = package ]; then
	. scripts/package-fresh.sh
	exit 0
fi

# Of the host: Go, the names of machines, its mirror, and the modules that it has.
goroot=$(go env GOROOT) modules=$(go env GOMODCACHE)/cache/download
mkdir -p "$root$goroot" "$root/modules" "$modules"
mount --bind "$goroot" "$root$goroot"
mount -o remount,ro,bind "$root$goroot"
mount --bind "$modules" "$root/modules"
mount -o remount,ro,bind "$root/modules"
mount -t proc proc "$root/proc"
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
[ -n "$(ls "$root/etc/apt/sources.list.d" 2>/dev/null)" ] || echo "deb $mirror $suite main" >"$root/etc/apt/sources.list"

[ -z "$(git status --porcelain)" ] || echo "fresh: what is not committed is not tried / 未提交的修改不在测试之内" >&2
git clone -q --no-hardlinks . "$root/xiaozhi"

passed=("PATH=$goroot/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
	[ -z "${!name:-}" ] || passed+=("$name=${!name}")
done
passed+=("GOPROXY=file:///modules,$(go env GOPROXY)" "GOSUMDB=$(go env GOSUMDB)" "GONOSUMDB=$(go env GONOSUMDB)" GOTOOLCHAIN=local)
# bare COMMAND: runs a command in the clone, on the bare system.
bare() { chroot "$root" env -i "${passed[@]}" bash -c "cd /xiaozhi && $1"; }

for tool in curl wget python3 npm node pkg-config; do
	! bare "command -v $tool >/dev/null" || fail "$tool is there: this is no bare system; remove $base"
done

case " $fresh " in *" test "*)
	echo "fresh: make test"
	time bare "make test" || fail "make test failed / make test 失败"
	;;
esac

case " $fresh " in *" run "*)
	echo "fresh: make run"
	bare "exec make run ARGS='--listen 127.0.0.1:$port'" >"$root/run.log" 2>&1 &
	healthy='exec 3<>/dev/tcp/127.0.0.1/'$port' && printf "GET /healthz HTTP/1.0\r\n\r\n" >&3 && grep -q "200 OK" <&3'
	for _ in $(seq 600); do
		bare "$healthy" 2>/dev/null && break
		kill -0 $! 2>/dev/null || break
		sleep 1
	done
	bare "$healthy" || { cat "$root/run.log"; fail "make run did not come up / make run 没有启动"; }
	answer=$(bare "bin/xiaozhi talk --server http://127.0.0.1:$port/xiaozhi/ota/ --text 'what time is it'" 2>&1) ||
		{ echo "$answer"; fail "talk failed / talk 失败"; }
	echo "$answer"
	echo "$answer" | grep -q ':[0-9][0-9]' || fail "no time of day was answered / 没有得到时间"
	;;
esac
echo "fresh: all is well on a bare Debian 12 / 干净的 Debian 12 上全部通过"
