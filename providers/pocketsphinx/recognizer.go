// Package pocketsphinx recognises English offline with CMU PocketSphinx, whose
// shared library is opened at run time: no C compiler and no headers are needed.
// On Debian it is in libpocketsphinx3, its model in pocketsphinx-en-us.
//
// An utterance is heard by dictation and by a grammar of the request's phrases
// while it is spoken. The phrase is the transcript when it fits the sound about as
// well as dictation's words, and what makes bad English is marked as rejected.
// README.md has the figures.
//
// A phrase of a request is plain words, in which case and punctuation do not
// count and digits are read as words. It may also hold <number> (zero to one
// hundred), alternatives (up | down) and optional words [please]. A phrase that is
// broken, not English, or has words that the dictionary lacks is left out.
package pocketsphinx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"xiaozhi/providers"
)

// Options are the settings of a recogniser. The zero value works.
type Options struct {
	Name     string       // in the config and in logs; "" is "pocketsphinx"
	Decoders int          // utterances at the same time, about 150 MB each once loaded; 0 is min(2, number of CPUs)
	ModelDir string       // "" is where Debian's pocketsphinx-en-us puts it
	Library  string       // shared object to open; "" is libpocketsphinx.so.3
	Log      *slog.Logger // nil is no log
}

// Recognizer is an offline recogniser of English. It is safe for many
// connections at once; more utterances than decoders wait for one another.
type Recognizer struct {
	name string
	log  *slog.Logger
	pool *pool
	past memory
	work sync.WaitGroup // the goroutines of open streams

	mu     sync.Mutex
	closed bool
	open   map[*stream]struct{}
}

// errClosed ends the streams of a recogniser that is closed.
var errClosed = errors.New("the recogniser was closed")

// New opens the C library and looks for the model, which is loaded only by
// Warm or by the first utterance. When something is missing the error is a
// *providers.Error of kind Unavailable that names the Debian package.
func New(opts Options) (*Recognizer, error) {
	name := cmp.Or(opts.Name, "pocketsphinx")
	log := opts.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	failed := func(err error) error {
		return &providers.Error{Provider: name, Op: "open", Kind: providers.Unavailable, Err: err}
	}
	if opts.Decoders < 0 {
		return nil, failed(fmt.Errorf("%d decoders", opts.Decoders))
	}
	size := opts.Decoders
	if size == 0 {
		size = min(2, runtime.NumCPU())
	}
	m, err := findModel(cmp.Or(opts.ModelDir, defaultModelDir))
	if err != nil {
		return nil, failed(err)
	}
	lib, err := openLibrary(cmp.Or(opts.Library, libraryFile))
	if err != nil {
		return nil, failed(err)
	}
	log = log.With("provider", name)
	return &Recognizer{
		name: name, log: log, pool: newPool(lib, m, size, log),
		open: map[*stream]struct{}{},
	}, nil
}

// Name returns the provider's name in the config and in logs.
func (r *Recognizer) Name() string { return r.name }

// Warm loads one decoder, so that the first utterance need not wait for it
// (about 0.5 s). A context that ends while loading does not stop the loading.
func (r *Recognizer) Warm(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return r.failed("load", errClosed)
	}
	r.work.Add(1)
	r.mu.Unlock()
	defer r.work.Done()
	s, err := r.pool.acquire(ctx)
	if err != nil {
		return r.failed("load", err)
	}
	r.pool.release(s)
	return nil
}

// Open begins one utterance. It returns at once; a decoder is waited for when
// sound arrives. Its only errors are of kind BadRequest (a rate that is not
// 16000 Hz), Unavailable (the recogniser is closed) and the context's own.
func (r *Recognizer) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	if req.Rate != sampleRate {
		return nil, &providers.Error{
			Provider: r.name, Op: "transcribe", Kind: providers.BadRequest,
			Err: fmt.Errorf("rate %d Hz, only %d Hz is recognised", req.Rate, sampleRate),
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, r.failed("transcribe", errClosed)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s := newStream(ctx, cancel)
	r.open[s] = struct{}{}
	r.work.Go(func() {
		r.recognise(ctx, s, req)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, s)
	})
	return s, nil
}

