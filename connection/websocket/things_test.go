package websocket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/connection"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/router"
)

// withThings gives every device things that outlive its connection. While one
// is away its tools are kept in a cache.
func withThings(kinds map[string]mcp.Kind) func(*setup) {
	cache := iot.NewCache(0)
	return func(o *setup) {
		o.NewThings = func(s wire.Session, link connection.Link) connection.Things {
			return iot.New(iot.Options{Send: link.Send, Cache: cache, DeviceID: s.DeviceID, Kinds: kinds, Log: o.Log})
		}
	}
}

// call runs a tool of a conversation through a router, as a model would.
func call(ctx context.Context, t *testing.T, talk *fakeTalk, tool, arguments string) string {
	t.Helper()
	box := router.New(router.Options{}, talk.sources...)
	defer box.Close()
	p, refused := box.Prepare(mcp.Call{ID: "c1", Name: tool, Arguments: arguments})
	if refused != nil {
		return mcp.ResultText(*refused)
	}
	return mcp.ResultText(box.Run(ctx, p))
}

// iotTexts are the iot messages that a device got.
func iotTexts(p *peer) []string {
	var got []string
	for _, text := range p.texts() {
		if strings.Contains(text, `"type":"iot"`) {
			got = append(got, text)
		}
	}
	return got
}

// What firmware 1.6.2 sends and must get, message by message, over two connections.
func TestThings(t *testing.T) {
	bubble(t, withThings(map[string]mcp.Kind{"self.lamp.turn_off": mcp.Query}), func(t *testing.T, r *rig) {
		p := r.dial("d1")
		p.send(`{"type":"hello","version":1,"transport":"websocket","audio_params":{"format":"opus","sample_rate":16000,"channels":1,"frame_duration":60}}`)
		p.send(`{"session_id":"","type":"iot","update":true,"descriptors":[{"name":"Speaker","description":"扬声器","properties":{"volume":{"description":"当前音量值","type":"number"}},"methods":{"SetVolume":{"description":"设置音量","parameters":{"volume":{"description":"0到100之间的整数","type":"number"}}}}}]}`)
		p.send(`{"session_id":"","type":"iot","update":true,"descriptors":[{"name":"Lamp","description":"一个测试用的灯","properties":{"power":{"description":"灯是否打开","type":"boolean"}},"methods":{"TurnOn":{"description":"打开灯","parameters":{}},"TurnOff":{"description":"关闭灯","parameters":{}}}}]}`)
		p.send(`{"session_id":"","type":"iot","update":true,"states":[{"name":"Speaker","state":{"volume":70}},{"name":"Lamp","state":{"power":false}}]}`)
		p.send(`{"session_id":"","type":"iot"}`)
		talk := r.talk(0)
		const all = "self.speaker.get_volume self.speaker.set_volume self.lamp.get_power self.lamp.turn_off self.lamp.turn_on"
		if got := names(talk); got != all {
			t.Errorf("tools %s, want %s", got, all)
		}
		if got := call(t.Context(), t, talk, "self_speaker_set_volume", `{"volume":"50"}`); got != "true" {
			t.Errorf("a control: %s", got)
		}
		if got := call(t.Context(), t, talk, "self_speaker_set_volume", `{}`); !strings.Contains(got, "volume") {
			t.Errorf("a call without its argument: %s", got)
		}
		if got := call(t.Context(), t, talk, "self_speaker_get_volume", ``); got != `{"volume":70}` {
			t.Errorf("a reading: %s", got)
		}
		answer := make(chan string, 1)
		go func() { answer <- call(t.Context(), t, talk, "self_lamp_turn_off", `{}`) }()
		synctest.Wait()
		p.send(`{"session_id":"","type":"iot","update":true,"states":[{"name":"Lamp","state":{"power":true}}]}`)
		if got := <-answer; got != `{"changed":{"power":true},"thing":"Lamp"}` {
			t.Errorf("a query: %s", got)
		}
		want := []string{
			fmt.Sprintf(`{"session_id":%q,"type":"iot","commands":[{"name":"Speaker","method":"SetVolume","parameters":{"volume":50}}]}`, talk.session.SessionID),
			fmt.Sprintf(`{"session_id":%q,"type":"iot","commands":[{"name":"Lamp","method":"TurnOff","parameters":{}}]}`, talk.session.SessionID),
		}
		if got := iotTexts(p); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the device got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		go func() { answer <- call(t.Context(), t, talk, "self_lamp_turn_off", `{}`) }()
		synctest.Wait()
		p.leave()
		if got := <-answer; !strings.Contains(got, mcp.ErrClosed.Error()) {
			t.Errorf("a query of a device that left: %s", got)
		}
		synctest.Wait()
		if names(talk) != "" {
			t.Errorf("a device that left has %s", names(talk))
		}

		again := r.greet("d1")
		if got := names(r.talk(1)); got != all {
			t.Errorf("tools at the next hello: %s", got)
		}
		if got := call(t.Context(), t, r.talk(1), "self_speaker_get_volume", ``); !strings.Contains(got, "70") || !strings.Contains(got, "reconnected") {
			t.Errorf("a reading at the next hello: %s", got)
		}
		again.alive(r.talk(1))
		r.greet("d2")
		if got := names(r.talk(2)); got != "" {
			t.Errorf("another device has %s", got)
		}
	})
}

// names are those of a conversation's tools.
func names(talk *fakeTalk) string {
	var all []string
	for _, s := range talk.sources {
		for _, tool := range s.GetAvailableTools() {
			all = append(all, tool.Name)
		}
	}
	return strings.Join(all, " ")
}

