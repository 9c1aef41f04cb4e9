package websocket

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
	"xiaozhi/internal/wire"
)

// TestShutdownAsksConversation: the conversation decides when it ends, up to
// 9.5 s; a device that has none is closed at once.
func TestShutdownAsksConversation(t *testing.T) {
	for name, c := range map[string]struct {
		mute bool          // it has not said hello
		last time.Duration // after which the conversation hangs up
		want time.Duration // after which the connection is closed
	}{
		"no hello": {mute: true},
		"idle":     {},
		"reply":    {last: 3 * time.Second, want: 3 * time.Second},
		"endless":  {last: -1, want: 9500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				var p *peer
				if c.mute {
					p = r.dial("d1")
					synctest.Wait()
				} else {
					p = r.greet("d1")
					r.talk(0).last = c.last
				}
				began := time.Now()
				if err := r.registry.Shutdown(t.Context()); err != nil {
					t.Fatal(err)
				}
				<-p.done
				closed := p.of(websocket.CloseMessage)
				if len(closed) != 1 || closed[0].code != 1000 || closed[0].at.Sub(began) != c.want {
					t.Errorf("closed %v after %v, want after %v", closed, time.Since(began), c.want)
				}
				if len(r.log.lines("device left", "server is stopping")) != 1 {
					t.Errorf("log:\n%s", r.log)
				}
				if !c.mute && !errors.Is(r.talk(0).drained, connection.ErrShutdown) {
					t.Errorf("the conversation is drained by %v", r.talk(0).drained)
				}
			})
		})
	}
}

// While the server stops, new connections are refused before the upgrade.
func TestShutdownRefusesDevices(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		r.talk(0).last = time.Second
		stopped := make(chan error, 1)
		go func() { stopped <- r.registry.Shutdown(t.Context()) }()
		time.Sleep(500 * time.Millisecond)
		_, answer, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"late"}})
		if err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Errorf("answered %v, %v", answer, err)
		}
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		<-p.done
	})
}

// A drain that is given too little time ends all the same.
func TestShutdownCutShort(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		r.talk(0).last = -1
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := r.registry.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		<-p.done
	})
}

// TestTooBusyConversation: a device that is turned away has a conversation of its
// own kind, which is told all that the device does; it has no tools. The close code
// says that the device may come again.
func TestTooBusyConversation(t *testing.T) {
	var talk *fakeTalk
	var tools int
	bubble(t, func(o *setup) {
		o.NewTools = func(_ wire.Session, link connection.Link) connection.Tools { tools++; return &fakeTools{link: link} }
		o.NewFarewell = func(s wire.Session, out wire.Outbox, cause error) connection.Conversation {
			talk = &fakeTalk{session: s, out: out, over: make(chan error, 1), drained: cause}
			return talk
		}
	}, func(t *testing.T, r *rig) {
		r.load.busy.Store(true)
		p := r.greet("d1")
		p.alive(talk)
		if len(r.talks) != 0 || tools != 0 || talk.session.DeviceID != "d1" || talk.session.Language != "zh" {
			t.Errorf("%d conversations, %d tools, session %+v", len(r.talks), tools, talk.session)
		}
		talk.out.HangUp(talk.drained)
		<-p.done
		if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != websocket.CloseTryAgainLater {
			t.Errorf("closed by %v", closed)
		}
	})
}

// Without a farewell a device that is turned away is just closed.
func TestTooBusyWithoutFarewell(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.load.busy.Store(true)
		p := r.greet("d1")
		<-p.done
		if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != websocket.CloseTryAgainLater {
			t.Errorf("closed by %v", closed)
		}
	})
}
