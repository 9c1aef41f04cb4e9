package light

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/router"
)

// The frames of docs/mcp.md, Dialects 1, without their white space.
const (
	wantRegister = `{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"AA-BB-CC-DD-EE-FF","tools":[` +
		`{"name":"amplify_volume","description":"设置设备音量","main_type":"remote","sub_type":"control","parameters":{"type":"object",` +
		`"properties":{"level":{"type":"integer","description":"音量大小，从0到100。0为静音，100为最大音量。"}},"required":["level"]}},` +
		`{"name":"set_virtual_human_expression","description":"设置AI虚拟人的表情","main_type":"remote","sub_type":"control","parameters":{"type":"object",` +
		`"properties":{"expression":{"type":"string","description":"要设置的表情","enum":["close_eyes_smile","close_eyes","amazed","smile","cry","idle"]}},` +
		`"required":["expression"]}}]},"id":"client-reg-001"}`
	wantConfirmation = `{"jsonrpc":"2.0","id":"client-reg-001","result":{"status":"registered","message":"Tools were successfully registered."}}`
	wantExecute      = `{"jsonrpc":"2.0","method":"mcp/tool/execute","params":{"tool_name":"amplify_volume","tool_input":{"level":80}},"id":"tool-call-12345-abcdef"}`
	wantChunk        = `{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"chunk","content":"北京今天天气晴朗，气温25摄氏度，有微风。"}}`
)

// registered is a started source whose device has registered, and the device.
func registered(t *testing.T, o Options) (*Source, *FakeLight) {
	t.Helper()
	device := NewFakeLight(t)
	light := device.Light(o)
	if err := light.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = light.Stop() })
	device.Register()
	if got := device.Got(); len(got) != 1 || got[0] != wantConfirmation {
		t.Fatalf("confirmation: %q", got)
	}
	return light, device
}

// TestFrames holds every frame of ours to its exact bytes.
func TestFrames(t *testing.T) {
	var sent []string
	light := New(Options{DeviceID: "aa:bb:cc:dd:ee:ff", Send: func(frame json.RawMessage) error {
		sent = append(sent, string(frame))
		return nil
	}})
	if err := light.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	light.Deliver(json.RawMessage(wantRegister))
	if len(sent) != 1 || sent[0] != wantConfirmation {
		t.Fatalf("the registration was answered by %q", sent)
	}
	tools := light.GetAvailableTools()
	if len(tools) != 2 || tools[0].Name != "amplify_volume" || tools[0].Description != "设置设备音量" || tools[0].Kind != mcp.Control ||
		tools[0].Origin != mcp.Remote || tools[0].Source != "light" || !strings.HasPrefix(string(tools[0].Schema), `{"type":"object","properties":{"level"`) {
		t.Errorf("tools: %+v", tools)
	}
	light.number, light.mark = 12344, "abcdef"
	light.options.Send = func(frame json.RawMessage) error {
		sent = append(sent, string(frame))
		light.Deliver(json.RawMessage(`{"jsonrpc":"2.0","id":"tool-call-12345-abcdef","result":{"status":"success","message":"音量已成功设置为 80"}}`))
		return nil
	}
	result, err := light.CallTool(t.Context(), "amplify_volume", map[string]any{"level": 80})
	if err != nil || mcp.ResultText(mcp.ActionResponse{Result: result}) != `{"status":"success","message":"音量已成功设置为 80"}` {
		t.Errorf("result %v, %v", result, err)
	}
	if sent[1] != wantExecute {
		t.Errorf("sent %s\nwant %s", sent[1], wantExecute)
	}
	light.options.Send = func(json.RawMessage) error {
		light.Deliver(json.RawMessage(`{"jsonrpc":"2.0","id":"tool-call-12346-abcdef","error":{"code":-32000,"message":"执行失败：音量级别超出范围（0-100）。"}}`))
		return nil
	}
	_, err = light.CallTool(t.Context(), "amplify_volume", map[string]any{"level": 180})
	if reported, ok := errors.AsType[*mcp.ToolError](err); !ok || reported.Code != -32000 || reported.Message != "执行失败：音量级别超出范围（0-100）。" {
		t.Errorf("error %v", err)
	}
	if chunk, err := Message(Chunk, "北京今天天气晴朗，气温25摄氏度，有微风。"); err != nil || string(chunk) != wantChunk {
		t.Errorf("chunk %s, %v", chunk, err)
	}
	if final, err := Message(Final, `<a> & "b"`); err != nil || string(final) != `{"jsonrpc":"2.0","method":"mcp/ai/message","params":{"type":"final","content":"<a> & \"b\""}}` {
		t.Errorf("final %s, %v", final, err)
	}
}

