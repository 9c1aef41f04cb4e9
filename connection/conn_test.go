package connection

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

	"xiaozhi/agent"
	"xiaozhi/mcp"
)

func TestNoHelloEndsAfterTenSeconds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.dial("d1")
		began := time.Now()
		// Talking does not help: only a hello does.
		for range 9 {
			time.Sleep(time.Second)
			p.send(`{"type":"listen","state":"start"}`)
			p.sendBinary([]byte{1, 2, 3})
		}
		<-p.done
		closed := p.of(websocket.CloseMessage)
		if len(closed) != 1 || closed[0].code != 1000 || closed[0].at.Sub(began) != helloTimeout {
			t.Fatalf("close frames %v, %v after the upgrade", closed, p.last.Sub(began))
		}
		synctest.Wait()
		if len(r.log.lines("device left", "no hello", "early=18")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

func TestHelloIsAnsweredOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.dial("d1")
		p.sendBinary([]byte{1, 2, 3})
		p.send(`{"type":"listen","state":"start","mode":"auto"}`)
		began := time.Now()
		p.send(`{"type":"hello"}`)
		p.send(`{"type":"hello","version":3}`)
		p.sendBinary([]byte{0xd8})
		talk := r.talk(0)
		if texts := p.texts(); len(texts) != 1 || !strings.Contains(texts[0], `"transport":"websocket"`) || time.Since(began) > 0 {
			t.Errorf("got %q", texts)
		}
		// What came before hello is gone; the second hello changed nothing.
		events := talk.all()
		if len(events) != 1 || string(events[0].(agent.Frame).Packet) != "\xd8" {
			t.Errorf("events %v", events)
		}
		if len(r.log.lines("WARN", "second hello")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
		p.alive(talk)
	})
}

func TestSessionOfAConversation(t *testing.T) {
	change := func(o *Options) {
		o.Settings = func(id string) Settings {
			return map[string]Settings{"aa:bb": {Name: "厨房", Voice: "v1", Language: "en"}}[id]
		}
	}
	bubble(t, change, func(t *testing.T, r *rig) {
		p := r.dial("AA:BB")
		p.send(`{"type":"hello","features":{"aec":true}}`)
		s := r.talk(0).session
		want := agent.Session{DeviceID: "aa:bb", ClientID: "c-1", SessionID: s.SessionID, Language: "en", Name: "厨房", Voice: "v1", AEC: true}
		if s != want {
			t.Errorf("got %+v, want %+v", s, want)
		}
		if strings.Trim(s.SessionID, letters) != "" || len(s.SessionID) < 16 || !strings.Contains(p.texts()[0], s.SessionID) {
			t.Errorf("session id %q in %q", s.SessionID, p.texts())
		}
	})
}

func TestDeviceLeavesByBareTCP(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		p.leave()
		synctest.Wait()
		if !errors.Is(talk.cause, errLeft) || r.server.Connected() != 0 {
			t.Errorf("cause %v, %d connected", talk.cause, r.server.Connected())
		}
		if len(r.log.lines("INFO", "device left", "device closed")) != 1 || len(r.log.lines("WARN"))+len(r.log.lines("ERROR")) != 0 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

func TestDeviceLeavesByCloseFrame(t *testing.T) {
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
		talk.words = []agent.Message{{Kind: agent.MessageTTSStop, Turn: 1}}
		talk.slow = 100 * time.Millisecond
		talk.out.Send(agent.Message{Kind: agent.MessageSTT, Text: "bye"})
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
func TestConversationThatTakesLongToEnd(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		talk.slow = 8 * time.Second
		began := time.Now()
		talk.out.HangUp(nil)
		<-p.done
		if took := p.last.Sub(began); took > talkEnd+time.Second {
			t.Errorf("TCP closed after %v", took)
		}
	})
}

func TestConversationIsOver(t *testing.T) {
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
func TestPanicsEndOneDevice(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		well := r.greet("well")
		make := r.server.opts.NewTalk
		r.server.opts.NewTalk = func(s agent.Session, out agent.Outbox, device mcp.Source) (Talk, error) {
			if s.DeviceID == "new" {
				panic("in NewTalk")
			}
			talk, err := make(s, out, device)
			if s.DeviceID == "run" {
				talk.(*fakeTalk).atRun = func() { panic("in Run") }
			}
			if s.DeviceID == "post" {
				return panicky{talk}, err
			}
			return talk, err
		}
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

type panicky struct{ Talk }

func (panicky) Post(agent.Event) error { panic("in Post") }

func TestFullInboxEndsTheConnection(t *testing.T) {
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

func TestNewConnectionReplacesTheOld(t *testing.T) {
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
		if !errors.Is(first.cause, ErrReplaced) {
			t.Errorf("the old one ended by %v", first.cause)
		}
		if second.ran.Before(first.ended) || second.ran.Sub(first.ended) > 0 {
			t.Errorf("old conversation ended at %v, new one began at %v", first.ended, second.ran)
		}
		if closed := old.of(websocket.CloseMessage); len(closed) != 1 || closed[0].code != 1000 {
			t.Errorf("old one closed by %v", closed)
		}
		if r.server.Connected() != 1 {
			t.Errorf("%d connected", r.server.Connected())
		}
		young.alive(second)
	})
}

func TestOldConversationThatHangsIsNotWaitedFor(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		r.greet("d1")
		r.talk(0).slow = 15 * time.Second
		began := time.Now()
		r.greet("d1")
		time.Sleep(handover)
		synctest.Wait()
		if second := r.talk(1); second.ran.Sub(began) != handover {
			t.Errorf("the new conversation began after %v", second.ran.Sub(began))
		}
	})
}

