package devicetest

import (
	"strings"
	"testing"
)

// Descriptors come one by one after the hello, states before each listen start, and only what changed.
func TestThings(t *testing.T) {
	d := talk(t, Options{OpenListen: true, Profile: OldIoT162, Things: []Thing{Lamp(), {Name: "Fan", Description: "a fan"}}}, func(w *wire) {
		w.hello()
		for _, want := range []string{
			`{"session_id":"","type":"iot","update":true,"descriptors":[{"name":"Lamp","description":"a test lamp","properties":{"level":{`,
			`"name":"Fan"`,
			`{"session_id":"","type":"iot","update":true,"states":[{"name":"Lamp","state":{"level":50,"power":false}}]}`,
			`{"session_id":"","type":"listen","state":"start","mode":"auto"}`,
		} {
			if got := <-w.in; !strings.Contains(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
		}
		w.say(`"type":"iot","commands":[{"name":"Lamp","method":"TurnOn","parameters":{}},{"name":"Lamp","method":"SetLevel","parameters":{"level":40}}]`)
		w.reply(5)
		if got := <-w.in; !strings.Contains(got, `{"level":40,"power":true}`) {
			t.Errorf("states after the command: %s", got)
		}
		w.await(`"state":"start"`)
		w.reply(5)
		if got := <-w.in; !strings.Contains(got, `"state":"start"`) {
			t.Errorf("%s though nothing changed", got)
		}
	}, nil)
	if got := d.Violations(); len(got) != 0 {
		t.Errorf("violations: %v", got)
	}
}

// Commands that crash older firmware are seen.
func TestThingCrashes(t *testing.T) {
	old := Options{OpenListen: true, Profile: OldIoT162, Things: []Thing{Lamp()}}
	for _, commands := range []string{
		`null1`,
		`{}`,
		`[{"method":"TurnOn","parameters":{}}]`,
		`[{"name":"Lamp","parameters":{}}]`,
		`[{"name":"Lamp","method":"TurnOn"}]`,
		`[{"name":"Lamp","method":"Explode","parameters":{}}]`,
		`[{"name":"Car","method":"TurnOn","parameters":{}}]`,
		`[{"name":"Lamp","method":"SetLevel","parameters":{}}]`,
		`[{"name":"Lamp","method":"SetLevel","parameters":{"level":"40"}}]`,
		`[{"name":"Lamp","method":"SetLevel","parameters":{"level":40.5}}]`,
		`[{"name":"Lamp","method":"SetLevel","parameters":{"level":null}}]`,
		`null`,
		`[null]`,
		`[7]`,
		`[{"name":7,"method":"TurnOn","parameters":{}}]`,
		`[{"name":"Lamp","method":"TurnOn","parameters":[]}]`,
		`[{"name":"Lamp","method":"TurnOn","parameters":null}]`,
		`[{"name":"Lamp","method":"TurnOn","parameters":{"level":1}}]`,
		`[{"name":"Lamp","method":"TurnOn","parameters":{},"id":1}]`,
		`[{"name":"Lamp","method":"TurnOn","parameters":{}}],"update":true`,
		`[{"name":"Lamp","method":"TurnOn","parameters":{}},{"name":"Lamp"}]`,
	} {
		want := "iot"
		if commands == `null1` { // not JSON at all
			want = "json"
		}
		d := talk(t, old, func(w *wire) {
			w.hello()
			w.await(`"state":"start"`)
			w.say(`"type":"iot","commands":` + commands)
		}, nil)
		if got := strings.Join(rules(d), " "); got != want {
			t.Errorf("%s: broke %q, want %q", commands, got, want)
		}
		if n := d.Stats().Crashes; want == "iot" && n != 1 {
			t.Errorf("%s: %d crashes, want one and the end of the connection", commands, n)
		}
	}
	d := talk(t, Options{OpenListen: true}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.say(`"type":"iot","commands":[]`)
	}, nil)
	if got := strings.Join(rules(d), " "); got != "iot" || d.Stats().Crashes != 0 {
		t.Errorf("to a device without things: broke %q", got)
	}
}

// Some builds report right after a command.
func TestThingStatesAtOnce(t *testing.T) {
	speaker, volume := Speaker()
	d := talk(t, Options{OpenListen: true, Profile: OldIoT162, Things: []Thing{speaker}, Quirks: Quirks{StatesAtOnce: true}}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.say(`"type":"iot","commands":[{"name":"Speaker","method":"SetVolume","parameters":{"volume":5}}]`)
		if got := <-w.in; !strings.Contains(got, `"states":[{"name":"Speaker","state":{"volume":5}}]`) {
			t.Errorf("after the command: %s", got)
		}
	}, nil)
	if got := d.Violations(); len(got) != 0 || volume() != 5 {
		t.Errorf("volume %d, violations %v", volume(), got)
	}
}
