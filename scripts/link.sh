#!/bin/sh
# Stands between Go's linker and gcc where programs of tests are linked (-ldflags=-extld=./scripts/link.sh), which
# so takes a quarter less: gold links them where it is installed, and what gcc knows, which Go's linker asks five
# times for each program, is asked once for each flag and remembered in .tools/link, if that folder is there.
set -eu

cc="${CC:-gcc}"
! command -v ld.gold >/dev/null || cc="$cc -fuse-ld=gold"
known=.tools/link
for last; do :; done
case "$last" in
*/trivial.c) [ -d "$known" ] || exec $cc "$@" ;;
*) exec $cc "$@" ;;
esac

flags=
for arg; do
	case "$arg" in
	-o | */a.out | */trivial.c) ;;
	*) flags="$flags $arg" ;;
	esac
done
case "$flags" in */*) exec $cc "$@" ;; esac

if ! read -r answer 2>/dev/null <"$known/$flags"; then
	answer=0
	said=$($cc "$@" 2>&1) && [ -z "$said" ] || answer=1
	echo "$answer" >"$known/$flags.$$" && mv "$known/$flags.$$" "$known/$flags"
fi
exit "$answer"
