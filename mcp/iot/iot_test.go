package iot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// describedThings is a started source that the board has described itself to.
func describedThings(t *testing.T, b *LegacyBoard, o Options) *Source {
	t.Helper()
	s := b.Things(o)
	b.Describe(s)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Stop() })
	return s
}

func thingToolNames(s mcp.Source) string {
	var names []string
	for _, tool := range s.GetAvailableTools() {
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

// thingResult calls a tool and gives its result as JSON, or the error's text.
func thingResult(ctx context.Context, s mcp.Source, name string, arguments map[string]any) string {
	result, err := s.CallTool(ctx, name, arguments)
	if err != nil {
		return err.Error()
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func TestSourceTools(t *testing.T) {
	s := describedThings(t, NewLegacyBoard(t, lampDescriptor, speakerDescriptor, sensorDescriptor), Options{})
	tools := make(map[string]mcp.Tool)
	for _, tool := range s.GetAvailableTools() {
		tools[tool.Name] = tool
	}
	const none = `{"type":"object","properties":{},"additionalProperties":false}`
	for _, want := range []struct {
		name, description, schema string
		kind                      mcp.Kind
	}{
		{"self.lamp.get_power", "灯是否打开；一个测试用的灯", none, mcp.Query},
		{"self.lamp.blink", "Blink; 一个测试用的灯", `{"type":"object","properties":{"colour":{"type":"string","description":"any"},"fast":{"type":"boolean"}},"required":["colour","fast"],"additionalProperties":false}`, mcp.Control},
		{"self.lamp.set_level", "dim; 一个测试用的灯", `{"type":"object","properties":{"level":{"type":"integer","description":"0-100"}},"required":["level"],"additionalProperties":false}`, mcp.Control},
		{"self.lamp.turn_off", "关闭灯；一个测试用的灯", none, mcp.Control},
		{"self.lamp.turn_on", "打开灯；一个测试用的灯", none, mcp.Control},
		{"self.speaker.get_volume", "当前音量值；当前 AI 机器人的扬声器", none, mcp.Query},
		{"self.speaker.set_volume", "设置音量；当前 AI 机器人的扬声器", `{"type":"object","properties":{"volume":{"type":"integer","description":"0到100之间的整数"}},"required":["volume"],"additionalProperties":false}`, mcp.Control},
		{"self.sensor.get_celsius", "celsius; a thermometer", none, mcp.Query},
		{"self.sensor.measure", "measure now; a thermometer", none, mcp.Query},
	} {
		got, ok := tools[want.name]
		if !ok {
			t.Errorf("no tool %s among %s", want.name, thingToolNames(s))
			continue
		}
		delete(tools, want.name)
		if got.Description != want.description || string(got.Schema) != want.schema || got.Kind != want.kind || got.Source != "iot" || got.Origin != mcp.Remote {
			t.Errorf("%s: %+v, schema %s; want %+v", want.name, got, got.Schema, want)
		}
		reads := got.Annotations.ReadOnly != nil && *got.Annotations.ReadOnly
		if reads != strings.Contains(want.name, ".get_") {
			t.Errorf("%s: readOnlyHint is %v", want.name, reads)
		}
	}
	if len(tools) != 0 {
		t.Errorf("more tools than expected: %v", tools)
	}
}

func TestSourceKinds(t *testing.T) {
	s := describedThings(t, NewLegacyBoard(t,
		`{"name":"X","properties":{"power":{"type":"boolean"}},"methods":{"TurnOn":{},"Read":{},"查询余额":{},"Ask":{},"Capture":{},"GetUp":{},`+
			`"Look":{"parameters":{"question":{"type":"string"}}},"Dance":{"parameters":{"list_name":{"type":"string"}}}}}`),
		Options{Kinds: map[string]mcp.Kind{"self.x.turn_on": mcp.Query, "self.x.get_*": mcp.Control, "self.x.capture": "nonsense"}})
	want := map[string]mcp.Kind{
		"self.x.get_power": mcp.Query, // a reading is one, whatever the config says
		"self.x.turn_on":   mcp.Query, "self.x.read": mcp.Query, "self.x.查询余额": mcp.Query, "self.x.ask": mcp.Query, "self.x.look": mcp.Query,
		"self.x.capture": mcp.Control, "self.x.dance": mcp.Control, "self.x.get_up": mcp.Control,
	}
	for _, tool := range s.GetAvailableTools() {
		if tool.Kind != want[tool.Name] {
			t.Errorf("%s is a %s, want %s", tool.Name, tool.Kind, want[tool.Name])
		}
		delete(want, tool.Name)
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
	s.SetKinds(map[string]mcp.Kind{"self.x.dance": mcp.Query})
	for _, tool := range s.GetAvailableTools() {
		if is, known := map[string]mcp.Kind{"self.x.dance": mcp.Query, "self.x.turn_on": mcp.Control}[tool.Name]; known && tool.Kind != is {
			t.Errorf("with other overrides %s is a %s", tool.Name, tool.Kind)
		}
	}
}

// States come whole and in parts; each property is as it was reported last.
func TestSourceStatesMerge(t *testing.T) {
	s := describedThings(t, NewLegacyBoard(t, lampDescriptor, speakerDescriptor), Options{})
	zh := mcp.WithInfo(t.Context(), mcp.Info{Language: "zh"})
	for _, step := range []struct{ states, power, volume string }{
		{``, `{"note":"unknown: the device has not reported it yet","power":null}`, `{"note":"unknown: the device has not reported it yet","volume":null}`},
		{`[{"name":"Lamp","state":{"power":false}},{"name":"Speaker","state":{"volume":70}}]`, `{"power":false}`, `{"volume":70}`},
		{`[{"name":"Lamp","state":{"power":true}}]`, `{"power":true}`, `{"volume":70}`},
		{`[{"name":"Lamp","state":{}},{"name":"Speaker","state":{"volume":12.5}}]`, `{"power":true}`, `{"volume":12.5}`},
		{`{"name":"Speaker","state":{"volume":"loud"}}`, `{"power":true}`, `{"volume":"loud"}`},
	} {
		s.Deliver(nil, json.RawMessage(step.states))
		if got := thingResult(t.Context(), s, "self.lamp.get_power", nil); got != step.power {
			t.Errorf("after %s: power %s, want %s", step.states, got, step.power)
		}
		if got := thingResult(t.Context(), s, "self.speaker.get_volume", map[string]any{"x": 1}); got != step.volume {
			t.Errorf("after %s: volume %s, want %s", step.states, got, step.volume)
		}
	}
	fresh := describedThings(t, NewLegacyBoard(t, lampDescriptor), Options{})
	if got := thingResult(zh, fresh, "self.lamp.get_power", nil); got != `{"note":"未知：设备还没有报告这个状态","power":null}` {
		t.Errorf("unknown in Chinese: %s", got)
	}
}

func TestSourceCommands(t *testing.T) {
	b := NewLegacyBoard(t, lampDescriptor)
	s := describedThings(t, b, Options{})
	for _, call := range []struct {
		tool      string
		arguments map[string]any
		sent      string // "": refused
		refusal   string
	}{
		{"self.lamp.turn_on", nil, `[{"name":"Lamp","method":"TurnOn","parameters":{}}]`, ""},
		{"self.lamp.turn_on", map[string]any{}, `[{"name":"Lamp","method":"TurnOn","parameters":{}}]`, ""},
		{"self.lamp.set_level", map[string]any{"level": int64(40)}, `[{"name":"Lamp","method":"SetLevel","parameters":{"level":40}}]`, ""},
		{"self.lamp.set_level", map[string]any{"level": 40.0}, `[{"name":"Lamp","method":"SetLevel","parameters":{"level":40}}]`, ""},
		{"self.lamp.set_level", map[string]any{"level": -5}, `[{"name":"Lamp","method":"SetLevel","parameters":{"level":-5}}]`, ""},
		{"self.lamp.blink", map[string]any{"fast": true, "colour": `<"红" & blue>`}, `[{"name":"Lamp","method":"Blink","parameters":{"colour":"<\"红\" & blue>","fast":true}}]`, ""},
		{"self.lamp.set_level", nil, "", `parameter "level" is missing`},
		{"self.lamp.set_level", map[string]any{"Level": 40}, "", `parameter "level" is missing`},
		{"self.lamp.set_level", map[string]any{"level": "40"}, "", `parameter "level" must be a whole number`},
		{"self.lamp.set_level", map[string]any{"level": 40.5}, "", `parameter "level" must be a whole number of 32 bits`},
		{"self.lamp.set_level", map[string]any{"level": int64(1) << 31}, "", `parameter "level" must be a whole number of 32 bits`},
		{"self.lamp.set_level", map[string]any{"level": 1e300}, "", `parameter "level" must be a whole number of 32 bits`},
		{"self.lamp.set_level", map[string]any{"level": nil}, "", `parameter "level" must be a whole number`},
		{"self.lamp.set_level", map[string]any{"level": true}, "", `parameter "level" must be a whole number`},
		{"self.lamp.set_level", map[string]any{"level": 1, "speed": 2}, "", `the method has no parameter "speed"`},
		{"self.lamp.turn_on", map[string]any{"power": true}, "", `the method has no parameter "power"`},
		{"self.lamp.blink", map[string]any{"fast": 1, "colour": "red"}, "", `parameter "fast" must be true or false`},
		{"self.lamp.blink", map[string]any{"fast": true, "colour": 7}, "", `parameter "colour" must be a string`},
		{"self.lamp.blink", map[string]any{"fast": true, "colour": "a\x00b"}, "", `parameter "colour" must not hold a zero byte`},
		{"self.lamp.blink", map[string]any{"fast": true, "colour": strings.Repeat("x", 8<<10)}, "", `over the limit of 7168`},
		{"self.lamp.blink", map[string]any{"fast": true, "colour": []any{"x"}}, "", `parameter "colour" must be a string`},
	} {
		before := len(b.Sent())
		result, err := s.CallTool(t.Context(), call.tool, call.arguments)
		sent := strings.Join(b.Sent()[before:], " ")
		if sent != call.sent {
			t.Errorf("%s %v: sent %s, want %s", call.tool, call.arguments, sent, call.sent)
		}
		if call.refusal == "" {
			if err != nil || result != true {
				t.Errorf("%s %v: %v, %v; want true at once", call.tool, call.arguments, result, err)
			}
			continue
		}
		if _, ok := errors.AsType[*mcp.ToolError](err); !ok || !strings.Contains(err.Error(), call.refusal) {
			t.Errorf("%s %v: error %v, want a ToolError with %q", call.tool, call.arguments, err, call.refusal)
		}
	}
}

func TestSourceCommandNotTaken(t *testing.T) {
	b := NewLegacyBoard(t, lampDescriptor, sensorDescriptor)
	b.refuse = errors.New("the connection is over")
	s := describedThings(t, b, Options{})
	for _, tool := range []string{"self.lamp.turn_on", "self.sensor.measure"} {
		if _, err := s.CallTool(t.Context(), tool, nil); !errors.Is(err, b.refuse) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// A method that is a query returns with the next report of its own thing.
func TestSourceQueryAwaitsReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewLegacyBoard(t, lampDescriptor, speakerDescriptor)
		s := describedThings(t, b, Options{Kinds: map[string]mcp.Kind{"self.lamp.turn_*": mcp.Query}})
		s.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":false}},{"name":"Speaker","state":{"volume":70}}]`))
		for _, c := range []struct{ language, states, want string }{
			{"en", `[{"name":"Lamp","state":{"power":true}}]`, `{"changed":{"power":true},"thing":"Lamp"}`},
			{"en", `[{"name":"Lamp","state":{"power":true}}]`, `{"changed":{},"note":"the device reported that nothing changed","thing":"Lamp"}`},
			{"zh", `[{"name":"Lamp","state":{"power":true}}]`, `{"changed":{},"note":"设备报告状态没有变化","thing":"Lamp"}`},
		} {
			answer := make(chan string, 1)
			ctx := mcp.WithInfo(t.Context(), mcp.Info{Language: c.language})
			go func() { answer <- thingResult(ctx, s, "self.lamp.turn_on", nil) }()
			synctest.Wait()
			s.Deliver(nil, json.RawMessage(`[{"name":"Speaker","state":{"volume":71}},{"name":"Ghost","state":{"power":true}}]`))
			synctest.Wait()
			select {
			case got := <-answer:
				t.Errorf("another thing's report answered the query: %s", got)
			default:
			}
			s.Deliver(nil, json.RawMessage(c.states))
			if got := <-answer; got != c.want {
				t.Errorf("after %s: %s, want %s", c.states, got, c.want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if got := thingResult(ctx, s, "self.lamp.turn_off", nil); !strings.Contains(got, context.DeadlineExceeded.Error()) {
			t.Errorf("with no report: %s", got)
		}
		if n := len(s.waiters); n != 0 {
			t.Errorf("%d queries are still waiting", n)
		}
		if n := len(b.Sent()); n != 4 {
			t.Errorf("%d commands were sent, want each once", n)
		}
	})
}

// Two queries of a thing that wait at the same time get the same report.
func TestSourceConcurrentQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := describedThings(t, NewLegacyBoard(t, lampDescriptor), Options{Kinds: map[string]mcp.Kind{"*": mcp.Query}})
		answers := make(chan string, 2)
		for _, tool := range []string{"self.lamp.turn_on", "self.lamp.turn_off"} {
			go func() { answers <- thingResult(t.Context(), s, tool, nil) }()
		}
		synctest.Wait()
		s.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":true}}]`))
		for range 2 {
			if got := <-answers; got != `{"changed":{"power":true},"thing":"Lamp"}` {
				t.Error(got)
			}
		}
	})
}

// Through the router: near misses are repaired, the rest never leaves.
func TestSourceInRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewLegacyBoard(t, lampDescriptor, speakerDescriptor)
		box := router.New(router.Options{}, describedThings(t, b, Options{}))
		defer box.Close()
		done := make(chan mcp.ActionResponse, 1)
		if err := box.Go(preparedTool(t, box, "self_speaker_set_volume", `{"volume":"55"}`), func(r mcp.ActionResponse) { done <- r }); err != nil {
			t.Fatal(err)
		}
		if r := <-done; r.Action != mcp.ActionTypeReqLLM || r.Result != true {
			t.Errorf("outcome of a control: %+v", r)
		}
		if got := strings.Join(b.Sent(), " "); got != `[{"name":"Speaker","method":"SetVolume","parameters":{"volume":55}}]` {
			t.Errorf("sent %s", got)
		}
		for arguments, want := range map[string]string{
			`{}`:                       `volume`,
			`{"volume":5.5}`:           `volume`,
			`{"volume":5,"room":"up"}`: `room`,
		} {
			_, refused := box.Prepare(mcp.Call{Name: "self_speaker_set_volume", Arguments: arguments})
			if refused == nil || refused.Action != mcp.ActionTypeError || !strings.Contains(fmt.Sprint(refused.Result), want) {
				t.Errorf("%s: %+v, want an error that names %s", arguments, refused, want)
			}
		}
		if r := box.Run(t.Context(), preparedTool(t, box, "self_lamp_get_power", ``)); !strings.Contains(mcp.ResultText(r), "unknown") {
			t.Errorf("reading: %s", mcp.ResultText(r))
		}
		if p := preparedTool(t, box, "self_lamp_turn_on", ``); p.Offer.Kind != mcp.Control {
			t.Errorf("offer %+v", p.Offer)
		}
	})
}

// What a connection says is there at the next one, marked as stale until it is
// said again.
func TestSourceReconnect(t *testing.T) {
	cache := NewCache(0)
	o := Options{Cache: cache, DeviceID: "d1"}
	b := NewLegacyBoard(t, lampDescriptor, speakerDescriptor)
	first := describedThings(t, b, o)
	first.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":true}},{"name":"Speaker","state":{"volume":70}}]`))
	names := thingToolNames(first)
	if first.home.isStale() {
		t.Error("what was just described is stale")
	}
	first.Stop()

	second := b.Things(o)
	if second.HasTool("self.lamp.turn_on") || second.IsReady() {
		t.Error("tools before Start")
	}
	if err := second.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if thingToolNames(second) != names || !second.IsReady() || !second.home.isStale() {
		t.Errorf("tools after the reconnect: %s; ready %v, stale %v", thingToolNames(second), second.IsReady(), second.home.isStale())
	}
	const old = `"note":"reported before the device reconnected, it may have changed"`
	if got := thingResult(t.Context(), second, "self.lamp.get_power", nil); got != `{`+old+`,"power":true}` {
		t.Errorf("an old reading: %s", got)
	}
	if got := thingResult(mcp.WithInfo(t.Context(), mcp.Info{Language: "zh"}), second, "self.lamp.get_power", nil); !strings.Contains(got, "重新连接之前") {
		t.Errorf("an old reading in Chinese: %s", got)
	}
	if got := thingResult(t.Context(), second, "self.lamp.turn_off", nil); got != "true" {
		t.Errorf("a control before the descriptors: %s", got)
	}
	b.Describe(second)
	if second.home.isStale() || thingToolNames(second) != names {
		t.Errorf("described again: stale %v, tools %s", second.home.isStale(), thingToolNames(second))
	}
	second.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":false}}]`))
	if got := thingResult(t.Context(), second, "self.lamp.get_power", nil); got != `{"power":false}` {
		t.Errorf("a new reading: %s", got)
	}
	if got := thingResult(t.Context(), second, "self.speaker.get_volume", nil); got != `{`+old+`,"volume":70}` {
		t.Errorf("a reading not refreshed: %s", got)
	}
	other := b.Things(Options{Cache: cache, DeviceID: "d2"})
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if thingToolNames(other) != "" || other.IsReady() {
		t.Errorf("another device has %s", thingToolNames(other))
	}
}

// New firmware without one of the things: it goes with the first report. A
// device that describes nothing again loses nothing.
func TestSourceThingGone(t *testing.T) {
	o := Options{Cache: NewCache(0), DeviceID: "d1"}
	describedThings(t, NewLegacyBoard(t, lampDescriptor, speakerDescriptor), o).Stop()

	silent := NewLegacyBoard(t).Things(o)
	silent.Start(t.Context())
	silent.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":true}}]`))
	if !silent.HasTool("self.lamp.turn_on") || !silent.HasTool("self.speaker.set_volume") {
		t.Errorf("a device that describes nothing has %s", thingToolNames(silent))
	}
	silent.Stop()

	newLamp := strings.Replace(lampDescriptor, `"SetLevel"`, `"SetBrightness"`, 1)
	b := NewLegacyBoard(t, newLamp)
	s := b.Things(o)
	s.Start(t.Context())
	b.Describe(s)
	if !s.HasTool("self.lamp.set_brightness") || s.HasTool("self.lamp.set_level") || !s.HasTool("self.speaker.set_volume") {
		t.Errorf("before the first report: %s", thingToolNames(s))
	}
	s.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":true}}]`))
	if s.HasTool("self.speaker.set_volume") || !s.HasTool("self.lamp.turn_on") {
		t.Errorf("after the first report: %s", thingToolNames(s))
	}
	if !strings.Contains(b.Log(), "things are gone") || !strings.Contains(b.Log(), "Speaker") {
		t.Errorf("log: %s", b.Log())
	}
	if _, err := s.CallTool(t.Context(), "self.speaker.set_volume", map[string]any{"volume": 1}); !errors.Is(err, mcp.ErrNoTool) {
		t.Errorf("a call of what is gone: %v", err)
	}
}

// A replacement keeps what was reported of properties that are still there.
func TestSourceDescribedTwice(t *testing.T) {
	s := describedThings(t, NewLegacyBoard(t, lampDescriptor), Options{})
	s.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":true}}]`))
	s.Deliver(json.RawMessage(`[{"name":"Lamp","description":"new","properties":{"power":{"type":"boolean"},"hue":{"type":"number"}},"methods":{}}]`), nil)
	if got := thingToolNames(s); got != "self.lamp.get_hue self.lamp.get_power" {
		t.Errorf("tools %s", got)
	}
	if got := thingResult(t.Context(), s, "self.lamp.get_power", nil); got != `{"power":true}` {
		t.Errorf("power %s", got)
	}
}

func TestCacheForgetsOldest(t *testing.T) {
	cache := NewCache(3)
	known := func(id string) bool {
		s := New(Options{Cache: cache, DeviceID: id, Send: func(json.RawMessage) error { return nil }})
		s.Start(t.Context())
		return s.IsReady()
	}
	for _, id := range []string{"d1", "d2", "d3", "", "d1", "d4"} {
		describedThings(t, NewLegacyBoard(t, lampDescriptor), Options{Cache: cache, DeviceID: id}).Stop()
	}
	for id, want := range map[string]bool{"d1": true, "d2": false, "d3": true, "d4": true, "": false} {
		if known(id) != want {
			t.Errorf("%q is known: %v, want %v", id, !want, want)
		}
	}
	if n := cache.homes.Len(); n != 3 {
		t.Errorf("%d devices are kept, want 3", n)
	}
}

// Devices that describe as much as they may are fewer in the same room.
func TestCacheWeight(t *testing.T) {
	cache := NewCache(1000)
	big := fmt.Sprintf(`{"name":"B","properties":{"a":{"type":"string","description":"%s"}}}`, strings.Repeat("x", maxHome-100))
	const devices = maxCachedBytes/(4*maxHome) + 10
	if devices > 150 {
		t.Fatal("this test would take too long")
	}
	connect := func(i int) {
		describedThings(t, NewLegacyBoard(t, big), Options{Cache: cache, DeviceID: fmt.Sprint("d", i)}).Stop()
	}
	connect(0)
	things, _ := cache.homes.Peek("d0")
	for i := 1; i < devices-1; i++ { // the same things again, which take long to be described
		cache.homes.Put(fmt.Sprint("d", i), things, things.weight())
	}
	connect(devices - 1)
	if n := cache.homes.Len(); n < maxCachedBytes/(8*maxHome) || n > maxCachedBytes/(4*(maxHome-200)) {
		t.Errorf("%d devices are kept", n)
	}
	kept := func(id string) bool { _, ok := cache.homes.Get(id); return ok }
	if !kept(fmt.Sprint("d", devices-1)) || kept("d0") {
		t.Error("it is not the oldest that was forgotten")
	}
}

func TestSourceStopFailsQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := describedThings(t, NewLegacyBoard(t, sensorDescriptor), Options{})
		failed := make(chan error, 1)
		go func() {
			_, err := s.CallTool(t.Context(), "self.sensor.measure", nil)
			failed <- err
		}()
		synctest.Wait()
		s.Stop()
		if err := <-failed; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("the query ended with %v", err)
		}
		s.Deliver(json.RawMessage(`[`+lampDescriptor+`]`), nil)
		if s.home.size() != 1 {
			t.Error("a stopped source still listens")
		}
	})
}

