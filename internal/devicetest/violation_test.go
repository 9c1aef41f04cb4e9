package devicetest

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/audio"
)

const ms = time.Millisecond

// Every rule is seen when a server breaks it, and no other rule with it.
func TestViolations(t *testing.T) {
	listen := Options{OpenListen: true}
	withTools := Options{OpenListen: true, Tools: NewBoard().Tools()}
	tests := []struct {
		name   string
		o      Options
		script func(*wire) // after hello and listen start
		user   func(context.Context, *Device)
		want   string // rules, sorted
	}{
		{"second hello", listen, (*wire).hello, nil, "hello_again"},
		{"not JSON", listen, func(w *wire) { w.raw(`{"type":"stt",`) }, nil, "json"},
		{"an array", listen, func(w *wire) { w.raw(`[1]`) }, nil, "json"},
		{"null", listen, func(w *wire) { w.raw(`null`) }, nil, "json"},
		{"no type", listen, func(w *wire) { w.say(`"text":"x"`) }, nil, "type"},
		{"type of a number", listen, func(w *wire) { w.say(`"type":3`) }, nil, "type"},
		{"tts without state", listen, func(w *wire) { w.say(`"type":"tts"`) }, nil, "type"},
		{"stt text null", listen, func(w *wire) { w.say(`"type":"stt","text":null`) }, nil, "type"},
		{"no session", listen, func(w *wire) { w.raw(`{"type":"stt","text":"a"}`) }, nil, "session_id"},
		{"foreign session", listen, func(w *wire) { w.raw(`{"session_id":"s2","type":"stt","text":"a"}`) }, nil, "session_id"},
		{"text too long", listen, func(w *wire) { w.say(`"type":"stt","text":"` + strings.Repeat("a", 8192) + `"`) }, nil, "too_long"},
		{"binary too long", listen, func(w *wire) { w.begin(); w.binaryOut(make([]byte, 1537)); w.pause(time.Second) }, nil, "close_inside_reply packet packet_duration too_long"},
		{"deep", listen, func(w *wire) {
			w.say(`"type":"custom","payload":` + strings.Repeat(`{"a":`, 15) + `1` + strings.Repeat(`}`, 15))
		}, nil, "too_deep"},
		{"abort", listen, func(w *wire) { w.say(`"type":"abort"`) }, nil, "abort_echo"},
		{"stale", listen, func(w *wire) { w.pause(121 * time.Second); w.say(`"type":"llm","emotion":"neutral"`) }, nil, "stale"},
		{"late close", listen, func(w *wire) { w.close(); w.pause(1100 * ms) }, nil, "late_close"},
		{"start twice", listen, func(w *wire) { w.begin(); w.say(`"type":"tts","state":"start"`); w.stop() }, nil, "start_twice"},
		{"stop alone", listen, (*wire).stop, nil, "stop_unpaired"},
		{"stop twice", listen, func(w *wire) { w.reply(5); w.stop() }, nil, "stop_unpaired"},
		{"stop early", listen, func(w *wire) { w.begin(); w.tone(9); w.pause(200 * ms); w.stop() }, nil, "stop_early"},
		{"stop late", listen, func(w *wire) { w.begin(); w.tone(9); w.pause(361 * ms); w.stop() }, nil, "stop_late"},
		{"no stop", listen, func(w *wire) { w.begin(); w.tone(9) }, nil, "close_inside_reply"},
		{"early sentence", listen, func(w *wire) { w.begin(); w.pause(300 * ms); w.tone(5); w.finish() }, nil, "sentence_early"},
		{"sentence outside", listen, func(w *wire) { w.say(`"type":"tts","state":"sentence_start","text":"a"`) }, nil, "outside_reply"},
		{"emotion before start", listen, func(w *wire) { w.say(`"type":"llm","emotion":"happy","text":"🙂"`) }, nil, "outside_reply"},
		{"stt inside", listen, func(w *wire) { w.begin(); w.say(`"type":"stt","text":"a"`); w.stop() }, nil, "stt_in_reply"},
		{"early frame", listen, func(w *wire) {
			w.say(`"type":"tts","state":"start"`)
			w.pause(99 * ms)
			w.tone(4)
			w.finish()
		}, nil, "early_frame"},
		{"frame before start", listen, func(w *wire) { w.tone(1) }, nil, "frame_dropped frame_outside"},
		{"frame after stop", listen, func(w *wire) { w.reply(5); w.pause(ms); w.tone(1) }, nil, "frame_dropped frame_outside"},
		{"queue full", Options{OpenListen: true, Limits: Limits{MaxLead: time.Hour}}, func(w *wire) {
			w.begin()
			for range 42 {
				w.binaryOut(w.packet(false))
			}
			w.pause(41*60*ms + 100*ms)
			w.stop()
		}, nil, "queue_full"},
		{"lead high", listen, func(w *wire) {
			w.begin()
			for range 7 {
				w.binaryOut(w.packet(false))
			}
			w.pause(7*60*ms + 100*ms)
			w.stop()
		}, nil, "lead_high"},
		{"underrun", Options{OpenListen: true, Limits: Limits{StrictLead: true}}, func(w *wire) {
			w.begin()
			w.tone(5)
			w.pause(300 * ms)
			w.tone(4)
			w.pause(340 * ms)
			w.stop()
		}, nil, "underrun"},
		{"lead low", Options{OpenListen: true, Limits: Limits{StrictLead: true}}, func(w *wire) {
			w.begin()
			w.tone(5)
			w.pause(61 * ms)
			for range 5 {
				w.pause(60 * ms)
				w.binaryOut(w.packet(false))
			}
			w.pause(280 * ms)
			w.stop()
		}, nil, "lead_low"},
		{"empty frame", listen, func(w *wire) { w.begin(); w.binaryOut(nil); w.stop() }, nil, "packet"},
		{"frame of 20 ms", listen, func(w *wire) { w.begin(); w.binaryOut([]byte{9 << 3}); w.pause(120 * ms); w.stop() }, nil, "packet_duration"},
		{"stereo", listen, func(w *wire) { w.begin(); w.binaryOut([]byte{11<<3 | 4}); w.pause(160 * ms); w.stop() }, nil, "packet"},
		{"bare packet on framing 2", Options{OpenListen: true, Protocol: 2}, func(w *wire) { w.begin(); w.tone(1); w.stop() }, nil, "framing"},
		{"lying header on framing 3", Options{OpenListen: true, Protocol: 3}, func(w *wire) { w.begin(); w.binaryOut([]byte{0, 0, 0, 9, 1}); w.stop() }, nil, "framing"},
		{"timestamp without echo cancelling", Options{OpenListen: true, Protocol: 2}, func(w *wire) { w.stamped(7) }, nil, "timestamp"},
		{"timestamp 0 with echo cancelling", Options{OpenListen: true, Protocol: 2, Sound: Sound{AEC: true}}, func(w *wire) { w.stamped(0) }, nil, "timestamp"},
		{"timestamps that fall", Options{OpenListen: true, Protocol: 2, Sound: Sound{AEC: true}}, func(w *wire) { w.stamped(7, 60, 59) }, nil, "timestamp"},
		{"listen start without a stop", listen, func(w *wire) { w.begin(); w.await(`"state":"start"`); w.pause(1100 * ms) }, func(ctx context.Context, d *Device) {
			d.WaitState(ctx, Speaking)
			d.ListenStart(Auto)
		}, "stop_missing"},
		{"connecting", Options{}, func(w *wire) { w.begin(); w.pause(ms); w.stop() }, nil, "start_connecting"},
		{"main task late", Options{OpenListen: true, Quirks: Quirks{MainTaskDelay: 150 * ms}}, func(w *wire) { w.reply(4); w.pause(time.Second) }, nil, "frame_dropped"},
		{"abort unanswered", listen, func(w *wire) { w.await("abort"); w.pause(1100 * ms) }, pressAbort, "stop_missing"},
		{"abort slow", listen, func(w *wire) { w.await("abort"); w.pause(51 * ms); w.stop() }, pressAbort, "abort_slow"},
		{"start after abort", listen, func(w *wire) { w.await("abort"); w.pause(40 * ms); w.say(`"type":"tts","state":"start"`); w.stop() }, pressAbort, "start_after_abort"},
		{"loud cut", listen, func(w *wire) { w.cut(func() { w.binaryOut(w.packet(false)) }) }, abortReply, "abort_loud"},
		{"cut without closing frame", listen, func(w *wire) { w.cut(func() {}) }, abortReply, "abort_loud"},
		{"frames after abort", listen, func(w *wire) {
			w.cut(func() { w.pause(31 * ms); w.binaryOut(w.packet(true)); w.binaryOut(w.packet(true)) })
		}, abortReply, "abort_frames"},
		{"mcp string id", withTools, func(w *wire) { w.say(mcp(`"a"`, "tools/list", "")) }, nil, "mcp_silent"},
		{"mcp params null", withTools, func(w *wire) { w.say(mcp(1, "tools/list", "null")) }, nil, "mcp_silent"},
		{"mcp payload string", withTools, func(w *wire) { w.say(`"type":"mcp","payload":"{}"`) }, nil, "mcp_silent"},
		{"mcp without jsonrpc", withTools, func(w *wire) { w.say(`"type":"mcp","payload":{"id":1,"method":"tools/list"}`) }, nil, "mcp_silent"},
		{"mcp without id", withTools, func(w *wire) { w.say(`"type":"mcp","payload":{"jsonrpc":"2.0","method":"tools/list"}`) }, nil, "mcp_silent"},
		{"mcp response", withTools, func(w *wire) { w.say(`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"result":{}}`) }, nil, "mcp_silent"},
		{"mcp large id", withTools, func(w *wire) { w.say(mcp(2147483648, "tools/list", "")); w.await("tools") }, nil, "mcp_id"},
		{"mcp id twice", withTools, func(w *wire) {
			for range 2 {
				w.say(mcp(1, "tools/list", ""))
				w.await("tools")
			}
		}, nil, "mcp_id"},
		{"mcp version", withTools, func(w *wire) { w.say(mcp(1, "initialize", `{"protocolVersion":"2025-06-18"}`)); w.await("serverInfo") }, nil, "mcp_request"},
		{"mcp empty vision", withTools, func(w *wire) {
			w.say(mcp(1, "initialize", `{"protocolVersion":"2024-11-05","capabilities":{"vision":{"url":""}}}`))
			w.await("serverInfo")
		}, nil, "mcp_request"},
		{"mcp arguments null", withTools, func(w *wire) {
			w.say(mcp(1, "tools/call", `{"name":"self.lamp.turn_on","arguments":null}`))
			w.await("Invalid arguments")
		}, nil, "mcp_request"},
		{"mcp two calls", Options{OpenListen: true, Quirks: Quirks{MuteMCP: true}}, func(w *wire) {
			w.say(mcp(1, "tools/call", `{"name":"a"}`))
			w.pause(14 * time.Second)
			w.say(mcp(2, "tools/call", `{"name":"a"}`))
		}, nil, "mcp_busy"},
		{"mcp unwanted", Options{OpenListen: true, NoMCP: true}, func(w *wire) { w.say(mcp(1, "tools/list", "")) }, nil, "mcp_request"},
		{"flood", Options{OpenListen: true, Quirks: Quirks{MainTaskDelay: time.Minute}}, func(w *wire) {
			for range 1100 {
				w.say(`"type":"llm","emotion":"neutral"`)
			}
		}, nil, "flood"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := talk(t, tt.o, func(w *wire) {
				w.hello()
				if tt.o.OpenListen {
					w.await(`"state":"start"`)
				}
				w.pause(5 * ms)
				tt.script(w)
				w.pause(5 * ms)
			}, tt.user)
			if d == nil {
				return
			}
			if got := strings.Join(rules(d), " "); got != tt.want {
				t.Errorf("rules broken: %q, want %q\n%v", got, tt.want, d.Violations())
			}
		})
	}
}

