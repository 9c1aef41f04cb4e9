package offer

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

func utc() *time.Location { return time.UTC }

// filled fills a registry as a server with one device would.
func filled(t *testing.T, h *home, change func(*Options)) *catalog.Registry {
	t.Helper()
	own := local.New(local.Options{})
	if err := own.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Devices: h, Local: own, Prompts: set, Assistant: func() string { return "Ann" }, Zone: utc, Log: slog.New(slog.DiscardHandler),
		Config: func() []byte { return []byte(`{"a":1}`) }, LogTail: func() string { return "a line" },
	}
	if change != nil {
		change(&o)
	}
	r := catalog.NewRegistry(router.Gate{})
	o.Version, o.Began, o.Tools = "1.2.3", time.Now(), func() int { return 7 }
	Fill(r, o)
	return r
}

func TestFillBare(t *testing.T) {
	r := filled(t, nil, func(o *Options) { *o = Options{Zone: utc, Log: o.Log} })
	if got := names(r); !slices.Equal(got, []string{"system.info", "time.now", "util.hash", "util.uuid"}) {
		t.Errorf("tools %v", got)
	}
	v := viewOf(r)
	if len(v.Resources()) != 0 || len(v.Prompts()) != 0 {
		t.Errorf("%d resources, %d prompts", len(v.Resources()), len(v.Prompts()))
	}
	if a := call(t, r, "system.info", `{"detail":true}`); !strings.Contains(a.text, `"version":"1.2.3"`) || !strings.Contains(a.text, `"tools":7`) {
		t.Errorf("info: %+v", a)
	}
}

func TestFillDevices(t *testing.T) {
	h := &home{}
	h.set("a", "b")
	r := filled(t, h, func(o *Options) {
		o.Acts = Acts{
			Say: func(_ context.Context, id, text string, now bool) (Said, error) {
				return Said{Heard: id + " " + text, Whole: now}, nil
			},
		}
	})
	if a := call(t, r, "device.say", `{"text":"hi"}`); !a.failed || !strings.Contains(a.text, "name the device by device_id; connected are: a, b") {
		t.Errorf("with no device: %+v", a)
	}
	for _, meant := range []string{"b", "device-b", "B", "name of b"} {
		call(t, r, "device.say", `{"device_id":"`+meant+`","text":"hi","now":true}`).want(t, `{"heard":"b hi","whole":true}`)
	}
	if a := call(t, r, "device.say", `{"device_id":"c","text":"hi"}`); !a.failed || !strings.Contains(a.text, "no such device is connected: c") {
		t.Errorf("an unknown device: %+v", a)
	}
	h.set("a")
	call(t, r, "device.say", `{"text":"hi"}`).want(t, `{"heard":"a hi","whole":false}`)
	if a := call(t, r, "timer.set_timer", `{"seconds":5}`); !a.failed || !strings.Contains(a.text, "this device does not do that") {
		t.Errorf("a tool that the device's router does not have: %+v", a)
	}
	uris := []string{}
	for _, x := range viewOf(r).Resources() {
		uris = append(uris, x.URI)
	}
	if !slices.Equal(uris, []string{"xiaozhi://config", "xiaozhi://devices", "xiaozhi://log"}) {
		t.Errorf("resources %v", uris)
	}
}