func TestSourceRegistrations(t *testing.T) {
	const confirmed = `{"jsonrpc":"2.0","id":"r","result":{"status":"registered","message":"Tools were successfully registered.`
	refused := func(message string) string {
		return `{"jsonrpc":"2.0","id":"r","error":{"code":-32602,"message":"` + message + `"}}`
	}
	entries := func(tools string) string { return `{"tools":[` + tools + `]}` }
	many := strings.TrimSuffix(strings.Repeat(`{"name":"t%d"},`, 300), ",")
	for i := range 300 {
		many = strings.Replace(many, "%d", fmt.Sprint(i), 1)
	}
	tests := map[string]struct {
		params string
		answer string
		names  string // of the tools from then on; "-" for the old list
		log    string
	}{
		"empty list":         {entries(``), confirmed + `"}}`, "", ""},
		"no mac_addr":        {entries(`{"name":"a"}`), confirmed + `"}}`, "a", ""},
		"mac_addr null":      {`{"mac_addr":null,"tools":[]}`, confirmed + `"}}`, "", ""},
		"mac_addr by colons": {`{"mac_addr":"aa:BB:cc:dd:EE:ff","tools":[]}`, confirmed + `"}}`, "", ""},
		"mac_addr without":   {`{"mac_addr":"AABBCCDDEEFF","tools":[]}`, confirmed + `"}}`, "", ""},
		"mac_addr foreign": {
			`{"mac_addr":"AA-BB-CC-DD-EE-00","tools":[]}`,
			refused(`mac_addr \"AA-BB-CC-DD-EE-00\" is not the Device-Id of this connection`), "-", "refused",
		},
		"mac_addr a number": {`{"mac_addr":5,"tools":[]}`, refused("params.mac_addr is no text"), "-", "refused"},
		"no params":         {``, refused("params is missing or no object"), "-", "refused"},
		"params a list":     {`[]`, refused("params is missing or no object"), "-", "refused"},
		"no tools":          {`{}`, refused("params.tools is missing or no array"), "-", "refused"},
		"tools null":        {`{"tools":null}`, refused("params.tools is missing or no array"), "-", "refused"},
		"tools an object":   {`{"tools":{"name":"a"}}`, refused("params.tools is missing or no array"), "-", "refused"},
		"malformed entries": {
			entries(`{"name":"a"},5,null,[],{"name":""},{"name":7},{},{"name":"b"}`),
			confirmed + ` Rejected: tools[1] is no object; tools[2] is no object; tools[3] is no object; tools[4] has no name; tools[5] has no name; tools[6] has no name."}}`,
			"a b", "flaws",
		},
		"nothing of use": {entries(`{}`), `{"jsonrpc":"2.0","id":"r","result":{"status":"registered","message":"No tool was registered. Rejected: tools[0] has no name."}}`, "", "flaws"},
		"twice":          {entries(`{"name":"a","description":"1"},{"name":"a","description":"2"}`), confirmed + ` Rejected: tools[1] \"a\" is there twice, the first is kept."}}`, "a", "flaws"},
		"long name": {
			entries(`{"name":"` + strings.Repeat("n", 300) + `"}`),
			`{"jsonrpc":"2.0","id":"r","result":{"status":"registered","message":"No tool was registered. Rejected: tools[0] \"nnn`, "", "flaws",
		},
		"parameters a list":   {entries(`{"name":"a","parameters":[]}`), `No tool was registered. Rejected: tools[0] \"a\" has parameters that are no object."`, "", "flaws"},
		"parameters a string": {entries(`{"name":"a","parameters":{"type":"string"}}`), `tools[0] \"a\" has parameters whose type is not object.`, "", "flaws"},
		"parameters too big": {
			entries(`{"name":"a","parameters":{"x":"` + strings.Repeat("x", 70_000) + `"}},{"name":"b"}`),
			confirmed + ` Rejected: tools[0] \"a\" has parameters of more than 65536 bytes."}}`, "b", "flaws",
		},
		"parameters null":   {entries(`{"name":"a","parameters":null}`), confirmed + `"}}`, "a", ""},
		"unknown enums":     {entries(`{"name":"a","main_type":"cloud","sub_type":"shout"}`), confirmed + `"}}`, "a", `unknown sub_type`},
		"local, known":      {entries(`{"name":"exit","main_type":"local"},{"name":"a"}`), confirmed + `"}}`, "a", ""},
		"local, unknown":    {entries(`{"name":"fly","main_type":"local"},{"name":"a"}`), confirmed + ` Rejected: tools[0] \"fly\" is no tool of this server."}}`, "a", "flaws"},
		"too many":          {entries(many), `Rejected: tools[256] and all after it are over the limit of 256 tools."`, "256", "flaws"},
		"too many to name":  {entries(strings.TrimSuffix(strings.Repeat(`0,`, 100), ",")), `tools[15] is no object; and 84 more."`, "", "flaws"},
		"long description":  {entries(`{"name":"a","description":"` + strings.Repeat("说", 5000) + `"}`), confirmed + `"}}`, "a", "it is cut"},
		"odd description":   {entries(`{"name":"a","description":5}`), confirmed + `"}}`, "a", ""},
		"members not known": {entries(`{"name":"a","icon":"x"}`), confirmed + `"}}`, "a", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			light, device := registered(t, Options{
				DeviceID: "AA:BB:CC:DD:EE:FF", HasLocal: func(name string) bool { return name == "exit" },
				Log: slog.New(slog.NewTextHandler(&log, nil)),
			})
			params := ""
			if test.params != "" {
				params = `"params":` + test.params + `,`
			}
			device.Say(`{"jsonrpc":"2.0","method":"mcp/registerTools",` + params + `"id":"r"}`)
			got := device.Got()
			if len(got) != 2 || !strings.Contains(got[1], test.answer) || !strings.HasPrefix(got[1], `{"jsonrpc":"2.0","id":"r",`) || len(got[1]) > 4000 {
				t.Errorf("answered %.500q\nwant     %.500q", got[1:], test.answer)
			}
			var names []string
			for _, tool := range light.GetAvailableTools() {
				names = append(names, tool.Name)
				if len(tool.Schema) == 0 || tool.Origin != mcp.Remote || tool.Source != "light" || len(tool.Description) > mcp.MaxDescription {
					t.Errorf("tool %+v", tool)
				}
			}
			switch test.names {
			case "-":
				test.names = "echo slow lamp"
			case "256":
				names = []string{fmt.Sprint(len(names))}
			}
			if have := strings.Join(names, " "); have != test.names {
				t.Errorf("tools %q, want %q", have, test.names)
			}
			if !strings.Contains(log.String(), test.log) || (test.log == "") == strings.Contains(log.String(), "level=WARN") {
				t.Errorf("log: %s", log.String())
			}
		})
	}
}

