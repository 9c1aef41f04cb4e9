package websocket

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/wire"
)

// opusFrame is a packet that says it is 60 ms long (RFC 6716 section 3.1).
func opusFrame() []byte { return append([]byte{0x58}, make([]byte, 119)...) }

// shortFrame is one of 20 ms.
func shortFrame() []byte { return append([]byte{0x48}, make([]byte, 39)...) }

// heard is how many frames a conversation got.
func heard(talk *fakeTalk) int {
	return len(slices.DeleteFunc(talk.all(), func(ev any) bool { _, sound := ev.(wire.Packet); return !sound }))
}

// TestLimitsAllowDevices: bursts after a wake word and after a
// stalled network, and microphones for as long as one likes.
func TestLimitsAllowDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		frame []byte
		burst int           // frames at once
		every time.Duration // then one so often
		more  int
	}{
		"wake word":                    {opusFrame(), 33, 60 * time.Millisecond, 100},
		"20 s of a stalled network":    {opusFrame(), 333, 60 * time.Millisecond, 2000},
		"the same in short frames":     {shortFrame(), 1000, 20 * time.Millisecond, 3000},
		"ten minutes":                  {opusFrame(), 0, 60 * time.Millisecond, 10000},
		"ten minutes of short frames":  {shortFrame(), 0, 20 * time.Millisecond, 30000},
		"ten times faster than speech": {opusFrame(), 0, 6 * time.Millisecond, 10000},
		"DTX":                          {[]byte{0x58}, 33, 60 * time.Millisecond, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p := r.greet("d1")
				for range tc.burst {
					p.sendBinary(tc.frame)
				}
				for range tc.more {
					time.Sleep(tc.every)
					p.sendBinary(tc.frame)
				}
				talk := r.talk(0)
				if got := heard(talk); got != tc.burst+tc.more {
					t.Errorf("%d frames of %d were heard", got, tc.burst+tc.more)
				}
				p.alive(talk)
			})
		})
	}
}

// TestLimitsEndFloods: who sends more than any device has to say is hung
// up on with a reason, in two lines of the log, and the others do not notice.
func TestLimitsEndFloods(t *testing.T) {
	piece := bytes.Repeat([]byte{0x00, 0x80, 0, 0, 0, 0}, 100) // a continuation that is neither empty of meaning nor the last
	for name, tc := range map[string]struct {
		raw   []byte
		begin []byte        // sent once before
		every time.Duration // between them; 0: as fast as it goes
		most  int           // frames or messages that may be heard
	}{
		"sound":                          {raw: frameUp(0x82, opusFrame()), most: 1100},
		"sound a hundred times too fast": {raw: frameUp(0x82, opusFrame()), every: 600 * time.Microsecond, most: 1300},
		"packets of no length":           {raw: frameUp(0x82, []byte{0xe0}), most: 3200},
		"packets of 64 KiB":              {raw: frameUp(0x82, append([]byte{0x58}, make([]byte, 65000)...)), most: 80},
		"messages":                       {raw: frameUp(0x81, []byte(`{"type":"abort"}`)), most: 16 << 10},
		"broken messages":                {raw: frameUp(0x81, []byte(`{"type":`)), most: 0},
		"messages of 1 MiB":              {raw: frameUp(0x81, []byte(`{"type":"mcp"`+strings.Repeat(" ", 1<<20-20)+`}`)), most: 0},
		"pings":                          {raw: frameUp(0x89, []byte("x")), most: 0},
		"pongs":                          {raw: frameUp(0x8a, nil), most: 0},
		"pieces without end":             {begin: frameUp(0x01, []byte("{")), raw: piece, most: 0},
		"pieces of a sound that ends":    {begin: frameUp(0x02, nil), raw: piece, most: 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				well := r.greet("well")
				p := r.greet("d1")
				nc := p.ws.NetConn()
				_, _ = nc.Write(tc.begin)
				part := tc.raw
				if n := 1400 / len(part); tc.every == 0 && n > 1 { // small ones come together, as many as a segment of TCP has room for
					part = bytes.Repeat(part, n)
				}
				for sent := 0; sent < 60_000*len(tc.raw) && sent < 32<<20; sent += len(part) {
					if _, err := nc.Write(part); err != nil {
						break
					}
					if tc.every > 0 {
						time.Sleep(tc.every)
					}
				}
				<-p.done
				if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != websocket.ClosePolicyViolation {
					t.Errorf("closed by %v", closed)
				}
				if got := len(r.talk(1).all()); got > tc.most {
					t.Errorf("%d events were let through, %d may be", got, tc.most)
				}
				if lines := r.log.lines("device left", "device floods the connection", "excess="); len(lines) != 1 && tc.begin == nil {
					t.Errorf("log:\n%s", r.log)
				}
				well.alive(r.talk(0))
			})
		})
	}
}

// A message that takes a minute is no message.
func TestTricklingMessage(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		raw := frameUp(0x81, []byte(`{"type":"abort","reason":"`+strings.Repeat("x", 100)+`"}`))
		began := time.Now()
		go func() {
			for _, b := range raw {
				if _, err := p.ws.NetConn().Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
		}()
		<-p.done
		if lived := time.Since(began); lived > deadAfter+time.Second {
			t.Errorf("lived for %v", lived)
		}
		time.Sleep(10 * time.Second) // until the sender has noticed
	})
}

// A thousand devices connect in a second, and each has its hello at once.
func TestThousandConnect(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		began := time.Now()
		for i := range 1000 {
			r.greet(fmt.Sprint("d", i))
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("took %v of the clock", took)
		}
		if n := r.registry.Connected(); n != 1000 {
			t.Errorf("%d are connected", n)
		}
		_, answer, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"one more"}})
		if err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Errorf("one more was answered %v, %v", answer, err)
		}
	})
}

// No message is longer than its kind may be, in however many pieces.
func TestLimitAcrossFragments(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		nc := p.ws.NetConn()
		go func() {
			raw := frameUp(0x02, make([]byte, 60_000))
			for range 5 {
				if _, err := nc.Write(raw); err != nil {
					return
				}
				raw = frameUp(0x00, make([]byte, 60_000))
			}
		}()
		<-p.done
		if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != websocket.CloseMessageTooBig {
			t.Errorf("closed by %v", closed)
		}
	})
}
