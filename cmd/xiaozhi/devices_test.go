package main

import (
	"bytes"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
)

func runDevices(t *testing.T, server string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = devices(t.Context(), append([]string{"--server", server}, args...), &out, &err)
	return code, out.String(), err.String()
}

// TestDevicesByHand is a speaker's way from its first boot to being forgotten, with
// the words that a person types.
func TestDevicesByHand(t *testing.T) {
	t.Setenv("XIAOZHI_MCP_TOKEN", "")
	base, _ := serving(t, "asr: [openai]\nauth: {pairing: ask}\n")
	if code, out, why := runDevices(t, base); code != 0 || !strings.Contains(out, "ask") || !strings.Contains(out, "no device is known yet") {
		t.Fatalf("%d %s %s", code, out, why)
	}
	flash := &devicetest.Flash{}
	o := devicetest.Options{DeviceID: "24:6f:28:aa:10:02", Flash: flash, Waiting: devicetest.PollsOnce}
	p, err := devicetest.Boot(t.Context(), base+"/xiaozhi/ota/", o, func(code string) {
		_, out, _ := runDevices(t, base)
		if !strings.Contains(out, "24:6f:28:aa:10:02  new") || !strings.Contains(out, code) {
			t.Errorf("while it waits: %s", out)
		}
		if code, out, why := runDevices(t, base, "pair", code[:3], code[3:]); code != 0 || !strings.Contains(out, "24:6f:28:aa:10:02") {
			t.Errorf("pair: %d %s %s", code, out, why)
		}
	})
	if err != nil || p.Token == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	o.URL, o.Token = p.URL, p.Token
	d, err := devicetest.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"rename", "24-6F-28-AA-10-02", "Living", "room"}, 0, "done: 24:6f:28:aa:10:02"},
		{nil, 0, "paired  Living room  bread-compact-wifi  2.4.2"},
		{nil, 0, "connected"},
		{[]string{"--json"}, 0, `"token":"used"`},
		{[]string{"pair", "000000"}, 1, "no speaker is waiting here with this code"},
		{[]string{"keep", "246f28aa1002", "text=30", "sound=0"}, 0, "done: 24:6f:28:aa:10:02"},
		{nil, 0, "text for 30 days"},
		{nil, 0, "sound for ever"},
		{[]string{"keep", "246f28aa1002", "sound="}, 0, "done"},
		{[]string{"--json"}, 0, `"keep":{"text":30}`},
		{[]string{"keep", "kitchen", "text=30"}, 1, "no device is known by this id"},
		{[]string{"keep", "246f28aa1002", "text=-1"}, 1, "from 0 (for ever) to 36500"},
		{[]string{"keep", "246f28aa1002", "text=36501"}, 1, "from 0 (for ever) to 36500"},
		{[]string{"keep", "246f28aa1002", "text=week"}, 2, "keep needs ID text=DAYS sound=DAYS"},
		{[]string{"keep", "246f28aa1002", "video=3"}, 2, "keep needs ID"},
		{[]string{"keep", "246f28aa1002", "text=3", "text=4"}, 2, "keep needs ID"},
		{[]string{"keep", "246f28aa1002"}, 2, "keep needs ID"},
		{[]string{"refuse", "kitchen"}, 1, "no device is known by this id"},
		{[]string{"refuse", "246f28aa1002"}, 0, "done"},
		{nil, 0, "refused"},
		{[]string{"forget", "246f28aa1002"}, 0, "done"},
		{nil, 0, "no device is known yet"},
		{[]string{"pair"}, 2, "pair needs CODE / ID"},
		{[]string{"rename", "x"}, 2, "rename needs ID NAME"},
		{[]string{"forget", "x", "y"}, 2, "forget needs ID"},
		{[]string{"promote", "x"}, 2, "promote"},
		{[]string{"pair", "x", "--json"}, 2, "must come before"},
	} {
		code, out, why := runDevices(t, base, tc.args...)
		if code != tc.code || !strings.Contains(out+why, tc.want) {
			t.Errorf("%q: %d %s%s", tc.args, code, out, why)
		}
	}
}

// Without the admin token nobody is shown anything.
func TestDevicesForTheOwner(t *testing.T) {
	base, _ := serving(t, "asr: [openai]\nmcp: {tokens: [{name: a, token: s3cret-of-the-laptop}]}\n")
	for _, token := range []string{"s3cret-of-the-laptop", "wrong"} {
		t.Setenv("XIAOZHI_MCP_TOKEN", token)
		if code, out, why := runDevices(t, base); code != 1 || out != "" || !strings.Contains(why, "admin") {
			t.Errorf("%s: %d %s %s", token, code, out, why)
		}
	}
}