func TestSourceKinds(t *testing.T) {
	light, device := registered(t, Options{})
	device.Say(`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"tools":[` +
		`{"name":"set_a","sub_type":"control"},{"name":"set_b","sub_type":"query"},{"name":"set_c","sub_type":"Control"},` +
		`{"name":"set_d","sub_type":3},{"name":"set_e","sub_type":null},{"name":"f"}]},"id":"r"}`)
	var got []string
	for _, tool := range light.GetAvailableTools() {
		kind, _ := mcp.ExplainKind(tool, nil)
		got = append(got, fmt.Sprintf("%q/%s", tool.Kind, kind))
	}
	// An unknown sub_type is a query, whatever the name; none at all is judged by the name.
	if want := `"control"/control "query"/query "query"/query "query"/query ""/control ""/query`; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

func TestSourceRegistrationIDs(t *testing.T) {
	for id, want := range map[string]string{
		`,"id":"client-reg-001"`: `"client-reg-001"`,
		`,"id":""`:               `""`,
		`,"id":"a\"b\u00e9é<"`:   `"a\"b\u00e9é<"`,
		`,"id":7`:                `7`,
		`,"id":-1.5e3`:           `-1.5e3`,
		``:                       "",
		`,"id":null`:             "",
		`,"id":{"a":1}`:          "",
		`,"id":[1]`:              "",
		`,"id":true`:             "",
		`,"id":"` + strings.Repeat("x", 300) + `"`: "",
	} {
		var log bytes.Buffer
		device := NewFakeLight(t)
		light := device.Light(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err := light.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		device.Say(`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"tools":[{"name":"a"}]}` + id + `}`)
		if !light.HasTool("a") || !light.IsReady() {
			t.Errorf("%s: not registered", id)
		}
		got := strings.Join(device.Got(), " ")
		if want == "" {
			if got != "" || !strings.Contains(log.String(), "without id") {
				t.Errorf("%s: answered %s; log %s", id, got, log.String())
			}
		} else if got != `{"jsonrpc":"2.0","id":`+want+`,"result":{"status":"registered","message":"Tools were successfully registered."}}` {
			t.Errorf("%s: answered %s", id, got)
		}
	}
}

// TestSourceReregistration: the whole list is replaced at once, the same list
// changes nothing, and calls that are under way go on.
func TestSourceReregistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := 0
		light, device := registered(t, Options{OnTools: func() { changes++ }})
		box := router.New(router.Options{}, light)
		defer box.Close()
		outcome := make(chan any, 1)
		go func() {
			result, err := light.CallTool(t.Context(), "slow", nil)
			outcome <- fmt.Sprintf("%v %v", result, err)
		}()
		synctest.Wait()
		device.Register()
		if got := device.Got(); len(got) != 2 || got[1] != got[0] {
			t.Errorf("the same list again: %q", got)
		}
		device.Say(`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"tools":[{"name":"dance"}]},"id":"2"}`)
		if _, refused := box.Prepare(mcp.Call{Name: "echo"}); refused == nil {
			t.Error("a tool that was replaced is still offered")
		}
		if _, refused := box.Prepare(mcp.Call{Name: "dance"}); refused != nil {
			t.Error("the new tool is not offered")
		}
		if _, err := light.CallTool(t.Context(), "echo", nil); !errors.Is(err, mcp.ErrNoTool) {
			t.Errorf("a call of a replaced tool: %v", err)
		}
		device.Say(`{"jsonrpc":"2.0","id":"` + device.Calls()[0] + `","result":"done"}`)
		if got := <-outcome; got != "done <nil>" {
			t.Errorf("the call under way: %v", got)
		}
		if changes != 3 {
			t.Errorf("%d changes were told", changes)
		}
	})
}

