package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestServerLinksNoSimulator checks that what only tests, measures or replays a
// server is not linked into the server.
func TestServerLinksNoSimulator(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/xiaozhi")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, module+"/agent") {
		t.Fatalf("the server does not link agent: %q", deps)
	}
	for _, own := range []string{
		"agent/record/replay", "internal/bench", "internal/devicetest", "internal/openaitest", "internal/speechtest", "internal/conformance",
		"providers/providertest", "mcp/sourcetest",
	} {
		if slices.Contains(deps, module+"/"+own) {
			t.Errorf("the server links %s", own)
		}
	}
	if slices.Contains(deps, "testing") {
		t.Error("the server links testing")
	}
}
