package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/openaitest"
)

// This file replays the written examples of both dialects against the program,
// with clients made from those texts and nothing else.

// peer is a client of the examples: it sends texts as they are and sees every
// text of the server, in order. It is for one goroutine.
type peer struct {
	t       *testing.T
	conn    *websocket.Conn
	texts   chan string // size 1024; closed when the connection ends
	session string
	kept    []string // read by take, and not yet by next
	seen    []string // the last texts
}

// dialPeer connects with these headers, and says nothing.
func dialPeer(t *testing.T, s *server, headers ...string) *peer {
	t.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, resp, err := websocket.DefaultDialer.DialContext(t.Context(), s.ws, h)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	p := &peer{t: t, conn: conn, texts: make(chan string, 1024)}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(p.texts)
		for {
			kind, data, err := conn.ReadMessage()
			if err != nil {
				return
			}
			if kind == websocket.TextMessage {
				p.texts <- string(data)
			}
		}
	})
	t.Cleanup(func() {
		conn.Close()
		for range p.texts { // until the reader is done
		}
		reader.Wait()
	})
	return p
}

func (p *peer) send(text string) {
	p.t.Helper()
	if err := p.conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		p.t.Fatalf("send %s: %v", text, err)
	}
}

// next is the next text of the server.
func (p *peer) next() string {
	p.t.Helper()
	if len(p.kept) > 0 {
		text := p.kept[0]
		p.kept = p.kept[1:]
		return text
	}
	return p.read()
}

// take reads to the first text that holds all parts, and leaves those before it
// to be read next: some messages may overtake each other.
func (p *peer) take(parts ...string) string {
	p.t.Helper()
	kept := p.kept
	for p.kept = nil; ; {
		var text string
		if len(kept) > 0 {
			text, kept = kept[0], kept[1:]
		} else {
			text = p.read()
		}
		if holdsAll(text, parts) {
			p.kept = append(p.kept, kept...)
			return text
		}
		p.kept = append(p.kept, text)
	}
}

// read waits for a text.
func (p *peer) read() string {
	p.t.Helper()
	select {
	case text, ok := <-p.texts:
		if !ok {
			p.t.Fatalf("the server closed the connection after %q", p.seen)
		}
		if p.seen = append(p.seen, text); len(p.seen) > 8 {
			p.seen = p.seen[1:]
		}
		return text
	case <-time.After(30 * time.Second):
		p.t.Fatalf("nothing came from the server after %q", p.seen)
	}
	return ""
}

// until reads to the first text that holds all parts; before are those on the way.
func (p *peer) until(parts ...string) (found string, before []string) {
	p.t.Helper()
	for {
		text := p.next()
		if holdsAll(text, parts) {
			return text, before
		}
		before = append(before, text)
	}
}

// want reads one text and compares it byte for byte.
func (p *peer) want(text string) {
	p.t.Helper()
	if got := p.next(); got != text {
		p.t.Errorf("got  %s\nwant %s", got, text)
	}
}

// hello says the hello and takes the session id from the answer.
func (p *peer) hello(text string) {
	p.t.Helper()
	p.send(text)
	answer, before := p.until(`"type":"hello"`)
	if len(before) > 0 {
		p.t.Errorf("before the hello came %q", before)
	}
	m := members(p.t, answer)
	if m["transport"] != "websocket" || m["type"] != "hello" {
		p.t.Errorf("hello %s", answer)
	}
	p.session, _ = m["session_id"].(string)
}

// members is a JSON object.
func members(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// oneLine is an example as the wire has it: members in their order, no white space.
func oneLine(t *testing.T, example string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(example)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// obedient is a model that calls what it is told to: "use NAME ARGUMENTS", more
// of them after " and ". It tells results as they are.
func obedient(r *openaitest.Request) openaitest.Reply {
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(r.Body, &body); err != nil || len(body.Messages) == 0 {
		return openaitest.Text("no request")
	}
	last := body.Messages[len(body.Messages)-1]
	if last.Role == "tool" {
		return openaitest.Text("Result: " + last.Content + ".")
	}
	orders, ok := strings.CutPrefix(last.Content, "use ")
	if !ok {
		return openaitest.Text("I heard " + last.Content + ".")
	}
	var calls []openaitest.Call
	for i, order := range strings.Split(orders, " and ") {
		name, arguments, _ := strings.Cut(order, " ")
		calls = append(calls, openaitest.Call{ID: fmt.Sprintf("call-%d-%d", len(body.Messages), i), Name: name, Arguments: arguments})
	}
	return openaitest.Calls(calls...)
}

// startObedient runs a server with that model.
func startObedient(t *testing.T, config string) (*server, *openaitest.Server) {
	t.Helper()
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, obedient)
	return start(t, setup{env: cloudEnv(cloud), config: config}), cloud
}
