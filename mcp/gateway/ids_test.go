package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"xiaozhi/mcp/gateway/catalog"
)

// TestIDs: an id comes back as it was sent, or is refused with a word; it is never
// answered as another one.
func TestIDs(t *testing.T) {
	r := newRig(t, nil)
	session := "Mcp-Session-Id: " + r.initialize("/api/mcp/jsonrpc")
	conn := r.dialSocket("", nil)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}`
	ways := map[string]func(id string) string{
		"bare": func(id string) string {
			return r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`).body
		},
		"session": func(id string) string {
			return r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`, session).body
		},
		"modern": func(id string) string {
			return r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list","params":{`+meta+`}}`,
				"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list").body
		},
		"socket": func(id string) string { return ask(t, conn, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`) },
	}
	for way, send := range ways {
		for _, id := range []string{`"a"`, `""`, `0`, `-3`, `9007199254740991`, `1.5`, `12345678901234567890`, `9007199254740993`} {
			got := send(id)
			if !strings.Contains(got, `"id":`+id+`,`) || !strings.Contains(got, `"result"`) && !strings.Contains(got, "-32600") {
				t.Errorf("%s: id %s: %.200s", way, id, got)
			}
		}
		for _, id := range []string{`true`, `{}`, `null`} {
			if got := send(id); !strings.Contains(got, `"id":null,`) || !strings.Contains(got, "-32600") || !strings.Contains(got, "id 必须是") {
				t.Errorf("%s: id %s: %.200s", way, id, got)
			}
		}
	}
}

// TestTwoReadings: a message that says two things is not checked as one of them and
// served as the other.
func TestTwoReadings(t *testing.T) {
	r := newRig(t, nil)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}`
	session := "Mcp-Session-Id: " + r.initialize("/api/mcp/jsonrpc")
	conn := r.dialSocket("", nil)
	for _, got := range []string{
		r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","Method":"tools/list","params":{`+meta+`,"notifications":{"toolsListChanged":true}}}`,
			"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: subscriptions/listen").body,
		r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"ping"}`, session).body,
		ask(t, conn, `{"jsonrpc":"2.0","id":1,"method":"tools/list","METHOD":"ping"}`),
		ask(t, conn, `{"jsonrpc":"2.0","ID":1,"method":"ping"}`),
	} {
		if field(t, got, "error", "code") != -32600.0 {
			t.Errorf("%.300s", got)
		}
	}
}

// TestBatchesOfSessions: a batch within a session has the limits of one without.
func TestBatchesOfSessions(t *testing.T) {
	r := newRig(t, tokened)
	open := func(token string) []string {
		a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, "Authorization: Bearer "+token)
		return []string{"Authorization: Bearer " + token, "Mcp-Session-Id: " + a.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version: 2025-03-26"}
	}
	batch := func(n int) string {
		var messages []string
		for i := range n {
			messages = append(messages, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		return "[" + strings.Join(messages, ",") + "]"
	}
	session := open("t-all")
	if a := r.rpc("/api/mcp/jsonrpc", batch(maxBatch), session...); a.status != 200 || strings.Count(a.body, `"result":{}`) != maxBatch {
		t.Errorf("as many as may be: %d %.200s", a.status, a.body)
	}
	for what, body := range map[string]string{
		"one more": batch(maxBatch + 1), "100,000": batch(20000), "none": "[]",
		"an id twice":      `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		"an id with a dot": `[{"jsonrpc":"2.0","id":1.5,"method":"ping"}]`,
	} {
		if a := r.rpc("/api/mcp/jsonrpc", body, session...); a.status != 400 || field(t, a.body, "error", "code") != -32600.0 {
			t.Errorf("%s: %d %.200s", what, a.status, a.body)
		}
	}
}

// TestRateOfBatches: each message of a batch counts against the rate of its token.
func TestRateOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{Access: Access{Tokens: []catalog.Token{{Name: "slow", Token: "s", Rate: 1}}}})
		defer g.Close()
		body := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 19) + `{"jsonrpc":"2.0","id":1,"method":"ping"}]`
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/api/mcp/jsonrpc", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer s")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if got := w.Body.String(); strings.Count(got, `"result"`) != 2 || strings.Count(got, `"error"`) != 18 {
			t.Errorf("%d %s", w.Code, got)
		}
	})
}
