package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

const (
	pingPause    = 30 * time.Second // between signs of life that are asked for
	pingLimit    = 10 * time.Second // for one of them
	pingFailures = 3                // in a row: the server is gone
)

var (
	errNoHandshake = errors.New("no answer to the handshake in time")
	errSilent      = errors.New("the server does not answer any more")
)

// session is one initialised connection to a server. Whoever made it closes it.
type session struct {
	*sdk.ClientSession
	line   *line
	busy   func() bool             // whether calls of it run
	cancel context.CancelCauseFunc // of the time that the connection lives in
	gone   chan struct{}           // closed when the connection has ended
	silent chan struct{}           // closed when no sign of life comes
	wg     sync.WaitGroup
}

// held keeps the connection that a transport makes: the SDK does not close it
// after every failure.
type held struct {
	sdk.Transport
	conn sdk.Connection
}

// Connect connects the transport.
func (h *held) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := h.Transport.Connect(ctx)
	h.conn = conn
	return conn, err
}

// connect opens a way and shakes hands. The session ends with ctx at the latest. busy reports whether calls of it run.
func connect(ctx context.Context, open opener, w way, peer *sdk.Client, busy func() bool) (*session, error) {
	line, err := open(ctx, w)
	if err != nil {
		return nil, err
	}
	// An SSE stream lives in the context it was opened in, so the limit of the
	// handshake must not go on to end it.
	ctx, cancel := context.WithCancelCause(ctx)
	limit := time.AfterFunc(w.limit, func() { cancel(errNoHandshake) })
	h := &held{Transport: line.transport}
	client, err := peer.Connect(ctx, h, &sdk.ClientSessionOptions{ProtocolVersion: w.version})
	if !limit.Stop() && err == nil {
		err = errNoHandshake
	}
	if err != nil {
		err = line.explain(ctx, err)
		cancel(nil)
		if h.conn != nil {
			_ = h.conn.Close()
		}
		line.end()
		return nil, err
	}
	s := &session{ClientSession: client, line: line, busy: busy, cancel: cancel, gone: make(chan struct{}), silent: make(chan struct{})}
	s.wg.Go(func() {
		defer close(s.gone)
		_ = client.Wait()
	})
	if modern := client.InitializeResult().ProtocolVersion >= "2026-07-28"; !modern { // which has no ping
		s.wg.Go(func() { s.watch(ctx) })
	}
	return s, nil
}

// explain finds the reason behind the failure of a handshake.
func (l *line) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	select {
	case lost := <-l.lost:
		return fmt.Errorf("%w: %w", errUnopened, lost)
	default:
	}
	if _, reported := errors.AsType[*jsonrpc.Error](err); reported {
		return err
	}
	if cause := l.cause(); cause != nil {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// close ends the session and waits for all that belongs to it. Calls of it that
// are running must have been cancelled, or it waits for them.
func (s *session) close() {
	s.cancel(mcp.ErrClosed)
	_ = s.Close()
	s.line.end()
	s.wg.Wait()
}

// watch asks for a sign of life until ctx ends. Any answer is one, also that
// ping is unknown. A server that works on a call need not give one: many do one thing
// at a time, and the call has its own limit.
func (s *session) watch(ctx context.Context) {
	ticker := time.NewTicker(pingPause)
	defer ticker.Stop()
	for failures := 0; failures < pingFailures; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		limited, cancel := context.WithTimeout(ctx, pingLimit)
		err := s.Ping(limited, nil)
		cancel()
		failures++
		if s.busy() {
			failures = 0
		}
		if _, answered := errors.AsType[*jsonrpc.Error](err); err == nil || answered && !unsent(err) {
			failures = 0
		}
	}
	close(s.silent)
}

// The codes that the SDK gives errors of its own (docs/mcp.md, Dialects 9).
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005
)

// unsent reports whether err is the SDK's own, not an answer of the server.
func unsent(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && (e.Code == codeClientClosing || e.Code == codeServerClosing || e.Code == codeRejected)
}

// maxQuestion is how much of a server's question is logged, in bytes.
const maxQuestion = 200

// errQuestion is the failure of a call that would go on only after an answer
// that nobody here gives.
var errQuestion = &mcp.ToolError{Message: "the tool wants an answer from a person before it goes on, and nobody here is asked"}

// form is the part of a requested schema that decides how it is filled in.
type form struct {
	Properties map[string]struct {
		Default any `json:"default"`
	} `json:"properties"`
	Required []string `json:"required"`
}

// filledIn answers a server's form: each field gets its default. It is declined
// if a required field has none, and if there are no fields at all: then the
// question is whether a person agrees, which nobody has.
func filledIn(schema any) *sdk.ElicitResult {
	decline := &sdk.ElicitResult{Action: "decline"}
	raw, err := json.Marshal(schema)
	var f form
	if err != nil || json.Unmarshal(raw, &f) != nil || len(f.Properties) == 0 {
		return decline
	}
	content := map[string]any{}
	for name, field := range f.Properties {
		if field.Default != nil {
			content[name] = field.Default
		}
	}
	for _, name := range f.Required {
		if _, ok := content[name]; !ok {
			return decline
		}
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}
}

// answer fills in a form, and logs the question and what became of it.
func (s *Server) answer(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	if r.Params.Mode == "url" { // which is not among our capabilities
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "nobody here opens an address"}
	}
	result := filledIn(r.Params.RequestedSchema)
	ok, held := s.messages.pass()
	if ok {
		s.log.Info("mcp server asks a person", "question", s.mask.text(text.Cut(r.Params.Message, maxQuestion)), "answer", result.Action, "left_out", held)
	}
	return result, nil
}
