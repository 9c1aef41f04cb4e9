package transport

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/providers"
)

// Limits of a socket.
const (
	dialTime   = 5 * time.Second       // to be connected, TLS and upgrade included
	writeTime  = 5 * time.Second       // of one message
	closeTime  = 50 * time.Millisecond // for the close frame
	maxMessage = 16 << 20              // bytes of one message
)

// DialerOptions are the settings of a [Dialer]. Only Account.Name must be set.
type DialerOptions struct {
	Account  Account
	Proxy    string        // as in [HTTPOptions]
	Connect  time.Duration // to be connected, TLS and upgrade included; 5 s if 0
	Insecure bool          // take any certificate: for services of one's own that made theirs
	Headers  map[string]providers.Secret
	Most     int    // sockets at the same time, those that are being closed included; 0: no limit
	Clock    *Clock // learns from refusals; nil: none does
}

// Dialer opens the WebSockets of one section and counts them until they are really
// closed. It may be used by any number of goroutines at once.
type Dialer struct {
	o     DialerOptions
	inner websocket.Dialer
	slots chan struct{} // nil: no limit
	open  atomic.Int64
}

// NewDialer checks the settings.
func NewDialer(o DialerOptions) (*Dialer, error) {
	proxy, err := proxyOf(o.Proxy)
	if err != nil {
		return nil, err
	}
	d := &Dialer{o: o}
	tcp := &net.Dialer{Control: controlOf(o.Account.Careful), KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	d.inner = websocket.Dialer{Proxy: proxy, NetDialContext: tcp.DialContext, HandshakeTimeout: cmp.Or(o.Connect, dialTime)}
	if o.Insecure {
		d.inner.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the user asks for it
	}
	if o.Most > 0 {
		d.slots = make(chan struct{}, o.Most)
	}
	return d, nil
}

// Open returns the number of sockets that are not closed yet.
func (d *Dialer) Open() int { return int(d.open.Load()) }

// Account returns the name and the secrets of the section, for errors.
func (d *Dialer) Account() Account { return d.o.Account }

// Dial opens a socket at a ws, wss, http or https address, whose path and query are the
// vendor's. Where as many are open as may be, it waits until one is closed. A refused
// upgrade is a [*Refusal] with what the service said; Skewed says that it may be signed
// and tried again. The end of ctx closes the socket, also later.
func (d *Dialer) Dial(ctx context.Context, address string, header http.Header, protocols ...string) (*Socket, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, Refused(providers.BadRequest, "", "the address is not a URL")
	}
	switch u.Scheme {
	case "http":
		u.Scheme = "ws"
	case "https":
		u.Scheme = "wss"
	}
	if err := d.take(ctx); err != nil {
		return nil, err
	}
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if password, ok := u.User.Password(); ok { // of a proxy before a server at home; a socket's address may not hold it
		if header.Get("Authorization") == "" {
			header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		}
		u.User = nil
	}
	for name, value := range d.o.Headers {
		header.Set(name, value.Reveal())
	}
	inner := d.inner
	inner.Subprotocols = protocols
	way := &route{dial: d.inner.NetDialContext, choose: d.inner.Proxy, inner: d.inner.TLSClientConfig}
	way.through(&inner)
	arrived := context.AfterFunc(ctx, way.end)
	conn, resp, err := inner.DialContext(ctx, u.String(), header)
	arrived()
	if err != nil {
		d.give()
		if resp == nil && ctx.Err() == nil && d.proxied(u) {
			err = throughProxy(err)
		}
		return nil, d.refused(ctx, resp, err)
	}
	conn.SetReadLimit(maxMessage)
	s := &Socket{conn: conn, header: resp.Header, free: d.give}
	s.unbind = context.AfterFunc(ctx, s.Close)
	return s, nil
}

// proxied reports whether a proxy stands before an address.
func (d *Dialer) proxied(u *url.URL) bool {
	if d.inner.Proxy == nil {
		return false
	}
	plain := *u
	plain.Scheme = strings.Replace(u.Scheme, "ws", "http", 1) // by which the environment names proxies
	proxy, err := d.inner.Proxy(&http.Request{URL: &plain})
	return proxy != nil || err != nil
}

// throughProxy says, as net/http does, that it was the proxy which could not be reached or refused. What TLS says is
// of the service behind it.
func throughProxy(err error) error {
	_, header := errors.AsType[tls.RecordHeaderError](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	if header || certificate || alert {
		return err
	}
	return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err}
}

// refused makes the error of a socket that could not be opened.
func (d *Dialer) refused(ctx context.Context, resp *http.Response, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if resp == nil || !errors.Is(err, websocket.ErrBadHandshake) {
		return err
	}
	refusal := ReadRefusal(resp) // gorilla has read at most 1 KiB of the body
	_ = resp.Body.Close()
	if refusal.Kind == providers.Unavailable && resp.StatusCode < 400 {
		refusal.Text = "the service did not take the upgrade: " + refusal.Text
	}
	if d.o.Clock != nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		refusal.Skewed = d.o.Clock.Learn(resp.Header)
	}
	return refusal
}

