package generation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/sse"
	"xiaozhi/providers/transport"
)

// stage says how far an attempt is.
type stage int

const (
	silent stage = iota // nothing was yielded
	begun               // a thought was
	spoken              // text or a tool call was
	left                // the consumer has left the loop
)

// attempt is one request and its stream, on the caller's goroutine.
type attempt struct {
	m        *Model
	yield    func(providers.Delta, error) bool
	deadline time.Time // of the first token

	stage   stage
	adapted bool // the request was refused, and the next one will be another
	text    int  // bytes of text so far
	usage   providers.Usage
	echo    providers.Echo
	calls   map[string]bool // ids of calls, those of the dialogue too; nil: they were not looked at
	step    *providers.LLMRequest
}

// maxText bounds the text of an answer, in bytes: hours of speech.
const maxText = 256 << 10

// maxWhole bounds an answer that comes in one piece, in bytes: one event of a stream.
const maxWhole = 512 << 10

// run makes the request and yields its deltas. Its error is ready to be yielded.
func (a *attempt) run(ctx context.Context, req providers.LLMRequest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.step = &req
	reqCtx, g, cancel := transport.NewGuard(ctx)
	defer cancel()
	g.Arm(time.Until(a.deadline))
	body, err := a.ask(reqCtx, req)
	if err != nil {
		return a.m.o.Account.Wrap(ctx, reqCtx, op, err)
	}
	defer func() { _ = body.Close() }()
	if err := a.stream(body, a.m.wire.Answer(req), g); err != nil && a.stage != left {
		return a.m.o.Account.Wrap(ctx, reqCtx, op, err)
	}
	return nil
}

// op names what a model does, in errors.
const op = "chat"

// ask makes the request. The caller closes the body of the answer.
func (a *attempt) ask(ctx context.Context, step providers.LLMRequest) (io.ReadCloser, error) {
	req, err := a.m.wire.Request(ctx, step)
	if err != nil {
		return nil, &transport.Refusal{Kind: providers.BadRequest, Text: "make the request: " + err.Error()}
	}
	resp, err := a.m.o.Client.Do(req)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // one that cannot be read is none
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
	case media == "text/html" && !a.m.o.Plain, media == "application/json" && !a.m.o.JSON:
	default:
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 300 && media == "application/json" {
		if stream := a.whole(resp); stream != nil {
			return stream, nil
		}
	}
	return nil, a.refusal(resp, media)
}

// whole makes a stream of an answer in one piece; nil if it is none, and the body can be read again then.
func (a *attempt) whole(resp *http.Response) io.ReadCloser {
	w, may := a.m.wire.(Whole)
	if !may {
		return nil
	}
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxWhole))
	resp.Body = struct { // what was read, then what breaks it off
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(said), resp.Body), resp.Body}
	var line bytes.Buffer
	if err != nil || json.Compact(&line, said) != nil || FaultOf(said) != nil || !w.Whole(said) {
		return nil
	}
	return io.NopCloser(strings.NewReader("data: " + line.String() + "\n\n"))
}

// refusal makes the error of a response that is no answer.
func (a *attempt) refusal(resp *http.Response, media string) error {
	// A body that breaks off still says more than none.
	said, _ := io.ReadAll(io.LimitReader(resp.Body, transport.MaxErrorBody))
	resp.Body = io.NopCloser(bytes.NewReader(said))
	r := transport.ReadRefusal(resp)
	fault := FaultOf(said)
	if fault != nil {
		fault.complete(r)
	}
	a.adapted = a.m.wire.Adapt(r, said)
	if resp.StatusCode > 299 || fault != nil {
		return r
	}
	if r.Kind = providers.Unavailable; media == "application/json" && strings.HasPrefix(r.Text, "{") {
		r.Text = "the reply is not an event stream: " + r.Text
	}
	return r
}

// stream yields what the events hold until the answer is complete.
func (a *attempt) stream(body io.Reader, answer Answer, g *transport.Guard) error {
	events := sse.NewReader(body)
	if a.m.o.Lines {
		events = sse.NewLines(body)
	}
	for complete := false; !complete; {
		if a.stage == silent {
			g.Arm(time.Until(a.deadline))
		} else {
			g.Arm(a.m.o.Next)
		}
		e, err := events.Next()
		g.Disarm()
		switch {
		case errors.Is(err, io.EOF):
			complete, err = true, atEOF(answer, a.give)
		case err == nil:
			complete, err = answer.Event(e, a.give)
		}
		if err != nil || a.stage == left {
			return err
		}
		if a.text > maxText {
			return sse.ErrTooLong
		}
	}
	if err := answer.End(a.give); err != nil || a.stage == left {
		return err
	}
	if a.stage < spoken {
		return errors.New("the answer is empty")
	}
	g.Arm(a.m.o.Drain)
	for e, err := events.Next(); err == nil; e, err = events.Next() { // an error only costs the connection
		if _, err := answer.Event(e, a.account); err != nil {
			break
		}
	}
	g.Disarm()
	a.emit(providers.Delta{Usage: a.usage, Echo: a.echo})
	return nil //nolint:nilerr // the answer was complete before
}

// atEOF ends an answer with its stream, if it is one of those that may.
func atEOF(answer Answer, give Give) error {
	if e, ok := answer.(Ending); ok {
		return e.EOF(give)
	}
	return ErrIncomplete
}

// account keeps what a step has cost.
func (a *attempt) account(d providers.Delta) {
	if d.Usage != (providers.Usage{}) {
		a.usage = d.Usage
	}
	if d.Echo != (providers.Echo{}) {
		a.echo = d.Echo
	}
}

// give yields a delta, if there is anything in it.
func (a *attempt) give(d providers.Delta) {
	a.account(d)
	if d.Usage, d.Echo = (providers.Usage{}), (providers.Echo{}); a.stage == left || d.Text == "" && d.Thought == "" && len(d.ToolCalls) == 0 {
		return
	}
	a.stage = max(a.stage, begun)
	a.tellApart(d.ToolCalls)
	a.text += len(d.Text)
	if d.Text != "" || len(d.ToolCalls) > 0 {
		a.stage = spoken
	}
	a.emit(d)
}

// tellApart gives another id to a call whose id an earlier one has, in the answer or in the
// dialogue: some servers count anew in each answer, or give all calls the same.
func (a *attempt) tellApart(calls []providers.ToolCall) {
	if len(calls) > 0 && a.calls == nil {
		a.calls = map[string]bool{}
		for i := range a.step.Messages {
			for _, c := range a.step.Messages[i].ToolCalls {
				a.calls[c.ID] = true
			}
		}
	}
	for i := range calls {
		if a.calls[calls[i].ID] {
			calls[i].ID = NewID()
		}
		a.calls[calls[i].ID] = true
	}
}

// emit yields a delta that is not empty.
func (a *attempt) emit(d providers.Delta) {
	if d.Text == "" && d.Thought == "" && len(d.ToolCalls) == 0 && d.Usage == (providers.Usage{}) && d.Echo == (providers.Echo{}) {
		return
	}
	if d.Provider = a.m.o.Account.Name; !a.yield(d, nil) {
		a.stage = left
	}
}
