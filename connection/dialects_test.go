package connection

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAddressIn(t *testing.T) {
	for params, want := range map[string]string{
		`{"mac_addr":"AA-BB-CC-DD-EE-FF"}`:                    "aa:bb:cc:dd:ee:ff",
		`{"mac_addr":"aabb.ccdd.eeff"}`:                       "aa:bb:cc:dd:ee:ff",
		`{"mac_addr": " AABBCCDDEEFF "}`:                      "aa:bb:cc:dd:ee:ff",
		`{"mac_addr":"Robot-7"}`:                              "robot-7",
		`{"mac_addr":"AA-BB-CC-DD-EE-FG"}`:                    "aa-bb-cc-dd-ee-fg",
		`{"mac_addr":""}`:                                     "",
		`{"mac_addr":5}`:                                      "",
		`{"mac_addr":null}`:                                   "",
		`{"mac_addr":"机器人"}`:                                  "",
		`{"mac_addr":"` + strings.Repeat("a", maxID+1) + `"}`: "",
		`{}`: "",
		`[]`: "",
		``:   "",
	} {
		if got := addressIn(json.RawMessage(params)); got != want {
			t.Errorf("%s: %q, want %q", params, got, want)
		}
	}
}
