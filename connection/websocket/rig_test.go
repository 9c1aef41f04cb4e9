package websocket

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/connection"
	"xiaozhi/connection/camera"
	"xiaozhi/connection/provision"
	"xiaozhi/connection/request"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

// rig is a server on a listener in memory, with scripted conversations. It is
// made inside a synctest bubble and taken down by stop.
type rig struct {
	t        *testing.T
	registry *connection.Registry
	handler  http.Handler
	load     *fakeLoad
	web      *http.Server
	ln       *pipeListener
	served   chan struct{}
	log      *logBuffer

	mu     sync.Mutex
	talks  []*fakeTalk
	newErr error // of NewConversation
}

// setup is all that the handlers of devices are made of.
type setup struct {
	connection.Options
	Auth       request.Auth
	PublicURL  string
	TrustProxy bool
	Explainer  camera.Explainer
}

// build makes a registry and the handlers of all paths.
func (o setup) build(tb testing.TB) (*connection.Registry, func(next http.Handler) http.Handler) {
	tb.Helper()
	if o.Explainer != nil {
		o.VisionPath = request.VisionPath
	}
	registry := connection.New(o.Options)
	requests, err := request.New(request.Options{
		Auth: o.Auth, PublicURL: o.PublicURL, TrustProxy: o.TrustProxy, Nameless: o.NewLight != nil,
	})
	if err != nil {
		tb.Fatal(err)
	}
	talk := New(Options{Registry: registry, Requests: requests, Log: o.Log})
	ota, err := provision.New(provision.Options{Registry: registry, Requests: requests, Auth: o.Auth, Log: o.Log})
	if err != nil {
		tb.Fatal(err)
	}
	look := camera.New(camera.Options{Registry: registry, Requests: requests, Explainer: o.Explainer, Log: o.Log})
	return registry, func(next http.Handler) http.Handler { return talk.Wrap(ota.Wrap(look.Wrap(next))) }
}

// handlers are those of a server that no device talks to.
func handlers(tb testing.TB) func(http.Handler) http.Handler {
	tb.Helper()
	_, wrap := setup{Options: connection.Options{NewConversation: noTalk}}.build(tb)
	return wrap
}

func noTalk(wire.Session, wire.Outbox, []mcp.Source) (connection.Conversation, error) {
	return &fakeTalk{}, nil
}

// fakeLoad is as busy as a test says.
type fakeLoad struct{ busy atomic.Bool }

func (l *fakeLoad) TooBusy(int) bool   { return l.busy.Load() }
func (l *fakeLoad) Lag() time.Duration { return 50 * time.Millisecond }

// bubble runs f with a rig in a synctest bubble. The bubble ends only when all
// goroutines have, so every test here is one of leaks as well.
func bubble(t *testing.T, change func(*setup), f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, change)
		defer r.stop()
		f(t, r)
	})
}

func newRig(t *testing.T, change func(*setup)) *rig {
	t.Helper()
	r := &rig{t: t, ln: newPipeListener(), served: make(chan struct{}), log: &logBuffer{}, load: &fakeLoad{}}
	opts := setup{Options: connection.Options{
		Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		NewConversation: func(s wire.Session, out wire.Outbox, sources []mcp.Source) (connection.Conversation, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.newErr != nil {
				return nil, r.newErr
			}
			talk := &fakeTalk{session: s, out: out, sources: sources, over: make(chan error, 1)}
			r.talks = append(r.talks, talk)
			return talk, nil
		},
		Load: r.load,
	}}
	if change != nil {
		change(&opts)
	}
	var wrap func(http.Handler) http.Handler
	r.registry, wrap = opts.build(t)
	r.handler = wrap(http.NotFoundHandler())
	r.web = &http.Server{Handler: r.handler}
	go func() {
		defer close(r.served)
		_ = r.web.Serve(r.ln)
	}()
	return r
}

// stop ends everything and fails the test if the server cannot.
func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.registry.Shutdown(ctx); err != nil {
		r.t.Errorf("shutdown: %v", err)
	}
	r.web.Close()
	<-r.served
}

// talk gives the n-th conversation, once everything has come to rest.
func (r *rig) talk(n int) *fakeTalk {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if n >= len(r.talks) {
		r.t.Fatalf("conversation %d: there are only %d; log:\n%s", n, len(r.talks), r.log)
	}
	return r.talks[n]
}

// dial connects a device and reads what it is sent.
func (r *rig) dial(deviceID string) *peer {
	r.t.Helper()
	return r.dialWith(http.Header{"Device-Id": {deviceID}, "Client-Id": {"c-1"}})
}