// Retire frees decoders as soon as no utterance needs them: those that go on are finished, and one that begins later
// loads a decoder for itself. It may be called at any time.
func (r *Recognizer) Retire() {
	r.past.clear()
	r.pool.retire()
}

// Close ends every open stream with an error, waits for them, and frees the
// decoders. Later calls of Open fail.
func (r *Recognizer) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	for s := range r.open {
		s.cancel(r.failed("transcribe", errClosed))
	}
	r.mu.Unlock()
	r.work.Wait()
	r.pool.close()
	return nil
}

// failed makes the provider's error of err; a context's error stays as it is.
func (r *Recognizer) failed(op string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &providers.Error{Provider: r.name, Op: op, Kind: providers.Unavailable, Err: err}
}

// recognise runs on the goroutine of one stream: it waits for sound, acquires a
// decoder, and ends with exactly one result, unless ctx ends first.
func (r *Recognizer) recognise(ctx context.Context, s *stream, req providers.ASRRequest) {
	defer close(s.out)
	final, err := r.utterance(ctx, s, req)
	if ctx.Err() != nil {
		return // Transcripts says so by itself
	}
	if err != nil {
		s.out <- result{err: r.failed("transcribe", err)}
		return
	}
	s.out <- result{transcript: final}
}

// utterance recognises the sound of s. If it begins with that of an utterance that
// ended a moment ago, only what came after is searched.
func (r *Recognizer) utterance(ctx context.Context, s *stream, req providers.ASRRequest) (providers.Transcript, error) {
	nothing := providers.Transcript{Final: true, Provider: r.name}
	said, more, err := s.take(nil, maxHeardSamples)
	if err != nil || !more {
		return nothing, err
	}
	from, known := r.past.find(ctx, said)
	d, err := r.pool.acquire(ctx)
	if err != nil {
		return nothing, err
	}
	defer r.pool.release(d)
	defer d.end()
	if err := d.begin(req.Phrases, from); err != nil {
		return nothing, err
	}
	if said, err = r.listen(ctx, s, d, said, known); err != nil {
		return nothing, err
	}
	v, err := r.finish(d, said, req.Language)
	if err != nil {
		return nothing, err
	}
	r.log.Debug("utterance judged", "grammar", v.grammar, "rejected", v.rejected,
		"fit", v.fit, "margin", v.margin, "doubt", v.doubt, "motion", v.motion, "words", v.words, "known", known)
	final := providers.Transcript{Text: v.text, Final: true, Rejected: v.rejected, Provider: r.name}
	if v.text != "" && !v.rejected {
		final.Language = "en"
	}
	return final, nil
}

// listen lets the decoder hear what s says and gives partial transcripts. said was
// taken already, of which so many samples are known. It returns all sound,
// or nil if there is too much of it to be remembered.
func (r *Recognizer) listen(ctx context.Context, s *stream, d *decoder, said []int16, known int) ([]int16, error) {
	stop := func() bool { return ctx.Err() != nil }
	last, heard := "", 0
	next, more := said[known:], true
	for more {
		for piece := range slices.Chunk(next, hearSamples) {
			if err := d.hear(piece, stop); err != nil {
				return nil, err
			}
			if heard += len(piece); heard < partialEvery {
				continue
			}
			heard = 0
			if text := d.partial(); text != last {
				last = text
				s.partial(providers.Transcript{Text: text, Language: "en", Provider: r.name})
			}
		}
		var err error
		if next, more, err = s.take(nil, hearSamples); err != nil {
			return nil, err
		}
		if said != nil {
			if said = append(said, next...); len(said) > maxHeardSamples {
				said = nil
			}
		}
	}
	return said, nil
}

// finish completes the utterance and remembers what is known of it. It is not
// stopped: little is left to do, and who goes on speaking needs it.
func (r *Recognizer) finish(d *decoder, said []int16, hint string) (v verdict, err error) {
	var known *past
	if said != nil {
		h := r.past.keep(said)
		defer func() { r.past.settle(h, known) }()
	}
	m, err := d.finish(func() bool { return false })
	if err == nil {
		now := d.now
		known, v = &now, m.judge(hint)
	}
	return v, err
}
