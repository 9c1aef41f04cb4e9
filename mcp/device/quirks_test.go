package device

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/schema"
)

// The rows of docs/mcp.md, Dialects 9, and the tests that hold them:
//
//   - server/discover, silence on unknown methods: TestNothingBeforeInitialize
//   - the id as text; no jsonrpc; error as text; broken JSON: TestQuirks, TestDroppedMessages
//   - error without code, beside a null result, null beside a result; -32003, -32004: TestQuirks
//   - unknown or missing version, capabilities.tools true, capabilities and serverInfo missing: TestInitializeQuirks
//   - tools null, nextCursor "" or null, no schema: TestListQuirks, TestClientPaging
//   - the firmware's image, bare results, unknown content, numeric text: TestQuirks
//   - metadata: TestMetadataIsKept
//   - unknown notification, unsolicited id, request of the device: TestInterjections, TestClientAnswersDevice
//   - time-out, cancelled, late reply: TestClientLateReply, TestBargeInTellsTheDevice
//   - KeepAlive: TestNeverPinged
//   - vision and withUserTools: TestClientInitialize
//   - paging without end: TestClientPaging; 100 calls at once: TestClientConcurrentCalls.

// TestQuirks holds the client against what devices were seen to send, one row
// for each row of docs/mcp.md, Dialects 9, that is about a call. %d is the id.
func TestQuirks(t *testing.T) {
	picture := base64.StdEncoding.EncodeToString([]byte{0xff, 0xd8, 0xff})
	image := mcp.Image{MIMEType: "image/jpeg", Data: []byte{0xff, 0xd8, 0xff}}
	inner, _ := json.Marshal(`{"type":"image","mimeType":"image/jpeg","data":"` + picture + `"}`)
	tests := map[string]struct {
		reply string
		want  any
		err   *mcp.ToolError
	}{
		"proper":                      {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"true"}],"isError":false}}`, "true", nil},
		"id as text":                  {`{"jsonrpc":"2.0","id":"%d","result":{"content":[{"type":"text","text":"a"}]}}`, "a", nil},
		"id as float":                 {`{"jsonrpc":"2.0","id":%d.0,"result":{"content":[{"type":"text","text":"a"}]}}`, "a", nil},
		"no jsonrpc":                  {`{"id":%d,"result":{"content":[{"type":"text","text":"a"}]}}`, "a", nil},
		"error as text":               {`{"jsonrpc":"2.0","id":%d,"error":"it broke"}`, nil, &mcp.ToolError{Code: 0, Message: "it broke"}},
		"error without code":          {`{"jsonrpc":"2.0","id":%d,"error":{"message":"Unknown tool: x"}}`, nil, &mcp.ToolError{Code: 0, Message: "Unknown tool: x"}},
		"error with result null":      {`{"jsonrpc":"2.0","id":%d,"result":null,"error":{"code":-32603,"message":"m"}}`, nil, &mcp.ToolError{Code: -32603, Message: "m"}},
		"error null with result":      {`{"jsonrpc":"2.0","id":%d,"error":null,"result":{"content":[{"type":"text","text":"a"}]}}`, "a", nil},
		"error code -32003":           {`{"jsonrpc":"2.0","id":%d,"error":{"code":-32003,"message":"m"}}`, nil, &mcp.ToolError{Code: -32000, Message: "m"}},
		"error code -32004":           {`{"jsonrpc":"2.0","id":%d,"error":{"code":-32004,"message":"m"}}`, nil, &mcp.ToolError{Code: -32000, Message: "m"}},
		"error code -32005":           {`{"jsonrpc":"2.0","id":%d,"error":{"code":-32005,"message":"m","data":{"x":1}}}`, nil, &mcp.ToolError{Code: -32000, Message: "m"}},
		"error code as text":          {`{"jsonrpc":"2.0","id":%d,"error":{"code":"-32602","message":"m"}}`, nil, &mcp.ToolError{Code: -32602, Message: "m"}},
		"error message is no text":    {`{"jsonrpc":"2.0","id":%d,"error":{"code":1,"message":{"a":1}}}`, nil, &mcp.ToolError{Code: 1, Message: `{"a":1}`}},
		"isError":                     {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"Tool disabled: x"}],"isError":true}}`, nil, &mcp.ToolError{Code: 0, Message: "Tool disabled: x"}},
		"isError as text, no content": {`{"jsonrpc":"2.0","id":%d,"result":{"isError":"true"}}`, nil, &mcp.ToolError{Code: 0, Message: ""}},
		"no content":                  {`{"jsonrpc":"2.0","id":%d,"result":{}}`, "", nil},
		"content null":                {`{"jsonrpc":"2.0","id":%d,"result":{"content":null}}`, "", nil},
		"result null":                 {`{"jsonrpc":"2.0","id":%d,"result":null}`, "", nil},
		"neither result nor error":    {`{"jsonrpc":"2.0","id":%d}`, "", nil},
		"bare text":                   {`{"jsonrpc":"2.0","id":%d,"result":"done"}`, "done", nil},
		"bare bool":                   {`{"jsonrpc":"2.0","id":%d,"result":true}`, "true", nil},
		"bare number":                 {`{"jsonrpc":"2.0","id":%d,"result":21.5}`, "21.5", nil},
		"bare array":                  {`{"jsonrpc":"2.0","id":%d,"result":[1,2]}`, "[1,2]", nil},
		"an object of its own":        {`{"jsonrpc":"2.0","id":%d,"result":{"success":true}}`, `{"success":true}`, nil},
		"structured content only":     {`{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":{"a":1}}}`, `{"a":1}`, nil},
		"content as text":             {`{"jsonrpc":"2.0","id":%d,"result":{"content":"a"}}`, "a", nil},
		"content as one block":        {`{"jsonrpc":"2.0","id":%d,"result":{"content":{"type":"text","text":"a"}}}`, "a", nil},
		"block as text":               {`{"jsonrpc":"2.0","id":%d,"result":{"content":["a",{"type":"text","text":"b"}]}}`, "a\nb", nil},
		"numeric text":                {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":42}]}}`, "42", nil},
		"unknown content type":        {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"chart","points":[1]}]}}`, `{"type":"chart","points":[1]}`, nil},
		"unknown type with a text":    {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"markdown","text":"*a*"}]}}`, "*a*", nil},
		"JSON text stays text":        {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"{\"volume\":55}"}]}}`, `{"volume":55}`, nil},
		"metadata":                    {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a"}],"metadata":{"duration":"15ms"},"_meta":"x"}}`, "a", nil},
		"firmware image":              {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"image","image":` + string(inner) + `}]}}`, image, nil},
		"standard image":              {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"image","mimeType":"image/jpeg","data":"` + picture + `"}]}}`, image, nil},
		"image without a type":        {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"image","data":"` + picture + `"}]}}`, image, nil},
		"image without padding":       {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"image","data":"/9j/AA"}]}}`, mcp.Image{MIMEType: "image/jpeg", Data: []byte{0xff, 0xd8, 0xff, 0}}, nil},
		"image that is no base64":     {`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"image","data":"!"}]}}`, "[an image whose data is not base64]", nil},
		"image and text": {
			`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a"},{"type":"image","data":"` + picture + `"}]}}`,
			[]any{"a", image},
			nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewFakeDevice(t)
				c := connected(t, d, Options{})
				d.Answer = func(r FakeRequest) ([]string, bool) {
					return []string{fmt.Sprintf(strings.ReplaceAll(test.reply, "%%", "%"), r.ID)}, true
				}
				got, err := c.CallTool(t.Context(), "self.echo", nil)
				if test.err != nil {
					reported, ok := errors.AsType[*mcp.ToolError](err)
					if !ok || *reported != *test.err {
						t.Errorf("error %#v, want %#v", err, test.err)
					}
				} else if err != nil || !reflect.DeepEqual(got, test.want) {
					t.Errorf("got %#v, %v, want %#v", got, err, test.want)
				}
				d.Answer = nil
				if again, err := c.CallTool(t.Context(), "self.echo", nil); err != nil || again != "{}" {
					t.Errorf("the next call: %v, %v", again, err)
				}
			})
		})
	}
}

