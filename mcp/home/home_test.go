package home

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/homeassistant"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local/web"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/sourcetest"
)

// thing is an entity of the fake.
func thing(id, name, area, state string, more ...any) homeassistant.Thing {
	attributes := map[string]any{"friendly_name": name}
	for i := 0; i+1 < len(more); i += 2 {
		attributes[fmt.Sprint(more[i])] = more[i+1]
	}
	return homeassistant.Thing{ID: id, Area: area, State: state, Attributes: attributes}
}

// house has things in both languages.
func house() []homeassistant.Thing {
	return []homeassistant.Thing{
		thing("light.kitchen", "Kitchen Light", "Kitchen", "off"),
		thing("light.counter", "Counter", "Kitchen", "on", "brightness", 153),
		thing("light.ceiling", "Ceiling", "Bedroom", "off"),
		thing("light.other", "Ceiling", "Study", "off"),
		thing("light.living", "客厅灯", "客厅", "off"),
		thing("cover.blinds", "窗帘", "客厅", "open", "current_position", 100),
		thing("cover.garage", "Garage Door", "Garage", "closed", "device_class", "garage"),
		thing("climate.bedroom", "空调", "卧室", "cool", "temperature", 26, "current_temperature", 27.44),
		thing("media_player.tv", "TV", "Living Room", "playing", "volume_level", 0.35, "media_title", "News\nat ten"),
		thing("fan.study", "Fan", "Study", "off", "percentage", 0),
		thing("switch.pump", "Pump", "", "unavailable"),
		thing("scene.movie", "Movie Time", "", "scening"),
		thing("script.night", "晚安", "", "off"),
		thing("sensor.kitchen_temperature", "Kitchen Temperature", "Kitchen", "21.5", "device_class", "temperature", "unit_of_measurement", "°C"),
		thing("binary_sensor.window", "Window", "Bedroom", "on", "device_class", "window"),
		thing("sensor.uptime", "Uptime", "", "5", "device_class", "duration"),
		thing("lock.front", "Front Door", "", "locked"),
	}
}

