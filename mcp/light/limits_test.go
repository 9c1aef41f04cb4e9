package light

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"xiaozhi/mcp"
)

// A registration is bounded in all, and its answer names what is left out.
func TestRegistrationLimits(t *testing.T) {
	var items []string
	for i := range 40 {
		items = append(items, fmt.Sprintf(`{"name":"t%d","description":%q}`, i, strings.Repeat("d", 4000)))
	}
	r, err := readRegistration(json.RawMessage(`{"tools":[`+strings.Join(items, ",")+`]}`), func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, tool := range r.tools {
		size += tool.Size()
	}
	if size > mcp.MaxToolList || len(r.tools) < 30 || len(r.tools)+len(r.rejected) != 40 || !strings.Contains(r.rejected[0], "larger than") {
		t.Errorf("%d bytes of %d tools, left out %q", size, len(r.tools), r.rejected)
	}
}