func pressAbort(_ context.Context, d *Device) { d.Abort("") }

// abortReply presses the button in the middle of the sound.
func abortReply(ctx context.Context, d *Device) {
	d.WaitState(ctx, Speaking)
	<-time.After(300 * ms)
	d.Abort("")
}

// stamped is a reply of one frame for each playback timestamp.
func (w *wire) stamped(timestamps ...uint32) {
	w.begin()
	for _, ts := range timestamps {
		w.binaryOut(frameUp(2, ts, w.packet(false)))
	}
	w.pause(time.Duration(len(timestamps))*60*ms + 100*ms)
	w.stop()
}

// cut speaks until the abort comes, lets the case end the sound, and stops.
func (w *wire) cut(end func()) {
	w.begin()
	w.tone(5)
	w.await("abort")
	end()
	w.stop()
}

// voiced is the i-th frame of a voice in syllables: the silence after the third is
// made from what the decoder remembers, and is noise to one that has not heard it.
func voiced(i int) []int16 {
	pcm := make([]int16, audio.Reply.Samples())
	for j := range pcm {
		at := float64(i*len(pcm)+j) / float64(audio.Reply.Rate)
		v := 0.0
		for overtone := 1.0; overtone <= 8; overtone++ {
			v += math.Sin(2*math.Pi*140*overtone*at) / overtone
		}
		pcm[j] = int16(4500 * (1 - math.Cos(2*math.Pi*3*at)) * v)
	}
	return pcm
}

