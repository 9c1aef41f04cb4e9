package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"xiaozhi/internal/idle"
	"xiaozhi/internal/nearby"
	"xiaozhi/internal/outbound"
)

// scope says which addresses an entry may lead to.
type scope bool

const (
	atHome   scope = true  // also those of the network at home
	inPublic scope = false // only those of the Internet
)

// entry is one address of sound.
type entry struct {
	address *url.URL
	scope   scope
	ready   *body // it was connected to already; nil: it was not
}

// scope returns where what was found by an address may lead: home only from an address that the owner has set and that is plainly there.
func (o *Opener) scope(address string, own bool) scope {
	u, err := url.Parse(address)
	return scope(err == nil && own && outbound.NamesHome(u.Hostname()))
}

// maxRedirects is how often an address may lead to another one.
const maxRedirects = 5

// client makes what asks addresses of a scope. Each is looked at right before it is connected to.
func client(o Options, home scope) *http.Client {
	return outbound.NewClient(outbound.Options{
		Timeout: o.Timeout,
		Check: func(at netip.Addr) error {
			switch {
			case nearby.IsDoor(at):
				return nearby.ErrDoor
			case home == inPublic && nearby.NotPublic(at):
				return ErrPublic
			}
			return nil
		},
		Redirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || req.URL.Scheme != "http" && req.URL.Scheme != "https" {
				return ErrAddress
			}
			return nil
		},
		Wrap: func(c net.Conn) net.Conn { return &icyConn{Conn: c} },
	})
}

// icyConn reads the answer of old radio servers, which begins with ICY 200 OK, as HTTP.
type icyConn struct {
	net.Conn
	begun bool
	rest  []byte
}

// Read reads, and takes the first word for that of HTTP.
func (c *icyConn) Read(p []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if c.begun || n == 0 {
		return n, err
	}
	c.begun = true
	if after, ok := bytes.CutPrefix(p[:n], []byte("ICY ")); ok {
		c.rest = append([]byte("HTTP/1.0 "), after...)
		n = copy(p, c.rest)
		c.rest = c.rest[n:]
	}
	return n, err
}

// body is the sound of one entry as it comes over connections: one that breaks amid a file is made again, and goes on where it was.
type body struct {
	opener *Opener
	entry  entry
	ctx    context.Context //nolint:containedctx // of the entry, which the reader of its sound runs in
	live   bool            // it has no end
	length int64           // of a file; -1: unknown
	ranges bool            // a part of it can be asked for
	kind   string          // Content-Type

	at     int64 // bytes read
	closer io.Closer
	reader io.Reader
	limit  *idle.Timeout
	cause  context.Context //nolint:containedctx // of the connection: says why it ended
	err    error           // why there is no more, unless it is the end
}

// connect asks for an entry. What a server keeps under a URI is read whole.
func (o *Opener) connect(ctx context.Context, e *entry) (*body, error) {
	if b := e.ready; b != nil {
		e.ready = nil
		return b, nil
	}
	b := &body{opener: o, entry: *e, ctx: ctx}
	if e.address.Scheme == "mcp" {
		kind, content, err := o.resource(ctx, e.address)
		if err != nil {
			return nil, err
		}
		b.kind, b.length, b.reader, b.closer = kind, int64(len(content)), bytes.NewReader(content), io.NopCloser(nil)
		return b, nil
	}
	if err := b.dial(0); err != nil {
		return nil, err
	}
	if b.live {
		b.reader = bufio.NewReaderSize(b.reader, 16<<10)
		if err := b.align(); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

// maxResource is how much of a resource is taken, in bytes.
const maxResource = 64 << 20

// resource reads what a server keeps: mcp://SERVER/URI.
func (o *Opener) resource(ctx context.Context, address *url.URL) (kind string, content []byte, err error) {
	if o.options.Resources == nil {
		return "", nil, ErrAddress
	}
	uri := strings.TrimPrefix(address.EscapedPath(), "/")
	if address.RawQuery != "" {
		uri += "?" + address.RawQuery
	}
	ctx, cancel := context.WithTimeout(ctx, o.options.Timeout)
	defer cancel()
	kind, content, err = o.options.Resources.ReadResource(ctx, address.Host, uri)
	if err != nil {
		return "", nil, fmt.Errorf("read resource: %w", err)
	}
	if len(content) > maxResource {
		return "", nil, fmt.Errorf("%w: it has more than 64 MiB", ErrKind)
	}
	return kind, content, nil
}

// dial asks for the sound from a byte on.
func (b *body) dial(from int64) error {
	c := b.opener.wide
	if b.entry.scope == atHome {
		c = b.opener.home
	}
	ctx, limit := idle.WithTimeout(b.ctx, b.opener.options.Stall)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.entry.address.String(), nil)
	if err != nil {
		limit.Close()
		return ErrAddress
	}
	req.Header.Set("User-Agent", "xiaozhi")
	req.Header.Set("Accept", "audio/mpeg, audio/ogg, audio/flac, audio/wav, audio/*;q=0.8, */*;q=0.5")
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := c.Do(req)
	if err != nil {
		if ctx.Err() != nil && b.ctx.Err() == nil {
			err = ErrStalled
		}
		limit.Close()
		return outbound.Plain(err)
	}
	if from == 0 && resp.StatusCode != http.StatusOK || from > 0 && resp.StatusCode != http.StatusPartialContent {
		_ = resp.Body.Close()
		limit.Close()
		return StatusError(resp.StatusCode)
	}
	limit.Pause()
	b.reader, b.closer, b.limit, b.cause = resp.Body, resp.Body, limit, ctx
	if from == 0 {
		b.kind, b.length = resp.Header.Get("Content-Type"), resp.ContentLength
		b.ranges = resp.ContentLength > 0 && resp.Header.Get("Accept-Ranges") == "bytes"
		b.live = resp.ContentLength < 0 && (hasICY(resp.Header) || !strings.Contains(resp.Header.Get("Accept-Ranges"), "bytes") && len(resp.TransferEncoding) == 0)
	}
	return nil
}

// hasICY reports whether a radio server speaks.
func hasICY(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), "icy-") || strings.EqualFold(name, "Ice-Audio-Info") {
			return true
		}
	}
	return false
}