// TestDroppedMessages: what cannot be understood is counted, the call times out
// and the session lives.
func TestDroppedMessages(t *testing.T) {
	tests := map[string]string{
		"broken JSON":         `{"jsonrpc":"2.0","id":%d,"error":{"message":"Unknown tool: "x""}}`,
		"truncated":           `{"jsonrpc":"2.0","id":%d,"resu`,
		"too deep":            `{"jsonrpc":"2.0","id":%d,"result":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		"an array":            `[{"jsonrpc":"2.0","id":%d,"result":{}}]`,
		"null":                `null`,
		"empty":               ``,
		"no id":               `{"jsonrpc":"2.0","result":{}}`,
		"id is null":          `{"jsonrpc":"2.0","id":null,"result":{}}`,
		"id is an object":     `{"jsonrpc":"2.0","id":{"a":%d},"result":{}}`,
		"id is a fraction":    `{"jsonrpc":"2.0","id":%d.5,"result":{}}`,
		"method is no name":   `{"jsonrpc":"2.0","id":%d,"method":7}`,
		"id is another's":     `{"jsonrpc":"2.0","id":9%d,"result":{}}`,
		"invalid UTF-8 in id": "{\"jsonrpc\":\"2.0\",\"id\":\"%d\xff\",\"result\":{}}",
	}
	for name, reply := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewFakeDevice(t)
				c := connected(t, d, Options{})
				d.Answer = func(r FakeRequest) ([]string, bool) {
					return []string{strings.ReplaceAll(reply, "%d", fmt.Sprint(r.ID))}, r.Method == "tools/call"
				}
				late := time.AfterFunc(time.Minute, func() { _ = c.Stop() })
				defer late.Stop()
				if _, err := c.CallTool(t.Context(), "self.echo", nil); !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("the call ended with %v before it was given up", err)
				}
				if n := d.Logged("device message dropped") + d.Logged("device reply to no request of ours"); n != 1 {
					t.Errorf("%d messages were of no use", n)
				}
			})
		})
	}
}

// TestInitializeQuirks: every answer to initialize makes a session, and a list
// follows.
func TestInitializeQuirks(t *testing.T) {
	tests := map[string]struct {
		result string
		want   ServerInfo
	}{
		"unknown version":       {`{"protocolVersion":"2024-10-07","capabilities":{},"serverInfo":{"name":"b","version":"1"}}`, ServerInfo{"b", "1", "2024-11-05"}},
		"missing version":       {`{"capabilities":{},"serverInfo":{"name":"b","version":"1"}}`, ServerInfo{"b", "1", "2024-11-05"}},
		"a version we know":     {`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"b","version":"1"}}`, ServerInfo{"b", "1", "2025-06-18"}},
		"the stateless version": {`{"protocolVersion":"2026-07-28","serverInfo":{"name":"b","version":"1"}}`, ServerInfo{"b", "1", "2024-11-05"}},
		"tools is true":         {`{"protocolVersion":"2024-11-05","capabilities":{"tools":true,"logging":null,"x":[1]},"serverInfo":{"name":"b","version":"1"}}`, ServerInfo{"b", "1", "2024-11-05"}},
		"capabilities is a text": {
			`{"protocolVersion":"2024-11-05","capabilities":"tools","serverInfo":{"name":"b"}}`,
			ServerInfo{"b", "", "2024-11-05"},
		},
		"odd capabilities": {
			`{"capabilities":{"experimental":7,"extensions":{"a":1},"tools":{"listChanged":"yes"}},"serverInfo":{"name":"b"}}`,
			ServerInfo{"b", "", "2024-11-05"},
		},
		"no serverInfo":      {`{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}`, ServerInfo{"", "", "2024-11-05"}},
		"serverInfo is text": {`{"protocolVersion":"2024-11-05","serverInfo":"board"}`, ServerInfo{"", "", "2024-11-05"}},
		"numeric version":    {`{"protocolVersion":20241105,"serverInfo":{"name":"b","version":2}}`, ServerInfo{"b", "2", "2024-11-05"}},
		"null":               {`null`, ServerInfo{"", "", "2024-11-05"}},
		"text":               {`"ok"`, ServerInfo{"", "", "2024-11-05"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewFakeDevice(t)
				d.Answer = func(r FakeRequest) ([]string, bool) {
					return []string{ReplyTo(r, test.result)}, r.Method == methodInitialize
				}
				c := connected(t, d, Options{})
				if !c.IsReady() || c.ServerInfo() != test.want {
					t.Errorf("ready %v, info %+v, want %+v", c.IsReady(), c.ServerInfo(), test.want)
				}
			})
		})
	}
}

// TestNothingBeforeInitialize: the first thing that a device hears of is
// initialize, so that one which is silent on what it does not know is ready at once.
func TestNothingBeforeInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		d.Answer = func(r FakeRequest) ([]string, bool) {
			known := r.Method == methodInitialize || r.Method == methodListTools || r.Method == methodCallTool
			return nil, !known
		}
		began := time.Now()
		c := connected(t, d, Options{})
		if !c.IsReady() || time.Since(began) != 0 {
			t.Errorf("ready %v after %v", c.IsReady(), time.Since(began))
		}
		for _, r := range d.Requests("") {
			switch r.Method {
			case methodInitialize, "notifications/initialized", methodListTools:
			default:
				t.Errorf("the device got %s", r.Method)
			}
		}
	})
}

// TestNeverPinged: firmware refuses ping, and ten minutes of talk end no session.
func TestNeverPinged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		pass(10 * time.Minute)
		if n := len(d.Requests(methodPing)); n != 0 {
			t.Errorf("the device was pinged %d times", n)
		}
		if got, err := c.CallTool(t.Context(), "self.echo", nil); err != nil || got != "{}" {
			t.Errorf("after ten minutes: %v, %v", got, err)
		}
	})
}

// TestInterjections: what a device says between a call and its answer disturbs
// neither the call nor the next one.
func TestInterjections(t *testing.T) {
	tests := map[string]struct {
		said            string
		ignored, stray  int
		replies, broken int
	}{
		"an unknown notification": {`{"jsonrpc":"2.0","method":"notifications/battery","params":{"level":5}}`, 1, 0, 0, 0},
		"log message":             {`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`, 1, 0, 0, 0},
		"progress of nothing":     {`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, 1, 0, 0, 0},
		"cancelled by the device": {`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`, 1, 0, 0, 0},
		"an unsolicited id":       {`{"jsonrpc":"2.0","id":4711,"result":{"content":[{"type":"text","text":"crossed"}]}}`, 0, 1, 0, 0},
		"an unsolicited error":    {`{"jsonrpc":"2.0","id":4711,"error":{"code":-32003,"message":"closing"}}`, 0, 1, 0, 0},
		"a request":               {`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`, 0, 0, 1, 0},
		"a request of our own":    {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`, 0, 0, 1, 0},
		"broken JSON":             {`{"jsonrpc":"2.0","id":`, 0, 0, 0, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewFakeDevice(t)
				c := connected(t, d, Options{})
				d.Answer = func(r FakeRequest) ([]string, bool) {
					return []string{test.said, ReplyTo(r, `{"content":[{"type":"text","text":"mine"}]}`)}, r.Method == methodCallTool
				}
				for range 2 {
					if got, err := c.CallTool(t.Context(), "self.echo", nil); err != nil || got != "mine" {
						t.Errorf("the call gave %v, %v", got, err)
					}
				}
				got := [4]int{
					d.Logged("device notification ignored"), d.Logged("device reply to no request of ours"),
					len(d.Requests("reply")), d.Logged("device message dropped"),
				}
				if want := [4]int{2 * test.ignored, 2 * test.stray, 2 * test.replies, 2 * test.broken}; got != want {
					t.Errorf("ignored, stray, replies, broken: %v, want %v", got, want)
				}
			})
		})
	}
}

func TestListQuirks(t *testing.T) {
	tests := map[string]struct{ result, tools, schema string }{
		"tools null":          {`{"tools":null}`, "", ""},
		"tools missing":       {`{}`, "", ""},
		"nextCursor null":     {`{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":null}`, "a", schema.Empty},
		"nextCursor a number": {`{"tools":[{"name":"a"}],"nextCursor":7}`, "a", schema.Empty},
		"no schema":           {`{"tools":[{"name":"a"}]}`, "a", schema.Empty},
		"schema null":         {`{"tools":[{"name":"a","inputSchema":null}]}`, "a", schema.Empty},
		"schema true":         {`{"tools":[{"name":"a","inputSchema":true}]}`, "a", schema.Empty},
		"no name":             {`{"tools":[{"description":"x"},{"name":""},{"name":7},"x",{"name":"a"}]}`, "a", schema.Empty},
		"a very long name":    {`{"tools":[{"name":"` + strings.Repeat("n", 300) + `"},{"name":"a"}]}`, "a", schema.Empty},
		"odd annotations":     {`{"tools":[{"name":"a","description":7,"annotations":{"readOnlyHint":"yes","audience":7}}]}`, "a", schema.Empty},
		"audience as a text":  {`{"tools":[{"name":"a","annotations":{"audience":"user"}}]}`, "a", schema.Empty},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewFakeDevice(t)
				d.Answer = func(r FakeRequest) ([]string, bool) {
					return []string{ReplyTo(r, test.result)}, r.Method == methodListTools
				}
				c := connected(t, d, Options{})
				tools := c.GetAvailableTools()
				if !c.IsReady() || toolNames(tools) != test.tools {
					t.Fatalf("ready %v, tools %q, want %q", c.IsReady(), toolNames(tools), test.tools)
				}
				if len(tools) > 0 && string(tools[0].Schema) != test.schema {
					t.Errorf("schema %s, want %s", tools[0].Schema, test.schema)
				}
				if name == "audience as a text" && !tools[0].UserOnly() {
					t.Error("the tool is not marked as for people only")
				}
			})
		})
	}
}

