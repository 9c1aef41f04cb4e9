package iot

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/schema"
)

// Whatever a device describes, what is usable of it is used, the rest is named
// in the log, and what was known stays.
func TestBadDescriptors(t *testing.T) {
	for _, c := range []struct {
		name, descriptors string
		tools             string // beside the lamp's
		log               string // "": nothing is logged as a warning
	}{
		{"not an array", `7`, "", "neither an array nor an object"},
		{"a string", `"Lamp"`, "", "neither an array nor an object"},
		{"broken", `[{`, "", "neither an array nor an object"},
		{"empty", `[]`, "", ""},
		{"null", `null`, "", ""},
		{"a null among others", `[null,{"name":"B","methods":{"On":{}}}]`, "self.b.on", "it is not an object"},
		{"one without an array", `{"name":"B","methods":{"On":{}}}`, "self.b.on", ""},
		{"no name", `[{"methods":{"On":{}}}]`, "", "its name is missing"},
		{"a number for a name", `[{"name":5,"methods":{"On":{}}}]`, "", "its name is missing or not a string"},
		{"null for a name", `[{"name":null}]`, "", "its name is missing"},
		{"an empty name", `[{"name":" ","methods":{"On":{}}}]`, "", "its name is empty"},
		{"a long name", `[{"name":"` + strings.Repeat("x", 65) + `"}]`, "", "65 bytes is over the limit of 64"},
		{"a name that is not UTF-8", "[{\"name\":\"a\xff\"}]", "", "not valid UTF-8"},
		{"a zero byte in a name", `[{"name":"a\u0000b"}]`, "", "zero byte"},
		{"members of wrong types", `[{"name":"B","description":7,"properties":[1],"methods":"x"}]`, "", "the list of each property is not an object"},
		{"null for lists", `[{"name":"B","properties":null,"methods":null}]`, "", ""},
		{"nothing but a name", `[{"name":"B"}]`, "", ""},
		{"a property that is no object", `[{"name":"B","properties":{"a":7,"b":{}}}]`, "self.b.get_b", `property \"a\" is left out`},
		{"a property of an unknown type", `[{"name":"B","properties":{"a":{"type":"matrix"}}}]`, "self.b.get_a", ""},
		{"a method that is null", `[{"name":"B","methods":{"On":null,"Off":{}}}]`, "self.b.off", `method \"On\" is left out`},
		{"parameters that are an array", `[{"name":"B","methods":{"On":{"parameters":[1]},"Off":{}}}]`, "self.b.off", "the list of each parameter is not an object"},
		{"parameters null", `[{"name":"B","methods":{"On":{"parameters":null}}}]`, "self.b.on", ""},
		{"a parameter of no type", `[{"name":"B","methods":{"On":{"parameters":{"x":{}}}}}]`, "", `parameter \"x\" is left out`},
		{"a parameter of an unknown type", `[{"name":"B","methods":{"On":{"parameters":{"x":{"type":"array"}}}}}]`, "", "is not boolean, number or string"},
		{"a parameter whose type is a list", `[{"name":"B","methods":{"On":{"parameters":{"x":{"type":["number"]}}}}}]`, "", "is not boolean, number or string"},
		{"a parameter without a name", `[{"name":"B","methods":{"On":{"parameters":{"":{"type":"number"}}}}}]`, "", "its name is empty"},
		{"a method without a name", `[{"name":"B","methods":{"":{}}}]`, "", "its name is empty"},
		{"dots, spaces, Chinese", `[{"name":"客厅.灯 1","methods":{"打开 灯":{},"turn.on":{}}}]`, "self.客厅_灯_1.turn_on self.客厅_灯_1.打开_灯", ""},
		{"signs only", `[{"name":"!!!","properties":{"?":{}},"methods":{"..":{}}}]`, "self.thing.get_value self.thing.do", ""},
		{"the same but for signs", `[{"name":"B","methods":{"turn_on":{},"TurnOn":{},"turn on":{}}}]`, "self.b.turn_on self.b.turn_on_2 self.b.turn_on_3", ""},
		{"a method like a reader", `[{"name":"B","properties":{"x":{}},"methods":{"GetX":{}}}]`, "self.b.get_x self.b.get_x_2", ""},
		{"two things alike", `[{"name":"b","methods":{"On":{}}},{"name":"B","methods":{"On":{}}}]`, "self.b.on self.b.on_2", ""},
		{"the same thing twice", `[{"name":"B","methods":{"On":{}}},{"name":"B","methods":{"Off":{}}}]`, "self.b.off", ""},
		{"a member twice", `[{"name":"B","methods":{"On":{},"On":{}}}]`, "self.b.on", ""},
		{"deep", `[{"name":"B","properties":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100) + `}]`, "", "nested too deeply"},
		{"big", `[{"name":"B","description":"` + strings.Repeat("x", maxHome) + `"}]`, "", "bytes of descriptors"},
		{"very big", `[{"name":"B","description":"` + strings.Repeat("x", rawjson.MaxSize) + `"}]`, "", "over the limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewLegacyBoard(t, lampDescriptor)
			s := describedThings(t, b, Options{})
			before := thingToolNames(s)
			s.Deliver(json.RawMessage(c.descriptors), nil)
			if got := strings.TrimSpace(strings.TrimPrefix(thingToolNames(s), before)); got != c.tools {
				t.Errorf("tools %q, want %q", got, c.tools)
			}
			warned := strings.Contains(b.Log(), "level=WARN")
			if warned != (c.log != "") || !strings.Contains(b.Log(), c.log) {
				t.Errorf("want %q in the log:\n%s", c.log, b.Log())
			}
			if got := thingResult(t.Context(), s, "self.lamp.turn_on", nil); got != "true" {
				t.Errorf("the lamp: %s", got)
			}
		})
	}
}

func TestBadStates(t *testing.T) {
	for _, c := range []struct{ name, states, power, log string }{
		{"not an array", `true`, "false", "neither an array nor an object"},
		{"empty", `[]`, "false", ""},
		{"an unknown thing", `[{"name":"Ghost","state":{"power":true}},{"name":"Lamp","state":{"power":true}}]`, "true", `thing \"Ghost\" was not described`},
		{"no name", `[{"state":{"power":true}}]`, "false", "its name is missing"},
		{"a number for a name", `[{"name":1,"state":{"power":true}}]`, "false", "its name is missing or not a string"},
		{"no state", `[{"name":"Lamp"}]`, "false", "its state is not an object"},
		{"a state that is an array", `[{"name":"Lamp","state":[true]}]`, "false", "its state is not an object"},
		{"an unknown property", `[{"name":"Lamp","state":{"hue":1,"power":true}}]`, "true", `no property \"hue\"`},
		{"an object for a value", `[{"name":"Lamp","state":{"power":{"a":[1]}}}]`, "false", "its value is not a boolean"},
		{"null for a value", `[{"name":"Lamp","state":{"power":null}}]`, "false", "its value is not a boolean"},
		{"a value of another type", `[{"name":"Lamp","state":{"power":1}}]`, "1", ""},
		{"a number out of range", `[{"name":"Lamp","state":{"power":1e999}}]`, `"1e999"`, ""},
		{"deep", `[{"name":"Lamp","state":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 100) + `}]`, "false", "nested too deeply"},
		{"long", `[{"name":"Lamp","state":{"power":"` + strings.Repeat("x", 5000) + `"}}]`, `"` + strings.Repeat("x", maxStateText-len("… [cut: 5000 bytes in all]")) + `… [cut: 5000 bytes in all]"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewLegacyBoard(t, lampDescriptor)
			s := describedThings(t, b, Options{})
			s.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":false}}]`))
			s.Deliver(nil, json.RawMessage(c.states))
			if got := thingResult(t.Context(), s, "self.lamp.get_power", nil); got != `{"power":`+c.power+`}` {
				t.Errorf("power %s, want %s", got, c.power)
			}
			warned := strings.Contains(b.Log(), "level=WARN")
			if warned != (c.log != "") || !strings.Contains(b.Log(), c.log) {
				t.Errorf("want %q in the log:\n%s", c.log, b.Log())
			}
		})
	}
}

