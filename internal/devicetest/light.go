package devicetest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// LightOptions say what kind of peer of the light dialect (docs/mcp.md, "Dialects") connects. The zero value of every
// field but URL works.
type LightOptions struct {
	URL       string   // ws:// or wss:// address; with NetConn its host may be any name
	NetConn   net.Conn // an open transport to use instead of dialling
	DeviceID  string   // Device-Id; empty: none is sent
	Address   string   // mac_addr of registrations; empty: AA-BB-CC-DD-EE-FF
	Token     string   // without a space, Bearer is put before it
	Enveloped bool     // frames go in the envelope of docs/protocol.md 5.1
}

// LightTool is a tool of such a peer.
type LightTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	MainType    string          `json:"main_type"`
	SubType     string          `json:"sub_type"`
	Parameters  json.RawMessage `json:"parameters"`
	// Call gives the member of the answer, such as `"result":true`; "" for no
	// answer. It runs in a goroutine of its own, and may wait until ctx ends.
	Call func(ctx context.Context, input json.RawMessage) string `json:"-"`
}

// Light is a peer of the light dialect: a robot that registers its tools, never
// says hello, shows what the server says, and has no speaker. It holds the
// server to the frames' written form. All methods may be called at the same time.
type Light struct {
	*Journal // what happened

	opt    LightOptions
	ws     *websocket.Conn
	cancel context.CancelFunc
	work   sync.WaitGroup // reader and tools

	writing sync.Mutex

	mu      sync.Mutex
	session string              // of envelopes
	ids     map[string]struct{} // of calls
	said    LightReply          // so far
	typed   int                 // texts typed and not yet answered by a final
	tools   []LightTool         // registered last
}

// LightReply is one reply as such a peer is told it.
type LightReply struct {
	Thoughts []string
	Chunks   []string
	Final    string
}

// The types of a Light's events beside KindReceived's methods.
const (
	LightConfirmed = "confirmed" // State is the id, Text the message
	LightRefused   = "refused"   // State is the id, Text the message
	LightCalled    = "mcp/tool/execute"
	LightSaid      = "mcp/ai/message" // State is chunk, final or thought, Text the content
)

// DialLight connects. ctx limits the opening only; the Light lives until Close.
func DialLight(ctx context.Context, o LightOptions) (*Light, error) {
	o.Address = cmp.Or(o.Address, "AA-BB-CC-DD-EE-FF")
	header := http.Header{"User-Agent": {""}}
	if o.DeviceID != "" {
		header.Set("Device-Id", o.DeviceID)
	}
	if o.Token != "" {
		header.Set("Authorization", authorization(o.Token))
	}
	ws, _, err := handshake(ctx, o.NetConn, o.URL, header)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o.URL, err)
	}
	// The peer outlives ctx on purpose: ctx is about opening the connection.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Light{opt: o, ws: ws, Journal: newJournal(), cancel: cancel, ids: make(map[string]struct{})}
	l.work.Go(func() { l.read(run) })
	return l, nil
}

// Close drops the connection and waits for all that belongs to it. It may be called again.
func (l *Light) Close() {
	l.ws.Close() // what is to be closed is gone either way
	l.cancel()
	l.work.Wait()
}

// Register declares tools under an id, in the place of those before, and returns the message of the confirmation.
func (l *Light) Register(ctx context.Context, id string, tools ...LightTool) (string, error) {
	list, err := plainJSON(append([]LightTool{}, tools...))
	if err != nil {
		return "", err
	}
	l.mu.Lock()
	l.tools = tools
	l.mu.Unlock()
	frame := `{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":%q,"tools":%s},"id":%q}`
	if err := l.Send(fmt.Sprintf(frame, l.opt.Address, list, id)); err != nil {
		return "", err
	}
	e, err := l.Wait(ctx, func(e Event) bool { return (e.Type == LightConfirmed || e.Type == LightRefused) && e.State == id })
	if err == nil && e.Type == LightRefused {
		err = errors.New("registration refused: " + e.Text)
	}
	return e.Text, err
}

// Send writes one JSON-RPC frame, in the envelope if frames go so.
func (l *Light) Send(frame string) error {
	if l.opt.Enveloped {
		frame = `{"session_id":"","type":"mcp","payload":` + frame + `}`
	}
	return l.write(frame)
}

// Type sends a text as if it was typed.
func (l *Light) Type(text string) error {
	message, _ := plainJSON(control{Type: "listen", State: "detect", Text: text}) // texts always have a JSON form
	l.mu.Lock()
	l.typed++
	l.mu.Unlock()
	return l.write(string(message))
}

func (l *Light) write(text string) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.add(Event{At: time.Now(), Kind: KindSent, Raw: []byte(text), Size: len(text)})
	return l.ws.WriteMessage(websocket.TextMessage, []byte(text))
}

// WaitReply returns the next complete reply, each one once.
func (l *Light) WaitReply(ctx context.Context) (LightReply, error) {
	e, err := l.wait(ctx, &l.replies, func(e Event) bool { return e.Light != nil })
	if err != nil {
		return LightReply{}, err
	}
	return *e.Light, nil
}

// read is the reader goroutine. It ends when the connection does.
func (l *Light) read(ctx context.Context) {
	defer l.end()
	for {
		kind, data, err := l.ws.ReadMessage()
		now := time.Now()
		if err != nil {
			l.add(Event{At: now, Kind: KindClosed, Text: err.Error()})
			l.ws.Close()
			return
		}
		if kind != websocket.TextMessage {
			l.violate(now, RuleLightForeign, "a binary message of %d bytes", len(data))
			continue
		}
		frame, err := l.unwrap(data)
		if err != nil {
			l.violate(now, RuleLightFraming, "%s", err)
			continue
		}
		if frame != nil {
			l.onFrame(ctx, now, frame)
		} else {
			l.violate(now, RuleLightForeign, "%s", shorten(data))
		}
	}
}

