package device

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/rawjson"
)

// methodOf is a table of requests that wait for an answer.
func methodOf(id int64) string {
	return map[int64]string{1: "initialize", 2: "tools/list", 3: "tools/call", 4: "ping"}[id]
}

func TestRepairResponse(t *testing.T) {
	for _, c := range []struct{ payload, want, fix string }{
		{`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2026-07-28","capabilities":{}}}`, `{"protocolVersion":"2026-07-28","capabilities":{}}`, ""},
		{`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-10-07"}}`, `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"","version":""}}`, "protocolVersion"},
		{`{"id":"2","result":{"tools":[]}}`, `{"tools":[]}`, "id"},
		{`{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","description":7},{"name":"b","inputSchema":[]}],"nextCursor":"n"}}`, `"nextCursor":"n"`, "schema"},
		{`{"jsonrpc":"2.0","id":2,"result":7}`, `7`, "no object"},
		{`{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"x"}]}}`, `{"content":[{"type":"text","text":"x"}]}`, ""},
		{`{"jsonrpc":"2.0","id":3,"result":true}`, `"text":"true"`, "bare result"},
		{`{"jsonrpc":"2.0","id":4,"result":[1]}`, `[1]`, ""},
	} {
		r, fixes, err := RepairResponse([]byte(c.payload), methodOf)
		if err != nil || r == nil || r.Error != nil || !strings.Contains(string(r.Result), c.want) {
			t.Errorf("%s: %+v, %v; want %s", c.payload, r, err, c.want)
			continue
		}
		if c.fix == "" && len(fixes) > 0 || !strings.Contains(strings.Join(fixes, "; "), c.fix) {
			t.Errorf("%s: fixes %q, want %q", c.payload, fixes, c.fix)
		}
	}
}

func TestRepairResponseErrors(t *testing.T) {
	r, _, err := RepairResponse([]byte(`{"jsonrpc":"2.0","id":3,"error":{"code":-32004,"message":"m"}}`), methodOf)
	if e, ok := errors.AsType[*jsonrpc.Error](r.Error); err != nil || !ok || e.Code != codeServerError || e.Message != "m" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, _, err := RepairResponse([]byte(`{"jsonrpc":"2.0","id":9,"result":{}}`), methodOf); r != nil || err != nil {
		t.Errorf("an answer to nothing: %+v, %v", r, err)
	}
	for _, payload := range []string{`{"method":7}`, `{"jsonrpc":"1.0","method":"ping","id":1}`, `{}`, `[]`, `null`, `{"id":{},"result":1}`, ``} {
		if r, _, err := RepairResponse([]byte(payload), methodOf); err == nil {
			t.Errorf("%s passed: %+v", payload, r)
		}
	}
}

func FuzzRepairResponse(f *testing.F) {
	for _, payload := range []string{
		`{"id":1,"result":{"capabilities":{"tools":true}}}`, `{"id":"2","result":{"tools":[{"name":"a","annotations":{"audience":"user"}}]}}`,
		`{"id":3,"result":{"content":"x"}}`, `{"id":3,"error":"e"}`,
	} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if rawjson.CheckSize(payload) != nil {
			return
		}
		r, _, err := RepairResponse(payload, methodOf)
		if err != nil || r == nil || r.Error != nil {
			return
		}
		var call sdk.CallToolResult
		if id, _ := r.ID.Raw().(int64); id == 3 && json.Unmarshal(r.Result, &call) != nil {
			t.Fatalf("%s cannot be decoded", r.Result)
		}
	})
}
