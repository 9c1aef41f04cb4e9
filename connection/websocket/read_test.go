package websocket

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/wire"
)

func TestMessagesBecomeEvents(t *testing.T) {
	for _, tc := range []struct {
		text string
		want wire.Event // nil: none
	}{
		{`{"session_id":"","type":"listen","state":"start","mode":"auto"}`, wire.ListenStart{Mode: wire.Auto}},
		{`{"session_id":"foreign","type":"listen","state":"start","mode":"manual"}`, wire.ListenStart{Mode: wire.Manual}},
		{`{"session_id":7,"type":"listen","state":"start","mode":"realtime"}`, wire.ListenStart{Mode: wire.Realtime}},
		{`{"type":"listen","state":"start"}`, wire.ListenStart{Mode: wire.Auto}},
		{`{"type":"listen","state":"start","mode":"psychic"}`, wire.ListenStart{Mode: wire.Auto}},
		{`{"type":"listen","state":"start","mode":3}`, wire.ListenStart{Mode: wire.Auto}},
		{`{"type":"listen","state":"stop","mode":"manual"}`, wire.ListenStop{}},
		{`{"type":"listen","state":"detect","text":"你好小智","source":"text"}`, wire.Detect{Text: "你好小智"}},
		{`{"type":"listen","state":"detect"}`, wire.Detect{}},
		{`{"type":"listen","state":"detect","text":["x"]}`, wire.Detect{}},
		{"{\"type\":\"listen\",\"state\":\"detect\",\"text\":\"a\\u0000\\tb\"}", wire.Detect{Text: "a\x00\tb"}},
		{"{\"type\":\"listen\",\"state\":\"detect\",\"text\":\"a\xffb\"}", wire.Detect{Text: "a\ufffdb"}},
		{`{"type":"listen","state":"text"}`, nil},
		{`{"type":"listen","state":1}`, nil},
		{`{"type":"listen"}`, nil},
		{`{"type":"abort","reason":"wake_word_detected"}`, wire.Abort{Reason: "wake_word_detected"}},
		{`{"type":"abort"}`, wire.Abort{}},
		{`{"type":"abort","reason":{}}`, wire.Abort{}},
		{`{"type":"iot","update":true,"descriptors":[{"name":"Lamp"}]}`, nil},
		{`{"type":"iot"}`, nil},
		{`{"type":"mcp","payload":{"id":1}}`, nil},
		{`{"type":"goodbye"}`, nil},
		{`{"type":"tts","state":"start"}`, nil},
	} {
		t.Run(tc.text, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p := r.greet("d1")
				p.send(tc.text)
				talk := r.talk(0)
				events := talk.all()
				if tc.want == nil && len(events) != 0 || tc.want != nil && (len(events) != 1 || events[0] != tc.want) {
					t.Errorf("got %#v, want %#v", events, tc.want)
				}
				if n := len(p.texts()); n != 1 {
					t.Errorf("the device was answered: %q", p.texts()[1:])
				}
				p.alive(talk)
			})
		})
	}
}

