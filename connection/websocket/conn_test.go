package websocket

import (
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

func TestNoHello(t *testing.T) {
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
		if len(closed) != 1 || closed[0].code != 1000 || closed[0].at.Sub(began) != 10*time.Second {
			t.Fatalf("close frames %v, %v after the upgrade", closed, p.last.Sub(began))
		}
		synctest.Wait()
		if len(r.log.lines("device left", "no hello", "early=18")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
	})
}

func TestHelloAnsweredOnce(t *testing.T) {
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
		if len(events) != 1 || string(events[0].(wire.Packet).Data) != "\xd8" {
			t.Errorf("events %v", events)
		}
		if len(r.log.lines("WARN", "second hello")) != 1 {
			t.Errorf("log:\n%s", r.log)
		}
		p.alive(talk)
	})
}

func TestConversationSession(t *testing.T) {
	change := func(o *setup) {
		o.Settings = func(id string) connection.Settings {
			return map[string]connection.Settings{"aa:bb": {Name: "厨房", Voice: "v1", Language: "en"}}[id]
		}
	}
	bubble(t, change, func(t *testing.T, r *rig) {
		p := r.dial("AA:BB")
		p.send(`{"type":"hello","version":2,"features":{"aec":true}}`)
		s := r.talk(0).session
		want := wire.Session{DeviceID: "aa:bb", SessionID: s.SessionID, Language: "en", Name: "厨房", Voice: "v1", AEC: true}
		if s != want {
			t.Errorf("got %+v, want %+v", s, want)
		}
		if strings.Trim(s.SessionID, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" || len(s.SessionID) < 16 || !strings.Contains(p.texts()[0], s.SessionID) {
			t.Errorf("session id %q in %q", s.SessionID, p.texts())
		}
	})
}

func TestPingsAndSilence(t *testing.T) {
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
		if pings := dead.of(websocket.PingMessage); len(pings) < 1 || pings[0].at.Sub(began) != firstPing {
			t.Errorf("pings: %v", pings)
		}
		time.Sleep(10 * time.Minute)
		healthy.alive(r.talk(0))
		if n := len(healthy.of(websocket.PingMessage)); n != 22 {
			t.Errorf("%d pings in 11 minutes", n)
		}
	})
}

func TestDeviceTools(t *testing.T) {
	var tools *fakeTools
	change := func(o *setup) {
		o.NewTools = func(_ wire.Session, link connection.Link) connection.Tools {
			tools = &fakeTools{link: link}
			return tools
		}
	}
	bubble(t, change, func(t *testing.T, r *rig) {
		plain := r.greet("plain")
		plain.send(`{"type":"mcp","payload":{"id":1}}`)
		if talk := r.talk(0); len(talk.sources) != 0 || tools != nil {
			t.Error("a device without mcp has tools")
		}
		p := r.dial("d1")
		p.send(`{"type":"hello","features":{"mcp":true}}`)
		if talk := r.talk(1); len(talk.sources) != 1 || talk.sources[0] != mcp.Source(tools) || tools.link.BaseURL != "http://server:8000" {
			t.Errorf("sources %v, base URL %q", talk.sources, tools.link.BaseURL)
		}
		want := fmt.Sprintf(`{"session_id":%q,"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"initialize"}}`, r.talk(1).session.SessionID)
		if texts := p.texts(); len(texts) != 2 || texts[1] != want {
			t.Errorf("got %q, want hello and %s", texts, want)
		}
		p.send(`{"session_id":"x","type":"mcp","payload":{"id":1,"result":{}}}`)
		p.send(`{"type":"mcp","payload":"{\"id\":2}"}`)
		p.send(`{"type":"mcp","payload":[]}`)
		p.send(`{"type":"mcp"}`)
		p.send(`{"type":"listen","state":"start"}`)
		p.send(`{"type":"listen","state":"stop"}`)
		p.leave()
		synctest.Wait()
		if got := strings.Join(tools.got, " "); got != `{"id":1,"result":{}} {"id":2}` {
			t.Errorf("delivered: %s", got)
		}
		if tools.started != 1 || tools.stopped != 1 || tools.refreshed != 1 {
			t.Errorf("started %d times, stopped %d times, refreshed %d times", tools.started, tools.stopped, tools.refreshed)
		}
		if err := tools.link.Send([]byte(`{}`)); err == nil {
			t.Error("sending over a dead connection succeeds")
		}
		if err := tools.link.Send([]byte(`{`)); err == nil {
			t.Error("sending broken json succeeds")
		}
	})
}
