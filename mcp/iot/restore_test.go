package iot

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// TestSourceRestores: what a device described before the program ended is offered before it says anything, with its states
// marked as old, is kept whenever it changes, and gives way to what the device describes.
func TestSourceRestores(t *testing.T) {
	board := NewLegacyBoard(t, lampDescriptor, speakerDescriptor)
	var kept []string
	keep := func(doc string) { kept = append(kept, doc) }
	first := board.Things(Options{Cache: NewCache(1), DeviceID: "d", Keep: keep})
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	board.Describe(first)
	state := json.RawMessage(`[{"name":"Lamp","state":{"power":true}},{"name":"Speaker","state":{"volume":40}}]`)
	first.Deliver(nil, state)
	n := len(kept)
	board.Describe(first)
	first.Deliver(nil, state)
	if n == 0 || len(kept) != n {
		t.Fatalf("kept %d times, then %d times", n, len(kept)-n)
	}
	first.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":false}}]`))
	if len(kept) != n+1 {
		t.Error("another state is not kept")
	}

	told := 0
	cache := NewCache(1)
	s := NewLegacyBoard(t, lampDescriptor).Things(Options{Cache: cache, DeviceID: "d", Keep: keep, OnChange: func() { told++ }})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{", `{"things":[{}]}`, `{"things":[],"states":{"x":{"y":1}}}`} {
		if err := s.Restore(bad); err == nil || s.IsReady() {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := s.Restore(kept[n]); err != nil || told != 1 {
		t.Fatal(err, told)
	}
	if got, want := s.GetAvailableTools(), first.GetAvailableTools(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if len(s.States()) != 0 {
		t.Errorf("states of before are said to hold: %v", s.States())
	}
	for name, want := range map[string]string{"self.lamp.get_power": "map[note:%s power:false]", "self.speaker.get_volume": "map[note:%s volume:40]"} {
		got, err := s.CallTool(t.Context(), name, nil)
		note := ""
		if m, ok := got.(map[string]any); ok {
			note, _ = m["note"].(string)
		}
		if err != nil || note == "" || fmt.Sprint(got) != fmt.Sprintf(want, note) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	if _, ok := cache.homes.Peek("d"); !ok {
		t.Error("the next connection does not know it")
	}
	s.Deliver(json.RawMessage("["+lampDescriptor+"]"), nil)
	s.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":true}}]`))
	if s.HasTool("self.speaker.get_volume") || fmt.Sprint(s.States()) != "map[Lamp:map[power:true]]" {
		t.Errorf("what was not described again is there: %v", s.States())
	}
	if err := s.Restore(kept[n]); err != nil || s.HasTool("self.speaker.get_volume") {
		t.Errorf("it takes the place of what the device has said: %v", err)
	}
}

// FuzzRestore: whatever is kept, nothing but things within the limits comes back, and what comes back stays so.
func FuzzRestore(f *testing.F) {
	f.Add(`{"things":[` + lampDescriptor + `],"states":{"Lamp":{"power":true}}}`)
	f.Add(`{"things":[` + speakerDescriptor + `,` + sensorDescriptor + `]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		h, err := decodeHome(doc)
		if err != nil {
			return
		}
		once, ok := h.encode()
		if !ok {
			t.Fatal("it has no form")
		}
		h, err = decodeHome(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice, _ := h.encode(); twice != once {
			t.Errorf("%s became %s", once, twice)
		}
	})
}