// begun is a home whose things are known.
func begun(t *testing.T, o Options, things ...homeassistant.Thing) (*Home, *homeassistant.House) {
	t.Helper()
	f := homeassistant.NewHouse(t, things...)
	var err error
	o.Client, err = web.NewClient(web.ClientOptions{Base: f.URL(), Headers: map[string]string{"Authorization": "Bearer " + servicetest.Key}, Timeout: 600 * time.Millisecond, Most: maxStates, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	h := New(o)
	things0, err := read(t.Context(), h.o)
	if err != nil {
		t.Fatal(err)
	}
	h.take(things0)
	return h, f
}

// run calls a tool through a router, as a conversation does.
func run(t *testing.T, h *Home, language, name, arguments string) mcp.ActionResponse {
	t.Helper()
	box := router.New(router.Options{}, h)
	defer box.Close()
	p, refused := box.Prepare(mcp.Call{ID: "1", Name: name, Arguments: arguments, Language: language})
	if refused != nil {
		return *refused
	}
	return box.Run(mcp.WithInfo(t.Context(), mcp.Info{Language: language}), p)
}

// TestTools: there is a tool for what there is, with the names that there are, and nothing is asked about it but doors.
func TestTools(t *testing.T) {
	h, _ := begun(t, Options{Doors: true}, house()...)
	box := router.New(router.Options{}, h)
	defer box.Close()
	var names []string
	for _, o := range box.Offers() {
		names = append(names, o.Tool.Name)
		if want := map[bool]mcp.Kind{true: mcp.Query, false: mcp.Control}[o.Tool.Name == toolState]; o.Kind != want || o.Consent != (o.Tool.Name == toolDoor) || o.Tool.Source != mcp.SourceHome {
			t.Errorf("%s: %s, asks %v", o.Tool.Name, o.Kind, o.Consent)
		}
		var s struct {
			Properties map[string]struct{ Enum []string }
			Required   []string
		}
		if err := json.Unmarshal(o.Tool.Schema, &s); err != nil {
			t.Fatal(err)
		}
		switch o.Tool.Name {
		case toolSwitch:
			if !slices.Contains(s.Properties["name"].Enum, "客厅灯") || slices.Contains(s.Properties["name"].Enum, "Garage Door") || !slices.Contains(s.Properties["area"].Enum, "Kitchen") || !slices.Contains(s.Properties["kind"].Enum, "light") || !slices.Contains(s.Required, "state") {
				t.Errorf("%+v", s)
			}
			if !strings.Contains(o.Tool.Description, "Kitchen: Counter, Kitchen Light; Living Room: TV") {
				t.Errorf("%s", o.Tool.Description)
			}
		case toolDoor:
			if !slices.Equal(s.Properties["name"].Enum, []string{"Garage Door"}) {
				t.Errorf("%+v", s)
			}
		}
	}
	if want := []string{toolSwitch, toolSet, toolMedia, toolScene, toolDoor, toolState}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
	h, _ = begun(t, Options{Hide: []string{"light.*", "cover.*"}, Show: []string{"light.*", "sensor.*"}}, house()...)
	if got := len(h.GetAvailableTools()); got != 1 || !h.HasTool(toolState) {
		t.Errorf("%d tools for a sensor", got)
	}
}

// TestWork: things are worked by name and area, in both languages, with the services of their kinds.
func TestWork(t *testing.T) {
	for _, test := range []struct{ tool, arguments, want string }{
		{toolSwitch, `{"state":"on","name":"Kitchen Light"}`, `light.turn_on {"entity_id":["light.kitchen"]}`},
		{toolSwitch, `{"state":"off","area":"Kitchen","kind":"light"}`, `light.turn_off {"entity_id":["light.counter","light.kitchen"]}`},
		{toolSwitch, `{"state":"on","name":"客厅灯"}`, `light.turn_on {"entity_id":["light.living"]}`},
		{toolSwitch, `{"state":"off","name":"窗帘"}`, `cover.close_cover {"entity_id":["cover.blinds"]}`},
		{toolSwitch, `{"state":"on","name":"Ceiling","area":"Study"}`, `light.turn_on {"entity_id":["light.other"]}`},
		{toolSwitch, `{"state":"on","area":"Study"}`, `fan.turn_on {"entity_id":["fan.study"]}; light.turn_on {"entity_id":["light.other"]}`},
		{toolSwitch, `{"state":"off","kind":"light"}`, `light.turn_off {"entity_id":["light.ceiling","light.counter","light.kitchen","light.other","light.living"]}`},
		{toolSet, `{"name":"Counter","value":30}`, `light.turn_on {"brightness_pct":30,"entity_id":["light.counter"]}`},
		{toolSet, `{"name":"Counter","by":-20}`, `light.turn_on {"brightness_step_pct":-20,"entity_id":["light.counter"]}`},
		{toolSet, `{"name":"Counter","color":"红色"}`, `light.turn_on {"color_name":"red","entity_id":["light.counter"]}`},
		{toolSet, `{"name":"Counter","color":"warm white","value":50}`, `light.turn_on {"brightness_pct":50,"color_temp_kelvin":2700,"entity_id":["light.counter"]}`},
		{toolSet, `{"name":"窗帘","value":40}`, `cover.set_cover_position {"entity_id":["cover.blinds"],"position":40}`},
		{toolSet, `{"name":"空调","temperature":24}`, `climate.set_temperature {"entity_id":["climate.bedroom"],"temperature":24}`},
		{toolSet, `{"name":"空调","by":-2}`, `climate.set_temperature {"entity_id":["climate.bedroom"],"temperature":24}`},
		{toolSet, `{"name":"空调","mode":"heat"}`, `climate.set_hvac_mode {"entity_id":["climate.bedroom"],"hvac_mode":"heat"}`},
		{toolSet, `{"name":"TV","value":20}`, `media_player.volume_set {"entity_id":["media_player.tv"],"volume_level":0.2}`},
		{toolSet, `{"name":"TV","by":10}`, `media_player.volume_up {"entity_id":["media_player.tv"]}`},
		{toolSet, `{"name":"Fan","value":60}`, `fan.set_percentage {"entity_id":["fan.study"],"percentage":60}`},
		{toolSet, `{"name":"Fan","by":-20}`, `fan.decrease_speed {"entity_id":["fan.study"],"percentage_step":20}`},
		{toolMedia, `{"name":"TV","action":"pause"}`, `media_player.media_pause {"entity_id":["media_player.tv"]}`},
		{toolScene, `{"name":"Movie Time"}`, `scene.turn_on {"entity_id":["scene.movie"]}`},
		{toolScene, `{"name":"晚安"}`, `script.turn_on {"entity_id":["script.night"]}`},
	} {
		h, f := begun(t, Options{}, house()...)
		r := run(t, h, "en", test.tool, test.arguments)
		var got []string
		for _, c := range f.Calls() {
			data, err := json.Marshal(c.Data)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, c.Service+" "+string(data))
		}
		slices.Sort(got)
		if strings.Join(got, "; ") != test.want || r.Action != mcp.ActionTypeNone {
			t.Errorf("%s %s: %s, %+v, want %s", test.tool, test.arguments, got, r, test.want)
		}
	}
}

// TestDoors: what lets somebody in is opened by its own tool alone, of which the user is asked.
func TestDoors(t *testing.T) {
	h, f := begun(t, Options{Doors: true}, house()...)
	things, _ := h.things.find(target{Name: "Garage Door"}, can(toolSwitch))
	if len(things) > 0 {
		t.Errorf("it is switched: %+v", things)
	}
	box := router.New(router.Options{}, h)
	defer box.Close()
	p, refused := box.Prepare(mcp.Call{ID: "1", Name: toolDoor, Arguments: `{"name":"Garage Door"}`})
	if refused != nil || !p.Asks() {
		t.Fatalf("%+v, asks %v", refused, p.Asks())
	}
	if r := box.Run(t.Context(), box.Consent(p, "")); r.Action != mcp.ActionTypeNone || f.State("cover.garage") != "open" {
		t.Errorf("%+v, %s", r, f.State("cover.garage"))
	}
	closed, _ := begun(t, Options{}, house()...)
	if closed.HasTool(toolDoor) {
		t.Error("doors can be opened though nobody wants it")
	}
}

// TestRefused: what cannot be done is said, in the language of the turn, and nothing is sent.
func TestRefused(t *testing.T) {
	h, f := begun(t, Options{}, house()...)
	for _, test := range []struct{ language, tool, arguments, want string }{
		{"en", toolSwitch, `{"state":"on","name":"Toaster"}`, `"name"`},
		{"en", toolSwitch, `{"state":"on","name":"Ceiling"}`, "which one? There are: Bedroom: Ceiling; Study: Ceiling"},
		{"en", toolSwitch, `{"state":"on","name":"Counter","area":"Study"}`, "there is nothing at home called Study Counter that can do that"},
		{"zh", toolSwitch, `{"state":"on"}`, "要说是哪一个：名字、房间或种类"},
		{"en", toolSwitch, `{"state":"on","name":"Pump"}`, "Pump cannot be reached now"},
		{"en", toolSet, `{"name":"窗帘","color":"red"}`, "that cannot be done with 客厅: 窗帘"},
		{"en", toolState, `{"name":"Toaster"}`, "there is nothing at home called Toaster that can do that"},
	} {
		if r := run(t, h, test.language, test.tool, test.arguments); r.Action != mcp.ActionTypeError || !strings.Contains(fmt.Sprint(r.Result), test.want) {
			t.Errorf("%s %s: %+v, want %s", test.tool, test.arguments, r, test.want)
		}
	}
	if calls := f.Calls(); len(calls) > 0 {
		t.Errorf("%+v", calls)
	}
	f.Put(thing("switch.pump", "Pump", "", "off")) // it is there again
	if r := run(t, h, "en", toolSwitch, `{"state":"on","name":"Pump"}`); r.Action != mcp.ActionTypeNone || f.State("switch.pump") != "on" {
		t.Errorf("%+v", r)
	}
}

// TestState tells how things are.
func TestState(t *testing.T) {
	h, _ := begun(t, Options{}, house()...)
	for _, test := range []struct{ language, arguments, want string }{
		{"en", `{"name":"Counter"}`, "Kitchen Counter: on, 60 percent."},
		{"en", `{"name":"Kitchen Light"}`, "Kitchen Light: off."},
		{"en", `{"area":"Kitchen"}`, "Kitchen Counter: on, 60 percent. Kitchen Light: off. Kitchen Temperature: 21.5 °C."},
		{"zh", `{"name":"空调"}`, "卧室空调：制冷，现在27.4度，设定26度。"},
		{"zh", `{"name":"窗帘"}`, "客厅窗帘：开着，百分之100。"},
		{"en", `{"name":"Window"}`, "Bedroom Window: open."},
		{"en", `{"name":"TV"}`, "Living Room TV: playing, 35 percent, News at ten."},
		{"en", `{"name":"Pump"}`, "Pump: not reachable."},
		{"en", `{"kind":"light"}`, "Bedroom Ceiling: off. Kitchen Counter: on, 60 percent. Kitchen Light: off. Study Ceiling: off.客厅灯: off."},
	} {
		if r := run(t, h, test.language, toolState, test.arguments); r.Action != mcp.ActionTypeReqLLM || r.Result != test.want {
			t.Errorf("%s: %+v, want %s", test.arguments, r, test.want)
		}
	}
}

// TestPlainUser: a token of no administrator knows no areas, and works all the same.
func TestPlainUser(t *testing.T) {
	h, f := begun(t, Options{}, house()...)
	f.Plain()
	things, err := read(t.Context(), h.o)
	if err != nil || len(things.areas) > 0 || len(things.entities) != len(h.things.entities) {
		t.Fatalf("%+v, %v", things, err)
	}
	h.take(things)
	if r := run(t, h, "en", toolSwitch, `{"state":"on","name":"Kitchen Light"}`); r.Action != mcp.ActionTypeNone || f.State("light.kitchen") != "on" {
		t.Errorf("%+v", r)
	}
}

// TestFaults: whatever goes wrong is an error that says what can be done, soon.
func TestFaults(t *testing.T) {
	for fault := servicetest.WrongKey; fault < servicetest.Last; fault++ {
		h, f := begun(t, Options{}, house()...)
		if !f.Knows(fault) {
			continue
		}
		f.Fail(fault)
		works := fault == servicetest.Slow || fault == servicetest.Odd
		if things, err := read(t.Context(), h.o); (err == nil) != works {
			t.Errorf("%s: %+v, %v", fault, things, err)
		}
		want := "Home Assistant 没有回应"
		if fault == servicetest.WrongKey {
			want = "Home Assistant 不接受这个令牌"
		}
		if r := run(t, h, "zh", toolState, `{"name":"客厅灯"}`); works != (r.Action == mcp.ActionTypeReqLLM) || !works && r.Result != want {
			t.Errorf("%s: %+v", fault, r)
		}
		r := run(t, h, "zh", toolSwitch, `{"name":"客厅灯","state":"on"}`)
		if sent := fault == servicetest.Broken || fault == servicetest.Closed; sent { // that it was done is known by the status alone
			works = true
		}
		if works != (r.Action == mcp.ActionTypeNone) || !works && r.Result != want {
			t.Errorf("%s: %+v", fault, r)
		}
	}
	h, _ := begun(t, Options{}, house()...)
	if err := h.call(t.Context(), order{"light", "explode", nil}); err.Error() != "home assistant refuses that: the service answered 400 Bad Request" {
		t.Error(err)
	}
}

// TestBounds: a house of any size is taken over in part, and what models are shown of it stays small.
func TestBounds(t *testing.T) {
	var all []homeassistant.Thing
	for i := range 2000 {
		all = append(all, thing(fmt.Sprintf("light.l%04d", i), strings.Repeat("very ", 40)+fmt.Sprint(i), fmt.Sprintf("Room %d", i%300), "off"))
	}
	h, _ := begun(t, Options{}, all...)
	if len(h.things.entities) != maxEntities || h.things.leftOut != 1600 {
		t.Errorf("%d entities, %d left out", len(h.things.entities), h.things.leftOut)
	}
	for _, tool := range h.GetAvailableTools() {
		if len(tool.Description) > mcp.MaxDescription || len(tool.Schema) > 4<<10 {
			t.Errorf("%s: %d and %d bytes", tool.Name, len(tool.Description), len(tool.Schema))
		}
	}
	if r := run(t, h, "en", toolSwitch, `{"state":"off","kind":"light"}`); r.Result != "that would be 400 things: say which" {
		t.Errorf("%+v", r)
	}
}

// transport answers requests in this process.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// memory is a house without a socket, for tests in fake time. What works the thing called Slow waits for its end. reads counts how
// often the things are read.
func memory(t *testing.T, reads *atomic.Int64) *web.Client {
	t.Helper()
	c, err := web.NewClient(web.ClientOptions{Base: "http://house", Timeout: time.Hour, Transport: transport(func(r *http.Request) (*http.Response, error) {
		body := ""
		switch {
		case r.URL.Path == "/api/template":
			reads.Add(1)
			body = `[{"id":"light.a","name":"A","area":"","state":"off"},{"id":"media_player.slow","name":"Slow","area":"","state":"off"}]`
		case strings.HasPrefix(r.URL.Path, "/api/states/"):
			body = `{"entity_id":"light.a","state":"off","attributes":{}}`
		default:
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString(body)), Request: r}, nil
	})})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSource holds the source to the contract of all.
func TestSource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Case{
		New: func(t *testing.T) mcp.Source {
			return &slowSource{New(Options{Client: memory(t, new(atomic.Int64))})}
		},
		Tool: toolState, Arguments: map[string]any{"name": "A"}, Slow: "home_slow",
	})
}

// slowSource is a home with one more tool, which waits for its end.
type slowSource struct{ *Home }

func (s *slowSource) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	if name == "home_slow" {
		name, arguments = toolSwitch, map[string]any{"name": "Slow", "state": "on"}
	}
	return s.Home.CallTool(ctx, name, arguments)
}
