package websocket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/wire"
)

// TestShutdownDuringReply stops the server in the middle of a turn: the
// device hears its reply to the end, or 9.5 s of it; whoever waits for nothing is
// closed at once.
func TestShutdownDuringReply(t *testing.T) {
	for name, c := range map[string]struct {
		sent  []wire.MessageKind // before the server stops
		stops time.Duration      // after which the reply ends; 0: never by itself
		want  time.Duration      // after which the connection is closed
	}{
		"no turn":      {want: 0},
		"turn is over": {sent: []wire.MessageKind{wire.MessageSTT, wire.MessageTTSStart, wire.MessageTTSStop}, want: 0},
		"thinking":     {sent: []wire.MessageKind{wire.MessageSTT}, stops: 3 * time.Second, want: 3 * time.Second},
		"speaking":     {sent: []wire.MessageKind{wire.MessageSTT, wire.MessageTTSStart}, stops: 2 * time.Second, want: 2 * time.Second},
		"server turn":  {sent: []wire.MessageKind{wire.MessageTTSStart}, stops: time.Second, want: time.Second},
		"endless":      {sent: []wire.MessageKind{wire.MessageTTSStart}, want: 9500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p := r.greet("d1")
				talk := r.talk(0)
				for _, kind := range c.sent {
					talk.out.Send(wire.Message{Kind: kind})
				}
				began := time.Now()
				if c.stops > 0 {
					time.AfterFunc(c.stops, func() { talk.out.Send(wire.Message{Kind: wire.MessageTTSStop}) })
				}
				if err := r.registry.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-p.done
				closed := p.of(websocket.CloseMessage)
				if len(closed) != 1 || closed[0].code != 1000 || closed[0].at.Sub(began) != c.want {
					t.Errorf("closed %v after %v, want after %v", closed, time.Since(began), c.want)
				}
				texts := p.texts()
				if c.stops > 0 && !strings.Contains(texts[len(texts)-1], `"stop"`) {
					t.Errorf("the last message is %s", texts[len(texts)-1])
				}
			})
		})
	}
}

