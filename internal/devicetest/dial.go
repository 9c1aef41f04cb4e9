package devicetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// Time limits of the device (section 8).
const (
	upgradeLimit = 10 * time.Second
	helloLimit   = 10 * time.Second
	writeLimit   = 30 * time.Second
	readLimit    = 10 << 20 // bytes of one message; far above what is allowed, so that it can be judged
)

// Dial connects, says hello and waits for the server's hello. ctx limits the opening only; the Device lives until
// Close. A server that a device could not work with gives an error that is a *ViolationError.
func Dial(ctx context.Context, o Options) (*Device, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	ws, answer, err := upgrade(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", o.URL, err)
	}
	d := newDevice(o, ws)
	for _, h := range []string{"Sec-Websocket-Extensions", "Sec-Websocket-Protocol"} {
		if v := answer.Get(h); v != "" {
			d.violate(time.Now(), RuleUpgrade, "%s: %s was not asked for", h, v)
		}
	}
	// The device outlives ctx on purpose: ctx is about opening the connection.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d.cancel = cancel
	d.work.Go(d.receiver.run)
	if err := d.hello(ctx, o); err != nil {
		d.Close()
		return nil, err
	}
	if err := d.open(o); err != nil {
		d.Close()
		return nil, fmt.Errorf("open the conversation: %w", err)
	}
	d.work.Go(func() { d.main.run(run) })
	return d, nil
}

// upgrade makes the WebSocket as the firmware does (2.1). See handshake.
func upgrade(ctx context.Context, o Options) (*websocket.Conn, http.Header, error) {
	u, _ := url.Parse(o.URL) // the check of the options has read it
	token := o.Token
	if o.Profile == PyXiaozhi {
		token = cmp.Or(token, "test-token")
	}
	ids := http.Header{"Device-Id": {o.DeviceID}, "Client-Id": {o.ClientID}}
	if token != "" {
		ids["Authorization"] = []string{authorization(token)}
	}
	header := http.Header{"User-Agent": {""}} // an empty value keeps net/http from adding its own
	maps.Copy(header, o.Page)
	if o.Profile.traits().queryIDs {
		q := u.Query()
		for name, value := range ids {
			q[strings.ToLower(name)] = value
		}
		u.RawQuery = q.Encode()
	} else {
		maps.Copy(header, ids)
		header.Set("Host", u.Hostname())
		header.Set("Protocol-Version", strconv.Itoa(o.Protocol))
	}
	return handshake(ctx, o.NetConn, u.String(), header)
}

// handshake opens a WebSocket, over an open transport unless nc is nil, and
// gives the header that the server answered with.
func handshake(ctx context.Context, nc net.Conn, address string, header http.Header) (*websocket.Conn, http.Header, error) {
	dialer := websocket.Dialer{HandshakeTimeout: upgradeLimit}
	if nc != nil {
		dialer.NetDialContext = func(context.Context, string, string) (net.Conn, error) { return nc, nil }
	}
	ws, resp, err := dialer.DialContext(ctx, address, header)
	switch {
	case err == nil:
		return ws, resp.Header, nil
	case errors.Is(err, websocket.ErrBadHandshake) && resp != nil:
		resp.Body.Close()
		return nil, nil, fmt.Errorf("the server answered %s instead of upgrading: %w", resp.Status, err)
	}
	return nil, nil, err
}

func (d *Device) hello(ctx context.Context, o Options) error {
	raw := []byte(o.Hello)
	if raw == nil {
		raw, _ = json.Marshal(o.helloMessage()) // numbers and texts always have a JSON form
	}
	sent := time.Now()
	if err := d.SendText(raw); err != nil {
		return fmt.Errorf("send hello: %w", err)
	}
	limit := time.NewTimer(helloLimit)
	defer limit.Stop()
	select {
	case err := <-d.receiver.greeted:
		return err
	case <-d.link.gone:
		// The receiver may have judged a hello just before the connection went.
		select {
		case err := <-d.receiver.greeted:
			return err
		default:
			return fmt.Errorf("no hello after %s: %w", time.Since(sent).Round(time.Millisecond), ErrClosed)
		}
	case <-limit.C:
		v := Violation{At: time.Now(), Rule: RuleHelloLate, Detail: "no hello within 10 s"}
		d.violate(v.At, v.Rule, "%s", v.Detail)
		return &ViolationError{v}
	case <-ctx.Done():
		return fmt.Errorf("wait for hello: %w", ctx.Err())
	}
}

