// Package httpvoice drives voices that answer one HTTP request for each sentence with its
// sound, streamed or whole. A technology gives the request; this package makes it, waits
// for no longer than it may, reads the sound as it comes and says what went wrong.
package httpvoice

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// Time limits, unless the section has others.
const (
	firstTime = 10 * time.Second
	nextTime  = 5 * time.Second
	retryWait = 200 * time.Millisecond
)

// Options describe a voice. Section, Request and Format must be set.
type Options struct {
	Section service.Section
	// Request makes the request for a sentence. Its error is that of the sentence.
	Request func(ctx context.Context, req providers.TTSRequest) (*http.Request, error)
	// Ping makes a request that costs nothing and opens a connection; nil: there is none.
	Ping func(ctx context.Context) (*http.Request, error)
	// Judge puts right the kind and the words of a refusal by the vendor's own codes; nil: nothing.
	Judge func(*transport.Refusal)
	// Events makes what opens the events of one answer, where that is a stream of events;
	// nil: the answer is the sound itself.
	Events func() Opener
	// Format of the sound where it does not tell by itself: pcm, wav, mp3 or opus.
	Format string
	Text   sound.Longest // of one request
	Rate   int           // of bare pcm, in Hz
	First  time.Duration // to the first sound, unless the section has one; 10 s if 0
	Most   int           // requests at the same time; others wait; 0: no limit
}

// Voice is a voice behind HTTP. It may be used by any number of goroutines at once.
type Voice struct {
	o       Options
	account transport.Account
	client  *http.Client
	slots   chan struct{} // nil: no limit
	players sound.Pool
}

var (
	_ providers.TTS    = (*Voice)(nil)
	_ providers.Warmer = (*Voice)(nil)
)

// New makes a voice. It asks the service nothing.
func New(o Options) (*Voice, error) {
	s := o.Section
	v := &Voice{o: o, account: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}, client: s.Client}
	if v.client == nil {
		client, err := transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful})
		if err != nil {
			return nil, err
		}
		v.client = client
	}
	if o.Most > 0 {
		v.slots = make(chan struct{}, o.Most)
	}
	return v, nil
}

// Name returns the provider's name.
func (v *Voice) Name() string { return v.o.Section.Name }

// Warm opens a connection for the next request, if none waits for it already.
func (v *Voice) Warm(ctx context.Context) error {
	if v.o.Ping == nil {
		return nil
	}
	return v.account.Warm(ctx, v.client, func(ctx context.Context) (*http.Response, error) {
		req, err := v.o.Ping(ctx)
		if err != nil {
			return nil, err
		}
		return v.do(req)
	})
}

// do makes a request with the headers of the section.
func (v *Voice) do(req *http.Request) (*http.Response, error) {
	return v.client.Do(plain(req, v.o.Section))
}

// plain puts the headers of a section into a request. An address for WebSockets serves, too.
func plain(req *http.Request, s service.Section) *http.Request {
	if rest, ok := strings.CutPrefix(req.URL.Scheme, "ws"); ok { // and wss
		req.URL.Scheme = "http" + rest
	}
	for name, value := range s.Headers {
		req.Header.Set(name, value.Reveal())
	}
	return req
}

// Synthesize streams the sound of one sentence, each piece as soon as it has come. A text
// without a letter or a digit yields nothing. No sound at all is an error, and so is more
// than a sentence of this length can have.
func (v *Voice) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return v.players.Speak(ctx, req, v.o.Text, func(part providers.TTSRequest, p *sound.Player) error {
		if err := v.acquire(ctx); err != nil {
			return err
		}
		defer v.release()
		for tries := v.retries(); ; tries-- {
			err := v.once(ctx, part, p)
			if err == nil || p.Left() {
				return nil
			}
			if tries <= 0 || p.HeardPart() || !transport.MayPass(err) {
				return v.account.Wrap(ctx, ctx, "speak", err)
			}
			if !transport.Wait(ctx, retryWait) {
				return ctx.Err()
			}
		}
	})
}

func (v *Voice) acquire(ctx context.Context) error {
	if v.slots == nil {
		return nil
	}
	select {
	case v.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (v *Voice) release() {
	if v.slots != nil {
		<-v.slots
	}
}

// retries returns the number of times that a request without sound is made again.
func (v *Voice) retries() int {
	if n := v.o.Section.Retries; n != nil {
		return *n
	}
	return 0
}

// once makes one request and plays its sound.
func (v *Voice) once(ctx context.Context, req providers.TTSRequest, p *sound.Player) error {
	reqCtx, guard, cancel := transport.NewGuard(ctx)
	defer cancel()
	err := v.ask(reqCtx, req, guard, p)
	if err != nil && errors.Is(context.Cause(reqCtx), transport.ErrStalled) {
		return transport.ErrStalled
	}
	return err
}

func (v *Voice) ask(ctx context.Context, req providers.TTSRequest, guard *transport.Guard, p *sound.Player) error {
	limits := v.o.Section.Timeouts
	first := cmp.Or(limits.First, v.o.First, firstTime)
	request, err := v.o.Request(ctx, req)
	if err != nil {
		return transport.NotAsked(err)
	}
	guard.Arm(first)
	resp, err := v.do(request)
	guard.Disarm()
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body := &transport.GuardedReader{R: resp.Body, Guard: guard, First: first, Next: cmp.Or(limits.Next, nextTime)}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{body, resp.Body}
		return v.refused(transport.ReadRefusal(resp))
	}
	expected := sound.Expected{Format: v.o.Format, Rate: v.o.Rate, MediaType: resp.Header.Get("Content-Type")}
	content := io.Reader(body)
	if v.o.Events != nil { // the limits are those of sound, whatever else comes
		body.R, expected.MediaType = &opened{events: sse.NewReader(resp.Body), open: v.o.Events()}, "audio/"+v.o.Format
	}
	if err := p.Decode(content, expected); err != nil {
		if refusal, ok := errors.AsType[*transport.Refusal](err); ok {
			return v.refused(refusal)
		}
		return err
	}
	if !p.Left() {
		drain(resp.Body, guard)
	}
	if !p.HeardPart() && !p.Left() {
		return errors.New("the server sent no sound")
	}
	return nil
}

// Limits of what is read after the sound.
const (
	drainTime  = 50 * time.Millisecond
	drainBytes = 4 << 10
)

// drain reads the end of a body whose sound is complete, so that its connection serves
// the next sentence.
func drain(body io.Reader, guard *transport.Guard) {
	guard.Arm(drainTime)
	defer guard.Disarm()
	_, _ = io.CopyN(io.Discard, body, drainBytes) // a connection that is lost here is only that
}

// refused lets the technology judge a refusal.
func (v *Voice) refused(r *transport.Refusal) error {
	if v.o.Judge != nil {
		v.o.Judge(r)
	}
	if words, ok := transport.Words([]byte(r.Text)); ok {
		r.Text = words
	}
	return r
}
