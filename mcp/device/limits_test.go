package device

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/schema"
)

// A device cannot make the server keep, and send to a model, any amount of text.
func TestListLimits(t *testing.T) {
	tool := func(name string, description, size int) string {
		schema := `{"type":"object","title":"` + strings.Repeat("x", max(0, size)) + `"}`
		return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s}`, name, strings.Repeat("长", description), schema)
	}
	p, fixes, err := repairList(json.RawMessage(`{"tools":[` + strings.Join([]string{
		tool("wordy", 4000, 0), tool("deep", 1, schema.MaxSize), tool("plain", 1, 10),
	}, ",") + `]}`))
	if err != nil || len(p.tools) != 2 || p.tools[0].Name != "wordy" || p.tools[1].Name != "plain" {
		t.Fatalf("%d tools, %q, %v", len(p.tools), fixes, err)
	}
	if n := len(p.tools[0].Description); n > mcp.MaxDescription || n < mcp.MaxDescription-8 {
		t.Errorf("a description of %d bytes", n)
	}
	if len(fixes) != 1 || !strings.Contains(fixes[0], "schema") {
		t.Errorf("noted %q", fixes)
	}
	var l toolList
	skipped, size := 0, 0
	for page := range 10 {
		var tools []mcp.Tool
		for i := range 8 {
			tools = append(tools, mcp.Tool{Name: fmt.Sprint("t", page, "-", i), Description: strings.Repeat("d", 4000), Schema: json.RawMessage(schema.Empty)})
		}
		skipped += l.add(tools)
	}
	for _, tool := range l.tools {
		size += tool.Size()
	}
	if size > mcp.MaxToolList || size < mcp.MaxToolList-5000 || skipped+len(l.tools) != 80 {
		t.Errorf("%d bytes of %d tools, %d left out", size, len(l.tools), skipped)
	}
}
