package external

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
)

// greeting is an answer to initialize.
const greeting = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"puppet","version":"1"}}`

// puppet is a server that says word for word what it is told, over lines.
type puppet struct {
	// answers are results by method, or by "tools/call NAME"; "error {…}" is an
	// error, "hang up" is the end.
	answers map[string]string
	// refuse answers all other methods with an error; else nothing is said.
	refuse bool
	// mangle writes noise between the messages and ids as text.
	mangle bool
	// deafAfter is the method whose answer is the last thing it does.
	deafAfter string

	opened atomic.Int32 // connections so far
}

// server is a Server that the puppet serves.
func (p *puppet) server(o ServerOptions) *Server {
	s := newServer("puppet", Config{}, o)
	s.dialling.ways = Config{Transport: Stdio}.ways()
	s.dialling.open = func(context.Context, way) (*line, error) {
		p.opened.Add(1)
		ours, theirs := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.play(theirs)
		}()
		l := newLink(newLines(ours, ours), 0, s.log)
		return &line{transport: l, cause: l.cause, end: func() {
			_ = l.Close()
			_ = theirs.Close()
			<-done
			l.wait()
		}}, nil
	}
	return s
}

// asked is a request as far as the puppet cares.
type asked struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string `json:"name"`
	} `json:"params"`
}

func (p *puppet) play(conn net.Conn) {
	in := bufio.NewScanner(conn)
	in.Buffer(nil, maxFrame)
	for in.Scan() {
		var q asked
		if json.Unmarshal(in.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		key := strings.TrimSpace(q.Method + " " + q.Params.Name)
		answer, ok := p.answers[key]
		switch {
		case answer == "hang up":
			_ = conn.Close()
			return
		case !ok && !p.refuse:
			continue
		case !ok:
			answer = `error {"code":-32601,"message":"what?"}`
		}
		fmt.Fprint(conn, p.message(q.ID, answer))
		if q.Method == p.deafAfter {
			return
		}
	}
}

// message is what the puppet writes for an answer.
func (p *puppet) message(id json.RawMessage, answer string) string {
	member, noise := "result", ""
	if rest, ok := strings.CutPrefix(answer, "error "); ok {
		member, answer = "error", rest
	}
	answer = strings.Join(strings.Fields(answer), " ")
	if p.mangle {
		id = json.RawMessage(`"` + string(id) + `"`)
		noise = "INFO starting up\n\n" + strings.Repeat("[", 1000) + "\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n" +
			"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n"
	}
	return fmt.Sprintf("%s{\"jsonrpc\":\"2.0\",\"id\":%s,%q:%s}\n", noise, id, member, answer)
}
