package gateway

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/mcp/gateway/catalog"
)

// What simple clients send, message by message: lines of curl, scripts, sockets.

// TestCurl: lines of curl.
func TestCurl(t *testing.T) {
	r := newRig(t, nil)
	curl := []string{"User-Agent: curl/8.5.0", "Accept: */*"}
	jsonToo := append(slices.Clone(curl), "Content-Type: application/json")

	a := r.do("GET", "/api/mcp/health", "", curl...)
	if a.status != 200 || field(t, a.body, "success") != true || field(t, a.body, "status") != "healthy" || field(t, a.body, "toolsCount").(float64) < 4 {
		t.Errorf("health: %d %s", a.status, a.body)
	}

	a = r.do("GET", "/api/mcp/tools", "", curl...)
	if a.status != 200 || !slices.Contains(names(t, field(t, a.body, "tools")), "system.info") {
		t.Errorf("tools: %d %s", a.status, a.body)
	}
	if got := field(t, a.body, "count").(float64); int(got) != len(field(t, a.body, "tools").([]any)) {
		t.Errorf("count %v", got)
	}

	a = r.do("POST", "/api/mcp/jsonrpc", `{
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list"
  }`, jsonToo...)
	if a.status != 200 || !slices.Contains(names(t, field(t, a.body, "result", "tools")), "system.info") {
		t.Errorf("tools/list: %d %.300s", a.status, a.body)
	}

	a = r.do("POST", "/api/mcp/jsonrpc", `{
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
      "name": "system.info",
      "arguments": {}
    }
  }`, jsonToo...)
	checkSystemInfo(t, field(t, a.body, "result", "content", 0, "text").(string))
	if field(t, a.body, "id") != 1.0 || field(t, a.body, "result", "isError") != false {
		t.Errorf("tools/call: %d %s", a.status, a.body)
	}

	a = r.do("POST", "/api/mcp/tools/call", `{"name": "system.info", "arguments": {}}`, jsonToo...)
	checkSystemInfo(t, field(t, a.body, "content", 0, "text").(string))
	if a.status != 200 || field(t, a.body, "success") != true || field(t, a.body, "isError") != false || field(t, a.body, "metadata", "tool") != "system.info" ||
		!regexp.MustCompile(`^\d+ms$`).MatchString(field(t, a.body, "metadata", "duration").(string)) || field(t, a.body, "metadata", "timestamp").(float64) < 1.7e12 {
		t.Errorf("tools/call by REST: %d %s", a.status, a.body)
	}
}

func checkSystemInfo(t *testing.T, text string) {
	t.Helper()
	for _, key := range []string{"platform", "arch", "nodeVersion", "hostname"} {
		if s, _ := field(t, text, key).(string); s == "" {
			t.Errorf("no %s in %s", key, text)
		}
	}
	if field(t, text, "cpu", "cores").(float64) < 1 {
		t.Errorf("cpu: %s", text)
	}
}

