package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// maxFunctionName is how long a function name of a model may be.
const maxFunctionName = 64

// FunctionNames gives each of names, in order, one that a model takes for a function:
// [A-Za-z_][A-Za-z0-9_-]{0,63}. A name that is taken gets _2, _3 …, one that is too long or has letters
// beyond ASCII gets a hash of the whole, so that the same names always come out the same and
// no two alike. The place of an empty name stays "".
func FunctionNames(names []string) []string {
	out := make([]string, len(names))
	taken := make(map[string]bool, len(names))
	last := make(map[string]int) // the last suffix given to a base, so that many alike stay cheap
	for i, name := range names {
		if name == "" {
			continue
		}
		base := FunctionName(name)
		candidate, n := base, max(last[base], 1)
		for taken[candidate] {
			n++
			candidate = withSuffix(base, "_"+strconv.Itoa(n))
		}
		last[base] = n
		taken[candidate] = true
		out[i] = candidate
	}
	return out
}

// opens reports whether a name may begin with that byte: not all models take a digit or a hyphen there.
func opens(c byte) bool { return c != '-' && (c < '0' || c > '9') }

// FunctionName returns the function name for a tool, before names that are alike are told apart.
func FunctionName(name string) string {
	var b strings.Builder
	exact := true
	for _, r := range name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		case r < 0x80:
			b.WriteByte('_')
		default:
			exact = false
		}
	}
	base := b.String()
	if base != "" && !opens(base[0]) {
		base = "_" + base
	}
	if exact && len(base) <= maxFunctionName {
		return base
	}
	sum := sha256.Sum256([]byte(name))
	if strings.Trim(base, "_-") == "" {
		base = "tool"
	}
	return withSuffix(base, "_"+hex.EncodeToString(sum[:4]))
}

// withSuffix appends suffix and cuts base so that the whole is not too long.
func withSuffix(base, suffix string) string {
	return base[:min(len(base), maxFunctionName-len(suffix))] + suffix
}