// take waits for a free slot.
func (d *Dialer) take(ctx context.Context) error {
	if d.slots != nil {
		select {
		case d.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d.open.Add(1)
	return nil
}

// give frees a slot.
func (d *Dialer) give() {
	d.open.Add(-1)
	if d.slots != nil {
		<-d.slots
	}
}

// Socket is a WebSocket of a service. One goroutine reads while another writes; Close may
// be called by any, at any time and more than once.
type Socket struct {
	conn   *websocket.Conn
	header http.Header
	free   func()

	mu     sync.Mutex // serialises writes
	closed sync.Once
	unbind func() bool
}

// Header returns the headers of the upgrade.
func (s *Socket) Header() http.Header { return s.header }

// Limit bounds the messages that may come, in bytes. It is for whoever has just dialled,
// and for services whose messages are small: one that does not end is noticed sooner.
func (s *Socket) Limit(bytes int64) { s.conn.SetReadLimit(bytes) }

// Bind makes the end of another context close the socket, in place of the one it was
// dialled with: a kept socket belongs to one request after another. The function that it
// returns ends that; it says whether the socket is still open for the next.
func (s *Socket) Bind(ctx context.Context) (release func() bool) {
	s.unbind()
	s.unbind = context.AfterFunc(ctx, s.Close)
	return func() bool { return s.unbind() }
}

// Unbind makes the socket live on when the context ends that it was dialled with. It says
// whether the context had not ended yet.
func (s *Socket) Unbind() bool { return s.unbind() }

// Read returns the next message. It answers pings. Within says how long it may take; 0: for
// ever; when it is over, the error is [ErrStalled] and the socket is of no more use. A close by the
// service is a [*Refusal] with the code and the reason.
func (s *Socket) Read(within time.Duration) (text bool, message []byte, err error) {
	var until time.Time
	if within > 0 {
		until = time.Now().Add(within)
	}
	_ = s.conn.SetReadDeadline(until) // an error shows again when it is read
	kind, message, err := s.conn.ReadMessage()
	if err != nil {
		return false, nil, readError(err)
	}
	return kind == websocket.TextMessage, message, nil
}

// ClosedInOrder is the code of the refusal when the service has closed the connection without
// a complaint.
const ClosedInOrder = "close 1000"

// readError says why no message came.
func readError(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return ErrStalled
	}
	if closed, ok := errors.AsType[*websocket.CloseError](err); ok {
		text := closed.Text
		if text == "" {
			text = "the service closed the connection"
		}
		return &Refusal{Kind: closeKind(closed.Code, closed.Text), Code: fmt.Sprintf("close %d", closed.Code), Text: text}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the connection broke off")
	}
	return err
}

// closeReasons are what services say when they close for a reason of ours, with whatever code.
var closeReasons = []struct {
	kind  providers.Kind
	words []string
}{
	{providers.RateLimited, []string{"rate limit", "rate_limit", "too many"}},
	{providers.NoCredit, []string{"quota", "arrear", "insufficient_balance", "payment"}},
	{providers.Unauthorized, []string{"api_key", "api key", "unauthorized", "authentication"}},
}

// closeKind maps the code of a close, and its reason, to the kind of failure.
func closeKind(code int, reason string) providers.Kind {
	reason = strings.ToLower(reason)
	for _, r := range closeReasons {
		if code != websocket.CloseNormalClosure && slices.ContainsFunc(r.words, func(w string) bool { return strings.Contains(reason, w) }) {
			return r.kind
		}
	}
	switch code {
	case websocket.ClosePolicyViolation:
		return providers.Unauthorized
	case websocket.CloseUnsupportedData, websocket.CloseInvalidFramePayloadData, websocket.CloseMessageTooBig:
		return providers.BadRequest
	}
	return providers.Unavailable
}

// ReadJSON reads the next message into v, a text or, as some send it, a binary one, as [Decode] does.
func (s *Socket) ReadJSON(within time.Duration, v any) error {
	_, message, err := s.Read(within)
	if err != nil {
		return err
	}
	return Decode(message, v)
}

// WriteText sends a text message.
func (s *Socket) WriteText(message []byte) error { return s.write(websocket.TextMessage, message) }

// WriteBinary sends a binary message.
func (s *Socket) WriteBinary(message []byte) error { return s.write(websocket.BinaryMessage, message) }

// WriteJSON sends v as a text message.
func (s *Socket) WriteJSON(v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	return s.WriteText(bytes.TrimRight(b.Bytes(), "\n"))
}

func (s *Socket) write(kind int, message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(writeTime)) // an error shows again when it is written
	return s.conn.WriteMessage(kind, message)
}

// Ping sends a ping.
func (s *Socket) Ping() error {
	return s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(closeTime))
}

// Close sends the close frame, if it goes out at once, and ends the connection without waiting
// for the answer: it takes at most 50 ms. Whoever calls it while another is at it waits for that
// one; the socket does not count any more then.
func (s *Socket) Close() {
	s.closed.Do(func() {
		defer s.free()
		wire := s.conn.UnderlyingConn()
		_ = wire.SetReadDeadline(time.Now()) // whoever reads returns at once
		_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(closeTime))
		if t, ok := wire.(*tls.Conn); ok {
			wire = t.NetConn() // the end of TLS might wait for 5 s
		}
		_ = wire.Close()
	})
}
