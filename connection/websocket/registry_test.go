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

	"xiaozhi/connection"
	"xiaozhi/internal/wire"
)

func TestShutdownWaits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p, silent := r.greet("d1"), r.dial("d2")
		talk := r.talk(0)
		talk.slow = 200 * time.Millisecond
		talk.words = []wire.Message{{Kind: wire.MessageTTSStop}}
		if err := r.registry.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-p.done
		<-silent.done
		if !errors.Is(talk.cause, connection.ErrShutdown) || talk.ended.IsZero() {
			t.Errorf("conversation ended by %v", talk.cause)
		}
		if texts := p.texts(); !strings.Contains(texts[len(texts)-1], "stop") || p.of(websocket.CloseMessage)[0].code != 1000 {
			t.Errorf("last words %q", texts)
		}
		if _, answer, err := r.upgrade("/xiaozhi/v1/", http.Header{"Device-Id": {"d3"}}); err == nil || answer.StatusCode != 503 {
			t.Errorf("a device was let in: %v", err)
		}
	})
}

func TestShutdownTimeout(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		r.talk(0).slow = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := r.registry.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		<-p.done
	})
}

func TestCloseAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		began := time.Now()
		p := r.greet("d1")
		r.registry.Close()
		<-p.done
		if p.last.Sub(began) != 0 || len(p.of(websocket.CloseMessage)) != 0 {
			t.Errorf("closed after %v with %v", p.last.Sub(began), p.all())
		}
	})
}

func TestChurn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		for i := range 100 {
			p := r.greet(fmt.Sprint("d", i%7))
			if i%2 == 0 {
				p.leave()
			}
		}
		synctest.Wait()
		if n := r.registry.Connected(); n > 7 {
			t.Errorf("%d devices connected", n)
		}
	})
}

func TestNewConnectionReplacesOld(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		old := r.greet("AA:BB")
		first := r.talk(0)
		first.slow = 300 * time.Millisecond
		began := time.Now()
		young := r.greet("aa:bb") // the hello is answered at once
		if time.Since(began) != 0 {
			t.Errorf("the new one waited for its hello for %v", time.Since(began))
		}
		<-old.done
		second := r.talk(1)
		if !errors.Is(first.cause, connection.ErrReplaced) {
			t.Errorf("the old one ended by %v", first.cause)
		}
		if !second.ran.Equal(began) || first.ended.Sub(began) != first.slow {
			t.Errorf("new conversation began after %v, old one ended after %v", second.ran.Sub(began), first.ended.Sub(began))
		}
		if closed := old.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != 1000 {
			t.Errorf("old one closed by %v", closed)
		}
		if r.registry.Connected() != 1 {
			t.Errorf("%d connected", r.registry.Connected())
		}
		young.alive(second)
	})
}