// TestSourceResults sends every shape of JSON through the router to the model.
func TestSourceResults(t *testing.T) {
	for member, want := range map[string]string{
		`"result":"音量已成功设置为 80"`:                         "音量已成功设置为 80",
		`"result":""`:                                    "",
		`"result":"false"`:                               "false",
		`"result":80`:                                    "80",
		`"result":12345678901234567890.10`:               "12345678901234567890.10",
		`"result":true`:                                  "true",
		`"result":false`:                                 "false",
		`"result":null`:                                  "null",
		`"result":[]`:                                    "[]",
		`"result":[1, "二", null, {"a": []}]`:             `[1,"二",null,{"a":[]}]`,
		`"result":{}`:                                    "{}",
		`"result":{"b":1,"a":{"x":"<&>"},"b2":[true]}`:   `{"b":1,"a":{"x":"<&>"},"b2":[true]}`,
		`"result":{"action":4,"funcName":"x"}`:           `{"action":4,"funcName":"x"}`,
		`"result":1,"error":null`:                        "1",
		`"error":{"code":-32000,"message":"超出范围"}`:       "! 超出范围",
		`"error":{"code":-32099,"message":"top"}`:        "! top",
		`"error":{"code":-32003,"message":"as it is"}`:   "! as it is",
		`"error":{"code":-32700,"message":"other"}`:      "! other",
		`"error":{"code":5}`:                             "! code 5",
		`"error":{}`:                                     "! no reason",
		`"error":"broken lamp"`:                          "! broken lamp",
		`"error":{"message":"both"},"result":1`:          "! both",
		`"error":{"code":"-32001","message":{"zh":"坏"}}`: `! {"zh":"坏"}`,
		`"note":"nothing"`:                               "! neither a result nor an error",
	} {
		t.Run(member, func(t *testing.T) {
			light, device := registered(t, Options{})
			device.Answer = func(string, json.RawMessage) string { return member }
			box := router.New(router.Options{}, light)
			defer box.Close()
			p, refused := box.Prepare(mcp.Call{ID: "c", Name: "echo", Arguments: `{"text":"x"}`})
			if refused != nil {
				t.Fatal(*refused)
			}
			r := box.Run(t.Context(), p)
			text := mcp.ResultText(r)
			if said, failed := strings.CutPrefix(want, "! "); failed {
				if r.Action != mcp.ActionTypeError || !strings.Contains(text, said) {
					t.Errorf("got %v %q", r.Action, text)
				}
			} else if r.Action != mcp.ActionTypeReqLLM || text != want {
				t.Errorf("got %v %q, want %q", r.Action, text, want)
			}
		})
	}
}

