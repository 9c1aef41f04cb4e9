#!/bin/sh
# Holds all providers to their contract, and prints two tables in Markdown: what each has
# kept, what does not concern it and why, and each row of the contract beside each provider.
# Arguments go to go test (scripts/contract.sh -race). Exit code 1 if a row is not kept.
#   LOG=FILE  keep what go test says
set -u
cd "$(dirname "$0")/.." || exit 2
packages=$(grep -rlE 'providertest\.Test(Recogniser|Model|Voice|Embedder)Contract\(' --include='*_test.go' providers | xargs -n1 dirname | sort -u | sed 's|^|./|')
log=${LOG:-$(mktemp)}
[ -n "${LOG:-}" ] || trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # one argument a package
go test -count=1 -json "$@" $packages >"$log"
awk '
function field(name,    at, s) { # of a line of JSON; what is escaped in it stays so
	at = index($0, "\"" name "\":\"")
	if (!at) return ""
	s = substr($0, at + length(name) + 4)
	match(s, /^([^"\\]|\\.)*/)
	return substr(s, 1, RLENGTH)
}
{
	action = field("Action"); package = field("Package"); test = field("Test")
	sub(/^.*\/providers\//, "", package)
	id = package "\t" test
}
action == "attr" && field("Key") == "contract" { role[id] = field("Value"); order[++n] = id }
action == "output" && test != "" {
	said = field("Output")
	if (said ~ /^ +contract[a-z_]*\.go:[0-9]+: /) {
		sub(/^ +contract[a-z_]*\.go:[0-9]+: /, "", said); sub(/\\n$/, "", said)
		why[id] = why[id] (why[id] == "" ? "" : " ") said
	}
}
action ~ /^(pass|fail|skip)$/ { if (test == "") { if (action == "fail") broken[package] = 1 } else { end[id] = action; tests[++m] = id } }
function sort(list, n,    i, j, s) {
	for (i = 2; i <= n; i++) {
		s = list[i]
		for (j = i - 1; j > 0 && list[j] > s; j--) list[j + 1] = list[j]
		list[j + 1] = s
	}
}
END {
	columns = split("none,wrong key,no money,rate limited,wrong model,wrong voice,clock ahead,slow,silent,cut,closed,broken,huge,odd,stale,ends,parts,late", title, ",")
	for (c = 1; c <= columns; c++) column[title[c]] = c
	sort(order, n); sort(tests, m)
	for (i = 1; i <= n; i++) {
		for (j = 1; j <= m; j++) {
			if (index(tests[j], order[i] "/") != 1) continue
			row = substr(tests[j], length(order[i]) + 2); gsub(/_/, " ", row)
			if (row ~ /\//) continue
			if (!(row in column)) { column[row] = ++columns; title[columns] = row }
			did = end[tests[j]]; mark[i, row] = did; total[did]++
			if (did == "pass") kept[i]++
			if (did == "skip") skipped[i] = skipped[i] (skipped[i] == "" ? "" : "; ") row ": " why[tests[j]]
			if (did == "fail") failed[i] = failed[i] (failed[i] == "" ? "" : ", ") row
		}
		split(order[i], part, "\t"); name = part[2]
		name = name ~ /\// ? substr(name, index(name, "/") + 1) : ""
		if (name ~ /^#/) name = ""
		gsub(/_/, " ", name)
		who[i] = part[1] (name == "" ? "" : " (" name ")")
	}
	print "| provider | role | rows kept | do not concern it | not kept |\n|---|---|---|---|---|"
	for (i = 1; i <= n; i++) printf "| %s | %s | %d | %s | %s |\n", who[i], role[order[i]], kept[i], skipped[i], failed[i]
	print "\nEach row: + kept, - does not concern it, X not kept, blank: the service cannot have the fault.\n"
	line = "| provider | role |"; under = "|---|---|"
	for (c = 1; c <= columns; c++) { line = line " " title[c] " |"; under = under "---|" }
	print line "\n" under
	for (i = 1; i <= n; i++) {
		line = "| " who[i] " | " role[order[i]] " |"
		for (c = 1; c <= columns; c++) {
			did = mark[i, title[c]]
			line = line " " (did == "pass" ? "+" : did == "skip" ? "-" : did == "fail" ? "X" : "") " |"
		}
		print line
	}
	printf "\n%d services and roles: %d rows kept, %d do not concern them, %d not kept.\n", n, total["pass"], total["skip"], total["fail"]
	for (p in broken) { print "A test of " p " fails."; bad = 1 }
	exit bad || total["fail"] > 0 || n == 0
}' "$log"
