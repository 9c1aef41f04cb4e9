package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// socketIdle is how long a socket may be silent; pings are answered meanwhile.
const socketIdle = 75 * time.Second

// socket is /mcp/ws: JSON-RPC and the older messages of seed 002, mixed as the
// client likes. One reader; send may be called by many.
type socket struct {
	gateway *Gateway
	conn    *websocket.Conn
	view    *view
	talk    *talk

	mu sync.Mutex // writing
	wg sync.WaitGroup
}

// serveSocket serves one socket until it ends.
func (g *Gateway) serveSocket(w http.ResponseWriter, r *http.Request, c caller) {
	c.via = "ws"
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		g.problem(w, r, http.StatusUpgradeRequired, codeBadRequest, say(c.language, "这里是 WebSocket 地址", "this is the address of a WebSocket"))
		return
	}
	stream := r.URL.Query().Get("stream")
	v, ok := g.views.of(c, stream)
	if !ok {
		g.noStream(w, r, c, stream)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context())) // the server does not end it
	defer cancel()
	s := &socket{gateway: g, view: v}
	done, ok := g.sessions.open(c.name(), s.end)
	if !ok {
		w.Header().Set("Retry-After", "10")
		g.problem(w, r, http.StatusServiceUnavailable, codeRate, say(c.language, "会话太多", "too many sessions"))
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
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	s.talk = newTalk(v, s, r.Header)
	s.talk.metered = true
	s.run(withCaller(ctx, c.until(ctx)), cancel)
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
			err = s.send(rpcFailure(rpcMessage{}, jsonrpc.CodeInvalidRequest,
				say(callerFrom(ctx).language, "消息必须是文本帧", "messages must be frames of text")))
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

// stringOf returns the text that raw holds; "" if it holds anything else.
func stringOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// receive takes one frame. An error ends the socket.
func (s *socket) receive(ctx context.Context, data []byte) error {
	m, old := readOld(data)
	if !old {
		return s.talk.receive(ctx, data)
	}
	language := callerFrom(ctx).language
	if !s.talk.within(ctx) {
		return s.fail(m.RequestID, codeRate, say(language, "请求太频繁", "too many requests"))
	}
	switch stringOf(m.Type) {
	case "list_tools":
		return s.sendJSON(oldTools{"tools_list", m.RequestID, restTools(s.view.tools())})
	case "call_tool":
		if !s.talk.calls.take(ctx) {
			return s.fail(m.RequestID, codeRate, say(language, "同时进行的请求太多", "too many requests at the same time"))
		}
		s.wg.Go(func() {
			defer s.talk.calls.free()
			s.call(ctx, m.RequestID, stringOf(m.Name), m.Arguments)
		})
		return nil
	}
	if m.Type == nil {
		return s.fail(m.RequestID, codeBadRequest, say(language, "缺少消息类型 type", `the message has no "type"`))
	}
	return s.fail(m.RequestID, codeBadRequest, say(language, "未知的消息类型: ", "unknown type of message: ")+clip(cmp.Or(stringOf(m.Type), string(m.Type))))
}

// oldTools, oldResult and oldError are the answers to older messages.
type oldTools struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Tools     []restTool      `json:"tools"`
}

type oldResult struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Result    oldContent      `json:"result"`
}

type oldContent struct {
	Content []sdk.Content `json:"content"`
	IsError bool          `json:"isError"`
}

type oldError struct {
	Type      string          `json:"type"`
	RequestID json.RawMessage `json:"requestId,omitempty"`
	Error     restProblem     `json:"error"`
}

// call runs a tool for an older message.
func (s *socket) call(ctx context.Context, id json.RawMessage, name string, arguments json.RawMessage) {
	language := callerFrom(ctx).language
	e, ok := s.view.tool(name)
	if !ok {
		s.gateway.auditUnknown(callerFrom(ctx), name)
		_ = s.fail(id, codeNoTool, say(language, "工具未找到: ", "tool not found: ")+clip(name))
		return
	}
	result, invalid, err := s.gateway.perform(ctx, e, arguments, nil)
	switch {
	case errors.Is(err, errReadOnly):
		err = s.fail(id, codeForbidden, say(language, "这个令牌是只读的", "this token is read-only"))
	case errors.Is(err, errBusy):
		err = s.fail(id, codeRate, say(language, "同时进行的调用太多", "too many calls at the same time"))
	case err != nil:
		err = s.fail(id, codeFailed, reason(err))
	case invalid != "":
		err = s.fail(id, codeArguments, say(language, "参数无效: ", "invalid arguments: ")+invalid)
	default:
		err = s.sendJSON(oldResult{"tool_result", id, oldContent{result.Content, result.IsError}})
	}
	_ = err // the socket has gone, which its reader sees
}

func (s *socket) fail(id json.RawMessage, code, message string) error {
	return s.sendJSON(oldError{"error", id, restProblem{code, message}})
}

func (s *socket) sendJSON(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.send(data)
}

// send writes one frame, in time.
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
	if s.conn != nil {
		_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
		_ = s.conn.Close()
	}
}