// TestSourceAnswers: what comes for no call, or late, or in an odd form, harms nothing.
func TestSourceAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		light, device := registered(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if _, err := light.CallTool(ctx, "slow", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		id := device.Calls()[0]
		if !light.Owns(id) || light.Owns("7") || light.Owns("tool-call-9-"+light.mark) {
			t.Error("Owns is wrong")
		}
		for range 2 { // the second time it is nobody's
			device.Say(`{"jsonrpc":"2.0","id":"` + id + `","result":1}`)
		}
		for _, frame := range []string{
			`{"jsonrpc":"2.0","id":"foreign","result":1}`, `{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}`, `{"id":"","result":1}`,
		} {
			device.Say(frame)
		}
		for _, frame := range []string{
			``, `{`, `null`, `[]`, `5`, `{}`, `{"method":5}`, `{"method":""}`, `{"result":1}`, `{"id":null,"result":1}`, `{"id":{},"result":1}`,
			strings.Repeat(`{"id":`, 80) + `1` + strings.Repeat("}", 80), `{"x":"` + strings.Repeat("x", rawjson.MaxSize) + `"}`,
		} {
			device.Say(frame)
		}
		device.Say(`{"jsonrpc":"2.0","method":"mcp/dance","id":"d"}`)
		device.Say(`{"jsonrpc":"2.0","method":"ping","id":3}`)
		device.Say(`{"jsonrpc":"2.0","method":"notifications/progress"}`)
		got := device.Got()[1:]
		if len(got) != 2 || got[0] != `{"jsonrpc":"2.0","id":"d","error":{"code":-32601,"message":"Method not found"}}` || got[1] != `{"jsonrpc":"2.0","id":3,"result":{}}` {
			t.Errorf("answered %q", got)
		}
		if c := light.logged; c["light device frame dropped"] != 13 || c["light device answer to no call of ours"] != 4 {
			t.Errorf("counts %+v", c)
		}
		for _, want := range []string{"came too late", "tool=slow took=15s", "no call of ours"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("log has no %q: %s", want, log.String())
			}
		}
		// Only so many late calls are remembered.
		for range maxAbandoned + 1 {
			over, cancel := context.WithTimeout(t.Context(), time.Second)
			_, _ = light.CallTool(over, "slow", nil)
			cancel()
		}
		if light.Owns(device.Calls()[1]) || !light.Owns(device.Calls()[2]) || len(light.pending) != maxAbandoned {
			t.Errorf("%d calls are remembered", len(light.pending))
		}
	})
}

func TestSourceSendFails(t *testing.T) {
	gone := errors.New("gone")
	light, _ := registered(t, Options{})
	light.options.Send = func(json.RawMessage) error { return gone }
	if _, err := light.CallTool(t.Context(), "echo", nil); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if len(light.pending) != 0 {
		t.Error("a call that was not sent is pending")
	}
	light.Deliver(json.RawMessage(lightTools)) // the confirmation is lost, nothing else
	if !light.HasTool("echo") {
		t.Error("not registered")
	}
	if err := New(Options{}).Start(t.Context()); err == nil {
		t.Error("started without Send")
	}
}

