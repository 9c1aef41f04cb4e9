package volcengine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

const (
	linesPath  = "/api/v3/tts/unidirectional" // answers in lines of JSON
	oldPath    = "/api/v1/tts"                // answers with the whole sound
	oldVoice   = "BV001_streaming"
	oldCluster = "volcano_tts"
	endTime    = 50 * time.Millisecond // between the last line and the end of the body
)

// Codes of what went well.
const (
	codeOK    = 20000000
	codeOldOK = 3000
)

// post makes the connection of one sentence, which is a plain request: for networks that
// let no WebSocket through, and for accounts of the old service.
func (v *voices) post(ctx context.Context, c *client) synthesis.Conn {
	reqCtx, guard, cancel := transport.NewGuard(ctx)
	p := &posted{v: v, c: c, guard: guard, cancel: cancel, cause: func() error { return context.Cause(reqCtx) }}
	p.ask = func(body []byte) (*http.Response, error) {
		path := linesPath
		if v.mode == old {
			path = oldPath
		}
		base := c.base
		if rest, ok := strings.CutPrefix(base, "ws"); ok { // ws and wss
			base = "http" + rest
		}
		r, err := http.NewRequestWithContext(reqCtx, http.MethodPost, service.Join(base, path), bytes.NewReader(body))
		if err != nil {
			return nil, transport.Refused(providers.BadRequest, "", "the address is not a URL")
		}
		r.Header = c.header.Clone()
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Api-Resource-Id", c.tries[0])
		r.Header.Set("X-Api-Request-Id", volcframe.NewID())
		if v.mode == old {
			r.Header.Set("Authorization", "Bearer;"+v.section.Key.Reveal()) // without a blank
		}
		for name, value := range v.section.Headers {
			r.Header.Set(name, value.Reveal())
		}
		return v.client.Do(r)
	}
	return p
}

// posted is the request for one sentence.
type posted struct {
	v      *voices
	c      *client
	guard  *transport.Guard
	cancel func()
	cause  func() error
	ask    func(body []byte) (*http.Response, error)

	body  []byte
	resp  *http.Response
	lines *sse.Reader
	over  bool
}

// Say makes the request, which is sent when its sound is waited for.
func (p *posted) Say(req providers.TTSRequest) error {
	var err error
	if p.v.mode == old {
		p.body, err = p.v.oldRequest(req)
		return err
	}
	params := p.v.params(req.Voice)
	params.Text = req.Text
	p.body, err = p.v.message(0, params, p.v.section.Extra)
	return err
}

// oldRequest makes the body of a request to the old service.
func (v *voices) oldRequest(req providers.TTSRequest) ([]byte, error) {
	return merge(map[string]any{
		"app":  map[string]any{"appid": v.section.ID, "token": v.section.Key.Reveal(), "cluster": v.section.Text("cluster", oldCluster)},
		"user": map[string]any{"uid": cmp.Or(v.section.ID, "xiaozhi")},
		"audio": map[string]any{
			"voice_type": req.Voice, "encoding": v.format(), "rate": v.rate(), "speed_ratio": cmp.Or(v.section.Speed, 1),
		},
		"request": map[string]any{"reqid": volcframe.NewID(), "text": req.Text, "operation": "query"},
	}, v.section.Extra)
}

// Receive returns more of the sound.
func (p *posted) Receive(within time.Duration) ([]byte, error) {
	p.guard.Arm(within)
	defer p.guard.Disarm()
	sound, err := p.receive()
	if err != nil && !errors.Is(err, io.EOF) && errors.Is(p.cause(), transport.ErrStalled) {
		return nil, transport.ErrStalled
	}
	return sound, err
}

func (p *posted) receive() ([]byte, error) {
	switch {
	case p.over:
		p.guard.Arm(endTime)
		_, _ = p.lines.Next() // the end of the body, so that the connection can be used again
		return nil, io.EOF
	case p.resp == nil:
		if err := p.begin(); err != nil {
			return nil, err
		}
	}
	event, err := p.lines.Next()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF // it says itself when it is done
	}
	if err != nil {
		return nil, err
	}
	var line struct {
		Code    transport.Int `json:"code"`
		Message string        `json:"message"`
		Data    []byte        `json:"data"`
	}
	if err := transport.Decode(event.Data, &line); err != nil {
		return nil, err
	}
	switch line.Code {
	case 0:
		return line.Data, nil
	case codeOK, codeOldOK: // the old service gives all of the sound with it
		p.over = true
		return line.Data, nil
	}
	return nil, volcframe.Refusal(uint32(line.Code), event.Data, p.resp.Header.Get(volcframe.LogHeader))
}

// begin sends the request.
func (p *posted) begin() error {
	resp, err := p.ask(p.body) //nolint:bodyclose // Close does so
	if err != nil {
		return err
	}
	p.resp = resp
	if resp.StatusCode != http.StatusOK {
		refused := transport.ReadRefusal(resp)
		return volcframe.Judged(refused)
	}
	p.lines = sse.NewLines(resp.Body)
	return nil
}

// Cancel gives the request up.
func (p *posted) Cancel() bool { return false }

// Bind does nothing: a request ends with the context that it was made with.
func (p *posted) Bind(ctx context.Context) (release func() bool) {
	return func() bool { return ctx.Err() == nil }
}

// Close ends the request.
func (p *posted) Close() {
	p.cancel()
	if p.resp != nil {
		_ = p.resp.Body.Close()
	}
}
