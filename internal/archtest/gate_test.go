package archtest

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// callers are the files that may run a tool of a source, and those that may say that
// the person in front of a device has consented, each with the reason.
var callers = map[string]map[string]string{
	"CallTool": {
		"mcp/router/run.go":                  "behind the gate of the router",
		"mcp/gateway/offer/local.go":         "in an entry of the catalogue, whose runner asks the gate",
		"internal/app/outside.go":            "the same, for tools that are passed on",
		"mcp/external/set.go":                "a set hands the call to its server",
		"mcp/external/calls.go":              "the server's own session",
		"mcp/device/call.go":                 "the device's own session",
		"agent/record/sources.go":            "a recorded source hands the call on",
		"internal/conformance/client.go":     "a client for the official suite",
		"internal/conformance/everything.go": "the same",
	},
	"Consent": {
		"agent/think/calls.go":           "the user's words were judged by the turn's rules",
		"agent/feature/remote/remote.go": "the user was asked aloud for somebody outside",
	},
}

// TestToolCallers holds every call of a tool to the one gate: who calls a source by
// another way, or says that somebody has consented, is named here with a reason.
func TestToolCallers(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range tree(t, false) {
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || callers[sel.Sel.Name] == nil || strings.Contains(s.path, "sourcetest") {
				return true
			}
			if x, is := sel.X.(*ast.Ident); sel.Sel.Name == "Consent" && (!is || x.Name != "tools") && !isField(sel.X, "Router", "tools") {
				return true // a field of that name
			}
			seen[sel.Sel.Name+" "+s.path] = true
			if callers[sel.Sel.Name][s.path] == "" {
				t.Errorf("%s: %s passes by the gate", s.at(n), sel.Sel.Name)
			}
			return true
		})
	}
	for what, files := range callers {
		for _, file := range slices.Sorted(maps.Keys(files)) {
			if !seen[what+" "+file] {
				t.Errorf("%s does not use %s any more", file, what)
			}
		}
	}
}

// isField reports whether an expression selects a field of one of these names.
func isField(e ast.Expr, names ...string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	return ok && slices.Contains(names, sel.Sel.Name)
}
