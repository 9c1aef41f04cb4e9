package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// The methods that need something special on their way.
const (
	methodInitialize  = "initialize"
	methodListTools   = "tools/list"
	methodCallTool    = "tools/call"
	methodPing        = "ping"
	methodCancelled   = "notifications/cancelled"
	methodListChanged = "notifications/tools/list_changed"
)

// link is the SDK's transport and connection over the envelope, for one SDK session. It gives
// requests the ids that firmware can read, adds what the SDK has no words for, and repairs what
// comes back, so that Read ends with io.EOF only and no message of a device can end the session.
//
// Read is called by one goroutine of the SDK, Write by any; Close unblocks Read.
type link struct {
	client *Client
	log    *slog.Logger
	closed chan struct{} // closed by Close
	once   sync.Once

	mu      sync.Mutex
	pending map[int64]request // by the id on the wire
	late    []int64           // ids in pending that were given up, oldest first
	page    page              // of the last tools/list that was answered
}

// request is one that the device has not answered.
type request struct {
	id      jsonrpc.ID // as the SDK knows it
	method  string
	tool    string // of tools/call
	sent    time.Time
	told    time.Time // when the device was told that the reply is not needed; zero: it was not
	givenUp bool      // the SDK does not wait for it either
}

// Connect makes link an sdk.Transport: it is its own connection.
func (l *link) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID is always empty: the envelope has its own.
func (l *link) SessionID() string { return "" }

// Close ends the link. It may be called many times.
func (l *link) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Read waits for the next response that the SDK waits for.
func (l *link) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		select {
		case <-l.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, io.EOF
		case payload := <-l.client.inbox.payloads:
			l.client.inbox.bytes.Add(-int64(len(*payload)))
			if response := l.receive(*payload); response != nil {
				return response, nil
			}
		}
	}
}

// receive handles one payload and returns the response in it, if the SDK waits for it.
func (l *link) receive(payload []byte) *jsonrpc.Response {
	m, err := inbound{}, rawjson.CheckSize(payload)
	if err == nil {
		m, err = parseMessage(payload)
	}
	if err != nil {
		l.log.Debug("device message dropped", "err", err, "size", len(payload))
		return nil
	}
	if m.method != "" {
		l.request(m)
		return nil
	}
	req, ok := l.answered(m.id)
	if !ok {
		l.log.Debug("device reply to no request of ours", "id", m.id)
		return nil
	}
	if !req.told.IsZero() {
		l.log.Info("device reply came too late", "id", m.id, "method", req.method, "tool", req.tool,
			"took", time.Since(req.sent), "late", time.Since(req.told))
	}
	if req.givenUp {
		return nil
	}
	return l.response(m, req)
}

// response repairs what the device said for the method that it answers.
func (l *link) response(m inbound, req request) *jsonrpc.Response {
	out := &jsonrpc.Response{ID: req.id}
	var fixes []string
	switch {
	case m.err != nil:
		l.log.Info("device answered with an error", "id", m.id, "method", req.method, "tool", req.tool,
			"code", m.err.Code, "err", text.Shorten(m.err.Message, maxLogged))
		out.Error = m.err
	case req.method == methodInitialize:
		var said string
		out.Result, said, fixes = repairInitialize(m.result)
		l.log.Debug("device mcp version", "protocol", said)
	case req.method == methodListTools:
		p, notes, err := repairList(m.result)
		if fixes = notes; err != nil {
			out.Error = &jsonrpc.Error{Message: err.Error()}
			break
		}
		l.mu.Lock()
		l.page = p
		l.mu.Unlock()
		out.Result = json.RawMessage(`{"tools":[]}`)
	default:
		out.Result, fixes = repairCall(m.result)
	}
	if fixes = append(m.fixes, fixes...); len(fixes) > 0 {
		l.log.Debug("device message repaired", "id", m.id, "method", req.method, "fixes", fixes)
	}
	return out
}

// answered takes the request with this id out of the table.
func (l *link) answered(id int64) (request, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	req, ok := l.pending[id]
	if ok {
		delete(l.pending, id)
	}
	if len(l.pending) == 0 {
		l.pending = make(map[int64]request) // without the room that the first one took
	}
	if req.givenUp {
		l.late = slices.DeleteFunc(l.late, func(other int64) bool { return other == id })
	}
	return req, ok
}

// takePage returns the page that the last tools/list brought, once.
func (l *link) takePage() page {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.page
	l.page = page{}
	return p
}

// request handles what the device asks or tells of its own accord. The SDK sees
// none of it, so that a device cannot fill the SDK's unbounded queue.
func (l *link) request(m inbound) {
	if m.replyTo == nil {
		if m.method == methodListChanged {
			l.client.tools.want(l.client.tools.relist)
			return
		}
		l.log.Debug("device notification ignored", "method", m.method)
		return
	}
	reply := reply{Version: "2.0", ID: m.replyTo}
	if m.method == methodPing {
		reply.Result = &struct{}{}
	} else {
		l.log.Debug("device request refused", "method", m.method)
		reply.Error = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "Method not found"}
	}
	data, err := json.Marshal(reply)
	if err == nil {
		err = l.client.options.Send(data)
	}
	if err != nil {
		l.log.Debug("reply to a device not sent", "method", m.method, "err", err)
	}
}