// Whatever an iot message holds, the connection lives on and the lamp stays.
func TestBadThings(t *testing.T) {
	for _, text := range []string{
		`{"type":"iot","descriptors":7}`,
		`{"type":"iot","descriptors":[null,7,"x",{},{"name":5},{"name":"B","methods":{"x":{"parameters":{"y":{"type":"z"}}}}}]}`,
		`{"type":"iot","states":"x"}`,
		`{"type":"iot","states":[{"name":"Ghost","state":{"a":1}},{"name":"Lamp","state":[1]}]}`,
		`{"type":"iot","descriptors":[` + strings.Repeat(`{"a":[`, 10) + `1` + strings.Repeat(`]}`, 10) + `]}`,
		`{"type":"iot","descriptors":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`,
		`{"type":"iot","descriptors":[` + strings.Repeat(`{"name":"Lamp2","methods":{"On":{}}},`, 1000) + `{"name":"Lamp2"}]}`,
		`{"type":"iot","descriptors":[{"name":"Big","description":"` + strings.Repeat("x", 70<<10) + `"}]}`,
		`{"type":"iot","descriptors":[{"name":"a "quoted" name"}]}`,
		`{"type":"iot","commands":[{"name":"Lamp","method":"On","parameters":{}}]}`,
	} {
		t.Run(text[:min(len(text), 60)], func(t *testing.T) {
			bubble(t, withThings(nil), func(t *testing.T, r *rig) {
				p := r.greet("d1")
				p.send(`{"type":"iot","descriptors":[{"name":"Lamp","methods":{"On":{}}}]}`)
				p.send(text)
				talk := r.talk(0)
				p.alive(talk)
				if got := names(talk); !strings.HasPrefix(got, "self.lamp.on") {
					t.Errorf("tools %q", got)
				}
				if got := iotTexts(p); len(got) != 0 {
					t.Errorf("the device got %q", got)
				}
			})
		})
	}
}

// Things that fail to start end the connection; where a device has none made,
// its messages are ignored.
func TestThingsCannotStart(t *testing.T) {
	change := func(o *setup) {
		o.NewThings = func(s wire.Session, _ connection.Link) connection.Things {
			if s.DeviceID == "none" {
				return nil
			}
			return brokenThings{}
		}
	}
	bubble(t, change, func(t *testing.T, r *rig) {
		p := r.dial("d1")
		p.send(`{"type":"hello"}`)
		<-p.done
		synctest.Wait()
		if len(r.log.lines("device things cannot start", "no lamp today")) == 0 {
			t.Errorf("log:\n%s", r.log)
		}
		none := r.greet("none")
		none.send(`{"type":"iot","descriptors":[{"name":"Lamp","methods":{"On":{}}}]}`)
		if talk := r.talk(0); len(talk.sources) != 0 {
			t.Errorf("sources %v", talk.sources)
		}
		none.alive(r.talk(0))
	})
}

type brokenThings struct{ mcp.Source }

func (brokenThings) Start(context.Context) error              { return errors.New("no lamp today") }
func (brokenThings) Stop() error                              { return errors.New("nor ever") }
func (brokenThings) Deliver(json.RawMessage, json.RawMessage) {}
func (brokenThings) Listening()                               {}

// A device of the IoT era that crashes at a malformed command is worked by its
// tools, gets refusals of all that is wrong before it is sent, and lives.
func TestLegacyDevice(t *testing.T) {
	bubble(t, withThings(map[string]mcp.Kind{"self.lamp.set_level": mcp.Query}), func(t *testing.T, r *rig) {
		nc, err := r.ln.dial()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		speaker, volume := devicetest.Speaker()
		d, err := devicetest.Dial(ctx, devicetest.Options{
			URL: "ws://server/xiaozhi/v1/", NetConn: nc, Profile: devicetest.OldIoT162, OpenListen: true,
			Things: []devicetest.Thing{devicetest.Lamp(), speaker}, Quirks: devicetest.Quirks{StatesAtOnce: true},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		time.Sleep(time.Second) // fake time
		talk := r.talk(0)
		for _, c := range []struct{ tool, arguments, want string }{
			{"self_lamp_get_power", `{}`, `{"power":false}`},
			{"self_lamp_turn_on", `{}`, `true`},
			{"self_lamp_set_level", `{"level":"40"}`, `{"changed":{"level":40},"thing":"Lamp"}`},
			{"self_lamp_get_power", ``, `{"power":true}`},
			{"self_speaker_set_volume", `{"volume":12.0}`, `true`},
			{"self_speaker_set_volume", `{"volume":12.5}`, `integer`},
			{"self_speaker_set_volume", `{"volume":99999999999}`, `32 bits`},
			{"self_speaker_set_volume", `{"volume":null}`, `volume`},
			{"self_speaker_set_volume", `{"loudness":5}`, `volume`},
			{"self_speaker_set_volume", `{"volume":5,"room":"kitchen"}`, `room`},
			{"self_lamp_turn_on", `{"now":true}`, `now`},
			{"self_lamp_explode", `{}`, `no tool`},
			{"self_lamp_turn_off", `[]`, `no JSON object`},
		} {
			if got := call(ctx, t, talk, c.tool, c.arguments); !strings.Contains(got, c.want) {
				t.Errorf("%s %s: %s, want %s", c.tool, c.arguments, got, c.want)
			}
		}
		synctest.Wait()
		if got := volume(); got != 12 {
			t.Errorf("volume %d", got)
		}
		if n := d.Stats().Crashes; n != 0 || len(d.Violations()) != 0 {
			t.Errorf("%d crashes, violations %v", n, d.Violations())
		}
	})
}