// dialWith is dial with other headers.
func (r *rig) dialWith(header http.Header) *peer {
	r.t.Helper()
	ws, answer, err := r.upgrade("/xiaozhi/v1/", header)
	if err != nil {
		r.t.Fatalf("dial: %v (%v)", err, answer)
	}
	p := &peer{t: r.t, ws: ws, done: make(chan struct{})}
	ws.SetPongHandler(func(s string) error { p.add(seen{kind: websocket.PongMessage, data: []byte(s)}); return nil })
	ws.SetCloseHandler(func(code int, text string) error {
		p.add(seen{kind: websocket.CloseMessage, data: []byte(text), code: code})
		return nil
	})
	ws.SetPingHandler(func(s string) error {
		p.add(seen{kind: websocket.PingMessage})
		if p.deaf {
			return nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		time.AfterFunc(time.Until(p.awake), func() {
			_ = ws.WriteControl(websocket.PongMessage, []byte(s), time.Now().Add(time.Second))
		})
		return nil
	})
	go p.read()
	return p
}

// greet connects a device and says hello; the server's hello is the first thing seen.
func (r *rig) greet(deviceID string) *peer {
	r.t.Helper()
	p := r.dial(deviceID)
	p.send(`{"type":"hello","version":1,"transport":"websocket"}`)
	synctest.Wait()
	if texts := p.texts(); len(texts) == 0 || !strings.Contains(texts[0], `"type":"hello"`) {
		r.t.Fatalf("no hello came: %q; log:\n%s", texts, r.log)
	}
	return p
}

// upgrade tries to open a WebSocket.
func (r *rig) upgrade(path string, header http.Header) (*websocket.Conn, *http.Response, error) {
	d := websocket.Dialer{NetDialContext: func(context.Context, string, string) (net.Conn, error) { return r.ln.dial() }}
	ws, answer, err := d.Dial("ws://server"+path, header)
	if err == nil {
		r.t.Cleanup(func() { ws.Close() })
	}
	return ws, answer, err
}

// seen is one thing that a device received.
type seen struct {
	kind int
	data []byte
	code int // of a close frame
	at   time.Time
}

// peer is a device.
type peer struct {
	t    *testing.T
	ws   *websocket.Conn
	deaf bool // pings are not answered
	done chan struct{}

	mu    sync.Mutex
	got   []seen
	err   error
	last  time.Time // when the socket ended
	awake time.Time // until then its program hangs, and its system takes what comes
}

// hang lets the device's program hang: no ping is answered until it is over.
func (p *peer) hang(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awake = time.Now().Add(d)
}

func (p *peer) add(s seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.at = time.Now()
	p.got = append(p.got, s)
}

// read reads until the socket ends. Like firmware it answers no Close frame,
// and notes when TCP ends.
func (p *peer) read() {
	defer close(p.done)
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.last = time.Now()
	}()
	for {
		kind, data, err := p.ws.ReadMessage()
		if err != nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			if _, closed := errors.AsType[*websocket.CloseError](err); closed {
				// Wait for the end of TCP itself.
				_, _ = p.ws.NetConn().Read(make([]byte, 1))
			}
			return
		}
		p.add(seen{kind: kind, data: data})
	}
}

func (p *peer) send(text string) {
	p.t.Helper()
	if err := p.ws.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

func (p *peer) sendBinary(data []byte) {
	p.t.Helper()
	if err := p.ws.WriteMessage(websocket.BinaryMessage, data); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// leave closes TCP without a Close frame, as firmware does, once all that was sent is handled.
func (p *peer) leave() { synctest.Wait(); p.ws.NetConn().Close(); <-p.done }

func (p *peer) all() []seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

// of gives what came of one kind.
func (p *peer) of(kind int) []seen {
	return slices.DeleteFunc(p.all(), func(s seen) bool { return s.kind != kind })
}

func (p *peer) texts() []string {
	var texts []string
	for _, s := range p.of(websocket.TextMessage) {
		texts = append(texts, string(s.data))
	}
	return texts
}

// alive fails the test unless the conversation still gets events.
func (p *peer) alive(talk *fakeTalk) {
	p.t.Helper()
	before := len(talk.all())
	p.send(`{"type":"abort","reason":"still there?"}`)
	synctest.Wait()
	events := talk.all()
	if len(events) != before+1 || events[before] != (wire.Abort{Reason: "still there?"}) {
		p.t.Fatalf("connection is dead or deaf: events %v", events[before:])
	}
}

// fakeTalk is a conversation that only writes down what it is told.
type fakeTalk struct {
	session wire.Session
	out     wire.Outbox
	sources []mcp.Source
	over    chan error // what Run returns

	mu      sync.Mutex
	events  []any // wire.Event or wire.Packet
	postErr error
	ran     time.Time
	ended   time.Time
	cause   error
	slow    time.Duration // how long it takes to end
	words   []wire.Message
	atRun   func()
	drained error         // the cause of wire.Drain
	last    time.Duration // how long a reply goes on after it; less than 0: for ever
}

func (f *fakeTalk) Run(ctx context.Context) error {
	f.mu.Lock()
	f.ran = time.Now()
	f.mu.Unlock()
	if f.atRun != nil {
		f.atRun()
	}
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended, f.cause = time.Now(), context.Cause(ctx)
	}()
	select {
	case err := <-f.over:
		return err
	case <-ctx.Done():
		time.Sleep(f.slow) // fake time
		for _, m := range f.words {
			f.out.Send(m)
		}
		return nil
	}
}

// isOver reports whether Run has returned, or is about to.
func (f *fakeTalk) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.ended.IsZero()
}

func (f *fakeTalk) Post(ev wire.Event) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if d, ok := ev.(wire.Drain); ok {
		if f.drained = d.Cause; f.last >= 0 {
			time.AfterFunc(f.last, func() { f.out.HangUp(d.Cause) })
		}
		return f.postErr
	}
	f.events = append(f.events, ev)
	return f.postErr
}

func (f *fakeTalk) Hear(p wire.Packet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p.Data = slices.Clone(p.Data)
	f.events = append(f.events, p)
}

func (f *fakeTalk) all() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events)
}

// fakeTools are tools that write down what is delivered to them.
type fakeTools struct {
	mcp.Source // nil: the connection uses only the methods below
	link       connection.Link
	mu         sync.Mutex
	got        []string
	started    int
	stopped    int
	refreshed  int
}

func (f *fakeTools) Start(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started++
	return f.link.Send(json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`))
}

func (f *fakeTools) Stop() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped++
	return nil
}

func (f *fakeTools) Refresh() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refreshed++
}

func (f *fakeTools) Deliver(payload json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, string(payload))
}
