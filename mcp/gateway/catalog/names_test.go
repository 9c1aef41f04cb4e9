package catalog

import "testing"

func TestStreamOf(t *testing.T) {
	for id, want := range map[string]string{
		"24:6F:28:AA:10:02": "device-246f28aa1002", "24-6f-28-aa-10-02": "device-246f28aa1002", "246f28aa1002": "device-246f28aa1002",
		"My Box.1": "device-my-box-1", "灯": "device--", "a_b-c": "device-a_b-c",
	} {
		if got := StreamOf(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
