package devicetest

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestMessageRules holds single messages, inside a reply, to sections 3.3, 5 and
// 6: each with the rule that it breaks, "" for one that a device takes.
func TestMessageRules(t *testing.T) {
	for _, tt := range []struct{ message, want string }{
		{`"type":"tts","state":"sentence_start","text":"你好"`, ""},
		{`"type":"tts","state":"sentence_start"`, "type"},
		{`"type":"tts","state":"sentence_start","text":""`, "type"},
		{`"type":"tts","state":"sentence_start","text":7`, "type"},
		{`"type":"tts","state":"sentence_end","text":"x"`, ""},
		{`"type":"tts","state":7`, "type"},
		{`"type":"llm","emotion":"confused","text":"🙄"`, ""},
		{`"type":"llm","emotion":"neutral"`, ""},
		{`"type":"llm","emotion":"joyful","text":"x"`, "emotion"},
		{`"type":"llm","emotion":"Happy"`, "emotion"},
		{`"type":"llm","emotion":""`, ""},
		{`"type":"llm","text":"🙂"`, "type"},
		{`"type":"llm","emotion":["happy"]`, "type"},
		{`"type":"alert","status":"Notice","message":"Timer finished","emotion":"warning"`, ""},
		{`"type":"alert","status":"Notice","message":"Timer finished"`, "type"},
		{`"type":"alert","status":"Notice","emotion":"happy"`, "type"},
		{`"type":"alert","message":"Timer finished","emotion":"happy"`, "type"},
		{`"type":"custom","payload":{"note":"hi"}`, ""},
		{`"type":"custom","payload":"hi"`, "type"},
		{`"type":"custom"`, "type"},
		{`"type":"system","command":"shutdown"`, "command"},
		{`"type":"system"`, "type"},
		{`"type":"tts","state":"sentence_start","text":"𠮷","glyph_push":{"v":1}`, "glyph_push"},
		{`"type":"goodbye"`, ""},
		{`"type":"final","text":"x"`, ""},
		{`"type":"iot","commands":[]`, "iot"},
		{`"type":"abort"`, "abort_echo"},
		{`"type":"mcp"`, "mcp_silent"},
		{`"type":"mcp","payload":[]`, "mcp_silent"},
		{`"type":"mcp","payload":{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, "mcp_silent"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":""}`, "mcp_silent"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, "mcp_silent"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, "mcp_silent"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":true,"method":"tools/list"}`, "mcp_silent"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":0,"method":"tools/list"}`, "mcp_id"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":-1,"method":"tools/list"}`, "mcp_id"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, "mcp_id"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":1e3,"method":"tools/list"}`, ""},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":2147483647,"method":"tools/list"}`, ""},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","stackSize":6144}}`, "mcp_request"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{"vision":{"url":"ftp://h/x"}}}}`, "mcp_request"},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}`, ""},
		{`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"initialize"}`, "mcp_request"},
	} {
		d := talk(t, Options{OpenListen: true}, func(w *wire) {
			w.hello()
			w.await(`"state":"start"`)
			w.say(`"type":"tts","state":"start"`)
			w.say(tt.message)
			w.stop()
			w.pause(time.Second)
		}, nil)
		if got := strings.Join(rules(d), " "); got != tt.want {
			t.Errorf("%s: rules broken %q, want %q: %v", tt.message, got, tt.want, d.Violations())
		}
	}
}

// TestPlaybackQueueByProfile: 40 packets wait in present firmware and 10 in that of
// May 2025; one that is playing waits no more, and the next is lost.
func TestPlaybackQueueByProfile(t *testing.T) {
	for profile, room := range map[Profile]int{Firmware242: 40, Firmware222Minus: 40, OldIoT162: 10} {
		for _, more := range []int{0, 1, 3} {
			n := 1 + room + more
			d := talk(t, Options{Profile: profile, OpenListen: true, Limits: Limits{MaxLead: time.Hour}, NoMCP: true}, func(w *wire) {
				w.hello()
				w.await(`"state":"start"`)
				w.begin()
				for range n {
					w.binaryOut(w.packet(false))
				}
				w.pause(time.Duration(1+room)*60*ms + 100*ms)
				w.stop()
				w.pause(time.Second)
			}, nil)
			if s := d.Stats(); s.FramesIn != n || s.Dropped != more {
				t.Errorf("%s, %d packets at once: %d dropped, want %d", profile, n, s.Dropped, more)
			}
			if broke := strings.Join(rules(d), " "); (more > 0) != (broke == "queue_full") {
				t.Errorf("%s, %d packets at once: rules broken %q", profile, n, broke)
			}
		}
	}
}

// TestSoundByState: in each state the firmware plays or drops sound as
// section 3.1 says, and counts what it lost.
func TestSoundByState(t *testing.T) {
	for _, tt := range []struct {
		name    string
		script  func(*wire)
		dropped int
	}{
		{"before tts start", func(w *wire) { w.tone(3) }, 3},
		{"in the reply", func(w *wire) { w.reply(6) }, 0},
		{"after tts stop", func(w *wire) { w.reply(6); w.pause(10 * ms); w.tone(2) }, 2},
		{"in the next reply", func(w *wire) { w.reply(6); w.pause(time.Second); w.reply(4) }, 0},
	} {
		d := talk(t, Options{OpenListen: true}, func(w *wire) {
			w.hello()
			w.await(`"state":"start"`)
			w.pause(5 * ms)
			tt.script(w)
			w.pause(time.Second)
		}, nil)
		if s := d.Stats(); s.Dropped != tt.dropped {
			t.Errorf("%s: %d dropped, want %d (%v)", tt.name, s.Dropped, tt.dropped, rules(d))
		}
	}
}

