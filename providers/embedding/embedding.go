// Package embedding drives services that make vectors of texts. A service tells how it is asked and how its answer is read;
// batches, time limits, tries, the order of the vectors and their length are the same for all.
package embedding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// Bounds of what is asked and read.
const (
	usualBatch = 64               // texts in one request
	usualTime  = 10 * time.Second // for one request
	usualTries = 2
	maxAnswer  = 16 << 20 // bytes
	maxNumbers = 16 << 10 // in one vector
)

// Answer holds what a service has answered to a request.
type Answer struct {
	Vectors []Vector
	Usage   providers.Usage
}

// Vector is that of one text.
type Vector struct {
	Place   int // of its text in the request
	Numbers Numbers
}

// Options configure an [Embedder]. Account, Client, Model, Request and Read must be set.
type Options struct {
	Account transport.Account
	Client  *http.Client
	Model   string
	Batch   int           // texts in one request; 0: 64. Where a service refuses so many, fewer are sent
	Tries   int           // of a request; 0: 2
	Limit   time.Duration // of a request; 0: 10 s

	// Request makes the request for some texts.
	Request func(ctx context.Context, texts []string) (*http.Request, error)
	// Read reads the body of an answer.
	Read func(body []byte) (Answer, error)
	// Judge puts right what a refusal is; nil: it is taken as it is.
	Judge func(*transport.Refusal)
	// Warm gets the service ready for a request; nil: there is no way.
	Warm func(ctx context.Context) error
}

// Embedder makes vectors by a service. It may be used by any number of goroutines at once.
type Embedder struct {
	o     Options
	batch atomic.Int64
}

var (
	_ providers.Embedder = (*Embedder)(nil)
	_ providers.Warmer   = (*Embedder)(nil)
)

// New makes one. It asks the service nothing.
func New(o Options) *Embedder {
	o.Batch, o.Tries, o.Limit = cmp.Or(o.Batch, usualBatch), cmp.Or(o.Tries, usualTries), cmp.Or(o.Limit, usualTime)
	e := &Embedder{o: o}
	e.batch.Store(int64(o.Batch))
	return e
}

// Name is the provider's name.
func (e *Embedder) Name() string { return e.o.Account.Name }

// Model names what makes the vectors.
func (e *Embedder) Model() string { return e.o.Model }

// Warm gets the service ready for a request that will soon come.
func (e *Embedder) Warm(ctx context.Context) error {
	if e.o.Warm == nil {
		return nil
	}
	return e.o.Warm(ctx)
}

// Embed makes the vectors of texts, a batch after another.
func (e *Embedder) Embed(ctx context.Context, req providers.EmbedRequest) (all providers.Embedding, err error) {
	texts := make([]string, len(req.Texts))
	for i, t := range req.Texts {
		texts[i] = told(e.o.Model, t, req.Query)
	}
	for size := int(e.batch.Load()); len(texts) > 0; {
		n := min(size, len(texts))
		part, err := e.some(ctx, texts[:n])
		if tooMany(err) && n > 1 {
			size = n / 2
			continue
		}
		if err != nil {
			return providers.Embedding{}, err
		}
		e.batch.Store(int64(size)) // what the service has taken
		all.Vectors = append(all.Vectors, part.Vectors...)
		all.Usage.Prompt += part.Usage.Prompt
		texts = texts[n:]
	}
	if err := ctx.Err(); err != nil {
		return providers.Embedding{}, err
	}
	for _, v := range all.Vectors {
		if len(v) != len(all.Vectors[0]) {
			return providers.Embedding{}, e.o.Account.Wrap(ctx, ctx, op, errors.New("the vectors have different dimensions"))
		}
	}
	return all, nil
}

// op names what is done, in errors.
const op = "embed"

// tooMany reports whether a service may have refused a request for the number of its texts.
func tooMany(err error) bool {
	failed, ok := errors.AsType[*providers.Error](err)
	return ok && failed.Kind == providers.BadRequest && !providers.LacksLanguage(err)
}

// some makes the vectors of one batch.
func (e *Embedder) some(ctx context.Context, texts []string) (made providers.Embedding, err error) {
	if err := ctx.Err(); err != nil {
		return made, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, e.o.Limit, transport.ErrStalled)
	defer cancel()
	answer, err := transport.Again(limited, e.o.Tries, func() (Answer, error) { return e.ask(limited, texts) })
	if err == nil {
		made, err = inOrder(answer, len(texts))
	}
	if err != nil {
		return providers.Embedding{}, e.o.Account.Wrap(ctx, limited, op, err)
	}
	return made, nil
}

func (e *Embedder) ask(ctx context.Context, texts []string) (a Answer, err error) {
	req, err := e.o.Request(ctx, texts)
	if err != nil {
		return a, transport.NotAsked(err)
	}
	resp, err := e.o.Client.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		refused := transport.ReadRefusal(resp)
		if e.o.Judge != nil {
			e.o.Judge(refused)
		}
		return a, refused
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return a, err
	case len(body) > maxAnswer:
		return a, fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)
	}
	if a, err = e.o.Read(body); err == nil && len(a.Vectors) > 0 {
		return a, nil
	}
	if words, ok := transport.ErrorMessage(body); ok { // of status 200
		refused := &transport.Refusal{Status: resp.StatusCode, Text: words}
		if e.o.Judge != nil {
			e.o.Judge(refused)
		}
		return a, refused
	}
	return a, cmp.Or(err, errors.New("the answer has no vectors"))
}

// inOrder puts vectors into the order of their texts, and gives them the length 1.
func inOrder(a Answer, texts int) (made providers.Embedding, err error) {
	made.Vectors, made.Usage = make([][]float32, texts), a.Usage
	if len(a.Vectors) != texts {
		return made, fmt.Errorf("%d vectors came for %d texts", len(a.Vectors), texts)
	}
	for _, v := range a.Vectors {
		switch {
		case v.Place < 0 || v.Place >= texts || made.Vectors[v.Place] != nil:
			return made, fmt.Errorf("a vector is of the text %d, of %d", v.Place, texts)
		case len(v.Numbers) == 0 || len(v.Numbers) > maxNumbers:
			return made, fmt.Errorf("a vector has %d dimensions", len(v.Numbers))
		case !normalise(v.Numbers):
			return made, errors.New("a vector has no length")
		}
		made.Vectors[v.Place] = v.Numbers
	}
	return made, nil
}

// normalise gives a vector the length 1. It reports false for one that has none.
func normalise(v []float32) bool {
	sum := 0.0
	for _, n := range v {
		sum += float64(n) * float64(n)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return true
}
