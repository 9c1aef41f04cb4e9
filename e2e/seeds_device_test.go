package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// The hello of the second document.
const seedHello = `{"type":"hello","version":1,"features":{"mcp":true},"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`

// envelope is a JSON-RPC payload as the second document wraps it.
func envelope(session, payload string) string {
	return `{"session_id":"` + session + `","type":"mcp","payload":` + payload + `}`
}

// asked waits for a request of the standard dialect, checks that envelope and
// payload have exactly the members of the document, and returns its id and params.
func (p *peer) asked(method string) (id int, params map[string]any) {
	p.t.Helper()
	text, _ := p.until(`"type":"mcp"`, `"method":"`+method+`"`)
	p.exact(text, method, "jsonrpc", "id", "method", "params")
	payload := members(p.t, text)["payload"].(map[string]any)
	number, _ := payload["id"].(float64)
	if number < 1 || number != float64(int32(number)) || payload["jsonrpc"] != "2.0" {
		p.t.Errorf("%s", text)
	}
	params, _ = payload["params"].(map[string]any)
	return int(number), params
}

// exact fails unless the envelope begins as the document has it and the payload
// has these members and no others.
func (p *peer) exact(text, what string, names ...string) {
	p.t.Helper()
	if !strings.HasPrefix(text, `{"session_id":"`+p.session+`","type":"mcp","payload":{`) {
		p.t.Errorf("envelope of %s: %s", what, text)
	}
	m := members(p.t, text)
	payload, _ := m["payload"].(map[string]any)
	if len(m) != 3 || len(payload) != len(names) {
		p.t.Errorf("members of %s: %s", what, text)
	}
	for _, name := range names {
		if _, ok := payload[name]; !ok {
			p.t.Errorf("%s has no %s: %s", what, name, text)
		}
	}
}

// answer answers a request of the standard dialect.
func (p *peer) answer(session string, id int, member string) {
	p.t.Helper()
	p.send(envelope(session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, id, member)))
}

const initialized = `"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"seed-board","version":"9.8.7"}}`

// settle goes through initialize and two pages of tools.
func (p *peer) settle() {
	p.t.Helper()
	id, _ := p.asked("initialize")
	p.answer("", id, initialized)
	id, params := p.asked("tools/list")
	if _, there := params["cursor"]; there {
		p.t.Errorf("the first page was asked for with a cursor: %v", params)
	}
	p.answer(p.session, id, `"result":{"tools":[{"name":"self.audio_speaker.set_volume","description":"Set the volume","inputSchema":{"type":"object","properties":{"volume":{"type":"integer","minimum":0,"maximum":100}},"required":["volume"]}}],"nextCursor":"self.battery.get_level"}`)
	id, params = p.asked("tools/list")
	if params["cursor"] != "self.battery.get_level" || params["withUserTools"] != true {
		p.t.Errorf("the second page was asked for with %v", params)
	}
	p.answer("of somebody else", id, `"result":{"tools":[{"name":"self.battery.get_level","inputSchema":{"type":"object","properties":{}}},{"name":"self.reboot","inputSchema":{"type":"object","properties":{}},"annotations":{"audience":["user"]}}]}`)
}