func TestSourceNeedsSend(t *testing.T) {
	if err := New(Options{}).Start(t.Context()); err == nil {
		t.Error("started without Send")
	}
}

func TestSourceListOrder(t *testing.T) {
	b := NewLegacyBoard(t, speakerDescriptor, lampDescriptor)
	s := describedThings(t, b, Options{})
	first := s.GetAvailableTools()
	for range 20 {
		b.Describe(s)
		if got := s.GetAvailableTools(); !reflect.DeepEqual(got, first) {
			t.Fatalf("the tools changed: %v, then %v", first, got)
		}
	}
}

// TestSourceQueryOwnReport: the late effect of an earlier command is no
// result of a query that sets another property.
func TestSourceQueryOwnReport(t *testing.T) {
	for _, c := range []struct {
		name    string
		sets    []string
		changed map[string]any
		want    bool
	}{
		{"sets nothing", nil, map[string]any{"power": true}, true},
		{"its property", []string{"level"}, map[string]any{"level": 40, "power": true}, true},
		{"another property", []string{"level"}, map[string]any{"power": true}, false},
		{"nothing changed", []string{"level"}, map[string]any{}, true},
	} {
		w := &waiter{thing: "Lamp", sets: c.sets}
		if got := w.concerns(report{thing: "Lamp", changed: c.changed}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		if w.concerns(report{thing: "Fan", changed: c.changed}) {
			t.Errorf("%s: the report of another thing", c.name)
		}
	}
}

func preparedTool(t *testing.T, b *router.Router, name, arguments string) router.Prepared {
	t.Helper()
	p, refused := b.Prepare(mcp.Call{ID: "c1", Name: name, Arguments: arguments})
	if refused != nil {
		t.Fatalf("Prepare(%s): %+v", name, *refused)
	}
	return p
}

// isStale reports whether some thing was not described on this connection.
func (h *home) isStale() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.things, func(k *knownThing) bool { return k.stale })
}
