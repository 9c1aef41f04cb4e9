#!/bin/sh
# Fetches axe-core, the rules by which the tests read the pages of the console for accessibility (Deque, MPL-2.0, for
# tests only), into .tools/axe, which git ignores. Is quick when it is there already, and never an error: without
# npm or a network the tests say what they leave out.
set -eu
cd "$(dirname "$0")/.."

package="axe-core@4.14.1"
dir=".tools/axe"
[ "$(cat "$dir/installed" 2>/dev/null || true)" = "$package" ] && exit 0

skip() { echo "NOT TESTED: rules of accessibility, without axe-core: $1 / 没有测试无障碍规则：$2" >&2; exit 0; }
command -v npm >/dev/null 2>&1 || skip "npm is not installed" "没有安装 npm"
bounded() { if command -v timeout >/dev/null 2>&1; then timeout -k 5 "$@"; else shift; "$@"; fi; }

mkdir -p "$dir"
bounded 60 npm pack "$package" --pack-destination "$dir" --fetch-timeout=10000 --fetch-retries=1 --fetch-retry-mintimeout=1000 \
	--fetch-retry-maxtimeout=2000 --no-update-notifier --loglevel=error >"$dir/install.log" 2>&1 </dev/null ||
	skip "npm's registry cannot be reached, see $dir/install.log" "无法连接 npm 的软件源"
tar -xzf "$dir"/axe-core-*.tgz -C "$dir" --strip-components=1 package/axe.min.js package/LICENSE
rm -f "$dir"/axe-core-*.tgz
printf '%s' "$package" >"$dir/installed"