// TestServerTime: the clock is UTC and the offset is in minutes; a server that
// adds the offset itself, or gives it in seconds, shows devices a wrong time.
func TestServerTime(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name   string
		at     time.Time
		offset int
		want   string
	}{
		{"right", now, 480, ""},
		{"west", now, -300, ""},
		{"UTC", now, 0, ""},
		{"a slow clock", now.Add(-time.Hour), 480, ""},
		{"added twice", now.Add(8 * time.Hour), 480, "adds timezone_offset itself"},
		{"added twice in the west", now.Add(-5 * time.Hour), -300, "adds timezone_offset itself"},
		{"seconds", now, 28800, "in minutes"},
	} {
		body := fmt.Sprintf(`{"server_time":{"timestamp":%d,"timezone_offset":%d},"websocket":{"url":"ws://h:1/x","token":"","version":1}}`, tt.at.UnixMilli(), tt.offset)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			io.WriteString(w, body)
		}))
		p, err := Provision(t.Context(), server.URL, Options{})
		server.Close()
		if err != nil || (tt.want == "") != (len(p.Violations) == 0) || tt.want != "" && !strings.Contains(p.Violations[0].String(), tt.want) {
			t.Errorf("%s: %v, violations %v", tt.name, err, p.Violations)
		}
	}
}

// TestStorm throws what a broken server could send at the device, in any order
// and at any pace. It neither hangs nor crashes, every broken thing is counted,
// and it still answers.
func TestStorm(t *testing.T) {
	for seed := range uint64(12) {
		dice := rand.New(rand.NewPCG(seed, 7))
		texts := []string{
			`"type":"tts","state":"start"`, `"type":"tts","state":"stop"`, `"type":"tts","state":"sentence_start","text":"x"`,
			`"type":"stt","text":"y"`, `"type":"llm","emotion":"happy"`, `"type":"llm","emotion":3`, `"type":"abort"`, `"type":"mcp","payload":{}`,
			mcp(7, "tools/list", `{"cursor":9}`), mcp(8, "tools/call", `{"name":[]}`), mcp(9, "initialize", `[]`), `"type":"iot","commands":[{}]`,
			`"type":"listen","state":"start"`, `"type":"alert"`, `"type":"hello","transport":"websocket"`, `"type":{}`, ``,
		}
		profile := []Profile{Firmware242, Firmware222Minus, PyXiaozhi, Browser, OldIoT162}[seed%5]
		d := talk(t, Options{Profile: profile, OpenListen: true, Protocol: int(seed%3) + 1, Tools: NewBoard().Tools()}, func(w *wire) {
			w.hello()
			for range 300 {
				switch dice.IntN(4) {
				case 0:
					w.say(texts[dice.IntN(len(texts))])
				case 1:
					text := w.session(texts[dice.IntN(len(texts))])
					w.raw(text[:dice.IntN(len(text)+1)])
				case 2:
					frame := make([]byte, dice.IntN(200))
					for i := range frame {
						frame[i] = byte(dice.Uint32())
					}
					w.binaryOut(frame)
				case 3:
					w.pause(time.Duration(dice.IntN(200)) * ms)
				}
				for len(w.in) > 0 { // its answers
					<-w.in
				}
			}
			w.pause(2 * time.Second)
			w.ping("still there")
			w.pause(time.Second)
		}, nil)
		if d == nil {
			continue
		}
		if s := d.Stats(); s.Pings != 1 || s.TextIn == 0 || s.FramesIn == 0 || s.Dropped == 0 || s.Dropped > s.FramesIn || len(rules(d)) < 5 {
			t.Errorf("seed %d, %s: %+v, %v", seed, profile, s, rules(d))
		}
	}
}

func (w *wire) session(fields string) string { return `{"session_id":"s1",` + fields + `}` }

// FuzzRequest: what the firmware would drop is named, and a request that is
// taken has an id in its range.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":1e400,"method":"x"}`, `{"jsonrpc":"2.0","id":"1","method":"x"}`,
		`{"jsonrpc":"2.0","id":NaN,"method":"x"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`, `[]`, `null`, `7`, `{"jsonrpc":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		m := &inbound{fields: map[string]json.RawMessage{"payload": payload}}
		r, notification, silent := parseRequest(m)
		if silent != "" || notification {
			return
		}
		if r.method == "" || r.exact && (r.id < 1 || r.id > 1<<31-1) {
			t.Errorf("%s: %+v", payload, r)
		}
		if _, err := r.initialize(); err != nil && !json.Valid(payload) {
			t.Errorf("%s was taken although it is no JSON", payload)
		}
	})
}

// FuzzProvisioned: no body of an OTA reply crashes the reader; an address that
// comes out of it is one that a device can dial.
func FuzzProvisioned(f *testing.F) {
	for _, seed := range []string{
		goodReply, `{"websocket":{"url":"ws://h"}}`, `{"websocket":{"url":7}}`, `{"server_time":{"timestamp":1e300,"timezone_offset":-1e300}}`,
		`{"firmware":{"version":"."},"websocket":{"url":"ws://h:1/x"}}`, `{"activation":[]}`, `{"mqtt":null,"websocket":{"url":"ws://h:1/x"}}`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var p Provisioned
		if p.read(body, nil) == nil && CheckURL(p.URL) != nil {
			t.Errorf("%s: %q cannot be dialled", body, p.URL)
		}
	})
}