// Whatever is sent, the connection lives on, nothing is echoed, and the next
// message is understood.
func TestBadMessages(t *testing.T) {
	lying2 := func(size uint32) []byte {
		frame := make([]byte, header2, header2+3)
		frame[1] = 2
		binary.BigEndian.PutUint32(frame[12:], size)
		return append(frame, 1, 2, 3)
	}
	for _, tc := range []struct {
		name    string
		framing int
		text    string
		binary  []byte
		log     string // must be in a line of the log
	}{
		{name: "empty text", log: "broken json"},
		{name: "half an object", text: `{"type":"listen"`, log: "broken json"},
		{name: "unescaped quote", text: `{"type":"listen","state":"detect","text":"my "net""}`, log: "broken json"},
		{name: "an array", text: `[1,2,3]`, log: "broken json"},
		{name: "null", text: `null`, log: "type is missing"},
		{name: "a number for a type", text: `{"type":5}`, log: "not a string"},
		{name: "unknown type", text: `{"type":"dance"}`, log: "unknown type"},
		{name: "unknown type of 1 MiB", text: `{"type":"dance","text":"` + strings.Repeat("x", maxText-26) + `"}`, log: "are too much"},
		{name: "exactly 1 MiB of nothing", text: strings.Repeat(" ", maxText), log: "broken json"},
		{name: "an mcp message of nearly 1 MiB", text: `{"type":"mcp","payload":{"x":"` + strings.Repeat("x", maxText-64) + `"}}`, log: "without mcp"},
		{name: "a type of 60 KB", text: `{"type":"` + strings.Repeat("x", 60<<10) + `"}`, log: "unknown type"},
		{name: "deep json", text: `{"type":"listen","x":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + `}`, log: "levels deep"},
		{name: "deep and never closed", text: strings.Repeat(`{"type":`, 100_000), log: "levels deep"},
		{name: "not UTF-8 at all", text: "\xff\xfe\xfd", log: "broken json"},
		{name: "zero bytes", text: strings.Repeat("\x00", 1000), log: "broken json"},
		{name: "mcp with a broken string", text: `{"type":"mcp","payload":"{"}`, log: "holds no json"},
		{name: "empty binary", framing: 1, binary: []byte{}},
		{name: "empty binary, framing 3", framing: 3, binary: []byte{}},
		{name: "framing 2, header cut", framing: 2, binary: []byte{0, 2, 0}, log: "no version 2 header"},
		{name: "framing 2, promises too much", framing: 2, binary: lying2(400), log: "says 400 bytes, 3 are there"},
		{name: "framing 2, promises 4 GiB", framing: 2, binary: lying2(1<<32 - 1), log: "says 4294967295"},
		{name: "framing 2, promises too little", framing: 2, binary: lying2(1), log: "says 1 bytes"},
		{name: "framing 3, wrong type", framing: 3, binary: []byte{1, 0, 0, 1, 9}, log: "type 1 is not audio"},
		{name: "framing 3, bare packet", framing: 3, binary: []byte{0xd8, 0xff, 0xfe}, log: "no version 3 header"},
		{name: "framing 3, empty payload", framing: 3, binary: []byte{0, 0, 0, 0}},
		{name: "framing 3 of 64 KiB", framing: 3, binary: make([]byte, maxBinary), log: "says 0 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p := r.dial("d1")
				p.send(fmt.Sprintf(`{"type":"hello","version":%d}`, max(tc.framing, 1)))
				if tc.framing > 0 {
					p.sendBinary(tc.binary)
				} else {
					p.send(tc.text)
				}
				talk := r.talk(0)
				if n := len(talk.all()); n != 0 {
					t.Errorf("became %d events", n)
				}
				if tc.log != "" && len(r.log.lines(tc.log)) == 0 {
					t.Errorf("%q is not in the log:\n%.2000s", tc.log, r.log)
				}
				if n := len(p.texts()); n != 1 {
					t.Errorf("answered: %.200q", p.texts()[1:])
				}
				p.alive(talk)
			})
		})
	}
}

func TestLargestBinary(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		p.sendBinary(make([]byte, maxBinary))
		p.sendBinary([]byte{1}) // DTX
		events := r.talk(0).all()
		if len(events) != 2 || len(events[0].(wire.Packet).Data) != maxBinary || len(events[1].(wire.Packet).Data) != 1 {
			t.Errorf("%d events", len(events))
		}
	})
}

func TestTooBigMessages(t *testing.T) {
	for _, tc := range []struct {
		kind, size int
		log        string
	}{
		{websocket.TextMessage, maxText + 1, "limit of 1048576 bytes"},
		{websocket.BinaryMessage, maxBinary + 1, "limit of 65536 bytes"},
		{websocket.TextMessage, 5 << 20, "text message over the limit"},
	} {
		for _, when := range []string{"before hello", "after hello"} {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p, why := r.dial("d1"), tc.log
				if when == "after hello" {
					p.send(`{"type":"hello"}`)
				} else {
					why = strings.Replace(why, "1048576", "163840", 1)
				}
				_ = p.ws.WriteMessage(tc.kind, make([]byte, tc.size)) // it may be cut off
				<-p.done
				if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != 1009 {
					t.Errorf("%s, %d bytes: closed by %v", when, tc.size, closed)
				}
				synctest.Wait()
				if len(r.log.lines("device left", "too big", why)) != 1 {
					t.Errorf("log:\n%s", r.log)
				}
			})
		}
	}
}

// The header of a WebSocket frame can lie, too.
func TestBrokenFrames(t *testing.T) {
	for name, raw := range map[string][]byte{
		"text of 2^40 bytes":       {0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4, 'x'},
		"a negative length":        {0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4},
		"not masked":               {0x81, 0x02, '{', '}'},
		"reserved bits":            {0xf1, 0x80, 0, 0, 0, 0},
		"unknown opcode":           {0x83, 0x80, 0, 0, 0, 0},
		"a continuation of naught": {0x80, 0x80, 0, 0, 0, 0},
		"a ping of 126 bytes":      {0x89, 0xfe, 0, 126, 0, 0, 0, 0},
		"a ping in pieces":         {0x09, 0x80, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				well, p := r.greet("well"), r.greet("d1")
				began := time.Now()
				go func() { _, _ = p.ws.NetConn().Write(raw) }()
				<-p.done
				if lived := time.Since(began); lived > deadAfter {
					t.Errorf("lived on for %v", lived)
				}
				want := websocket.CloseProtocolError
				if strings.HasSuffix(name, "length") || strings.HasPrefix(name, "text of") {
					want = websocket.CloseMessageTooBig
				}
				if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != want {
					t.Errorf("closed by %v, want %d", closed, want)
				}
				well.alive(r.talk(0))
			})
		})
	}
}

func TestFloodOfMessages(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		for range 10 {
			for range 100 {
				p.send(`{"type":`)
				p.send(`{"type":"dance"}`)
				p.send(`{"type":"listen","state":"start","mode":"x"}`)
				p.sendBinary([]byte{1, 2, 3})
			}
			time.Sleep(100 * time.Millisecond)
		}
		talk := r.talk(0)
		if n := len(talk.all()); n != 2000 {
			t.Errorf("%d events of 2000", n)
		}
		if n := len(r.log.lines("WARN")); n != 1 {
			t.Errorf("%d warnings in a second", n)
		}
		p.send(`{"type":`)
		p.leave()
		synctest.Wait()
		if len(r.log.lines("WARN", "suppressed=1999")) != 1 || len(r.log.lines("device left", "broken=1001", "unknown=1000")) != 1 {
			t.Errorf("log:\n%s", r.log.lines("WARN"))
		}
	})
}

func TestFloodOfPings(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		for range 2000 {
			if err := p.ws.WriteControl(websocket.PingMessage, []byte("x"), time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		p.alive(r.talk(0))
	})
}

func TestRandomBytes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := func() []byte {
		b := make([]byte, rnd.IntN(300))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	for framing := 1; framing <= 3; framing++ {
		bubble(t, nil, func(t *testing.T, r *rig) {
			p := r.dial("d1")
			p.send(fmt.Sprintf(`{"type":"hello","version":%d}`, framing))
			for range 300 {
				p.sendBinary(noise())
				p.send(string(noise()))
			}
			p.alive(r.talk(0))
		})
	}
}

func TestFragmentedMessage(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		w, err := p.ws.NextWriter(websocket.TextMessage)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []byte(`{"type":"abort"}` + strings.Repeat(" ", 5000)) {
			if _, err := w.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		w.Close()
		if events := r.talk(0).all(); len(events) != 1 {
			t.Errorf("events %v", events)
		}
	})
}

// TestMessageDeadline: a message that comes in drops ends the connection, whatever pings
// come in between; a device that is only slow is let be.
func TestMessageDeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		every time.Duration
		parts int
		cut   bool
	}{
		"in drops": {5 * time.Second, 20, true}, "slow": {5 * time.Second, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p := r.greet("d1")
				began := time.Now()
				w, err := p.ws.NextWriter(websocket.TextMessage)
				if err != nil {
					t.Fatal(err)
				}
				for range tc.parts {
					time.Sleep(tc.every)
					if _, err = w.Write(make([]byte, 5000)); err != nil { // more than the buffer, so a fragment
						break
					}
					_ = p.ws.WriteControl(websocket.PingMessage, []byte("alive"), time.Now().Add(time.Second))
				}
				_ = w.Close()
				if !tc.cut {
					p.alive(r.talk(0))
					return
				}
				<-p.done
				if took := p.last.Sub(began); took < messageTime || took > messageTime+6*time.Second {
					t.Errorf("ended after %v", took)
				}
				synctest.Wait()
				if len(r.log.lines("device left", "longer than 30 s")) != 1 {
					t.Errorf("log: %s", r.log)
				}
			})
		})
	}
}