// reply answers a device's own request.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  *struct{}       `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// errTold says that a notification is not needed: the device knows.
var errTold = errors.New("the device was told before")

// Write puts one message of the SDK on the wire.
func (l *link) Write(ctx context.Context, msg jsonrpc.Message) error {
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		return rejected(errors.New("only requests are sent to a device"))
	}
	select {
	case <-l.closed:
		return rejected(mcp.ErrClosed)
	default:
	}
	call, _ := ctx.Value(sentKey{}).(*sentCall)
	out, wireID, err := l.outgoing(req, call)
	if errors.Is(err, errTold) {
		return nil
	}
	if err != nil {
		return rejected(err)
	}
	data, err := jsonrpc.EncodeMessage(out)
	if err == nil && len(data) > mcp.MaxSend {
		err = fmt.Errorf("%s of %d bytes is over the %d that a device takes", req.Method, len(data), mcp.MaxSend)
	}
	if err == nil {
		err = l.client.options.Send(data)
	}
	if err != nil {
		l.answered(wireID)
		return rejected(fmt.Errorf("send %s to device: %w", req.Method, err))
	}
	return nil
}

// rejected marks an error as one message's trouble: for the SDK every other
// error of Write ends the session. It tells them apart by this code.
func rejected(err error) error {
	return fmt.Errorf("%w%w", err, &jsonrpc.Error{Code: codeRejected})
}

// outgoing is req as the device must get it, and its id on the wire (0 for a
// notification). A call is in the table of pending requests from here on.
func (l *link) outgoing(req *jsonrpc.Request, call *sentCall) (*jsonrpc.Request, int64, error) {
	params, err := l.params(req)
	if err != nil {
		return nil, 0, err
	}
	out := &jsonrpc.Request{Method: req.Method, Params: params}
	if !req.ID.IsValid() {
		return out, 0, nil
	}
	wireID := l.client.nextID()
	if out.ID, err = jsonrpc.MakeID(float64(wireID)); err != nil {
		return nil, 0, fmt.Errorf("make request id: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	pending := request{id: req.ID, method: req.Method, sent: time.Now()}
	if call != nil {
		if call.abandoned {
			return nil, 0, context.Canceled
		}
		call.id, pending.tool = wireID, call.tool
	}
	l.pending[wireID] = pending
	return out, wireID, nil
}

// params are the request's parameters with what the SDK has no members for;
// nil when there are none, since a device drops a message with null there.
func (l *link) params(req *jsonrpc.Request) (json.RawMessage, error) {
	if !rawjson.Present(req.Params) {
		return nil, nil
	}
	switch req.Method {
	case methodInitialize, methodListTools:
	case methodCancelled:
		return l.cancelled(req.Params)
	default:
		return req.Params, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(req.Params, &fields); err != nil {
		return nil, fmt.Errorf("rewrite %s: %w", req.Method, err)
	}
	if req.Method == methodListTools {
		fields["withUserTools"] = true
		return json.Marshal(fields)
	}
	capabilities := map[string]any{}
	if v := l.client.options.Vision; v != nil && v.URL != "" {
		capabilities["vision"] = v
	}
	fields["capabilities"] = capabilities
	return json.Marshal(fields)
}

// cancelledParams are those of notifications/cancelled.
type cancelledParams struct {
	RequestID int64  `json:"requestId"`
	Reason    string `json:"reason,omitempty"`
}

// cancelled notes that a request was given up and names it as the device knows it.
func (l *link) cancelled(raw json.RawMessage) (json.RawMessage, error) {
	var p cancelledParams
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, fmt.Errorf("rewrite %s: %w", methodCancelled, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for wireID, req := range l.pending {
		if req.id.Raw() != p.RequestID {
			continue
		}
		told := !req.told.IsZero()
		req.givenUp = true
		if !told {
			req.told = time.Now()
		}
		l.pending[wireID] = req
		if l.late = append(l.late, wireID); len(l.late) > maxLate {
			delete(l.pending, l.late[0])
			l.late = l.late[1:]
		}
		if told {
			return nil, errTold
		}
		p.RequestID = wireID
		return json.Marshal(p)
	}
	return nil, errors.New("the request to cancel is not pending")
}

// abandon tells the device that the result of a call is not needed. The SDK waits
// on: the reply, late as it is, says when the device is free again.
func (l *link) abandon(call *sentCall) {
	l.mu.Lock()
	call.abandoned = true
	wireID := call.id
	req, ok := l.pending[wireID]
	ok = ok && req.told.IsZero()
	if ok {
		req.told = time.Now()
		l.pending[wireID] = req
	}
	l.mu.Unlock()
	if !ok {
		return
	}
	params, err := json.Marshal(cancelledParams{RequestID: wireID, Reason: "the user interrupted"})
	var data []byte
	if err == nil {
		data, err = jsonrpc.EncodeMessage(&jsonrpc.Request{Method: methodCancelled, Params: params})
	}
	if err == nil {
		err = l.client.options.Send(data)
	}
	if err != nil {
		l.log.Debug("device not told of a call that was given up", "tool", req.tool, "err", err)
	}
}