func (o Options) helloMessage() clientHello {
	format := "opus"
	if o.Sound.PCM {
		format = "pcm"
	}
	h := clientHello{
		Type: "hello", Version: o.Protocol, Transport: "websocket",
		AudioParams: &audioParams{Format: format, SampleRate: 16000, Channels: 1, FrameDuration: float64(o.Sound.FrameMs)},
	}
	if !o.Profile.traits().noFeatures {
		h.Features = &features{MCP: !o.NoMCP, AEC: o.Sound.AEC}
	}
	return h
}

// open does what a wake word or a button does once the channel is there.
func (d *Device) open(o Options) error {
	if err := d.main.things.describe(); err != nil || !o.OpenListen {
		return err
	}
	if o.Wake.Word != "" {
		if err := cmp.Or(d.WakeBurst(o.Wake.Frames), d.main.detect(o.Wake.Word)); err != nil {
			return err
		}
	}
	return d.main.listenStart(o.Mode)
}

// link is the device's end of the WebSocket. It writes whole messages, notes them in the journal and knows what the
// server's hello agreed on. All methods may be called at the same time; only the receiver reads from ws.
type link struct {
	ws       *websocket.Conn
	journal  *Journal
	protocol int  // binary framing version
	unnamed  bool // messages carry an empty session_id

	writing chan struct{} // holds one token: the right to write to ws
	gone    chan struct{} // closed by the receiver: nothing more comes in
	closed  atomic.Bool   // by the device itself
	hello   atomic.Pointer[serverHello]
}

func newLink(ws *websocket.Conn, j *Journal, protocol int, unnamed bool) *link {
	l := &link{ws: ws, journal: j, protocol: protocol, unnamed: unnamed, writing: make(chan struct{}, 1), gone: make(chan struct{})}
	ws.SetReadLimit(readLimit)
	ws.SetCloseHandler(func(int, string) error { return nil }) // the firmware does not answer a Close (2.5)
	ws.SetPingHandler(l.pong)
	return l
}

// close drops TCP. What comes to an end after it was ended by the device.
func (l *link) close() {
	l.closed.Store(true)
	l.ws.Close() // what is to be closed is gone either way
}

// agreed returns the server's hello; the zero value before it.
func (l *link) agreed() serverHello {
	if h := l.hello.Load(); h != nil {
		return *h
	}
	return serverHello{}
}

// ownSession returns the session id that the device's messages carry.
func (l *link) ownSession() string {
	if l.unnamed {
		return ""
	}
	return l.agreed().session
}

func (l *link) sendControl(c control) error {
	c.SessionID = l.ownSession()
	raw, _ := json.Marshal(c) // texts always have a JSON form
	return l.sendText(raw)
}

func (l *link) sendText(raw []byte) error {
	e := Event{At: time.Now(), Kind: KindSent, Size: len(raw), Raw: raw}
	var c control
	if err := json.Unmarshal(raw, &c); err == nil { // broken on purpose: the event has the bytes only
		e.Type, e.State, e.Text = c.Type, c.State, c.Text
	}
	l.journal.add(e)
	l.journal.count(func(s *Stats) { s.TextOut++ })
	return l.write(websocket.TextMessage, raw)
}

func (l *link) sendFrame(packet []byte, timestamp uint32) error {
	l.journal.count(func(s *Stats) { s.FramesOut++ })
	return l.write(websocket.BinaryMessage, frameUp(l.protocol, timestamp, packet))
}

// write sends one message; it waits for its turn and for the socket, at most writeLimit.
func (l *link) write(kind int, data []byte) error {
	select {
	case l.writing <- struct{}{}:
	case <-l.gone:
		return ErrClosed
	}
	defer func() { <-l.writing }()
	if err := cmp.Or(l.ws.SetWriteDeadline(time.Now().Add(writeLimit)), l.ws.WriteMessage(kind, data)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// pong answers a ping; a server that does not read gets none.
func (l *link) pong(payload string) error {
	l.journal.count(func(s *Stats) { s.Pings++ })
	err := l.ws.WriteControl(websocket.PongMessage, []byte(payload), time.Now().Add(pongLimit))
	if errors.Is(err, websocket.ErrCloseSent) || err == nil {
		return nil
	}
	return fmt.Errorf("answer ping: %w", err)
}
