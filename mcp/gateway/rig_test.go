package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// rig is a gateway behind a real listener.
type rig struct {
	*Gateway
	t      *testing.T
	server *httptest.Server
	home   *home
	log    *safeLog
}

// safeLog is a log that may be read while it is written.
type safeLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// home is where fake devices come and go.
type home struct {
	t       testing.TB
	mu      sync.Mutex
	devices []offer.Device
	boxes   map[string]*router.Router
	acted   []mcp.ActionResponseCall
	said    []offer.Line
}

func newHome(tb testing.TB) *home {
	tb.Helper()
	return &home{t: tb, boxes: map[string]*router.Router{}}
}

// fakeSource is a source with tools and what they do.
type fakeSource struct {
	tools []mcp.Tool
	call  func(ctx context.Context, name string, arguments map[string]any) (any, error)
}

func (s *fakeSource) Start(context.Context) error   { return nil }
func (s *fakeSource) Stop() error                   { return nil }
func (s *fakeSource) IsReady() bool                 { return true }
func (s *fakeSource) ResetConnection() error        { return nil }
func (s *fakeSource) GetAvailableTools() []mcp.Tool { return append([]mcp.Tool(nil), s.tools...) }
func (s *fakeSource) HasTool(name string) bool {
	for _, t := range s.tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

func (s *fakeSource) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	return s.call(ctx, name, arguments)
}

// speakerTools are the tools of an ordinary speaker.
func speakerTools() []mcp.Tool {
	return []mcp.Tool{
		{Name: "self.get_device_status", Description: "status", Schema: json.RawMessage(`{"type":"object","properties":{}}`), Source: "device", Origin: mcp.Remote},
		{
			Name: "self.audio_speaker.set_volume", Description: "volume", Source: "device", Origin: mcp.Remote,
			Schema: json.RawMessage(`{"type":"object","properties":{"volume":{"type":"integer","minimum":0,"maximum":100}},"required":["volume"]}`),
		},
		{Name: "self.lamp.唱歌", Description: "sings", Schema: json.RawMessage(`{"type":"object"}`), Source: "device", Origin: mcp.Remote},
	}
}

// connect has a device come, with the tools of an ordinary speaker and the
// server's own.
func (h *home) connect(id, name string, own mcp.Source) *fakeSource {
	s := &fakeSource{tools: speakerTools(), call: func(_ context.Context, tool string, arguments map[string]any) (any, error) {
		if tool == "self.get_device_status" {
			return `{"audio_speaker":{"volume":70}}`, nil
		}
		return map[string]any{"device": id, "tool": tool, "arguments": arguments}, nil
	}}
	sources := []mcp.Source{s}
	if own != nil {
		sources = append(sources, own)
	}
	box := router.New(router.Options{}, sources...)
	h.t.Cleanup(box.Close)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.devices = append(h.devices, offer.Device{ID: id, Name: name, SessionID: "s-" + id, Language: "zh", Since: time.Unix(0, 0).UTC()})
	h.boxes[id] = box
	return s
}

// leave has a device leave.
func (h *home) leave(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.boxes, id)
	for i, d := range h.devices {
		if d.ID == id {
			h.devices = append(h.devices[:i:i], h.devices[i+1:]...)
			return
		}
	}
}

func (h *home) List() []offer.Device {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]offer.Device(nil), h.devices...)
}

func (h *home) box(id string) *router.Router {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.boxes[id]
}

func (h *home) Offers(id string) ([]router.Offer, bool) {
	box := h.box(id)
	if box == nil {
		return nil, false
	}
	return box.Offers(), true
}

func (h *home) Survey(id string) ([]router.Listed, bool) {
	box := h.box(id)
	if box == nil {
		return nil, false
	}
	return box.Survey(), true
}

// Call has the calls of handlers noted, for there is no conversation.
func (h *home) Call(ctx context.Context, id string, call mcp.Call) (mcp.ActionResponse, string) {
	return callBox(ctx, h.box(id), id, call, func(c mcp.ActionResponseCall) mcp.ActionResponse {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.acted = append(h.acted, c)
		return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: c.FuncName + " on " + id}
	})
}

// callBox runs a call as the conversation of a device would.
func callBox(ctx context.Context, box *router.Router, id string, call mcp.Call, act func(mcp.ActionResponseCall) mcp.ActionResponse) (mcp.ActionResponse, string) {
	call.By = mcp.ByOutside
	p, bad := box.Prepare(call)
	if bad != nil {
		return *bad, p.Invalid
	}
	info := mcp.InfoFrom(ctx)
	info.DeviceID, info.Language = id, call.Language
	r := box.Run(mcp.WithInfo(ctx, info), p)
	if named, ok := r.Result.(mcp.ActionResponseCall); ok && r.Action == mcp.ActionTypeCallHandler {
		return act(named), ""
	}
	return r, ""
}

