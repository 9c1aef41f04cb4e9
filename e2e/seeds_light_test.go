package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"xiaozhi/internal/openaitest"
)

// The examples of the light dialect, as they are printed.
const (
	lightRegister = `{
  "jsonrpc": "2.0",
  "method": "mcp/registerTools",
  "params": {
    "mac_addr": "AA-BB-CC-DD-EE-FF",
    "tools": [
      {
        "name": "amplify_volume",
        "description": "设置设备音量",
        "main_type": "remote",
        "sub_type": "control",
        "parameters": {
            "type": "object",
            "properties": {
                "level": {
                    "type": "integer",
                    "description": "音量大小，从0到100。0为静音，100为最大音量。"
                }
            },
            "required": ["level"]
        }
      },
      {
        "name": "set_virtual_human_expression",
        "description": "设置AI虚拟人的表情",
        "main_type": "remote",
        "sub_type": "control",
        "parameters": {
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "要设置的表情",
                    "enum": ["close_eyes_smile", "close_eyes", "amazed", "smile", "cry", "idle"]
                }
            },
            "required": ["expression"]
        }
      }
    ]
  },
  "id": "client-reg-001"
}`
	lightExecute = `{
  "jsonrpc": "2.0",
  "method": "mcp/tool/execute",
  "params": {
    "tool_name": "amplify_volume",
    "tool_input": {
      "level": 80
    }
  },
  "id": "tool-call-12345-abcdef"
}`
	lightSuccess = `{
  "jsonrpc": "2.0",
  "id": "tool-call-12345-abcdef",
  "result": {
    "status": "success",
    "message": "音量已成功设置为 80"
  }
}`
	lightFailure = `{
  "jsonrpc": "2.0",
  "id": "tool-call-12345-abcdef",
  "error": {
    "code": -32000,
    "message": "执行失败：音量级别超出范围（0-100）。"
  }
}`
	lightConfirmation = `{
  "jsonrpc": "2.0",
  "id": "client-reg-001",
  "result": {
    "status": "registered",
    "message": "Tools were successfully registered."
  }
}`
	lightMessage = `{
  "jsonrpc": "2.0",
  "method": "mcp/ai/message",
  "params": {
    "type": "chunk",
    "content": "北京今天天气晴朗，气温25摄氏度，有微风。"
  }
}`
	exampleID = "tool-call-12345-abcdef"
)

// executeID takes the server's id out of a call and checks that the rest is the
// example, byte for byte; envelope is what stands around it.
func executeID(t *testing.T, call, example, before, after string) string {
	t.Helper()
	inner, ok := strings.CutPrefix(call, before)
	if ok {
		inner, ok = strings.CutSuffix(inner, after)
	}
	id := regexp.MustCompile(`"id":"([^"]+)"\}$`).FindStringSubmatch(inner)
	if !ok || len(id) != 2 {
		t.Fatalf("%s is no call in %q…%q", call, before, after)
	}
	if want := strings.Replace(oneLine(t, example), exampleID, id[1], 1); inner != want {
		t.Errorf("got  %s\nwant %s", inner, want)
	}
	return id[1]
}

// aiMessage is one mcp/ai/message as the example has it.
func aiMessage(t *testing.T, kind, content string) string {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	out := strings.Replace(oneLine(t, lightMessage), `"北京今天天气晴朗，气温25摄氏度，有微风。"`, string(text), 1)
	return strings.Replace(out, `"chunk"`, `"`+kind+`"`, 1)
}

// said reads the messages of one reply: thoughts, chunks, then the one final,
// all of them byte for byte. The chunks make the final.
func (p *peer) said() (final string, thoughts []string) {
	p.t.Helper()
	var chunks strings.Builder
	for {
		text := p.next()
		var m struct {
			Params struct{ Type, Content string }
		}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
		if want := aiMessage(p.t, m.Params.Type, m.Params.Content); text != want {
			p.t.Fatalf("got  %s\nwant %s", text, want)
		}
		switch m.Params.Type {
		case "chunk":
			chunks.WriteString(m.Params.Content)
		case "thought":
			thoughts = append(thoughts, m.Params.Content)
		case "final":
			squeeze := strings.NewReplacer(" ", "")
			if squeeze.Replace(chunks.String()) != squeeze.Replace(m.Params.Content) {
				p.t.Errorf("the chunks say %q, the final %q", chunks.String(), m.Params.Content)
			}
			return m.Params.Content, thoughts
		default:
			p.t.Errorf("message of type %q", m.Params.Type)
		}
	}
}

