// Package sherpa recognises and speaks offline with sherpa-onnx, whose shared library is opened at run time, and
// with models that the owner puts there: streaming transducers (zipformer) and paraformers, which give partial
// transcripts while speech goes on; SenseVoice, Paraformer and Whisper, which hear whole utterances; VITS, Matcha
// and Kokoro voices; and models of 3D-Speaker, WeSpeaker and NeMo, which tell people apart.
//
// The library computes in our process and cannot be interrupted. A call ends with its context all the same; what
// the library is at is finished behind it, on a goroutine that Close waits for, and keeps its place so long.
package sherpa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa/internal/capi"
	"xiaozhi/providers/sherpa/modelfile"
)

// Options are the settings of a recogniser or of a voice.
type Options struct {
	Name    string // in the config and in logs; "" is "sherpa"
	Model   string // the folder of the model
	Library string // shared object to open; "" is where the system's loader finds it
	// Decoders is what goes on at the same time: utterances, all with one model; 0 is min(2, number of CPUs).
	// Of voices it is the sentences, each with a model of its own; 0 is 1.
	Decoders int
	Threads  int    // of each; 0 is min(2, number of CPUs)
	Language string // BCP-47: what SenseVoice and Whisper expect; "": they find out
	Speaker  string // of a voice: its number or its name; "" is the first
	// Choose returns the speaker for a request; nil: the one that it names. One that the model does not have is passed over.
	Choose func(req providers.TTSRequest) string
	Speed  float64 // 1 is normal; 0 is 1
	// Threshold is the score from which on two voices are taken for one; 0 is 0.5.
	Threshold float64
	// Try loads the model elsewhere before it is loaded here for the first time, and tells what came of it: the
	// library ends the process on a model that it does not like. nil: nobody tries.
	Try func(ctx context.Context) error
	Log *slog.Logger // nil is no log
}

// complete fills in what was left out.
func (o Options) complete() (Options, error) {
	o.Name = cmp.Or(o.Name, "sherpa")
	o.Library = cmp.Or(o.Library, capi.DefaultFile)
	o.Threads = cmp.Or(o.Threads, min(2, runtime.NumCPU()))
	o.Speed = cmp.Or(o.Speed, 1)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("provider", o.Name)
	switch {
	case o.Decoders < 0 || o.Decoders > maxDecoders:
		return o, fmt.Errorf("decoders %d: want 1 to %d", o.Decoders, maxDecoders)
	case o.Threads < 0 || o.Threads > maxDecoders:
		return o, fmt.Errorf("threads %d: want 1 to %d", o.Threads, maxDecoders)
	case o.Speed < 0.25 || o.Speed > 4:
		return o, fmt.Errorf("speed %g: want 0.25 to 4", o.Speed)
	case o.Threshold < 0 || o.Threshold > 1:
		return o, fmt.Errorf("threshold %g: want 0 to 1", o.Threshold)
	case o.Model == "":
		return o, errors.New("no model is set")
	}
	return o, nil
}

const maxDecoders = 64

// errClosed ends the streams of what is closed.
var errClosed = errors.New("it was closed")

// plays reports whether a model can do a role.
func plays(m modelfile.Model, role service.Role) bool {
	switch role {
	case service.TTS:
		return m.Kind.Speaks()
	case service.Voiceprint:
		return m.Kind == modelfile.Speaker
	default:
		return m.Kind.Hears()
	}
}

// open finds the model of a role and opens the library.
func open(o Options, role service.Role) (modelfile.Model, *capi.Library, error) {
	m, err := modelfile.Find(o.Model)
	if err != nil {
		return m, nil, err
	}
	if !plays(m, role) {
		return m, nil, &modelfile.Problem{Fault: modelfile.WrongRole, File: o.Model, Detail: string(m.Kind)}
	}
	lib, err := openLibrary(o.Library)
	return m, lib, err
}

// openLibrary opens the library, and says what is wrong with it.
func openLibrary(file string) (*capi.Library, error) {
	lib, err := capi.Open(file)
	if err == nil {
		return lib, nil
	}
	fault := modelfile.NoLibrary
	switch {
	case errors.Is(err, capi.ErrForeign):
		fault = modelfile.NotSherpa
	case errors.Is(err, capi.ErrVersion):
		fault = modelfile.Version
	}
	return nil, &modelfile.Problem{Fault: fault, File: file, Detail: err.Error()}
}

// CheckLibrary opens a library and says what is wrong with it, as a [*modelfile.Problem]. It stays open.
func CheckLibrary(file string) error {
	file, err := filepath.Abs(file)
	if err == nil {
		_, err = openLibrary(file)
	}
	return err
}

// refused makes a problem of the library's own refusal.
func refused(dir string, err error) error {
	if errors.Is(err, capi.ErrRefused) {
		return &modelfile.Problem{Fault: modelfile.Refused, File: dir}
	}
	return err
}

// Recognizer is an offline recogniser. It is safe for many connections at once; more utterances than decoders
// wait for one another.
type Recognizer struct {
	name   string
	log    *slog.Logger
	kind   modelfile.Kind
	found  string // model and library
	loader *loader[hearing]
	work   sync.WaitGroup // the goroutines of open streams

	mu     sync.Mutex
	closed bool
	open   map[*stream]struct{}
}

