package websocket

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

func TestDeviceClosesTCP(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		p.leave()
		synctest.Wait()
		if !errors.Is(talk.cause, connection.ErrLeft) || r.registry.Connected() != 0 {
			t.Errorf("cause %v, %d connected", talk.cause, r.registry.Connected())
		}
		if len(r.log.lines("INFO", "device left", "device closed")) != 1 || len(r.log.lines("WARN"))+len(r.log.lines("ERROR")) != 0 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

func TestDeviceSendsClose(t *testing.T) {
	for _, code := range []int{1000, 1001, 1005, 1011} {
		bubble(t, nil, func(t *testing.T, r *rig) {
			p := r.greet("d1")
			msg := websocket.FormatCloseMessage(code, "")
			if err := p.ws.WriteControl(websocket.CloseMessage, msg, time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			<-p.done
			if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != 1000 {
				t.Errorf("code %d: answered by %v", code, closed)
			}
			synctest.Wait()
			if len(r.log.lines("WARN")) != 0 {
				t.Errorf("log:\n%s", r.log)
			}
		})
	}
}

// A device that neither answers the close frame nor closes TCP.
func TestHangUp(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		talk.words = []wire.Message{{Kind: wire.MessageTTSStop, Turn: 1}}
		talk.slow = 100 * time.Millisecond
		talk.out.Send(wire.Message{Kind: wire.MessageSTT, Text: "bye"})
		talk.out.Audio(1, []byte{7})
		began := time.Now()
		talk.out.HangUp(errors.New("said goodbye"))
		<-p.done
		var order []string
		for _, s := range p.all()[1:] {
			order = append(order, fmt.Sprintf("%d:%s", s.kind, s.data))
		}
		got := strings.Join(order, " | ")
		for _, part := range []string{`"type":"stt"`, "2:\a", `"state":"stop"`, "8:conversation hung up"} {
			if !strings.Contains(got, part) {
				t.Fatalf("missing %q in %s", part, got)
			}
			got = got[strings.Index(got, part):]
		}
		closed := p.of(websocket.CloseMessage)[0]
		if closed.code != 1000 || closed.at.Sub(began) != talk.slow {
			t.Errorf("close %d after %v", closed.code, closed.at.Sub(began))
		}
		if late := p.last.Sub(closed.at); late > time.Second {
			t.Errorf("TCP closed %v after the close frame", late)
		}
		synctest.Wait()
		if len(r.log.lines("device left", "hung up", "said goodbye")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

// A conversation that does not end keeps its goroutine, but not the socket.
func TestSlowConversationEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		talk.slow = 8 * time.Second
		began := time.Now()
		talk.out.HangUp(nil)
		<-p.done
		if took := p.last.Sub(began); took > 1500*time.Millisecond {
			t.Errorf("TCP closed after %v", took)
		}
	})
}

func TestConversationEnds(t *testing.T) {
	for _, tc := range []struct {
		err   error
		code  int
		level string
	}{{nil, 1000, "INFO"}, {errors.New("no more"), 1011, "ERROR"}} {
		bubble(t, nil, func(t *testing.T, r *rig) {
			p := r.greet("d1")
			r.talk(0).over <- tc.err
			<-p.done
			if closed := p.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != tc.code {
				t.Errorf("closed by %v", closed)
			}
			synctest.Wait()
			if len(r.log.lines("device left", tc.level)) != 1 {
				t.Errorf("log:\n%s", r.log)
			}
		})
	}
}

func TestConversationCannotStart(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.newErr = errors.New("no brain")
		p := r.dial("d1")
		p.send(`{"type":"hello"}`)
		<-p.done
		synctest.Wait()
		if len(r.log.lines("device left", "no brain")) != 1 || p.of(websocket.CloseMessage)[0].code != 1011 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

// Only the device in whose goroutine it happens is hurt.
func TestPanicEndsOneSession(t *testing.T) {
	bubble(t, func(o *setup) {
		newTalk := o.NewConversation
		o.NewConversation = func(s wire.Session, out wire.Outbox, sources []mcp.Source) (connection.Conversation, error) {
			if s.DeviceID == "new" {
				panic("in NewConversation")
			}
			talk, err := newTalk(s, out, sources)
			if s.DeviceID == "run" {
				talk.(*fakeTalk).atRun = func() { panic("in Run") }
			}
			if s.DeviceID == "post" {
				return panicky{talk}, err
			}
			return talk, err
		}
	}, func(t *testing.T, r *rig) {
		well := r.greet("well")
		for _, id := range []string{"new", "run", "post"} {
			p := r.dial(id)
			p.send(`{"type":"hello"}`)
			if id == "post" {
				p.send(`{"type":"abort"}`)
			}
			<-p.done
			if len(r.log.lines("panic in a connection", "device_id="+id, "stack=")) != 1 {
				t.Errorf("%s: log:\n%s", id, r.log)
			}
		}
		well.alive(r.talk(0))
	})
}

func TestEventOverrun(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		talk.postErr = errors.New("inbox is full")
		p.send(`{"type":"abort"}`)
		<-p.done
		synctest.Wait()
		if len(r.log.lines("device left", "inbox is full")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

type panicky struct{ connection.Conversation }

func (panicky) Post(wire.Event) error { panic("in Post") }