// TestMetadataIsKept: the member metadata of other dialects reaches the SDK as _meta.
func TestMetadataIsKept(t *testing.T) {
	got, fixes := repairCall(json.RawMessage(`{"content":[],"metadata":{"a":1,"b":2},"_meta":{"b":3}}`))
	if want := `{"_meta":{"a":1,"b":3},"content":[],"isError":false}`; string(got) != want || len(fixes) != 0 {
		t.Errorf("got %s, %v, want %s", got, fixes, want)
	}
}

func TestRemappedCodeIsKept(t *testing.T) {
	m, err := parseMessage([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"m","data":"d"}}`))
	if err != nil || m.err.Code != -32000 || string(m.err.Data) != `{"code":-32004,"data":"d"}` {
		t.Errorf("got %+v, %v", m.err, err)
	}
}

// FuzzNormalise: whatever a device sends, parsing does not panic, and every
// repaired result is what the SDK can decode.
func FuzzNormalise(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"true"}],"isError":false}}`,
		`{"id":"7","error":"x"}`, `{"id":1,"result":{"tools":[{"name":"a.b","inputSchema":{"type":"object"}}],"nextCursor":"c"}}`,
		`{"id":1,"result":{"protocolVersion":7,"capabilities":{"tools":true}}}`,
		`{"id":1,"result":{"content":[{"type":"image","image":"{\"data\":\"AA==\"}"}]}}`,
		`{"id":2,"method":"ping"}`, `[]`, `{"id":1e3,"result":"\ud800"}`, `{"id":1,"result":{"metadata":{"a":[1]},"content":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := parseMessage(payload)
		if err != nil || m.method != "" || m.err != nil {
			return
		}
		call, _ := repairCall(m.result)
		var result sdk.CallToolResult
		if err := json.Unmarshal(call, &result); err != nil {
			t.Errorf("the SDK cannot read %s: %v", call, err)
		}
		plainResult(result.Content)
		initialize, _, _ := repairInitialize(m.result)
		if err := json.Unmarshal(initialize, new(sdk.InitializeResult)); err != nil {
			t.Errorf("the SDK cannot read %s: %v", initialize, err)
		}
		list, _, err := repairList(m.result)
		if err != nil {
			return
		}
		for _, tool := range list.tools {
			if tool.Name == "" || !json.Valid(tool.Schema) {
				t.Errorf("tool %+v", tool)
			}
		}
	})
}