// New looks for the model and opens the library. The model is loaded only by Warm or by the first utterance. When
// something is missing the error is a *providers.Error of kind Unavailable, and wraps a [*modelfile.Problem].
func New(o Options) (*Recognizer, error) {
	o, err := o.complete()
	if err != nil {
		return nil, &providers.Error{Provider: o.Name, Op: "open", Kind: providers.BadRequest, Err: err}
	}
	r := &Recognizer{name: o.Name, log: o.Log, open: map[*stream]struct{}{}}
	m, lib, err := open(o, service.ASR)
	if err != nil {
		return nil, r.failed("open", err)
	}
	language, err := hint(o.Language, m.Languages())
	if err != nil {
		return nil, &providers.Error{Provider: o.Name, Op: "open", Kind: providers.BadRequest, Err: err}
	}
	tried := &trial{try: o.Try}
	r.kind, r.found = m.Kind, describe(m, lib)
	r.loader = newLoader(cmp.Or(o.Decoders, min(2, runtime.NumCPU())), func(ctx context.Context) (hearing, error) {
		if err := tried.run(ctx); err != nil {
			return nil, err
		}
		h, err := loadHearing(lib, m, language, o.Threads)
		return h, refused(m.Dir, err)
	})
	return r, nil
}

// hint returns the language of a BCP-47 tag as a model is told it.
func hint(tag string, known []string) (string, error) {
	base, rest, _ := strings.Cut(strings.ToLower(tag), "-")
	if base == "cmn" {
		base = "zh"
	}
	if base == "zh" && (rest == "hk" || rest == "yue") && slices.Contains(known, "yue") {
		base = "yue"
	}
	if base == "" || known == nil || slices.Contains(known, base) {
		return base, nil
	}
	return "", fmt.Errorf("the model does not know the language %q, but %s", tag, strings.Join(known, ", "))
}

// Name returns the provider's name in the config and in logs.
func (r *Recognizer) Name() string { return r.name }

// Describe names the model and the library, for people.
func (r *Recognizer) Describe() string { return r.found }

// describe names a model and a library.
func describe(m modelfile.Model, lib *capi.Library) string {
	return fmt.Sprintf("%s, %s (sherpa-onnx %s)", filepath.Base(m.Dir), m.Kind, lib.Version())
}

// Kind is the architecture of its model.
func (r *Recognizer) Kind() modelfile.Kind { return r.kind }

// Warm loads the model, so that the first utterance need not wait for it (seconds). It returns when ctx ends;
// the loading goes on.
func (r *Recognizer) Warm(ctx context.Context) error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return r.failed("load", errClosed)
	}
	loaded := make(chan error, 1)
	r.work.Go(func() {
		_, err := r.loader.acquire(ctx)
		if err == nil {
			r.loader.release()
		}
		loaded <- err
	})
	r.mu.Unlock()
	select {
	case err := <-loaded:
		return r.failed("load", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Open begins one utterance. It returns at once; a decoder is waited for when sound arrives. Its only errors are
// of kind BadRequest (a rate that is not 16000 Hz), Unavailable (the recogniser is closed) and the context's own.
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
		r.recognise(ctx, s)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open, s)
	})
	return s, nil
}

// Retire frees the model as soon as no utterance needs it: those that go on are finished, and one that begins
// later loads it for itself. It may be called at any time.
func (r *Recognizer) Retire() { r.loader.retire() }

// Close ends every open stream with an error, waits until the library has left them, and frees the model. Later
// calls of Open fail.
func (r *Recognizer) Close() error {
	r.mu.Lock()
	r.closed = true
	for s := range r.open {
		s.cancel(r.failed("transcribe", errClosed))
	}
	r.mu.Unlock()
	r.work.Wait()
	r.loader.retire()
	return nil
}

// failed makes the provider's error of err; a context's error and no error stay as they are.
func (r *Recognizer) failed(op string, err error) error { return failed(r.name, op, err) }

func failed(name, op string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &providers.Error{Provider: name, Op: op, Kind: providers.Unavailable, Err: err}
}

// recognise runs on the goroutine of one stream: it waits for sound, acquires a
// decoder, and ends with exactly one result, unless ctx ends first.
func (r *Recognizer) recognise(ctx context.Context, s *stream) {
	defer close(s.out)
	final, err := r.utterance(ctx, s)
	if ctx.Err() != nil {
		return // Transcripts says so by itself
	}
	if err != nil {
		s.out <- result{err: r.failed("transcribe", err)}
		return
	}
	s.out <- result{transcript: final}
}

// utterance recognises the sound of s.
func (r *Recognizer) utterance(ctx context.Context, s *stream) (providers.Transcript, error) {
	nothing := providers.Transcript{Final: true, Provider: r.name}
	pcm, more, err := s.take(nil, hearSamples)
	if err != nil || !more {
		return nothing, err
	}
	h, err := r.loader.acquire(ctx)
	if err != nil {
		return nothing, err
	}
	defer r.loader.release()
	u, err := h.begin()
	if err != nil {
		return nothing, err
	}
	defer u.free()
	stop := func() bool { return ctx.Err() != nil }
	last, samples := "", make([]float32, 0, hearSamples)
	for more {
		samples = floats(samples[:0], pcm)
		if words := u.hear(samples, stop); words != last {
			last = words
			s.partial(providers.Transcript{Text: words, Language: tongue(words), Provider: r.name})
		}
		if pcm, more, err = s.take(pcm[:0], hearSamples); err != nil {
			return nothing, err
		}
	}
	words, language, err := u.finish(stop)
	return providers.Transcript{Text: words, Final: true, Language: language, Provider: r.name}, err
}

// floats appends PCM as numbers from -1 to 1.
func floats(dst []float32, pcm []int16) []float32 {
	for _, s := range pcm {
		dst = append(dst, float32(s)/32768)
	}
	return dst
}
