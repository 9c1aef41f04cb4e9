package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "xiaozhi"

// ground are packages that every package of ours may import.
var ground = []string{"internal/text"}

// rules say which of our packages a package may import. The longest prefix of
// the importer wins.
var rules = []struct {
	importer string
	may      []string
	reason   string
}{
	{"internal/text", nil, "helpers for words"},
	{"audio", nil, "the lowest room: formats and arithmetic"},
	{"mcp", nil, "tools know nothing of talk"},
	{"mcp/local", []string{"mcp"}, "a source knows the model of a tool only"},
	{"mcp/gateway", []string{"mcp", "prompts"}, "what is offered outward goes through the router"},
	{"mcp/external", []string{"mcp"}, "other people's servers know the model of a tool only"},
	{"mcp/sourcetest", []string{"mcp"}, "the contract every source meets"},
	{"prompts", nil, "texts only"},
	{"providers", []string{"audio"}, "contracts"},
	{"providers/providertest", []string{"providers", "audio"}, "fakes of the contracts"},
	{"providers/", []string{"providers", "audio"}, "a technology knows the contracts only"},
	{"providers/local/render", []string{"providers", "audio", "prompts", "providers/local"}, "a generator, run by hand"},
	{"internal/wire", nil, "words of neither side"},
	{"agent", []string{"internal/wire", "mcp", "audio", "providers", "prompts"}, "a conversation never sees a socket or a vendor"},
	{"agent/record", []string{"agent/record", "agent", "internal/wire", "mcp", "audio", "providers", "prompts"}, "a recording knows the contracts of a conversation only"},
	{"connection", []string{"internal/wire", "mcp", "audio"}, "a socket never sees a vendor"},
	{"internal/devicetest", []string{"audio"}, "the other side of the wire shares nothing but the codec"},
	{"internal/speechtest", []string{"audio"}, "recordings"},
	{"internal/openaitest", []string{"audio"}, "a fake cloud"},
	{"internal/bench", []string{"audio", "internal/devicetest", "internal/openaitest"}, "it measures servers from outside, ours like any other"},
}

// libraries say who may import what of others.
var libraries = []struct {
	library string
	may     []string
	reason  string
}{
	{"github.com/hraban/opus", []string{"audio"}, "cgo stays behind one file"},
	{"github.com/gorilla/websocket", []string{"connection", "mcp/external", "mcp/gateway", "internal/devicetest", "e2e"}, "sockets stay in their rooms"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"mcp", "internal/conformance"}, "the protocol stays behind the model of a tool"},
	{"github.com/knadh/koanf", []string{"cmd"}, "only main reads settings"},
	{"github.com/sashabaranov/go-openai", []string{"providers/openai"}, "vendors stay in their folders"},
	{"github.com/ebitengine/purego", []string{"providers/pocketsphinx", "providers/local"}, "engines are opened where they are used"},
}

// testOnly packages may be imported by tests of any package.
var testOnly = []string{"providers/providertest", "internal/devicetest", "internal/speechtest", "internal/openaitest", "mcp/sourcetest", "mcp/local", "mcp/local/spoken"}

func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "data") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		files++
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		checkFile(t, file, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("looked at %d files only: is this the root of the module?", files)
	}
}

func checkFile(t *testing.T, file, rel string) {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%s: %v", rel, err)
		return
	}
	importer := path.Dir(rel)
	isTest := strings.HasSuffix(rel, "_test.go")
	for _, spec := range f.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if why := forbidden(importer, name, isTest); why != "" {
			t.Errorf("%s imports %s: %s", rel, name, why)
		}
	}
}

// forbidden says why importer must not import name, or "".
func forbidden(importer, name string, isTest bool) string {
	if own, ok := strings.CutPrefix(name, module+"/"); ok {
		return forbiddenOwn(importer, own, isTest)
	}
	for _, l := range libraries {
		if name != l.library && !strings.HasPrefix(name, l.library+"/") {
			continue
		}
		for _, m := range l.may {
			if importer == m || strings.HasPrefix(importer, m+"/") {
				return ""
			}
		}
		return "only " + strings.Join(l.may, ", ") + " may: " + l.reason
	}
	return ""
}

func forbiddenOwn(importer, own string, isTest bool) string {
	if own == "cmd" || strings.HasPrefix(own, "cmd/") {
		return "nothing imports cmd"
	}
	if isTest && (own == importer || slices.Contains(testOnly, own)) {
		return ""
	}
	if slices.Contains(ground, own) && !slices.Contains(ground, importer) {
		return ""
	}
	best := -1
	for i, r := range rules {
		prefix := importer == r.importer || strings.HasPrefix(importer, strings.TrimSuffix(r.importer, "/")+"/")
		if prefix && (best < 0 || len(r.importer) >= len(rules[best].importer)) {
			best = i
		}
	}
	if best < 0 { // cmd, e2e, archtest: free
		return ""
	}
	r := rules[best]
	if slices.Contains(r.may, own) {
		return ""
	}
	// A folder may use what it is made of (providers/openai, its own sub-packages).
	if strings.HasPrefix(own, importer+"/") {
		return ""
	}
	return "not among [" + strings.Join(r.may, " ") + "]: " + r.reason
}

// TestForbidden shows that the rules can fail.
func TestForbidden(t *testing.T) {
	for _, c := range []struct {
		importer, name string
		test, bad      bool
	}{
		{"audio", "xiaozhi/providers", false, true},
		{"agent", "github.com/gorilla/websocket", false, true},
		{"agent", "xiaozhi/connection", false, true},
		{"agent", "xiaozhi/providers/openai", false, true},
		{"agent", "xiaozhi/providers", false, false},
		{"agent", "xiaozhi/providers/providertest", true, false},
		{"agent", "xiaozhi/providers/providertest", false, true},
		{"connection", "xiaozhi/providers", false, true},
		{"connection", "github.com/gorilla/websocket", false, false},
		{"mcp/local", "xiaozhi/mcp", false, false},
		{"mcp/local", "xiaozhi/agent", false, true},
		{"providers/openai", "xiaozhi/providers/chain", false, true},
		{"cmd/xiaozhi", "xiaozhi/providers/openai", false, false},
		{"e2e", "xiaozhi/cmd/xiaozhi", true, true},
		{"prompts", "xiaozhi/audio", false, true},
		{"prompts", "xiaozhi/internal/text", false, false},
		{"internal/text", "xiaozhi/audio", false, true},
	} {
		if got := forbidden(c.importer, c.name, c.test) != ""; got != c.bad {
			t.Errorf("%s imports %s (test %v): forbidden %v, want %v", c.importer, c.name, c.test, got, c.bad)
		}
	}
}