func (w *wire) ping(payload string) {
	w.ws.WriteControl(websocket.PingMessage, []byte(payload), time.Now().Add(time.Second))
}

func (w *wire) close() {
	w.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye"), time.Now().Add(time.Second))
}

// What is right at the edge of a rule breaks none.
func TestNoViolations(t *testing.T) {
	tests := []struct {
		name   string
		o      Options
		script func(*wire)
		user   func(context.Context, *Device)
	}{
		{"start and stop without sound", Options{}, func(w *wire) { w.say(`"type":"tts","state":"start"`); w.stop() }, nil},
		{"keep alive", Options{}, func(w *wire) {
			for range 3 {
				w.pause(119 * time.Second)
				w.say(`"type":"llm","emotion":"neutral","text":""`)
			}
		}, nil},
		{"unknown type", Options{}, func(w *wire) { w.say(`"type":"chunk","text":"a"`) }, nil},
		{"stop for an abort in silence", Options{}, func(w *wire) { w.await("abort"); w.stop() }, pressAbort},
		{"silent closing frame", Options{}, func(w *wire) { w.cut(func() { w.binaryOut(w.packet(true)) }) }, abortReply},
		{"closing frame that meets a device which listens again", Options{Mode: Manual}, func(w *wire) {
			w.begin()
			for i := range 3 {
				w.binaryOut(w.encoded(voiced(i)))
			}
			w.await(`"state":"start"`)
			w.binaryOut(w.packet(true))
			w.stop()
		}, func(ctx context.Context, d *Device) {
			abortReply(ctx, d)
			d.ListenStart(Manual)
		}},
		{"stop that crossed the abort", Options{}, func(w *wire) {
			w.begin()
			w.tone(2)
			w.pause(200 * ms)
			w.stop()
			w.await("abort")
			w.stop()
		}, abortReply},
		{"tool that answers late", Options{Quirks: Quirks{MuteMCP: true}}, func(w *wire) {
			w.say(mcp(1, "tools/call", `{"name":"a"}`))
			w.pause(16 * time.Second)
			w.say(mcp(2, "tools/call", `{"name":"a"}`))
		}, nil},
		{"initialized", Options{}, func(w *wire) {
			w.say(`"type":"mcp","payload":{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}, nil},
		{"pause inside a reply", Options{}, func(w *wire) {
			w.begin()
			w.tone(4)
			w.pause(5 * time.Second)
			w.tone(4)
			w.pause(340 * ms)
			w.stop()
		}, nil},
		{"tolerance", Options{Limits: Limits{Tolerance: 50 * ms}}, func(w *wire) { w.begin(); w.tone(9); w.pause(390 * ms); w.stop() }, nil},
		{"close in order", Options{}, func(w *wire) { w.close(); w.pause(900 * ms) }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.OpenListen = true
			d := talk(t, tt.o, func(w *wire) {
				w.hello()
				w.await(`"state":"start"`)
				w.pause(5 * ms)
				tt.script(w)
				w.pause(5 * ms)
			}, tt.user)
			if got := d.Violations(); len(got) != 0 {
				t.Errorf("violations: %v", got)
			}
		})
	}
}
