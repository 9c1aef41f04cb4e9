package archtest

import (
	"strings"
	"testing"
)

const module = "xiaozhi"

func TestImports(t *testing.T) {
	for _, s := range tree(t, true) {
		for _, name := range s.imports() {
			if why := forbidden(s.pkg, name, s.isTest); why != "" {
				t.Errorf("%s imports %s: %s", s.path, name, why)
			}
		}
	}
}

// forbidden says why importer must not import name, or "".
func forbidden(importer, name string, isTest bool) string {
	if own, ok := strings.CutPrefix(name, module+"/"); ok {
		return forbiddenOwn(importer, own, isTest)
	}
	for _, l := range libraries {
		if name != l.pkg && !strings.HasPrefix(name, l.pkg+"/") {
			continue
		}
		for folder := range strings.FieldsSeq(l.may) {
			if matches(folder+"/...", importer) {
				return ""
			}
		}
		return "only " + l.may + " may: " + l.why
	}
	return ""
}

func forbiddenOwn(importer, own string, isTest bool) string {
	switch {
	case matches("cmd/...", own) && !matches("cmd/...", importer):
		return "nothing imports cmd"
	case !isTest && importer == "agent" && matches("agent/feature/*", own):
		return "a conversation knows no feature by name"
	case isTest && (own == importer || anyMatches(testOnly, own)):
		return ""
	case strings.HasPrefix(own, importer+"/"):
		return "" // what it is made of
	case anyMatches(ground, own) && !anyMatches(ground, importer):
		return ""
	}
	r := ruleOf(importer)
	if r == nil {
		return "it has no row in the table of imports"
	}
	if anyMatches(r.may, own) {
		return ""
	}
	return "not among [" + r.may + "]: " + r.why
}

// ruleOf finds the row of a package or of the nearest folder above it.
func ruleOf(pkg string) *rule {
	var best *rule
	for i := range rules {
		if r := &rules[i]; matches(strings.TrimSuffix(r.pkg, "/*")+"/...", pkg) && (best == nil || len(r.pkg) >= len(best.pkg)) {
			if strings.HasSuffix(r.pkg, "/*") && !matches(r.pkg, pkg) {
				continue
			}
			best = r
		}
	}
	return best
}

// anyMatches reports whether one of the patterns matches a package.
func anyMatches(patterns, pkg string) bool {
	for p := range strings.FieldsSeq(patterns) {
		if matches(p, pkg) {
			return true
		}
	}
	return false
}

// matches reports whether a pattern matches a package: a path, "x/..." or "x/*".
func matches(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if above, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == above || strings.HasPrefix(pkg, above+"/")
	}
	if above, ok := strings.CutSuffix(pattern, "/*"); ok {
		return strings.HasPrefix(pkg, above+"/")
	}
	return pkg == pattern
}

// TestForbidden shows that the rules can fail.
func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		importer, name string
		test, bad      bool
	}{
		{"audio", "xiaozhi/providers", false, true},
		{"audio", "xiaozhi/prompts", false, false},
		{"audio", "xiaozhi/audio/file", false, false},
		{"agent", "github.com/gorilla/websocket", false, true},
		{"agent", "xiaozhi/connection", false, true},
		{"agent", "xiaozhi/providers/openai", false, true},
		{"agent", "xiaozhi/providers", false, false},
		{"agent", "xiaozhi/providers/providertest", true, false},
		{"agent", "xiaozhi/providers/providertest", false, true},
		{"agent/turn", "xiaozhi/audio", false, true},
		{"agent", "xiaozhi/agent/feature", false, false},
		{"agent", "xiaozhi/agent/feature/alarm", false, true},
		{"agent", "xiaozhi/agent/feature/alarm", true, false},
		{"agent/feature/alarm", "xiaozhi/agent", false, true},
		{"agent/feature/alarm", "xiaozhi/agent/feature", false, false},
		{"agent/feature/alarm", "xiaozhi/connection", false, true},
		{"connection", "xiaozhi/providers", false, true},
		{"connection", "github.com/gorilla/websocket", false, true},
		{"connection/websocket", "github.com/gorilla/websocket", false, false},
		{"mcp/local", "xiaozhi/mcp", false, false},
		{"mcp/local", "xiaozhi/agent", false, true},
		{"mcp/local", "xiaozhi/mcp/local/web", false, false},
		{"providers/openai", "xiaozhi/providers/chain", false, true},
		{"cmd/xiaozhi", "xiaozhi/providers/openai", false, false},
		{"cmd/xiaozhi", "xiaozhi/cmd/xiaozhi/internal/app", false, false},
		{"internal/app", "xiaozhi/providers/openai", false, false},
		{"e2e", "xiaozhi/cmd/xiaozhi", true, true},
		{"prompts", "xiaozhi/internal/text", false, false},
		{"nowhere", "xiaozhi/audio", false, true},
	} {
		if got := forbidden(c.importer, c.name, c.test) != ""; got != c.bad {
			t.Errorf("%s imports %s (test %v): forbidden %v, want %v", c.importer, c.name, c.test, got, c.bad)
		}
	}
}