// A flood of things is cut at the limit, and does not flood the log.
func TestTooManyThings(t *testing.T) {
	b := NewLegacyBoard(t)
	s := describedThings(t, b, Options{})
	for i := range 1000 {
		s.Deliver(fmt.Appendf(nil, `[{"name":"T%d","methods":{"On":{}}}]`, i), nil)
	}
	if n := len(s.GetAvailableTools()); n != maxThings {
		t.Errorf("%d tools, want %d", n, maxThings)
	}
	if n := strings.Count(b.Log(), "level=WARN"); n == 0 || n > 12 {
		t.Errorf("%d warnings for 936 things too many", n)
	}
	var methods []string
	for i := range 70 {
		methods = append(methods, fmt.Sprintf(`"M%02d":{}`, i))
	}
	few := describedThings(t, b, Options{})
	for i := range 10 {
		few.Deliver(fmt.Appendf(nil, `[{"name":"T%d","methods":{%s}}]`, i, strings.Join(methods, ",")), nil)
	}
	if n := len(few.GetAvailableTools()); n != mcp.MaxTools {
		t.Errorf("%d tools of things with 64 each, want %d", n, mcp.MaxTools)
	}
	if !strings.Contains(b.Log(), "70 of method are more than 64") {
		t.Error("the methods left out are not in the log")
	}
}