// TestSourceConcurrentCalls: answers in any order never cross.
func TestSourceConcurrentCalls(t *testing.T) {
	light, device := registered(t, Options{})
	device.Answer = func(_ string, input json.RawMessage) string { return `"result":` + string(input) }
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			want := fmt.Sprintf(`{"n":%d}`, i)
			got, err := light.CallTool(t.Context(), "echo", map[string]any{"n": i})
			if err != nil || mcp.ResultText(mcp.ActionResponse{Result: got}) != want {
				t.Errorf("got %v, %v, want %s", got, err, want)
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			device.Register()
		}
	})
	wg.Wait()
	if err := light.Stop(); err != nil || light.IsReady() {
		t.Error("not stopped")
	}
	device.Register()
	if light.IsReady() || light.HasTool("echo") {
		t.Error("registered after Stop")
	}
}

func TestSameAddress(t *testing.T) {
	for _, same := range [][2]string{
		{"AA-BB-CC-DD-EE-FF", "aa:bb:cc:dd:ee:ff"}, {"aabb.ccdd.eeff", "AABBCCDDEEFF"}, {"robot_1", "ROBOT-1"},
	} {
		if !SameAddress(same[0], same[1]) {
			t.Errorf("%v are not the same", same)
		}
	}
	if SameAddress("AA-BB-CC-DD-EE-FF", "AA-BB-CC-DD-EE-F0") {
		t.Error("two addresses are the same")
	}
}

// FuzzSource feeds frames of strangers to a source: nothing panics, whatever is
// sent back is one JSON-RPC frame that repeats the id, and what is listed can
// be offered.
func FuzzSource(f *testing.F) {
	for _, seed := range []string{
		wantRegister, wantConfirmation, wantExecute, wantChunk, lightTools,
		`{"jsonrpc":"2.0","id":"tool-call-1-abcdef","result":{"status":"success"}}`,
		`{"jsonrpc":"2.0","id":"tool-call-1-abcdef","error":{"code":-32000,"message":"执行失败"}}`,
		`{"jsonrpc":"2.0","id":1,"error":"x"}`, `{"method":"ping","id":"\u0000"}`, `{"method":"mcp/registerTools","params":{"tools":[{"name":"a","parameters":{"type":"object","properties":{"x":1}}}]},"id":"` + "\xff" + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var sent []json.RawMessage
		light := New(Options{Send: func(frame json.RawMessage) error { sent = append(sent, frame); return nil }})
		if err := light.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		light.mark = "abcdef"
		light.pending["tool-call-1-abcdef"] = &pendingCall{answer: make(chan answer, 1)}
		waiting := light.pending["tool-call-1-abcdef"]
		light.Deliver(data)
		for _, frame := range sent {
			var m struct {
				Version string          `json:"jsonrpc"`
				ID      json.RawMessage `json:"id"`
			}
			if json.Unmarshal(frame, &m) != nil || m.Version != "2.0" || len(m.ID) == 0 || !bytes.Contains(data, m.ID) {
				t.Errorf("%q was answered by %q", data, frame)
			}
		}
		if len(sent) > 1 {
			t.Errorf("%q was answered %d times", data, len(sent))
		}
		for _, tool := range light.GetAvailableTools() {
			if tool.Name == "" || !json.Valid(tool.Schema) {
				t.Errorf("tool %+v", tool)
			}
		}
		select {
		case a := <-waiting.answer:
			if a.err == nil && a.result == nil {
				t.Errorf("%q gave an empty answer", data)
			}
			_ = mcp.ResultText(mcp.ActionResponse{Result: a.result})
		default:
		}
		if err := light.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestSourceWarnings: a kind of flaw that comes again and again is not logged
// each time, and does not hide another kind.
func TestSourceWarnings(t *testing.T) {
	var log bytes.Buffer
	l := New(Options{Send: func(json.RawMessage) error { return nil }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer l.Stop()
	for range 10 {
		l.Deliver(json.RawMessage(`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"tools":[1]},"id":"a"}`))
	}
	l.Deliver(json.RawMessage(`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"tools":[]}}`))
	if n := strings.Count(log.String(), "has flaws"); n != 4 {
		t.Errorf("%d warnings of ten flawed registrations:\n%s", n, log.String())
	}
	if !strings.Contains(log.String(), "without id") {
		t.Errorf("no warning of a registration without id:\n%s", log.String())
	}
}
