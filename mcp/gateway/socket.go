package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/rawjson"
)

// socketIdle bounds the silence of a socket; pings are answered meanwhile.
const socketIdle = 75 * time.Second

// socket is one WebSocket: JSON-RPC and messages without it, mixed as the client
// likes. One goroutine reads; send may be called at the same time.
type socket struct {
	front *front
	conn  *websocket.Conn
	view  *catalog.View
	talk  *talk

	mu    sync.Mutex // writing
	ended bool
	wg    sync.WaitGroup
}

// serveSocket serves /mcp/ws: one socket until it ends.
func (f *front) serveSocket(w http.ResponseWriter, r *http.Request, c catalog.Caller) {
	c.Via = "ws"
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		problem(w, r, http.StatusUpgradeRequired, codeBadRequest, c.Say("gateway/websocket-only"))
		return
	}
	stream := r.URL.Query().Get("stream")
	v, ok := f.views.Of(c, stream)
	if !ok {
		noStream(w, r, c, stream)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // the server does not end it
	defer cancel()
	s := &socket{front: f, view: v}
	done, ok := f.sessions.open(c, s.end)
	if !ok {
		noRoom(w, r, c, rpcMessage{})
		return
	}
	defer done()
	up := websocket.Upgrader{
		Subprotocols: []string{"mcp"}, HandshakeTimeout: bodyTime,
		CheckOrigin: func(*http.Request) bool { return true }, // Access has looked
	}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	if !s.begin(conn) {
		return
	}
	s.talk = newTalk(f, v, s, r.Header)
	s.talk.metered = true
	s.run(catalog.WithCaller(ctx, c.Until(ctx)), cancel)
}

// begin makes conn the socket's connection. It returns false, and hangs up, if the
// socket was ended before.
func (s *socket) begin(conn *websocket.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = conn
	if s.ended {
		s.hangUp()
	}
	return !s.ended
}

// run reads until the socket ends, then waits for all that it began.
func (s *socket) run(ctx context.Context, cancel context.CancelFunc) {
	s.wg.Go(func() { s.pings(ctx) })
	s.conn.SetReadLimit(maxBody)
	alive := func(string) error { return s.conn.SetReadDeadline(time.Now().Add(socketIdle)) }
	s.conn.SetPongHandler(alive)
	for {
		_ = alive("")
		kind, data, err := s.conn.ReadMessage()
		if err != nil {
			break
		}
		if kind != websocket.TextMessage {
			why := catalog.CallerFrom(ctx).Say("gateway/frame-kind")
			err = s.send(rpcFailure(rpcMessage{}, problemOf(jsonrpc.CodeInvalidRequest, why)))
		} else {
			err = s.receive(ctx, bytes.TrimSpace(data))
		}
		if err != nil {
			break
		}
	}
	cancel()
	s.end()
	s.talk.close()
	s.wg.Wait()
}

// receive takes one frame. An error ends the socket.
func (s *socket) receive(ctx context.Context, data []byte) error {
	m, old := readOld(data)
	if !old {
		return s.talk.receive(ctx, data)
	}
	c := catalog.CallerFrom(ctx)
	if !s.talk.within(ctx) {
		return s.fail(m.RequestID, codeRate, c.Say("gateway/too-many-requests"))
	}
	kind, _ := rawjson.String(m.Type)
	switch kind {
	case "list_tools":
		return s.answer(oldAnswer{Type: "tools_list", RequestID: m.RequestID, Tools: restTools(s.view.Tools())})
	case "call_tool":
		if !s.talk.calls.take(ctx) {
			return s.fail(m.RequestID, codeRate, c.Say("gateway/requests-at-once"))
		}
		s.wg.Go(func() {
			defer s.talk.calls.free()
			name, _ := rawjson.String(m.Name)
			s.call(ctx, m.RequestID, name, m.Arguments)
		})
		return nil
	}
	if m.Type == nil {
		return s.fail(m.RequestID, codeBadRequest, c.Say("gateway/type-missing"))
	}
	return s.fail(m.RequestID, codeBadRequest, c.Say("gateway/type-unknown", catalog.Clip(cmp.Or(kind, string(m.Type)))))
}

func (s *socket) call(ctx context.Context, id json.RawMessage, name string, arguments json.RawMessage) {
	c := catalog.CallerFrom(ctx)
	e, ok := s.view.Tool(name)
	if !ok {
		s.front.runner.RefuseUnknown(c, name)
		_ = s.fail(id, codeNoTool, c.Say("gateway/tool-unknown", catalog.Clip(name)))
		return
	}
	result, err := s.front.runner.Run(ctx, e, arguments, nil)
	if err != nil {
		_, code, message := refusal(c, err)
		_ = s.fail(id, code, message)
		return
	}
	// If the socket has gone, its reader sees it.
	_ = s.answer(oldAnswer{Type: "tool_result", RequestID: id, Result: &oldResult{result.Content, result.IsError}})
}

func (s *socket) fail(id json.RawMessage, code, message string) error {
	return s.answer(oldAnswer{Type: "error", RequestID: id, Error: &restProblem{code, message}})
}

func (s *socket) answer(a oldAnswer) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return s.send(data)
}

func (s *socket) send(data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return errWireClosed
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTime))
	err := s.conn.WriteMessage(websocket.TextMessage, data)
	if err != nil {
		_ = s.conn.Close() // nothing can be written any more, which its reader sees
	}
	return err
}

// pings keep the socket alive, and find out when the other side has gone.
func (s *socket) pings(ctx context.Context) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTime)) != nil {
				return
			}
		}
	}
}

// end hangs up, which ends the reader.
func (s *socket) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.conn != nil {
		s.hangUp()
	}
}

// hangUp says goodbye and closes the connection. The caller holds mu.
func (s *socket) hangUp() {
	_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	_ = s.conn.Close()
}

// oldMessage is a message without JSON-RPC, whose type says what is wanted. A
// message with one of the last five members is JSON-RPC, though it may be broken.
type oldMessage struct {
	Type      json.RawMessage `json:"type"`
	RequestID json.RawMessage `json:"requestId"`
	Name      json.RawMessage `json:"name"`
	Arguments json.RawMessage `json:"arguments"`

	JSONRPC json.RawMessage `json:"jsonrpc"`
	Method  json.RawMessage `json:"method"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// readOld reads a message that is meant to be an older one: an object without
// jsonrpc that has a type or a requestId, or nothing of JSON-RPC.
func readOld(data []byte) (m oldMessage, old bool) {
	if deep(data) || len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &m) != nil || m.JSONRPC != nil {
		return m, false
	}
	return m, m.Type != nil || m.RequestID != nil || m.Method == nil && m.ID == nil && m.Result == nil && m.Error == nil
}

type oldAnswer struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Tools     []restTool      `json:"tools,omitzero"`
	Result    *oldResult      `json:"result,omitempty"`
	Error     *restProblem    `json:"error,omitempty"`
}

type oldResult struct {
	Content []sdk.Content `json:"content"`
	IsError bool          `json:"isError"`
}
