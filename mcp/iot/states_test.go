package iot

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestSourceStates: the last reports of a connection are there as values, each
// message is told of, and what was said before a reconnection does not count.
func TestSourceStates(t *testing.T) {
	cache, told := NewCache(10), 0
	o := Options{Cache: cache, DeviceID: "d", OnChange: func() { told++ }}
	b := NewLegacyBoard(t, lampDescriptor, speakerDescriptor)
	s := describedThings(t, b, o)
	s.Deliver(nil, json.RawMessage(`[{"name":"Lamp","state":{"power":true}},{"name":"Speaker","state":{"volume":40}}]`))
	s.Deliver(nil, json.RawMessage(`[{"name":"Speaker","state":{"volume":50}}]`))
	want := map[string]map[string]any{"Lamp": {"power": true}, "Speaker": {"volume": int64(50)}}
	if got := s.States(); !reflect.DeepEqual(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
	if told != 4 { // two descriptors, two reports
		t.Errorf("told %d times", told)
	}
	again := describedThings(t, b, o)
	if got := again.States(); len(got["Lamp"]) != 0 {
		t.Errorf("after reconnecting: %v", got)
	}
	_ = s.Stop()
	if got := s.States(); got != nil {
		t.Errorf("after Stop: %v", got)
	}
}
