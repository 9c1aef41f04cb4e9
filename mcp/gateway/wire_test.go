package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestArgumentErrorsByRevision: wrong arguments are a result for clients of
// 2025-11-25 and later, and a JSON-RPC error for older ones. A client that asks
// for an unknown revision speaks the one that the handshake settles on.
func TestArgumentErrorsByRevision(t *testing.T) {
	r := newRig(t, nil)
	id := 1
	call := func(arguments string) string {
		id++
		return `{"jsonrpc":"2.0","id":` + fmt.Sprint(id) + `,"method":"tools/call","params":{"name":"util.uuid","arguments":` + arguments + `}}`
	}
	events := []string{"Accept: application/json, text/event-stream", "Content-Type: application/json"}
	for version, result := range map[string]bool{
		"2024-11-05": false, "2025-03-26": false, "2025-06-18": false, "2025-11-25": true,
		"2024-10-07": true, "2026-01-01": true, "2026-07-28": true, "2030-01-01": true,
	} {
		initialize := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, version)
		session := r.do(http.MethodPost, "/api/mcp/jsonrpc", initialize, events...).header.Get("Mcp-Session-Id")
		conn := r.dialSocket("", nil)
		ask(t, conn, initialize)
		ways := map[string]func(string) string{
			"session": func(body string) string {
				a := r.do(http.MethodPost, "/api/mcp/jsonrpc", body, append(events, "Mcp-Session-Id: "+session)...)
				_, data, _ := strings.Cut(a.body, "data: ")
				return data
			},
			"websocket": func(body string) string { return ask(t, conn, body) },
		}
		if version <= "2025-11-25" && version != "2024-10-07" { // a handshake is needed for the others
			late := r.dialSocket("", http.Header{"Mcp-Protocol-Version": {version}})
			ways["no handshake"] = func(body string) string {
				return r.rpc("/api/mcp/jsonrpc", body, "Mcp-Protocol-Version: "+version).body
			}
			ways["no handshake, websocket"] = func(body string) string { return ask(t, late, body) }
		}
		for way, send := range ways {
			for _, arguments := range []string{`{"count":"many"}`, `{"count":1000}`, `"text"`, `[1]`, `true`} {
				got := send(call(arguments))
				if result && (field(t, got, "result", "isError") != true || !strings.Contains(got, "参数无效")) ||
					!result && field(t, got, "error", "code") != -32602.0 {
					t.Errorf("%s, %s, %s: %s", version, way, arguments, got)
				}
			}
		}
	}
}

// TestCompletionUnknownReference: what is not offered cannot be completed; what is
// offered and has no values can.
func TestCompletionUnknownReference(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", nil)
	id := 0
	for ref, want := range map[string]string{
		`{"type":"ref/prompt","name":"nope"}`:                                   `"error":{"code":-32602,"message":"提示词未找到: nope"}`,
		`{"type":"ref/resource","uri":"x://nope/{id}"}`:                         `"error":{"code":-32602,"message":"资源未找到: x://nope/{id}","data":{"uri":"x://nope/{id}"}}`,
		`{"type":"ref/resource","uri":"xiaozhi://devices/{id}/status"}`:         `"values":[]`,
		`{"type":"ref/resource","uri":"xiaozhi://devices/246f28aa1002/status"}`: `"values":[]`,
		`{"type":"ref/resource","uri":"xiaozhi://config"}`:                      `"values":[]`,
	} {
		id++
		body := `{"jsonrpc":"2.0","id":` + fmt.Sprint(id) + `,"method":"completion/complete","params":{"ref":` + ref + `,"argument":{"name":"none","value":""}}}`
		if got := r.rpc("/api/mcp/jsonrpc", body).body; !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", ref, got, want)
		}
		if got := ask(t, conn, body); !strings.Contains(got, want) {
			t.Errorf("%s by the socket: %s, want %s", ref, got, want)
		}
	}
}

// TestSocketUnknownTypes: a message without JSON-RPC whose type is no known text
// is answered with its requestId.
func TestSocketUnknownTypes(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", nil)
	for frame, want := range map[string]string{
		`{"type":"dance","requestId":"a"}`:             `{"type":"error","requestId":"a","error":{"code":"BAD_REQUEST","message":"未知的消息类型: dance"}}`,
		`{"type":5,"requestId":"a"}`:                   `{"type":"error","requestId":"a","error":{"code":"BAD_REQUEST","message":"未知的消息类型: 5"}}`,
		`{"type":{"a":1},"requestId":7}`:               `{"type":"error","requestId":7,"error":{"code":"BAD_REQUEST","message":"未知的消息类型: {\"a\":1}"}}`,
		`{"type":null,"requestId":"a"}`:                `{"type":"error","requestId":"a","error":{"code":"BAD_REQUEST","message":"未知的消息类型: null"}}`,
		`{"type":"","requestId":"a"}`:                  `{"type":"error","requestId":"a","error":{"code":"BAD_REQUEST","message":"未知的消息类型: \"\""}}`,
		`{"requestId":"a"}`:                            `{"type":"error","requestId":"a","error":{"code":"BAD_REQUEST","message":"缺少消息类型 type"}}`,
		`{}`:                                           `{"type":"error","error":{"code":"BAD_REQUEST","message":"缺少消息类型 type"}}`,
		`{"type":"list_tools","requestId":1,"name":5}`: `{"type":"tools_list","requestId":1,`,
		`{"type":"call_tool","requestId":1,"name":5}`:  `{"type":"error","requestId":1,"error":{"code":"TOOL_NOT_FOUND"`,
		`{"method":"ping","id":1}`:                     `{"jsonrpc":"2.0","id":1,"error":{"code":-32600`,
		`{"jsonrpc":"1.0","type":"x","requestId":1}`:   `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`,
	} {
		if got := ask(t, conn, frame); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", frame, got, want)
		}
	}
}

// TestSocketIDAgain: an id can be used again as soon as its answer has come.
func TestSocketIDAgain(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", nil)
	for range 200 {
		if got := ask(t, conn, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
			t.Fatal(got)
		}
	}
}
