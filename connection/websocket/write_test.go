package websocket

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
	"xiaozhi/internal/wire"
)

// How much waits for a device.
const (
	audioQueue   = 8
	controlQueue = 256
)

func TestPingDuringReply(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		for i := range 100 {
			talk.out.Audio(1, make([]byte, 180))
			if i%10 == 0 {
				before := time.Now()
				if err := p.ws.WriteControl(websocket.PingMessage, []byte(fmt.Sprint(i)), before.Add(time.Second)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				pongs := p.of(websocket.PongMessage)
				if len(pongs) != i/10+1 || string(pongs[i/10].data) != fmt.Sprint(i) {
					t.Fatalf("pongs %v after %d frames", pongs, i)
				}
			}
			time.Sleep(60 * time.Millisecond)
		}
		synctest.Wait()
		if n := len(p.of(websocket.BinaryMessage)); n != 100 {
			t.Errorf("%d frames of 100", n)
		}
	})
}

// A device that stops reading is given up 5 s after the first write it does not take.
func TestDeviceStopsReading(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		ws, _, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"d1"}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"hello"}`)); err != nil {
			t.Fatal(err)
		}
		talk := r.talk(0)
		// Nobody waits meanwhile: frames are refused, the reader goes on.
		taken := 0
		for range 100 {
			if _, ok := talk.out.Audio(1, []byte{1}); ok {
				taken++
			}
		}
		if taken != audioQueue {
			t.Errorf("%d frames taken, want %d", taken, audioQueue)
		}
		for range 1000 {
			if err := ws.WriteMessage(websocket.BinaryMessage, []byte{1, 2}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if lived := talk.ended.Sub(began); lived != 5*time.Second || r.registry.Connected() != 0 {
			t.Errorf("ended after %v, %d connected", lived, r.registry.Connected())
		}
		if len(r.log.lines("device left", "write to device failed")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
		if n := len(talk.all()); n != 1000 {
			t.Errorf("%d frames were heard of 1000", n)
		}
	})
}

func TestControlQueueFull(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		ws, _, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"d1"}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"hello"}`)); err != nil {
			t.Fatal(err)
		}
		talk := r.talk(0)
		for range controlQueue + 1 {
			talk.out.Send(wire.Message{Kind: wire.MessageKeepAlive})
		}
		synctest.Wait()
		if !errors.Is(talk.cause, connection.ErrStuck) || time.Since(began) != 0 {
			t.Errorf("cause %v after %v", talk.cause, time.Since(began))
		}
	})
}

func TestCutOnTheWire(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		talk.out.Send(wire.Message{Kind: wire.MessageTTSStart, Turn: 1})
		synctest.Wait()
		for i := range audioQueue {
			talk.out.Audio(1, []byte{byte(i)})
		}
		talk.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: 1, Cut: true, Closing: []byte{0xee}})
		if _, ok := talk.out.Audio(1, []byte{0xff}); ok {
			t.Error("a frame of a dead turn was taken")
		}
		synctest.Wait()
		all := p.all()
		if last := string(all[len(all)-1].data); !strings.Contains(last, `"state":"stop"`) {
			t.Errorf("last message %q", last)
		}
		if hush := all[len(all)-2]; hush.kind != websocket.BinaryMessage || string(hush.data) != "\xee" {
			t.Errorf("before the stop: %v", hush)
		}
	})
}

func TestDownlinkFraming(t *testing.T) {
	for _, tc := range []struct {
		hello string
		want  []string // of two frames, 1.5 s and 3 s after the upgrade
	}{
		{`{"type":"hello","version":1}`, []string{"d8fffe", "d8fffe"}},
		{`{"type":"hello","version":2}`, []string{"0002000000000000" + "00000000" + "00000003d8fffe", "0002000000000000" + "00000000" + "00000003d8fffe"}},
		{`{"type":"hello","version":2,"features":{"aec":true}}`, []string{"0002000000000000" + "000005dc" + "00000003d8fffe", "0002000000000000" + "00000bb8" + "00000003d8fffe"}},
		{`{"type":"hello","version":3}`, []string{"00000003d8fffe", "00000003d8fffe"}},
	} {
		bubble(t, nil, func(t *testing.T, r *rig) {
			p := r.dial("d1")
			p.send(tc.hello)
			talk := r.talk(0)
			for range tc.want {
				time.Sleep(1500 * time.Millisecond)
				talk.out.Audio(1, []byte{0xd8, 0xff, 0xfe})
			}
			synctest.Wait()
			for i, s := range p.of(websocket.BinaryMessage) {
				if got := fmt.Sprintf("%x", s.data); got != tc.want[i] {
					t.Errorf("%s: frame %d is %s, want %s", tc.hello, i, got, tc.want[i])
				}
			}
		})
	}
}

// A writer that has nothing to write ends, and another takes its place when
// there is something: at once, after any pause, and for the last words.
func TestWriterRests(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		const rest = time.Second
		for i, pause := range []time.Duration{0, rest / 2, rest, rest + 1, 10 * time.Second, pingEvery} {
			time.Sleep(pause)
			sent := time.Now()
			talk.out.Send(wire.Message{Kind: wire.MessageSTT, Text: fmt.Sprint("text ", i)})
			synctest.Wait()
			texts := p.of(websocket.TextMessage)
			if last := texts[len(texts)-1]; !strings.Contains(string(last.data), fmt.Sprint("text ", i)) || !last.at.Equal(sent) {
				t.Errorf("after %v: %s came %v late", pause, last.data, last.at.Sub(sent))
			}
		}
		time.Sleep(2 * rest)
		talk.out.HangUp(errors.New("bye"))
		<-p.done
		if closed := p.of(websocket.CloseMessage); len(closed) != 1 {
			t.Errorf("closed by %v", closed)
		}
	})
}

// TestFramesArriveUnchanged hands frames of all lengths over in one buffer that
// is overwritten at once: the device gets every one as it was.
func TestFramesArriveUnchanged(t *testing.T) {
	for framing := 1; framing <= 3; framing++ {
		bubble(t, nil, func(t *testing.T, r *rig) {
			p := r.dial("d1")
			p.send(fmt.Sprintf(`{"type":"hello","version":%d}`, framing))
			talk := r.talk(0)
			rnd := rand.New(rand.NewPCG(uint64(framing), 1))
			buf := make([]byte, 1500)
			var want [][]byte
			for turn := range uint64(30) {
				for range 1 + rnd.IntN(30) {
					packet := buf[:1+rnd.IntN(len(buf))]
					for i := range packet {
						packet[i] = byte(rnd.Uint32())
					}
					want = append(want, bytes.Clone(packet))
					for ok := false; !ok; time.Sleep(time.Millisecond) {
						_, ok = talk.out.Audio(turn+1, packet)
					}
				}
				talk.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: turn + 1})
			}
			synctest.Wait()
			got := p.of(websocket.BinaryMessage)
			if len(got) != len(want) {
				t.Fatalf("framing %d: %d frames of %d", framing, len(got), len(want))
			}
			for i, s := range got {
				if packet, _, err := parseFrame(framing, s.data); err != nil || !bytes.Equal(packet, want[i]) {
					t.Fatalf("framing %d: frame %d is another one, %v", framing, i, err)
				}
			}
		})
	}
}