// Read reads on, over a new connection to a file whose connection breaks.
func (b *body) Read(p []byte) (int, error) {
	for failures := 0; ; {
		if b.limit != nil {
			b.limit.Resume()
		}
		n, err := b.reader.Read(p)
		if b.limit != nil {
			b.limit.Pause()
		}
		b.at += int64(n)
		whole := b.live || b.length < 0 || b.at >= b.length
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			continue
		case errors.Is(err, io.EOF) && whole:
			return 0, io.EOF
		case !b.live && b.ranges && failures < b.opener.options.Retries && b.ctx.Err() == nil:
			b.Close()
			if !sleep(b.ctx, b.opener.options.Backoff<<failures) {
				return 0, b.ctx.Err()
			}
			failures++
			if b.dial(b.at) == nil {
				continue
			}
			b.reader = broken{}
			continue
		}
		b.err = err
		if b.cause != nil && b.cause.Err() != nil && b.ctx.Err() == nil {
			b.err = ErrStalled
		}
		if errors.Is(b.err, io.EOF) {
			b.err = io.ErrUnexpectedEOF
		}
		return 0, b.err
	}
}

// broken stands for a connection that could not be made.
type broken struct{}

// Read fails.
func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// failure returns why there is no more; nil: it was the end, or something else than the connection failed.
func (b *body) failure() error { return b.err }

// Close ends the connection.
func (b *body) Close() {
	if b.closer != nil {
		_ = b.closer.Close() // it was only read
	}
	if b.limit != nil {
		b.limit.Close()
		b.limit = nil
	}
	b.closer = nil
}

// maxAlign is how far the beginning of a frame is looked for, in bytes.
const maxAlign = 16 << 10

// align goes on to the beginning of a frame of MP3: whoever joins a stream comes in anywhere.
func (b *body) align() error {
	r, ok := b.reader.(*bufio.Reader)
	if !ok || strings.Contains(b.kind, "ogg") || strings.Contains(b.kind, "flac") || strings.Contains(b.kind, "wav") {
		return nil
	}
	b.limit.Resume()
	defer b.limit.Pause()
	for range maxAlign {
		head, err := r.Peek(4)
		if err != nil {
			return outbound.Plain(err)
		}
		size, frame := frameSize(head)
		if !frame {
			if bytes.HasPrefix(head, []byte("OggS")) || bytes.HasPrefix(head, []byte("fLaC")) || bytes.HasPrefix(head, []byte("RIFF")) || bytes.HasPrefix(head, []byte("ID3")) {
				return nil
			}
		} else if next, err := r.Peek(size + 4); err == nil {
			if _, follows := frameSize(next[size:]); follows {
				return nil
			}
		}
		if _, err := r.Discard(1); err != nil {
			return err
		}
	}
	return ErrKind
}

// frameSize returns the length of a frame of MPEG 1, 2 or 2.5, layer 3, in bytes, by its first four.
func frameSize(h []byte) (size int, ok bool) {
	version, layer, bitrate, rate := h[1]>>3&3, h[1]>>1&3, int(h[2]>>4), int(h[2]>>2&3)
	if h[0] != 0xFF || h[1]&0xE0 != 0xE0 || version == 1 || layer != 1 || bitrate == 0 || bitrate == 15 || rate == 3 {
		return 0, false
	}
	kbits, perFrame := [...]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}, 144
	hz := [...]int{44100, 48000, 32000}[rate]
	if version != 3 { // MPEG 2 and 2.5
		kbits, perFrame = [...]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}, 72
		if hz /= 2; version == 0 {
			hz /= 2
		}
	}
	return perFrame*kbits[bitrate]*1000/hz + int(h[2]>>1&1), true
}
