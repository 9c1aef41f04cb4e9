package offer

import (
	"strings"
	"testing"
)

// TestTakeDeviceID finds the device in arguments, as an object or as text of one.
func TestTakeDeviceID(t *testing.T) {
	for arguments, want := range map[string][3]string{
		``:                                {"", "", ""},
		`{"device_id":"kitchen","x":1}`:   {"kitchen", `{"x":1}`, ""},
		`"{\"device_id\":\"k\",\"x\":1}"`: {"k", `{"x":1}`, ""},
		`{"x":1}`:                         {"", `{"x":1}`, ""},
		`{"device_id":7}`:                 {"", "", "device_id is no text"},
		`"kitchen"`:                       {"", "", "no JSON object"},
		`[1]`:                             {"", "", "no JSON object"},
	} {
		id, rest, err := takeDeviceID(arguments)
		if err != nil {
			if want[2] == "" || !strings.Contains(err.Error(), want[2]) {
				t.Errorf("%s: %v", arguments, err)
			}
			continue
		}
		if id != want[0] || rest != want[1] || want[2] != "" {
			t.Errorf("%s: %q, %q", arguments, id, rest)
		}
	}
}
