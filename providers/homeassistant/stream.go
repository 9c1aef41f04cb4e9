package homeassistant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

const (
	socketPath = "/api/websocket"
	greetTime  = 3 * time.Second // for each word of the greeting
	preferred  = "preferred"     // the pipeline that Home Assistant calls so
)

// sockets carries requests for the path of the WebSocket as a stream of lines: a request's
// body is the command, and each message after the greeting is a line of the response's.
// Other requests go on to plain. It may be used by any number of goroutines at once.
type sockets struct {
	dialer *transport.Dialer
	token  providers.Secret
	plain  http.RoundTripper
}

// RoundTrip opens a socket, says who asks, and gives the command. Closing the response's body, or the end of the request's
// context, closes the socket.
func (s *sockets) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Path, socketPath) {
		return s.plain.RoundTrip(req)
	}
	command, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	socket, err := s.dialer.Dial(req.Context(), req.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	if err = s.greet(socket); err == nil {
		err = socket.WriteText(command)
	}
	if err != nil {
		socket.Close()
		return nil, cmp.Or(req.Context().Err(), err)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: &messages{socket: socket}, ContentLength: -1, Request: req,
	}, nil
}

// Unwrap returns what carries other requests.
func (s *sockets) Unwrap() http.RoundTripper { return s.plain }

// greet waits until Home Assistant has taken the token.
func (s *sockets) greet(socket *transport.Socket) error {
	for {
		var m struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		}
		if err := socket.ReadJSON(greetTime, &m); err != nil {
			return err
		}
		switch m.Type {
		case "auth_required":
			if err := socket.WriteJSON(map[string]any{"type": "auth", "access_token": s.token.Reveal()}); err != nil {
				return err
			}
		case "auth_ok":
			return nil
		case "auth_invalid":
			return transport.Refused(providers.Unauthorized, m.Type, cmp.Or(m.Message, "the token is not valid"))
		}
	}
}

// messages reads a socket as lines, to the end of a run.
type messages struct {
	socket *transport.Socket
	rest   []byte // of a line
	over   bool
}

// Read reads the next bytes. It waits as long as the socket is open.
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.over {
			return 0, io.EOF
		}
		_, message, err := m.socket.Read(0)
		if err != nil {
			return 0, err
		}
		var end struct {
			Event struct {
				Type string `json:"type"`
			} `json:"event"`
		}
		m.over = json.Unmarshal(message, &end) == nil && end.Event.Type == "run-end"
		m.rest = append([]byte(strings.ReplaceAll(string(message), "\n", " ")), '\n')
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// Close closes the socket.
func (m *messages) Close() error {
	m.socket.Close()
	return nil
}

// run makes the request of a turn that is to be streamed.
func (w *wire) run(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	body := map[string]any{
		"id": 1, "type": "assist_pipeline/run", "start_stage": "intent", "end_stage": "intent", "input": map[string]any{"text": t.NewestText()},
	}
	if w.pipeline != preferred {
		body["pipeline"] = w.pipeline
	}
	if t.Talk != "" {
		body["conversation_id"] = t.Talk
	}
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	return w.at.Post(ctx, socketPath, body)
}

// stream reads an answer that comes in pieces.
type stream struct {
	w       *wire
	turn    *platform.Turn
	speaks  bool // what comes is of the agent, not of a tool
	spoke   bool
	results bool // the command was taken
}

// event is a message of Home Assistant.
type event struct {
	Type    string `json:"type"`
	Success *bool  `json:"success"`
	Error   struct {
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	} `json:"error"`
	Event struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	} `json:"event"`
}

// Event reads a message. Those that are not known pass.
func (s *stream) Event(e sse.Event, give generation.Give) (bool, error) {
	var m event
	if err := json.Unmarshal(e.Data, &m); err != nil {
		return false, fmt.Errorf("a message is not the JSON expected: %w", err)
	}
	if m.Type == "result" && m.Success != nil && !*m.Success {
		return false, transport.Refused(providers.BadRequest, strings.Trim(string(m.Error.Code), `"`), cmp.Or(m.Error.Message, "the command was refused"))
	}
	switch m.Event.Type {
	case "intent-progress":
		s.progress(m.Event.Data, give)
	case "intent-end":
		return false, s.whole(m.Event.Data, give)
	case "error":
		var fault struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(m.Event.Data, &fault) // without words it is a failure as well
		kind := providers.Unavailable
		if fault.Code == "intent-not-supported" || fault.Code == "pipeline-not-found" {
			kind = providers.BadRequest
		}
		return false, transport.Refused(kind, fault.Code, cmp.Or(fault.Message, "the pipeline has failed"))
	case "run-end":
		if !s.results {
			return false, generation.ErrIncomplete
		}
		return true, nil
	}
	return false, nil
}

// progress gives what the agent says meanwhile. What tools say is not for the ear.
func (s *stream) progress(raw []byte, give generation.Give) {
	var data struct {
		Delta struct {
			Role     string `json:"role"`
			Content  string `json:"content"`
			Thinking string `json:"thinking_content"`
		} `json:"chat_log_delta"`
	}
	if json.Unmarshal(raw, &data) != nil {
		return // a delta of another shape holds no words; they come at the end
	}
	if data.Delta.Role != "" {
		s.speaks = data.Delta.Role == "assistant"
	}
	if !s.speaks {
		return
	}
	s.spoke = s.spoke || data.Delta.Content != ""
	give(providers.Delta{Text: data.Delta.Content, Thought: data.Delta.Thinking})
}

// whole reads the whole answer, which is said if no piece of it was.
func (s *stream) whole(raw []byte, give generation.Give) error {
	var data struct {
		Output json.RawMessage `json:"intent_output"`
	}
	if err := json.Unmarshal(raw, &data); err != nil || len(data.Output) == 0 {
		return errors.New("the end of the answer is not the JSON expected")
	}
	said, err := s.w.read(data.Output, s.turn)
	if s.results = true; s.spoke {
		return nil
	}
	if err != nil {
		return err
	}
	give(providers.Delta{Text: said})
	return nil
}

// End has nothing left to give.
func (s *stream) End(generation.Give) error { return nil }