// TestStandardExamples is the second document's MCP part, end to end.
func TestStandardExamples(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, cloud := startObedient(t, "vision: [openai]\nmcp: {transcripts: true}\n")
	const device = "24:6f:28:5e:ed:01"
	p := dialPeer(t, s, "Device-Id", device, "Client-Id", "c-1", "Protocol-Version", "1")
	p.hello(seedHello)
	if p.session == "" {
		t.Error("no session_id")
	}
	id, params := p.asked("initialize")
	capabilities, _ := params["capabilities"].(map[string]any)
	vision, _ := capabilities["vision"].(map[string]any)
	if url, _ := vision["url"].(string); !strings.HasPrefix(url, strings.TrimSuffix(s.ota, "/xiaozhi/ota/")) || vision["token"] == "" {
		t.Errorf("capabilities %v", capabilities)
	}
	p.answer("", id, initialized)
	told, _ := p.until("notifications/initialized")
	if m := members(t, told)["payload"].(map[string]any); m["id"] != nil {
		t.Errorf("a notification with an id: %s", told)
	}
	id, _ = p.asked("tools/list") // fails at first, and is tried again
	p.answer("", id, `"error":{"code":-32000,"message":"booting"}`)
	// settle begins with initialize, which is done: the list alone is asked for again.
	id, params = p.asked("tools/list")
	if params["withUserTools"] != true {
		t.Errorf("tools/list %v", params)
	}
	p.answer("", id, `"result":{"tools":[{"name":"self.audio_speaker.set_volume","description":"Set the volume","inputSchema":{"type":"object","properties":{"volume":{"type":"integer","minimum":0,"maximum":100}},"required":["volume"]}}],"nextCursor":"self.battery.get_level"}`)
	id, params = p.asked("tools/list")
	if params["cursor"] != "self.battery.get_level" || params["withUserTools"] != true {
		t.Errorf("second page: %v", params)
	}
	p.answer("x", id, `"result":{"tools":[{"name":"self.battery.get_level","inputSchema":{"type":"object","properties":{}}},{"name":"self.reboot","inputSchema":{"type":"object","properties":{}},"annotations":{"audience":["user"]}}]}`)
	s.awaitLog(ctx, t, "device_id="+device, "initialized", "seed-board", "9.8.7", "2024-11-05")
	s.awaitLog(ctx, t, "device_id="+device, "device tools listed", "tools=3")

	p.send(`{"session_id":"","type":"listen","state":"start","mode":"manual"}`)
	p.send(typed("use self_battery_get_level {}"))
	id, params = p.asked("tools/call")
	if len(params) != 2 || params["name"] != "self.battery.get_level" || fmt.Sprint(params["arguments"]) != "map[]" {
		t.Errorf("tools/call %v", params)
	}
	p.answer("", id, `"result":{"content":[{"type":"text","text":"87"}],"isError":false}`)
	p.until(`"sentence_start"`, "Result: 87.")
	p.until(`"tts"`, `"stop"`)
	if body := lastRequest(t, cloud); strings.Contains(body, "reboot") || !strings.Contains(body, `"content":"87"`) {
		t.Errorf("the model was shown %s", body)
	}

	p.send(typed("use self_battery_get_level {}")) // an error goes back to the model, and to the log with its id
	id, _ = p.asked("tools/call")
	p.send(envelope(p.session, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hot"}}`))
	p.answer("", id, `"error":{"code":-32603,"message":"the gauge is broken"}`)
	p.until(`"sentence_start"`, "the gauge is broken")
	p.until(`"tts"`, `"stop"`)
	s.awaitLog(ctx, t, "tool call", "device_id="+device, "the gauge is broken")
	s.awaitLog(ctx, t, "answered with an error", fmt.Sprintf(" id=%d ", id), "tool=self.battery.get_level", "the gauge is broken")

	p.send(typed(`use self_audio_speaker_set_volume {"volume": "55"}`)) // a control with a near miss
	id, params = p.asked("tools/call")
	if fmt.Sprint(params["arguments"]) != "map[volume:55]" {
		t.Errorf("tools/call %v", params)
	}
	p.until(`"tts"`, `"stop"`) // the talk does not wait for it
	p.answer("", id, `"result":{"content":[{"type":"text","text":"true"}],"isError":false}`)
	s.awaitLog(ctx, t, "tool call", "set_volume", "kind=control", "source=device", "awaited=false", `volume\":55`)

	// The device says that it has other tools now.
	p.send(envelope("", `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
	id, _ = p.asked("tools/list")
	p.answer("", id, `"result":{"tools":[{"name":"self.lamp.turn_on","inputSchema":{"type":"object","properties":{}}}]}`)
	s.awaitLog(ctx, t, "device_id="+device, "device tools listed", "tools=1")

	// After a reconnect the tools are there at once, and are read again.
	p.conn.Close()
	again := dialPeer(t, s, "Device-Id", device, "Client-Id", "c-1")
	again.hello(seedHello)
	again.send(typed("please only listen"))
	again.until(`"tts"`, `"stop"`)
	if body := lastRequest(t, cloud); !holdsAll(body, []string{"self_lamp_turn_on", "Result: 87."}) {
		t.Errorf("after the reconnect: %s", body)
	}
	fresh := dialPeer(t, s, "Device-Id", device, "Client-Id", "c-1")
	fresh.hello(seedHello)
	fresh.settle()
	s.awaitLog(ctx, t, "device_id="+device, "device tools listed", "tools=3", "changed=true")
}

// TestWithoutMCP says a hello without the feature: no MCP message may come.
func TestWithoutMCP(t *testing.T) {
	t.Parallel()
	s, _ := startObedient(t, "")
	for i, hello := range []string{
		`{"type":"hello","version":1,"transport":"websocket"}`,
		`{"type":"hello","version":1,"features":{},"transport":"websocket"}`,
		`{"type":"hello","version":1,"features":{"mcp":false},"transport":"websocket"}`,
	} {
		p := dialPeer(t, s, "Device-Id", fmt.Sprintf("24:6f:28:5e:ed:1%d", i))
		p.hello(hello)
		p.send(typed("good day to you"))
		_, before := p.until(`"tts"`, `"stop"`)
		for _, text := range before {
			if strings.Contains(text, `"mcp"`) || strings.Contains(text, "jsonrpc") {
				t.Errorf("%s was answered with %s", hello, text)
			}
		}
	}
}

// TestThingExamples is the second document's IoT part: descriptors one by one,
// whole and partial states, commands as they are printed.
func TestThingExamples(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, cloud := startObedient(t, "")
	p := dialPeer(t, s, "Device-Id", "24:6f:28:5e:ed:21")
	p.hello(hello242)
	for _, thing := range []string{
		`{ "name": "Lamp", "properties": {"power":{"type":"boolean"},"level":{"type":"number"}}, "methods": {"TurnOn":{"parameters":{}},"SetLevel":{"parameters":{"level":{"type":"number"}}}} }`,
		`{ "name": "Speaker", "properties": {"volume":{"type":"number"}}, "methods": {} }`,
	} {
		p.send(`{ "type":"iot", "update": true, "descriptors": [ ` + thing + ` ] }`)
	}
	p.send(`{ "type":"iot", "update": true, "states": [ { "name":"Lamp", "state": { "power": false, "level": 10 } }, { "name":"Speaker", "state": { "volume": 30 } } ] }`)
	p.send(`{"session_id":"","type":"listen","state":"start","mode":"manual"}`)

	p.send(typed("use self_lamp_turn_on {}"))
	command, before := p.until(`"iot"`)
	if want := `{"session_id":"` + p.session + `","type":"iot","commands":[{"name":"Lamp","method":"TurnOn","parameters":{}}]}`; command != want {
		t.Errorf("got  %s\nwant %s", command, want)
	}
	for _, text := range before {
		if !strings.Contains(text, p.session) {
			t.Errorf("no session_id in %s", text)
		}
	}
	p.until(`"tts"`, `"stop"`)
	p.send(`{ "type":"iot", "update": true, "states": [ { "name":"Lamp", "state": { "power": true } } ] }`) // which confirms the call
	s.awaitLog(ctx, t, "tool call", "self.lamp.turn_on", "source=iot", "kind=control", "awaited=false")

	p.send(typed(`use self_lamp_set_level {"level": "bright"}`)) // would crash the device
	if _, before := p.until(`"tts"`, `"stop"`); strings.Contains(strings.Join(before, ""), `"commands"`) {
		t.Errorf("a malformed command was sent: %q", before)
	}
	for tool, want := range map[string]string{"self_lamp_get_power": "true", "self_lamp_get_level": "10", "self_speaker_get_volume": "30"} {
		p.send(typed("use " + tool + " {}"))
		if _, before := p.until(`"tts"`, `"stop"`); strings.Contains(strings.Join(before, ""), `"commands"`) {
			t.Errorf("%s sent something: %q", tool, before)
		}
		if body := lastRequest(t, cloud); !strings.Contains(body, `:`+want+`}"`) {
			t.Errorf("%s: the model was told %s", tool, body)
		}
	}

	p.conn.Close() // and back, silent: things and states are still known
	p = dialPeer(t, s, "Device-Id", "24:6f:28:5e:ed:21")
	p.hello(hello242)
	p.send(typed("use self_lamp_get_power {}"))
	p.until(`"tts"`, `"stop"`)
	if body := lastRequest(t, cloud); !strings.Contains(body, `:true}"`) {
		t.Errorf("after the reconnect: %s", body)
	}
}