// TestLightExamples is the first document, end to end: a peer without headers
// and hello. Nothing else than what the document names may reach it.
func TestLightExamples(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, cloud := startObedient(t, "")
	p := dialPeer(t, s)
	p.send(lightRegister)
	p.want(oneLine(t, lightConfirmation))

	// 2 and 3: a control is sent, and its success is taken for granted.
	p.send(typed(`use amplify_volume {"level": 80}`))
	id := executeID(t, p.take("mcp/tool/execute"), lightExecute, "", "")
	if final, _ := p.said(); final != "OK." && final != "好的。" {
		t.Errorf("a control was confirmed by %q", final)
	}
	p.send(strings.Replace(lightSuccess, exampleID, id, 1))
	s.awaitLog(ctx, t, "tool call", "amplify_volume", "source=light", "kind=control", "awaited=false", "late_failure=false", "took=")

	// 3: the failure of one comes late, is told once and is true in the history.
	p.send(typed(`use amplify_volume {"level": 101}`))
	id = executeID(t, p.take("mcp/tool/execute"), strings.Replace(lightExecute, "80", "101", 1), "", "")
	p.said()
	p.send(strings.Replace(lightFailure, exampleID, id, 1))
	if final, _ := p.said(); !strings.Contains(final, "音量级别超出范围（0-100）") {
		t.Errorf("the late failure was told as %q", final)
	}
	s.awaitLog(ctx, t, "tool call", "amplify_volume", "late_failure=true")
	p.send(typed("what became of it"))
	p.said()
	last := lastRequest(t, cloud)
	if n := strings.Count(last, `"tool_call_id":"call-`); n != 2 {
		t.Errorf("%d results for two calls: %s", n, last)
	}
	if !holdsAll(last, []string{`"content":"success"`, "音量级别超出范围（0-100）"}) {
		t.Errorf("the history does not know the truth: %s", last)
	}

	// The model sees what the device has declared, to the letter.
	if !strings.Contains(last, `"parameters":`+oneLine(t, `{
            "type": "object",
            "properties": {
                "level": {
                    "type": "integer",
                    "description": "音量大小，从0到100。0为静音，100为最大音量。"
                }
            },
            "required": ["level"]
        }`)) {
		t.Errorf("the schema was changed on its way to the model: %s", last)
	}

	// An argument outside of the enum never reaches the device; the model is told.
	p.send(typed(`use set_virtual_human_expression {"expression": "angry"}`))
	if final, _ := p.said(); !strings.Contains(final, "expression") {
		t.Errorf("a wrong argument: %q", final)
	}

	// 5: what is said, thoughts too.
	cloud.Reply(openaitest.Chat, openaitest.Events(
		openaitest.Delta(`{"reasoning_content":"先看看天气"}`), openaitest.Delta(`{"content":"北京今天天气晴朗，"}`),
		openaitest.Delta(`{"content":"气温25摄氏度，有微风。"}`), openaitest.Finish("stop")).Then(openaitest.Done()))
	p.send(typed("北京的天空现在好看吗"))
	final, thoughts := p.said()
	if final != "北京今天天气晴朗，气温25摄氏度，有微风。" || len(thoughts) != 1 || thoughts[0] != "先看看天气" {
		t.Errorf("final %q, thoughts %q", final, thoughts)
	}
}

// lightTools is a registration of tools given as JSON.
func lightTools(id, tools string) string {
	return `{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"aa:bb:cc:dd:ee:02","tools":[` + tools + `]},"id":"` + id + `"}`
}