func (h *home) Calls(string) []router.Record { return nil }

// ownerToken is the admin token of gateways in tests.
const ownerToken = "the-owner-of-the-gateway"

// asOwner has requests that show no token show the owner's, as a client does that
// was told of it.
func asOwner(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" && !r.URL.Query().Has("token") {
			r.Header.Set("Authorization", "Bearer "+ownerToken)
		}
		h.ServeHTTP(w, r)
	})
}

// asJSON has bodies of which nothing is said be JSON.
func asJSON(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/json")
		}
		h.ServeHTTP(w, r)
	})
}

// newOwned makes a gateway whose owner has a token.
func newOwned(o Options) *Gateway {
	g := New(o)
	g.SetOwner(ownerToken)
	return g
}

const (
	kitchenID     = "24:6f:28:aa:10:02"
	kitchenStream = "device-246f28aa1002"
)

// newRig starts a gateway with the local tools, the project's prompts and one
// device, the kitchen. change may alter its options.
func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	own := local.New(local.Options{Roles: []string{"teacher"}})
	if err := own.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	h.connect(kitchenID, "kitchen", own)
	log := &safeLog{}
	o := Options{
		Version: "1.2.3", Log: slog.New(slog.NewTextHandler(log, nil)), Zone: func() *time.Location { return time.FixedZone("CST", 8*3600) },
		Offer: offer.Options{
			Devices: h, Local: own, Prompts: set, Assistant: func() string { return "小智" },
			Config: func() []byte { return []byte(`{"llm":["auto"],"auth":{"token":"***"}}`) }, LogTail: func() string { return "a line\n" },
			States: func(id string) (map[string]map[string]any, bool) {
				return map[string]map[string]any{"Lamp": {"power": true}}, id == kitchenID
			},
			Transcript: func(id string) ([]offer.Line, bool) {
				h.mu.Lock()
				defer h.mu.Unlock()
				return append([]offer.Line(nil), h.said...), id == kitchenID
			},
		},
	}
	if change != nil {
		change(&o)
	}
	g := New(o)
	g.SetOwner(ownerToken)
	handler := asJSON(g)
	if len(o.Access.Tokens) == 0 {
		handler = asOwner(handler)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	g.Start(ctx)
	r := &rig{Gateway: g, t: t, server: httptest.NewServer(handler), home: h, log: log}
	t.Cleanup(func() {
		cancel()
		g.Close()
		r.server.CloseClientConnections()
		r.server.Close()
	})
	return r
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request as it is; header lines are "Name: value".
func (r *rig) do(method, path, body string, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, strings.TrimSpace(string(text))}
}

// raw sends bytes over a new connection and reads one answer.
func (r *rig) raw(text string) answer {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.server.Listener.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, strings.TrimSpace(string(body))}
}

// rpc posts a JSON-RPC message without a handshake.
func (r *rig) rpc(path, body string, header ...string) answer {
	r.t.Helper()
	return r.do(http.MethodPost, path, body, header...)
}

// textOf is a resource of plain text.
func textOf(uri, text string) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: text}}}
}

// uriDevices is the list of the devices as a resource.
const uriDevices = "xiaozhi://devices"

// field is a value of a JSON text by its path: numbers are places in lists.
func field(t *testing.T, text string, path ...any) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	for _, step := range path {
		switch s := step.(type) {
		case string:
			object, ok := value.(map[string]any)
			if !ok {
				t.Fatalf("no %v in %.600s", path, text)
			}
			value = object[s]
		case int:
			list, ok := value.([]any)
			if !ok || s >= len(list) {
				t.Fatalf("no %v in %.600s", path, text)
			}
			value = list[s]
		}
	}
	return value
}

// names are the names of the tools in a list.
func names(t *testing.T, list any) []string {
	t.Helper()
	tools, ok := list.([]any)
	if !ok {
		t.Fatalf("%v is no list", list)
	}
	var out []string
	for _, tool := range tools {
		out = append(out, tool.(map[string]any)["name"].(string))
	}
	return out
}

// TestMain fails when goroutines outlive the tests.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		deadline := time.Now().Add(30 * time.Second)
		for runtime.NumGoroutine() > 4 && time.Now().Before(deadline) {
			http.DefaultTransport.(*http.Transport).CloseIdleConnections()
			time.Sleep(10 * time.Millisecond)
		}
		if n := runtime.NumGoroutine(); n > 4 {
			buf := make([]byte, 1<<20)
			println(n, "goroutines are left:\n"+string(buf[:runtime.Stack(buf, true)]))
			code = 1
		}
	}
	os.Exit(code)
}

func (h *home) Named(string) bool { return false }
