package e2e

import (
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestThingsOfOlderFirmware works a device of the IoT era, which crashes at a
// malformed command: by words of the small brain, by a model that is right and
// one that is wrong, and after a reconnect.
func TestThingsOfOlderFirmware(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat,
		openaitest.Calls(openaitest.Call{ID: "c1", Name: "self_lamp_turn_on", Arguments: `{}`}, openaitest.Call{ID: "c2", Name: "self_speaker_get_volume", Arguments: `{}`}),
		openaitest.Text("The lamp is on."),
		openaitest.Calls(openaitest.Call{ID: "c3", Name: "self_lamp_set_level", Arguments: `{"level":"40"}`}),
		openaitest.Text("It is dimmed."),
		openaitest.Calls(openaitest.Call{ID: "c4", Name: "self_lamp_set_level", Arguments: `{"level":"bright"}`}, openaitest.Call{ID: "c5", Name: "self_lamp_turn_off", Arguments: `{"slowly":true}`}),
		openaitest.Text("That did not work."),
		openaitest.Text("I am still here."))
	s := start(t, setup{env: cloudEnv(cloud), config: "tools: {kinds: {self.lamp.set_level: query}}\n"})
	s.waitReady(ctx, t)
	lamp := devicetest.Lamp()
	speaker, volume := devicetest.Speaker()
	old := devicetest.Options{Profile: devicetest.OldIoT162, Things: []devicetest.Thing{lamp, speaker}, Quirks: devicetest.Quirks{StatesAtOnce: true}}
	d := s.dial(ctx, t, old)

	if r := ask(ctx, t, d, "把音量调到五十"); r.Frames == 0 || volume() != 50 {
		t.Errorf("answer %q, %d frames, volume %d", r.Text(), r.Frames, volume())
	}
	if r := ask(ctx, t, d, "what is the volume"); !strings.Contains(r.Text(), "50") {
		t.Errorf("the volume as it was reported: %q", r.Text())
	}
	if r := ask(ctx, t, d, "please light the room"); r.Text() != "The lamp is on." || lamp.State()["power"] != true {
		t.Errorf("answer %q, lamp %v", r.Text(), lamp.State())
	}
	if r := ask(ctx, t, d, "please dim it a little"); r.Text() != "It is dimmed." || lamp.State()["level"] != 40 {
		t.Errorf("answer %q, lamp %v", r.Text(), lamp.State())
	}
	if r := ask(ctx, t, d, "please do something silly"); r.Text() != "That did not work." || lamp.State()["level"] != 40 || lamp.State()["power"] != true {
		t.Errorf("answer %q, lamp %v", r.Text(), lamp.State())
	}
	if n := d.Stats().Crashes; n != 0 {
		t.Errorf("the device crashed %d times", n)
	}
	d.CloseTCP()

	again := s.dial(ctx, t, devicetest.Options{Profile: devicetest.OldIoT162}) // it describes nothing
	ask(ctx, t, again, "please say that you are there")

	requests := cloud.Requests(openaitest.Chat)
	if len(requests) != 7 {
		t.Fatalf("%d model calls, want 7", len(requests))
	}
	for i, want := range map[int][]string{
		0: {`"self_lamp_turn_on"`, `switch on; a test lamp`, `"self_speaker_set_volume"`, `0到100之间的整数`, `"self_lamp_get_power"`},
		1: {`"tool_call_id":"c1"`, `"tool_call_id":"c2"`, `{\"volume\":50}`},
		3: {`"tool_call_id":"c3"`, `{\"changed\":{\"level\":40}`},
		5: {`"tool_call_id":"c4"`, `"tool_call_id":"c5"`, `level`, `slowly`},
		6: {`"self_lamp_turn_on"`, `"self_speaker_get_volume"`},
	} {
		if body := string(requests[i].Body); !holdsAll(body, want) {
			t.Errorf("request %d does not hold all of %q: %s", i, want, body)
		}
	}
}