func TestDevicePart(t *testing.T) {
	h := &home{}
	h.set("a")
	x := NewFollower(catalog.NewRegistry(router.Gate{}), Options{
		Devices: h,
		States:  func(id string) (map[string]map[string]any, bool) { return nil, id == "a" },
		Transcript: func(id string) ([]Line, bool) {
			return []Line{{Role: "user", Text: "hi"}}, id == "a"
		},
	}, nil)
	if x.devicePart("b") != nil {
		t.Error("a device that is not connected has a part")
	}
	r := catalog.NewRegistry(router.Gate{})
	r.Set("device:a", x.devicePart("a"))
	call(t, r, "device-a.self.wave", `{}`).want(t, "a self_wave")
	if a := call(t, r, "device-a.self.wave", `{"bad":1}`); a.invalid != "bad is unknown" {
		t.Errorf("wrong arguments: %+v", a)
	}
	v := viewOf(r)
	for uri, want := range map[string]string{
		"xiaozhi://devices/a/status":     `"id":"a"`,
		"xiaozhi://devices/a/states":     `{"device":"a","things":{}}`,
		"xiaozhi://devices/a/transcript": `"text":"hi"`,
	} {
		got, err := v.ReadURI(t.Context(), uri)
		if err != nil || len(got) != 1 || !strings.Contains(got[0].Text, want) {
			t.Errorf("%s: %v, %v", uri, got, err)
		}
	}
	h.set()
	if a := call(t, r, "device-a.self.wave", `{}`); !a.failed || a.text != "the device is not connected: a" {
		t.Errorf("after it left: %+v", a)
	}
	if _, err := v.ReadURI(t.Context(), "xiaozhi://devices/a/status"); err == nil {
		t.Error("the status of a device that left")
	}
}

func TestPrompts(t *testing.T) {
	h := &home{}
	h.set("a")
	v := viewOf(filled(t, h, nil))
	if n := len(v.Prompts()); n < 3 {
		t.Fatalf("%d prompts", n)
	}
	ctx := catalog.WithCaller(t.Context(), english())
	got, known, err := v.Prompt(ctx, "default", map[string]string{"device_name": "kitchen"})
	if err != nil || !known || len(got.Messages) != 1 {
		t.Errorf("%v, %v, %v", got, known, err)
	}
	for argument, value := range map[string]string{"language": "jp", "colour": "red"} {
		if _, _, err := v.Prompt(ctx, "default", map[string]string{argument: value}); err == nil {
			t.Errorf("%s %s was taken", argument, value)
		}
	}
	if got, _, err := v.Prompt(ctx, "default", map[string]string{"language": "ja"}); err != nil || !strings.Contains(inJSON(got), "Answer in Japanese") {
		t.Errorf("in Japanese: %+v, %v", got, err)
	}
	if _, known, _ := v.Prompt(ctx, "nope", nil); known {
		t.Error("a prompt that is not there")
	}
}

func inJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// pretenders lists devices.
type pretenders struct {
	Devices
	list []Device
}

func (pretenders) Named(name string) bool { return name == "cellar" }

func (p pretenders) List() []Device { return slices.Clone(p.list) }

// TestPickIsNotFooled: a device says its own id, so it may say what another is named, or
// what another's stream is called. What is meant for that one never goes to it.
func TestPickIsNotFooled(t *testing.T) {
	h := pretenders{list: []Device{
		{ID: "bedroom"}, {ID: "device-fe0000000001"}, {ID: "device-kitchen"}, {ID: "fe:00:00:00:00:01", Name: "Bedroom"},
		{ID: "fe:00:00:00:00:01~0293ebb0"}, {ID: "fe:00:00:00:00:02", Name: "fe:00:00:00:00:01"}, {ID: "fe;00;00;00;00;01"}, {ID: "r/1"}, {ID: "r;1"}, {ID: "cellar"},
	}}
	ctx := catalog.WithCaller(t.Context(), english())
	for meant, want := range map[string]string{
		"bedroom": "fe:00:00:00:00:01", " BEDROOM ": "fe:00:00:00:00:01", "fe:00:00:00:00:01": "fe:00:00:00:00:01",
		"FE-00-00-00-00-01": "fe:00:00:00:00:01", "fe0000000001": "fe:00:00:00:00:01", "device-fe0000000001": "fe:00:00:00:00:01",
		"fe00.0000.0002": "fe:00:00:00:00:02", "fe:00:00:00:00:01~0293ebb0": "fe:00:00:00:00:01~0293ebb0",
		"r/1": "r/1", "r;1": "r;1", "device-kitchen": "device-kitchen", "kitchen": "",
		"device-r-1": "", "cellar": "", // of one that is away
		"fe:00:00:00:00:03": "", "device-fe0000000003": "",
	} {
		id, err := pick(ctx, h, meant)
		if id != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", meant, id, err, want)
		}
	}
}