func TestPingAndDeath(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		healthy, dead := r.greet("healthy"), r.dial("dead")
		dead.deaf = true
		dead.send(`{"type":"hello"}`)
		began := time.Now()
		<-dead.done
		synctest.Wait()
		if lived := dead.last.Sub(began); lived != deadAfter {
			t.Errorf("a peer that answers no ping lived for %v", lived)
		}
		if len(r.log.lines("INFO", "device left", "no data and no pong", "device_id=dead")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
		if pings := dead.of(websocket.PingMessage); len(pings) < 1 || pings[0].at.Sub(began) != pingEvery {
			t.Errorf("pings: %v", pings)
		}
		time.Sleep(10 * time.Minute)
		healthy.alive(r.talk(0))
		if n := len(healthy.of(websocket.PingMessage)); n != 22 {
			t.Errorf("%d pings in 11 minutes", n)
		}
	})
}

func TestPingIsAnsweredWhileAReplyStreams(t *testing.T) {
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
func TestDeviceThatStopsReading(t *testing.T) {
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
			if talk.out.Audio(1, []byte{1}) {
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
		time.Sleep(writeTimeout + time.Millisecond)
		synctest.Wait()
		if lived := talk.ended.Sub(began); lived != writeTimeout || r.server.Connected() != 0 {
			t.Errorf("ended after %v, %d connected", lived, r.server.Connected())
		}
		if len(r.log.lines("device left", "write to device failed")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
		if n := len(talk.all()); n != 1000 {
			t.Errorf("%d frames were heard of 1000", n)
		}
	})
}

func TestFullControlQueueEndsTheConnection(t *testing.T) {
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
			talk.out.Send(agent.Message{Kind: agent.MessageKeepAlive})
		}
		synctest.Wait()
		if !errors.Is(talk.cause, ErrStuck) || time.Since(began) != 0 {
			t.Errorf("cause %v after %v", talk.cause, time.Since(began))
		}
	})
}

func TestCutOnTheWire(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		talk := r.talk(0)
		talk.out.Send(agent.Message{Kind: agent.MessageTTSStart, Turn: 1})
		synctest.Wait()
		for i := range audioQueue {
			talk.out.Audio(1, []byte{byte(i)})
		}
		talk.out.Send(agent.Message{Kind: agent.MessageTTSStop, Turn: 1, Cut: true, Closing: []byte{0xee}})
		if talk.out.Audio(1, []byte{0xff}) {
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

func TestShutdownWaits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p, silent := r.greet("d1"), r.dial("d2")
		talk := r.talk(0)
		talk.slow = 200 * time.Millisecond
		talk.words = []agent.Message{{Kind: agent.MessageTTSStop}}
		if err := r.server.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-p.done
		<-silent.done
		if !errors.Is(talk.cause, ErrShutdown) || talk.ended.IsZero() {
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

func TestShutdownGivesUpWhenItsTimeIsOver(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.greet("d1")
		r.talk(0).slow = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := r.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		<-p.done
	})
}

func TestCloseIsNow(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		began := time.Now()
		p := r.greet("d1")
		r.server.Close()
		<-p.done
		if p.last.Sub(began) != 0 || len(p.of(websocket.CloseMessage)) != 0 {
			t.Errorf("closed after %v with %v", p.last.Sub(began), p.all())
		}
	})
}

func TestManyDevicesComeAndGo(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		for i := range 100 {
			p := r.greet(fmt.Sprint("d", i%7))
			if i%2 == 0 {
				p.leave()
			}
		}
		synctest.Wait()
		if n := r.server.Connected(); n > 7 {
			t.Errorf("%d devices connected", n)
		}
	})
}

func TestToolsOfADevice(t *testing.T) {
	var tools *fakeTools
	change := func(o *Options) {
		o.NewTools = func(_ agent.Session, link Link) Tools {
			tools = &fakeTools{link: link}
			return tools
		}
	}
	bubble(t, change, func(t *testing.T, r *rig) {
		plain := r.greet("plain")
		plain.send(`{"type":"mcp","payload":{"id":1}}`)
		if talk := r.talk(0); talk.device != nil || tools != nil {
			t.Error("a device without mcp has tools")
		}
		p := r.dial("d1")
		p.send(`{"type":"hello","features":{"mcp":true}}`)
		if talk := r.talk(1); talk.device != mcp.Source(tools) || tools.link.BaseURL != "http://server:8000" {
			t.Errorf("device %v, base URL %q", talk.device, tools.link.BaseURL)
		}
		want := fmt.Sprintf(`{"session_id":%q,"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"initialize"}}`, r.talk(1).session.SessionID)
		if texts := p.texts(); len(texts) != 2 || texts[1] != want {
			t.Errorf("got %q, want hello and %s", texts, want)
		}
		p.send(`{"session_id":"x","type":"mcp","payload":{"id":1,"result":{}}}`)
		p.send(`{"type":"mcp","payload":"{\"id\":2}"}`)
		p.send(`{"type":"mcp","payload":[]}`)
		p.send(`{"type":"mcp"}`)
		p.leave()
		synctest.Wait()
		if got := strings.Join(tools.got, " "); got != `{"id":1,"result":{}} {"id":2}` {
			t.Errorf("delivered: %s", got)
		}
		if tools.started != 1 || tools.stopped != 1 {
			t.Errorf("started %d times, stopped %d times", tools.started, tools.stopped)
		}
		if err := tools.link.Send([]byte(`{}`)); err == nil {
			t.Error("sending over a dead connection succeeds")
		}
		if err := tools.link.Send([]byte(`{`)); err == nil {
			t.Error("sending broken json succeeds")
		}
	})
}
