package device

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// FakeDevice is a scripted device in memory, as strict as firmware: what
// firmware would drop without a word fails the test.
type FakeDevice struct {
	t      *testing.T
	client *Client

	// Pages are the tools of each page, as JSON arrays. The cursor of a page is p and its number.
	Pages []string
	// Answer, if set, sees each request first. It returns whole payloads to send
	// back and true, or false for the usual answer.
	Answer func(FakeRequest) ([]string, bool)
	// Refuse, if set, makes Send fail.
	Refuse error

	log bytes.Buffer // of the client, where Options give none

	mu       sync.Mutex
	requests []FakeRequest
	ids      map[int64]bool
}

// FakeRequest is what the device got.
type FakeRequest struct {
	ID     int64 // 0 for a notification
	Method string
	Params json.RawMessage
	At     time.Time
}

// NewFakeDevice makes a device with three tools: echo answers with its
// arguments, slow never does, hidden is for people only.
func NewFakeDevice(t *testing.T) *FakeDevice {
	t.Helper()
	return &FakeDevice{t: t, ids: make(map[int64]bool), Pages: []string{
		`[{"name":"self.echo","description":"Says it again","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}},` +
			`{"name":"self.slow","inputSchema":{"type":"object","properties":{}}}]`,
		`[{"name":"self.hidden","inputSchema":{"type":"object"},"annotations":{"audience":["user"]}}]`,
	}}
}

// Client makes the client that talks to the device. o may be zero.
func (d *FakeDevice) Client(o Options) *Client {
	o.Send = d.send
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(&d.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	d.client = New(o)
	return d.client
}

// Logged counts the lines of the client's log with this message.
func (d *FakeDevice) Logged(message string) int {
	return strings.Count(d.log.String(), fmt.Sprintf("msg=%q", message))
}

// Say delivers a payload of the device's own.
func (d *FakeDevice) Say(payload string) { d.client.Deliver(json.RawMessage(payload)) }

// Requests are those that came so far with this method; "" for all.
func (d *FakeDevice) Requests(method string) []FakeRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []FakeRequest
	for _, r := range d.requests {
		if method == "" || r.Method == method {
			out = append(out, r)
		}
	}
	return out
}

func (d *FakeDevice) send(payload json.RawMessage) error {
	if d.Refuse != nil {
		return d.Refuse
	}
	req, ok := d.read(payload)
	if !ok {
		return nil
	}
	if d.Answer != nil {
		if replies, ok := d.Answer(req); ok {
			for _, reply := range replies {
				d.Say(reply)
			}
			return nil
		}
	}
	if req.ID != 0 {
		d.answer(req)
	}
	return nil
}

// read checks a payload as firmware does (docs/protocol.md 5.1).
func (d *FakeDevice) read(payload json.RawMessage) (FakeRequest, bool) {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(payload, &m); err != nil || m.Version != "2.0" {
		d.t.Errorf("device got %s", payload)
		return FakeRequest{}, false
	}
	if m.Method == "" { // a reply to the device's own request
		d.keep(FakeRequest{Method: "reply", Params: payload, At: time.Now()})
		return FakeRequest{}, false
	}
	req := FakeRequest{Method: m.Method, Params: m.Params, At: time.Now()}
	if len(m.Params) > 0 && m.Params[0] != '{' {
		d.t.Errorf("device got params that are no object: %s", payload)
	}
	if !strings.HasPrefix(m.Method, "notifications") {
		if err := json.Unmarshal(m.ID, &req.ID); err != nil || req.ID < 1 || req.ID > maxID {
			d.t.Errorf("device got a request with a bad id: %s", payload)
		}
	}
	d.keep(req)
	return req, true
}

func (d *FakeDevice) keep(req FakeRequest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if req.ID != 0 && d.ids[req.ID] {
		d.t.Errorf("device got id %d twice", req.ID)
	}
	d.ids[req.ID] = true
	d.requests = append(d.requests, req)
}

func (d *FakeDevice) answer(req FakeRequest) {
	switch req.Method {
	case methodInitialize:
		d.reply(req, `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"fake-board","version":"2.4.2"}}`)
	case methodListTools:
		var params struct{ Cursor string }
		if err := json.Unmarshal(req.Params, &params); err != nil {
			d.t.Errorf("tools/list params: %v", err)
		}
		page := 0
		if params.Cursor != "" {
			if _, err := fmt.Sscanf(params.Cursor, "p%d", &page); err != nil || page >= len(d.Pages) {
				d.fail(req, "Failed to add tool  because of payload size limit")
				return
			}
		}
		next := ""
		if page+1 < len(d.Pages) {
			next = fmt.Sprintf(`,"nextCursor":"p%d"`, page+1)
		}
		d.reply(req, `{"tools":`+d.Pages[page]+next+`}`)
	case "tools/call":
		d.call(req)
	default:
		d.fail(req, "Method not implemented: "+req.Method)
	}
}

func (d *FakeDevice) call(req FakeRequest) {
	var params struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(req.Params, &params); err != nil || len(params.Arguments) == 0 || params.Arguments[0] != '{' {
		d.fail(req, "Invalid arguments")
		return
	}
	switch params.Name {
	case "self.echo":
		text, _ := json.Marshal(string(params.Arguments))
		d.reply(req, `{"content":[{"type":"text","text":`+string(text)+`}],"isError":false}`)
	case "self.slow":
	default:
		d.fail(req, "Unknown tool: "+params.Name)
	}
}

func (d *FakeDevice) reply(req FakeRequest, result string) { d.Say(ReplyTo(req, result)) }

// fail answers as firmware does: an error without a code.
func (d *FakeDevice) fail(req FakeRequest, message string) {
	d.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"message":%q}}`, req.ID, message))
}

// ReplyTo is a proper response with this result.
func ReplyTo(req FakeRequest, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, req.ID, result)
}