// unwrap takes a frame out of its envelope, if it must have one; nil: it is no JSON-RPC at all.
func (l *Light) unwrap(data []byte) ([]byte, error) {
	var kind struct {
		Type *string         `json:"type"`
		RPC  json.RawMessage `json:"jsonrpc"`
	}
	if err := json.Unmarshal(data, &kind); err != nil || (kind.RPC == nil && (kind.Type == nil || *kind.Type != "mcp")) {
		return nil, nil
	}
	if !l.opt.Enveloped {
		if kind.RPC == nil || kind.Type != nil || strings.Contains(string(data), `"session_id"`) {
			return nil, fmt.Errorf("not bare: %s", shorten(data))
		}
		return data, nil
	}
	var e lightEnvelope
	if err := sameBytes(data, &e); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session = cmp.Or(l.session, e.Session); e.Session != l.session || !sessionID.MatchString(e.Session) {
		return nil, fmt.Errorf("session_id %q after %q", e.Session, l.session)
	}
	return e.Payload, nil
}

func (l *Light) onFrame(ctx context.Context, now time.Time, raw []byte) {
	e := Event{At: now, Kind: KindReceived, Size: len(raw), Raw: raw}
	var head struct {
		Method string `json:"method"`
	}
	err := json.Unmarshal(raw, &head)
	switch {
	case err != nil:
		l.violate(now, RuleLightBytes, "%s", err)
		return
	case head.Method == LightCalled:
		var m lightExecute
		if err = sameBytes(raw, &m); err == nil {
			e.Type, e.State, e.Text = head.Method, m.ID, m.Params.Tool
			l.add(e)
			l.execute(ctx, now, m)
			return
		}
	case head.Method == LightSaid:
		var m lightMessage
		if err = sameBytes(raw, &m); err == nil {
			e.Type, e.State, e.Text = head.Method, m.Params.Type, m.Params.Content
			e.Light, err = l.hear(now, m.Params.Type, m.Params.Content)
		}
	case head.Method != "":
		err = fmt.Errorf("a method that the dialect does not have: %s", head.Method)
	default:
		var m lightAnswer
		err = sameBytes(raw, &m)
		if e.State = string(m.ID); len(m.ID) > 0 && m.ID[0] == '"' {
			_ = json.Unmarshal(m.ID, &e.State) // it was read before
		}
		switch {
		case m.Error != nil && m.Result == nil:
			e.Type, e.Text = LightRefused, m.Error.Message
		case m.Result != nil && m.Error == nil:
			e.Type, e.Text = LightConfirmed, m.Result.Message
		case err == nil:
			err = fmt.Errorf("neither a result nor an error: %s", shorten(raw))
		}
	}
	l.add(e)
	if err != nil {
		l.violate(now, RuleLightBytes, "%s", err)
	}
}

// hear notes what the server says, and gives the reply that a final completes.
func (l *Light) hear(now time.Time, kind, content string) (*LightReply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch kind {
	case "chunk":
		l.said.Chunks = append(l.said.Chunks, content)
	case "thought":
		l.said.Thoughts = append(l.said.Thoughts, content)
	case "final":
		reply := l.said
		reply.Final = content
		l.said = LightReply{}
		if l.typed == 0 && len(reply.Chunks) == 0 {
			l.violate(now, RuleLightReply, "a final of no reply: %q", content)
		}
		l.typed = max(0, l.typed-1)
		return &reply, nil
	default:
		return nil, fmt.Errorf("an ai message of type %q", kind)
	}
	return nil, nil
}

func (l *Light) execute(ctx context.Context, now time.Time, m lightExecute) {
	l.mu.Lock()
	_, again := l.ids[m.ID]
	l.ids[m.ID] = struct{}{}
	tools := l.tools
	l.mu.Unlock()
	if again || m.ID == "" {
		l.violate(now, RuleLightID, "%s with id %q", m.Params.Tool, m.ID)
	}
	if len(m.Params.Input) == 0 || m.Params.Input[0] != '{' {
		l.violate(now, RuleLightBytes, "tool_input is no object: %s", shorten(m.Params.Input))
	}
	i := slices.IndexFunc(tools, func(t LightTool) bool { return t.Name == m.Params.Tool })
	if i < 0 {
		l.violate(now, RuleLightBytes, "a call of %q, which is not registered", m.Params.Tool)
		return
	}
	l.work.Go(func() {
		member := tools[i].Call(ctx, m.Params.Input)
		if member == "" || ctx.Err() != nil {
			return
		}
		// A write that fails ends the connection, and the reader tells of that.
		_ = l.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,%s}`, m.ID, member))
	})
}

// The frames of the light dialect with their members in their order. A
// frame of the server must be what one of these encodes to, byte for byte.
type (
	lightAnswer struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  *struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		} `json:"result,omitempty"`
		Error *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error,omitempty"`
	}
	lightExecute struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  struct {
			Tool  string          `json:"tool_name"`
			Input json.RawMessage `json:"tool_input"`
		} `json:"params"`
		ID string `json:"id"`
	}
	lightMessage struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  struct {
			Type    string `json:"type"`
			Content string `json:"content"`
		} `json:"params"`
	}
	lightEnvelope struct {
		Session string          `json:"session_id"`
		Type    string          `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
)

// sameBytes reads raw into v and checks that v is written as raw is.
func sameBytes(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("not a frame of the dialect: %s", shorten(raw))
	}
	want, err := plainJSON(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(raw, want) {
		return fmt.Errorf("%s must be written as %s", shorten(raw), shorten(want))
	}
	return nil
}

// plainJSON writes v as JSON in one line, with no escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