// TestShutdownWhileListening: whoever may be about to say something hears
// that the server stops.
func TestShutdownWhileListening(t *testing.T) {
	for _, mode := range []devicetest.Mode{devicetest.Auto, devicetest.Realtime, devicetest.Manual} {
		t.Run(string(mode), func(t *testing.T) {
			strictRig(t, func(t *testing.T, r *rig) {
				ctx := minute(t)
				d := dialStrict(ctx, t, r, devicetest.Options{Mode: mode, OpenListen: true})
				time.Sleep(time.Second)
				began := time.Now()
				stopped := make(chan error, 1)
				go func() { stopped <- r.registry.Shutdown(ctx) }()
				told(ctx, t, d, "1 zh")
				if err := <-stopped; err != nil || time.Since(began) > 3*time.Second {
					t.Errorf("stopped after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}

// TestShutdownAfterAReply: a reply that runs is heard to its end; if the user
// cuts it to say something new, the notice follows.
func TestShutdownAfterAReply(t *testing.T) {
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprint("cut ", cut), func(t *testing.T) {
			strictRig(t, func(t *testing.T, r *rig) {
				ctx := minute(t)
				d := dialStrict(ctx, t, r, devicetest.Options{OpenListen: true})
				if err := d.Detect("hello"); err != nil {
					t.Fatal(err)
				}
				if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
					t.Fatal(err)
				}
				stopped := make(chan error, 1)
				go func() { stopped <- r.registry.Shutdown(ctx) }()
				time.Sleep(300 * time.Millisecond)
				if cut {
					if err := d.Abort(""); err != nil {
						t.Fatal(err)
					}
				}
				reply, err := d.WaitReply(ctx)
				if err != nil || reply.Text() != "you said hello" || reply.Cut != cut || !cut && reply.Frames != 17 {
					t.Errorf("reply %+v, %v", reply, err)
				}
				if cut {
					told(ctx, t, d, "1 zh")
				}
				if err := <-stopped; err != nil {
					t.Error(err)
				}
				<-d.Done()
				noViolations(t, d)
			})
		})
	}
}

// TestShutdownBeforeAnswer: the button was let go, or something was
// typed, and nothing of the answer is there yet; it is still heard.
func TestShutdownBeforeAnswer(t *testing.T) {
	for _, said := range [][]string{
		{`{"type":"listen","state":"start","mode":"manual"}`, `{"type":"listen","state":"stop"}`},
		{`{"type":"listen","state":"detect","text":"what time is it"}`},
	} {
		shutdownWhileOwed(t, said)
	}
}

func shutdownWhileOwed(t *testing.T, said []string) {
	t.Helper()
	bubble(t, func(o *setup) { o.Notice = tonal(t) }, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		for _, text := range said {
			p.send(text)
		}
		talk := r.talk(0)
		time.AfterFunc(2*time.Second, func() {
			for _, kind := range []wire.MessageKind{wire.MessageSTT, wire.MessageTTSStart, wire.MessageTTSStop} {
				talk.out.Send(wire.Message{Kind: kind, Turn: 1})
			}
		})
		if err := r.registry.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-p.done
		if texts := p.texts(); len(texts) != 4 || !strings.Contains(texts[3], `"stop"`) {
			t.Errorf("the device got %q", texts)
		}
	})
}

// While a notice is said, the conversation is not heard, and hears nothing.
func TestNoticeSilencesConversation(t *testing.T) {
	bubble(t, func(o *setup) { o.Notice = tonal(t) }, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		p.send(`{"type":"listen","state":"start","mode":"auto"}`)
		talk := r.talk(0)
		before := len(talk.all())
		stopped := make(chan error, 1)
		go func() { stopped <- r.registry.Shutdown(t.Context()) }()
		time.Sleep(300 * time.Millisecond)
		for _, kind := range []wire.MessageKind{wire.MessageSTT, wire.MessageTTSStart, wire.MessageTTSStop} {
			talk.out.Send(wire.Message{Kind: kind, Turn: 1, Text: "mine"})
		}
		if _, ok := talk.out.Audio(1, []byte{1}); !ok {
			t.Error("a frame was refused: the conversation would try for ever")
		}
		p.sendBinary([]byte{1})
		p.send(`{"type":"listen","state":"start","mode":"auto"}`)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		<-p.done
		if got := len(talk.all()); got != before {
			t.Errorf("the conversation was told of %d events", got-before)
		}
		if texts := p.texts(); len(texts) != 4 || strings.Contains(strings.Join(texts, ""), "mine") {
			t.Errorf("the device got %q", texts)
		}
		if n := len(p.of(websocket.BinaryMessage)); n != noticeFrames {
			t.Errorf("%d frames of %d", n, noticeFrames)
		}
	})
}

// While the server stops, new connections are refused before the upgrade.
func TestShutdownRefusesDevices(t *testing.T) {
	strictRig(t, func(t *testing.T, r *rig) {
		ctx := minute(t)
		d := dialStrict(ctx, t, r, devicetest.Options{OpenListen: true})
		synctest.Wait() // the server has read that the device listens
		stopped := make(chan error, 1)
		go func() { stopped <- r.registry.Shutdown(ctx) }()
		time.Sleep(500 * time.Millisecond)
		_, answer, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"late"}})
		if err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Errorf("answered %v, %v", answer, err)
		}
		told(ctx, t, d, "1 zh")
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// A drain that is given too little time ends all the same, with a stop.
func TestShutdownCutShort(t *testing.T) {
	bubble(t, func(o *setup) { o.Notice = tonal(t) }, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		p.send(`{"type":"listen","state":"start","mode":"auto"}`)
		r.talk(0)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := r.registry.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		<-p.done
	})
}