func TestSnakeName(t *testing.T) {
	for name, want := range map[string]string{
		"Lamp": "lamp", "TurnOn": "turn_on", "turn on": "turn_on", "turn_on": "turn_on", "RGBLight": "rgb_light", "SetRGB": "set_rgb",
		"LED1": "led1", "Led2On": "led2_on", "ESP32Temp": "esp32_temp", "a.b-c": "a_b_c", "台灯": "台灯", "Alarm_List": "alarm_list",
		"": "x", "...": "x", " A ": "a", "GPS": "gps", "ÄÖ": "äö",
	} {
		if got := snakeName(name, "x"); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// FuzzSource delivers anything. Whatever it was, the tools are usable: names
// are unique, schemas compile, and a call with fitting arguments sends one
// command of the right shape.
func FuzzSource(f *testing.F) {
	f.Add([]byte(`[`+lampDescriptor+`,`+speakerDescriptor+`]`), []byte(`[{"name":"Lamp","state":{"power":true}}]`))
	f.Add([]byte(`[{"name":"a.b"},{"name":"a b","methods":{"台灯":{"parameters":{"$ref":{"type":"string"}}}}}]`), []byte(`{}`))
	f.Add([]byte(`{"name":"note","properties":{"note":{}}}`), []byte(`[{"name":"note","state":{"note":"x"}}]`))
	f.Add([]byte(`[{"name":"\ud800","methods":{"":{},"x":{"parameters":{"a":{"type":"number"},"A":{"type":"boolean"}}}}}]`), []byte(`[[[[[`))
	f.Fuzz(func(t *testing.T, descriptors, states []byte) {
		var sent []json.RawMessage
		s := New(Options{
			Send: func(c json.RawMessage) error { sent = append(sent, c); return nil },
			// A query would wait for a report that does not come.
			Kinds: map[string]mcp.Kind{"*": mcp.Control},
		})
		s.Deliver(descriptors, states)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		seen := make(map[string]bool)
		for _, tool := range s.GetAvailableTools() {
			if seen[tool.Name] || tool.Name == "" || !s.HasTool(tool.Name) {
				t.Fatalf("tool %q is there twice, or not at all", tool.Name)
			}
			seen[tool.Name] = true
			if _, err := schema.Compile(tool.Schema); err != nil {
				t.Fatalf("schema of %q: %v: %s", tool.Name, err, tool.Schema)
			}
			sent = nil
			arguments := fittingArguments(t, tool)
			if _, err := s.CallTool(t.Context(), tool.Name, arguments); err != nil {
				t.Fatalf("call %q %v: %v", tool.Name, arguments, err)
			}
			if tool.Kind == mcp.Query {
				continue
			}
			checkSent(t, sent, arguments)
		}
	})
}

// fittingArguments makes one value for each argument of the schema.
func fittingArguments(t *testing.T, tool mcp.Tool) map[string]any {
	t.Helper()
	var schema struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(tool.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	arguments := make(map[string]any)
	for name, p := range schema.Properties {
		arguments[name] = map[string]any{"boolean": true, "integer": int64(7), "string": "x"}[p.Type]
	}
	return arguments
}

func checkSent(t *testing.T, sent []json.RawMessage, arguments map[string]any) {
	t.Helper()
	var commands []struct {
		Name, Method string
		Parameters   map[string]any
	}
	if len(sent) != 1 || json.Unmarshal(sent[0], &commands) != nil || len(commands) != 1 {
		t.Fatalf("sent %s, want one command", sent)
	}
	c := commands[0]
	if c.Name == "" || c.Method == "" || c.Parameters == nil || len(c.Parameters) != len(arguments) {
		t.Fatalf("sent %s for %v", sent[0], arguments)
	}
}