// TestLightQueries registers a query and answers it with JSON of every shape,
// which the model gets as it is.
func TestLightQueries(t *testing.T) {
	t.Parallel()
	s, cloud := startObedient(t, "")
	p := dialPeer(t, s, "Device-Id", "aa:bb:cc:dd:ee:02")
	p.send(lightTools("r1", `{"name":"battery_level","description":"d","main_type":"remote","sub_type":"query","parameters":{"type":"object","properties":{}}}`))
	p.want(`{"jsonrpc":"2.0","id":"r1","result":{"status":"registered","message":"Tools were successfully registered."}}`)
	ids := map[string]bool{}
	for _, c := range []struct{ member, told string }{
		{`"result":{"status":"success","message":"好"}`, `{"status":"success","message":"好"}`},
		{`"result":["a",1,null,true]`, `["a",1,null,true]`},
		{`"result":"just words"`, `just words`},
		{`"result":3.1400`, `3.1400`},
		{`"result":null`, `null`},
		{`"result":false`, `false`},
		{`"error":{"code":-32000,"message":"the battery is gone"}`, `the battery is gone`},
		{`"error":{"code":-32003,"message":"not now"}`, `not now`},
		{`"error":{"code":-32099,"message":"never"}`, `never`},
	} {
		p.send(typed("use battery_level {}"))
		id := executeID(t, p.take("mcp/tool/execute"), `{"jsonrpc":"2.0","method":"mcp/tool/execute","params":{"tool_name":"battery_level","tool_input":{}},"id":"`+exampleID+`"}`, "", "")
		if ids[id] {
			t.Errorf("id %q was used before", id)
		}
		ids[id] = true
		p.send(`{"jsonrpc":"2.0","id":"nobody's","result":1}`) // an answer to nothing changes nothing
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,%s}`, id, c.member))
		if final, _ := p.said(); !strings.Contains(final, "Result: ") {
			t.Errorf("%s: said %q", c.member, final)
		}
		told, err := json.Marshal(c.told)
		if err != nil {
			t.Fatal(err)
		}
		last := lastRequest(t, cloud)
		if strings.HasPrefix(c.member, `"result"`) && !strings.Contains(last, `"content":`+string(told)) || !strings.Contains(last, strings.Trim(string(told), `"`)) {
			t.Errorf("%s: the model was told %s", c.member, last)
		}
	}
}

// TestLightEntries registers what is not as it should be.
func TestLightEntries(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, _ := startObedient(t, "")
	p := dialPeer(t, s, "Device-Id", "aa:bb:cc:dd:ee:02")
	const good = `{"name":"good","main_type":"remote","sub_type":"control","parameters":{"type":"object","properties":{}}}`
	registered := func(id, message string) string {
		return `{"jsonrpc":"2.0","id":"` + id + `","result":{"status":"registered","message":` + message + `}}`
	}
	const all = `"Tools were successfully registered."`
	p.send(lightTools("r1", good))
	p.want(registered("r1", all))
	p.send(lightTools("r2", good+`,{"name":"later"}`)) // takes the place of the first
	p.want(registered("r2", all))
	p.send(lightTools("r3", good+`,{"name":"odd","main_type":"moon","sub_type":"dance"}`)) // lived with
	p.want(registered("r3", all))
	p.send(lightTools("r4", `{"name":"exit","main_type":"local"}`)) // a tool of the server
	p.want(registered("r4", all))
	for id, entry := range map[string]string{
		"m1": good, // twice
		"m2": `{"description":"nameless"}`,
		"m3": `17`,
		"m4": `{"name":"x","parameters":[]}`,
		"m5": `{"name":"` + strings.Repeat("n", 2000) + `"}`,
		"m6": `{"name":"fly_to_moon","main_type":"local"}`,
	} {
		p.send(lightTools(id, good+","+entry))
		got := p.next()
		if !holdsAll(got, []string{`{"jsonrpc":"2.0","id":"` + id + `","result":{"status":"registered","message":"`, "tools[1]"}) {
			t.Errorf("%s: %s", entry, got)
		}
	}
	for _, bad := range []string{
		`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"00-00-00-00-00-01","tools":[]},"id":"w1"}`,
		`{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"AA-BB-CC-DD-EE-02"},"id":"w2"}`,
		`{"jsonrpc":"2.0","method":"mcp/registerTools","id":"w3"}`,
		`{"jsonrpc":"2.0","method":"mcp/registerTools","params":[],"id":"w4"}`,
	} {
		p.send(bad)
		if got := p.next(); !holdsAll(got, []string{`{"jsonrpc":"2.0","id":"w`, `"error":{"code":-32602,"message":"`}) {
			t.Errorf("%s: %s", bad, got)
		}
	}
	p = dialPeer(t, s, "Device-Id", "aa:bb:cc:dd:ee:02")
	p.send(strings.Replace(lightTools("x", good), `,"id":"x"`, "", 1)) // taken, not answered
	s.awaitLog(ctx, t, "without id")
	p.send(typed("use good {}"))
	id := executeID(t, p.take("mcp/tool/execute"), `{"jsonrpc":"2.0","method":"mcp/tool/execute","params":{"tool_name":"good","tool_input":{}},"id":"`+exampleID+`"}`, "", "")
	p.send(`{"jsonrpc":"2.0","id":"` + id + `","result":1}`)
	p.said()
	p.send(typed("use later {}")) // not of this list
	if final, _ := p.said(); !strings.Contains(final, "later") {
		t.Errorf("a tool that is gone: %q", final)
	}
}