// TestRawHTTP: raw HTTP that sends neither Accept nor, for GET, anything else.
func TestRawHTTP(t *testing.T) {
	r := newRig(t, nil)
	host := r.server.Listener.Addr().String()
	a := r.raw("GET /api/mcp/tools HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
	if a.status != 200 || field(t, a.body, "success") != true {
		t.Errorf("tools: %d %s", a.status, a.body)
	}
	post := func(path, body string) answer {
		return r.raw("POST " + path + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	}
	a = post("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"system.info","arguments":{}}}`)
	checkSystemInfo(t, field(t, a.body, "result", "content", 0, "text").(string))
	a = post("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"invalid_tool","arguments":{}}}`)
	if a.body != `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"工具未找到: invalid_tool"}}` {
		t.Errorf("unknown tool: %d %s", a.status, a.body)
	}
	a = post("/api/mcp/tools/call", `{"name":"invalid_tool","arguments":{}}`)
	if a.status != 404 || a.body != `{"success":false,"error":{"code":"TOOL_NOT_FOUND","message":"工具未找到: invalid_tool"},"isError":true}` {
		t.Errorf("unknown tool by REST: %d %s", a.status, a.body)
	}
}

// TestStreams: tools by stream, in all ways.
func TestStreams(t *testing.T) {
	r := newRig(t, nil)
	list := `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`
	only := func(what string, found []string) {
		t.Helper()
		if len(found) != 3 {
			t.Errorf("%s: %v", what, found)
		}
		for _, name := range found {
			if !strings.HasPrefix(name, kitchenStream+".") {
				t.Errorf("%s: %s is not of the stream", what, name)
			}
		}
	}
	only("?stream=", names(t, field(t, r.do("GET", "/api/mcp/tools?stream="+kitchenStream, "").body, "tools")))
	a := r.do("GET", "/api/mcp/tools/stream/"+kitchenStream, "")
	only("/stream/", names(t, field(t, a.body, "tools")))
	if field(t, a.body, "stream") != kitchenStream || field(t, a.body, "count") != 3.0 {
		t.Errorf("/stream/: %s", a.body)
	}
	only("jsonrpc?stream=", names(t, field(t, r.rpc("/api/mcp/jsonrpc?stream="+kitchenStream, list).body, "result", "tools")))
	only("jsonrpc/", names(t, field(t, r.rpc("/api/mcp/jsonrpc/"+kitchenStream, list).body, "result", "tools")))
	only("the path wins", names(t, field(t, r.rpc("/api/mcp/jsonrpc/"+kitchenStream+"?stream=util", list).body, "result", "tools")))
	for _, a := range []answer{
		r.do("GET", "/api/mcp/tools?stream=nowhere", ""), r.do("GET", "/api/mcp/tools/stream/nowhere", ""),
		r.rpc("/api/mcp/jsonrpc/nowhere", list), r.rpc("/api/mcp/jsonrpc?stream=nowhere", list),
	} {
		if a.status != 404 || !strings.Contains(a.body, "nowhere") {
			t.Errorf("unknown stream: %d %s", a.status, a.body)
		}
	}
	a = r.do("GET", "/api/mcp/tools/system.info", "")
	if field(t, a.body, "success") != true || field(t, a.body, "tool", "name") != "system.info" || field(t, a.body, "tool", "inputSchema", "type") != "object" {
		t.Errorf("one tool: %s", a.body)
	}
}

// TestPython: what requests and websocket-client send.
func TestPython(t *testing.T) {
	r := newRig(t, nil)
	requests := []string{"User-Agent: python-requests/2.32.3", "Accept: */*", "Accept-Encoding: gzip, deflate", "Connection: keep-alive", "Content-Type: application/json"}
	a := r.do("POST", "/api/mcp/jsonrpc", `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`, requests...)
	if !slices.Contains(names(t, field(t, a.body, "result", "tools")), "util.uuid") {
		t.Errorf("tools/list: %s", a.body)
	}
	a = r.do("POST", "/api/mcp/jsonrpc", `{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "system.info", "arguments": {}}}`, requests...)
	checkSystemInfo(t, field(t, a.body, "result", "content", 0, "text").(string))
}

// dialSocket opens /mcp/ws.
func (r *rig) dialSocket(query string, header http.Header) *websocket.Conn {
	r.t.Helper()
	conn, resp, err := websocket.DefaultDialer.DialContext(r.t.Context(), "ws"+strings.TrimPrefix(r.server.URL, "http")+"/mcp/ws"+query, header)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = resp.Body.Close()
	r.t.Cleanup(func() { conn.Close() })
	return conn
}

// ask writes a frame and reads the next one.
func ask(t *testing.T, conn *websocket.Conn, frame string) string {
	t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
		t.Fatal(err)
	}
	return read(t, conn)
}

func read(t *testing.T, conn *websocket.Conn) string {
	t.Helper()
	_, data, err := conn.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestSocketMessages: both kinds of messages on one socket.
func TestSocketMessages(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", nil)
	got := ask(t, conn, `{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`)
	if !slices.Contains(names(t, field(t, got, "result", "tools")), "system.info") || field(t, got, "id") != 1.0 {
		t.Errorf("tools/list: %s", got)
	}
	got = ask(t, conn, `{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "system.info", "arguments": {}}}`)
	checkSystemInfo(t, field(t, got, "result", "content", 0, "text").(string))
	if field(t, got, "result", "isError") != false {
		t.Errorf("isError is missing: %s", got)
	}
	got = ask(t, conn, `{"type": "call_tool", "requestId": "req_123", "name": "system.info", "arguments": {}}`)
	checkSystemInfo(t, field(t, got, "result", "content", 0, "text").(string))
	if field(t, got, "type") != "tool_result" || field(t, got, "requestId") != "req_123" || field(t, got, "result", "isError") != false {
		t.Errorf("call_tool: %s", got)
	}
	got = ask(t, conn, `{"type": "list_tools"}`)
	if field(t, got, "type") != "tools_list" || !slices.Contains(names(t, field(t, got, "tools")), "system.info") {
		t.Errorf("list_tools: %s", got)
	}
	for frame, want := range map[string]string{
		`{"type":"call_tool","requestId":7,"name":"nope"}`:        `{"type":"error","requestId":7,"error":{"code":"TOOL_NOT_FOUND","message":"工具未找到: nope"}}`,
		`{"type":"call_tool","requestId":"x","name":"util.hash"}`: `"code":"INVALID_ARGUMENTS"`,
		`{"type":"dance"}`: `{"type":"error","error":{"code":"BAD_REQUEST","message":"未知的消息类型: dance"}}`,
		`{"jsonrpc":`:      `"code":-32700`,
		`[]`:               `"code":-32600`,
		`{"jsonrpc":"2.0","id":3,"method":"nope"}`:                                                    `{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"方法未找到: nope"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"nope"}}`:                     `"code":-32601`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"util.hash","arguments":{}}}`: `"code":-32602`,
		strings.Repeat("[", 1000): `"code":-32600`,
	} {
		if got := ask(t, conn, frame); !strings.Contains(got, want) {
			t.Errorf("%.60s: %s, want %s", frame, got, want)
		}
	}
}

// TestCoreTools: the core tools answer in the shapes that clients expect.
func TestCoreTools(t *testing.T) {
	r := newRig(t, nil)
	call := func(name, arguments string) string {
		t.Helper()
		a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+arguments+`}}`)
		return field(t, a.body, "result", "content", 0, "text").(string)
	}
	now := call("time.now", `{"format":"locale","timezone":"Asia/Shanghai"}`)
	if field(t, now, "format") != "locale" || field(t, now, "time") != field(t, now, "date").(string)+" "+field(t, now, "timeOnly").(string) {
		t.Errorf("time.now: %s", now)
	}
	if ms, s := field(t, now, "timestamp").(float64), field(t, now, "unix").(float64); int64(ms)/1000 != int64(s) {
		t.Errorf("timestamp %v and unix %v differ", ms, s)
	}
	for format, of := range map[string]string{"iso": "iso", "timestamp": "timestamp", "unix": "unix"} {
		if got := call("time.now", `{"format":"`+format+`"}`); field(t, got, "time") != field(t, got, of) {
			t.Errorf("format %s: %s", format, got)
		}
	}
	if got := call("time.now", `{"timezone":"Mars/Olympus"}`); !strings.Contains(got, "Mars/Olympus") {
		t.Errorf("unknown zone: %s", got)
	}
	one := call("util.uuid", `{}`)
	id, _ := field(t, one, "uuids").(string)
	if field(t, one, "version") != "v4" || field(t, one, "count") != 1.0 || len(id) != 36 || id[14] != '4' || !strings.ContainsRune("89ab", rune(id[19])) {
		t.Errorf("uuid: %s", one)
	}
	if five := call("util.uuid", `{"version":"v4","count":5}`); len(field(t, five, "uuids").([]any)) != 5 {
		t.Errorf("uuids: %s", five)
	}
	if got := call("util.hash", `{"data":"Hello World","algorithm":"sha256"}`); got != `{"algorithm":"sha256","hash":"a591a6d40bf420404a011733cfb7b190d62c65bf0bcda32b57b277d9ad9f146e","length":64}` {
		t.Errorf("hash: %s", got)
	}
	for algorithm, want := range map[string]string{
		"md5": "b10a8db164e0754105b7a99be72e3fe5", "sha1": "0a4d55a8d778e5022fab701977c5d840bbc486d0",
		"sha512": "2c74fd17edafd80e8447b0d46741ee243b7eb74dd2149a0ab1b9246fb30382f27e853d8585719e0e67cbda0daa8f51671064615d645ae27acb15bfb1447f459b",
	} {
		if got := call("util.hash", `{"data":"Hello World","algorithm":"`+algorithm+`"}`); field(t, got, "hash") != want || int(field(t, got, "length").(float64)) != len(want) {
			t.Errorf("%s: %s", algorithm, got)
		}
	}
	if got := call("system.info", `{"detail":true}`); field(t, got, "detail", "devices") != 1.0 {
		t.Errorf("detail: %s", got)
	}
}

// TestSocketHandshake: a session over a socket, message by message, with the ids of
// the client.
func TestSocketHandshake(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", nil)
	got := ask(t, conn, `{"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"experimental":{},"roots":{"listChanged":true}},"clientInfo":{"name":"Cline","version":"3.13.1"}},"jsonrpc":"2.0","id":0}`)
	if field(t, got, "id") != 0.0 || field(t, got, "result", "protocolVersion") != "2024-11-05" || field(t, got, "result", "serverInfo", "name") != "xiaozhi" {
		t.Errorf("initialize: %s", got)
	}
	for _, path := range [][]any{{"prompts", "listChanged"}, {"resources", "listChanged"}, {"resources", "subscribe"}, {"tools", "listChanged"}} {
		if field(t, got, append([]any{"result", "capabilities"}, path...)...) != true {
			t.Errorf("no %v in %s", path, got)
		}
	}
	if s, _ := field(t, got, "result", "instructions").(string); s == "" {
		t.Errorf("no instructions: %s", got)
	}
	if err := conn.WriteMessage(websocket.TextMessage, []byte(`{"method":"notifications/initialized","jsonrpc":"2.0"}`)); err != nil {
		t.Fatal(err)
	}
	got = ask(t, conn, `{"method":"tools/list","jsonrpc":"2.0","id":1}`)
	for i, tool := range field(t, got, "result", "tools").([]any) {
		for _, key := range []string{"name", "description", "inputSchema", "annotations"} {
			if tool.(map[string]any)[key] == nil {
				t.Errorf("tool %d has no %s", i, key)
			}
		}
	}
	got = ask(t, conn, `{"method":"resources/list","jsonrpc":"2.0","id":2}`)
	first := field(t, got, "result", "resources", 0).(map[string]any)
	if first["uri"] == nil || first["name"] == nil || first["metadata"] == nil {
		t.Errorf("resources/list: %s", got)
	}
	if err := r.Registry().Add(catalog.Tool{Name: "sum", Schema: json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"integer","format":"int32"},"b":{"type":"integer","format":"int32"}},"required":["a","b"]}`), Run: sum}); err != nil {
		t.Fatal(err)
	}
	if got = read(t, conn); field(t, got, "method") != "notifications/tools/list_changed" {
		t.Errorf("after a registration: %s", got)
	}
	got = ask(t, conn, `{"method":"tools/call","params":{"name":"sum","arguments":{"a":1023123,"b":2352345}},"jsonrpc":"2.0","id":7}`)
	if field(t, got, "id") != 7.0 || field(t, got, "result", "content", 0, "text") != "3375468" || field(t, got, "result", "isError") != false {
		t.Errorf("sum: %s", got)
	}
	if _, ok := field(t, got, "result", "metadata", "executionTime").(float64); !ok {
		t.Errorf("no executionTime: %s", got)
	}
}
