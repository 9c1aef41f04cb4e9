#!/bin/sh
# Installs the Debian packages that `make run`, `make test` or `make release` needs, when root;
# otherwise says what is missing. Without what is needed to build (or to test)
# it stops; optional engines are only named.
set -eu

build="pkg-config libopus-dev"
engines="flite espeak-ng libpocketsphinx3 pocketsphinx-en-us"
databases="postgresql-15" # the tests start one of their own; without it they say what is not tested
# The journeys of the console are driven in it; without it they say that they are not tested. Where it is unknown, chromium will do.
browser="chromium-headless-shell"
sounds="asterisk-core-sounds-en-g722 asterisk-moh-opsound-g722 pocketsphinx-testdata alsa-utils"

# A release is compiled for both architectures, and tried on bare systems and by emulation.
case "$(dpkg --print-architecture 2>/dev/null || true)" in
arm64) cross="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;;
*)     cross="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
esac
release="pkg-config binutils gcc libc6-dev $cross debian-archive-keyring debootstrap qemu-user-static"

case "${1:-}" in
run)  needed="$build" optional="$engines" ;;
test) needed="$build $engines $sounds" optional="$databases $browser" ;;
release) needed="$release" optional="" ;;
*)    echo "usage: $0 run|test|release" >&2; exit 2 ;;
esac

for tool in go gcc; do
	command -v "$tool" >/dev/null 2>&1 || { echo "xiaozhi: $tool is not installed / 没有安装 $tool" >&2; exit 1; }
done

if ! command -v dpkg-query >/dev/null 2>&1; then
	if command -v pkg-config >/dev/null 2>&1 && pkg-config --exists opus; then
		echo "xiaozhi: not a Debian system; make sure that these are there: $needed $optional" >&2
		exit 0
	fi
	echo "xiaozhi: not a Debian system, and libopus was not found. Install what Debian calls: $needed $optional" >&2
	exit 1
fi

missing() {
	for p in "$@"; do
		case "$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null || true)" in
		"install ok installed") ;;
		*) printf '%s ' "$p" ;;
		esac
	done
}

need=$(missing $needed)
want=$(missing $optional)
if [ "$want" = "$browser " ] && [ -z "$(missing chromium)" ] && ! apt-cache show "$browser" >/dev/null 2>&1; then
	want=""
fi
[ -n "$need$want" ] || exit 0

if [ "$(id -u)" = 0 ]; then
	echo "xiaozhi: installing Debian packages / 正在安装: $need$want" >&2
	export DEBIAN_FRONTEND=noninteractive UCF_FORCE_CONFFOLD=YES
	log=$(mktemp)
	# PostgreSQL's package makes a database of its own and starts it, unless this file forbids it.
	cluster=/etc/postgresql-common/createcluster.conf
	case "$want" in
	*postgresql*)
		if [ ! -e "$cluster" ]; then
			mkdir -p "${cluster%/*}"
			echo "create_main_cluster = false" >"$cluster"
		fi
		;;
	esac
	install() { apt-get install -y --no-install-recommends "$@" >"$log" 2>&1; }
	if ! install $need $want; then
		apt-get update >/dev/null 2>&1 || true
		install $need $want || {
			# An optional package that cannot be had must not stop the server, nor the others.
			[ -z "$need" ] || install $need || { cat "$log" >&2; rm -f "$log"; echo "xiaozhi: could not install: $need" >&2; exit 1; }
			for p in $want; do
				install "$p" || [ "$p" != "$browser" ] || install chromium || true
			done
		}
	fi
	rm -f "$log"
	still=$(missing $optional)
	[ -z "$still" ] || echo "xiaozhi: going on without / 没有安装: $still" >&2
	exit 0
fi

echo "xiaozhi: missing Debian packages / 缺少软件包. Run / 请执行:" >&2
echo "  apt-get install -y --no-install-recommends $need$want" >&2
if [ -n "$need" ]; then
	exit 1
fi
echo "xiaozhi: going on without them; the start log names what is missing / 没有它们也继续启动" >&2
