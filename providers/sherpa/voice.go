package sherpa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa/internal/capi"
	"xiaozhi/providers/sherpa/modelfile"
)

const (
	// MaxChars is the longest text of one request, in characters.
	MaxChars = 2000
	// maxPieces is the number of pieces of sound that wait for a slow listener, more than the clauses of the
	// longest text. So the library does not wait.
	maxPieces = 1024
)

// Voice is an offline voice. It is safe for many connections at once; more sentences than decoders wait for one
// another.
type Voice struct {
	name     string
	log      *slog.Logger
	kind     modelfile.Kind
	tongues  []text.Lang // that the model says it speaks; nil: it does not say
	found    string      // model and library
	speed    float64
	speaker  int
	speakers []string
	choose   func(req providers.TTSRequest) string
	voices   *voices
	work     sync.WaitGroup // the goroutines that speak

	mu     sync.Mutex
	closed bool
	ended  chan struct{} // closed by Close
}

// NewVoice looks for the model and opens the library. The model is loaded only by Warm or by the first sentence.
// When something is missing the error is a *providers.Error of kind Unavailable, and wraps a [*modelfile.Problem].
func NewVoice(o Options) (*Voice, error) {
	o, err := o.complete()
	if err != nil {
		return nil, &providers.Error{Provider: o.Name, Op: "open", Kind: providers.BadRequest, Err: err}
	}
	m, lib, err := open(o, service.TTS)
	if err != nil {
		return nil, failed(o.Name, "open", err)
	}
	v := &Voice{name: o.Name, log: o.Log, kind: m.Kind, tongues: tongues(m.Metadata["language"]), found: describe(m, lib), speed: o.Speed, speakers: m.Speakers(), choose: o.Choose, ended: make(chan struct{})}
	count, _ := strconv.Atoi(m.Metadata["n_speakers"])
	number, ok := v.number(o.Speaker)
	if !ok || number >= max(1, count) {
		return nil, &providers.Error{
			Provider: o.Name, Op: "open", Kind: providers.BadRequest,
			Err: fmt.Errorf("the model has no speaker %q: want 0 to %d%s", o.Speaker, max(1, count)-1, v.named()),
		}
	}
	v.speaker = number
	if v.choose == nil {
		v.choose = func(req providers.TTSRequest) string { return req.Voice }
	}
	tried := &trial{try: o.Try}
	v.voices = newVoices(cmp.Or(o.Decoders, 1), func(ctx context.Context) (*capi.Voice, error) {
		if err := tried.run(ctx); err != nil {
			return nil, err
		}
		voice, err := loadVoice(lib, m, o.Threads)
		return voice, refused(m.Dir, err)
	})
	return v, nil
}

// loadVoice loads a voice. It takes up to some seconds and cannot be interrupted.
func loadVoice(lib *capi.Library, m modelfile.Model, threads int) (*capi.Voice, error) {
	kinds := map[modelfile.Kind]capi.VoiceKind{modelfile.VITS: capi.VITS, modelfile.Matcha: capi.Matcha, modelfile.Kokoro: capi.Kokoro}
	return lib.NewVoice(capi.VoiceModel{
		Kind: kinds[m.Kind], Model: m.Network, Vocoder: m.Vocoder, Voices: m.Styles, Lexicon: m.Lexicon, Tokens: m.Tokens,
		Data: m.Data, Rules: m.Rules, Archive: m.Archives, Threads: threads,
	})
}

// tongues reads the languages in the metadata of a voice, such as "Chinese + English". It is nil if one of
// them is not known, as in "multi-lang, e.g., English".
func tongues(said string) []text.Lang {
	var out []text.Lang
	for name := range strings.FieldsFuncSeq(said, func(r rune) bool { return r == '+' || r == ',' || r == '/' || r == '&' }) {
		lang := text.LangNamed(strings.TrimSpace(name))
		if lang == "" {
			return nil
		}
		out = append(out, lang)
	}
	return out
}

// speaks reports whether the model may speak a language.
func (v *Voice) speaks(lang text.Lang) bool {
	return lang == "" || v.tongues == nil || slices.ContainsFunc(v.tongues, func(own text.Lang) bool {
		return own.Base() == lang.Base() || own.IsChinese() && lang.IsChinese()
	})
}

// named lists the names of the speakers, where they have any.
func (v *Voice) named() string {
	if len(v.speakers) == 0 {
		return ""
	}
	return ", or " + strings.Join(v.speakers, ", ")
}

// number is that of a speaker by number or name.
func (v *Voice) number(speaker string) (int, bool) {
	if speaker == "" {
		return 0, true
	}
	if i := slices.Index(v.speakers, speaker); i >= 0 {
		return i, true
	}
	n, err := strconv.Atoi(speaker)
	return n, err == nil && n >= 0
}

// Name returns the provider's name in the config and in logs.
func (v *Voice) Name() string { return v.name }

// Describe names the model and the library, for people.
func (v *Voice) Describe() string { return v.found }

// Kind is the architecture of its model.
func (v *Voice) Kind() modelfile.Kind { return v.kind }

// Speakers are the names of its speakers, where the model tells them.
func (v *Voice) Speakers() []string { return slices.Clone(v.speakers) }

// Warm loads the model, so that the first sentence need not wait for it (seconds). It returns when ctx ends; the
// loading goes on.
func (v *Voice) Warm(ctx context.Context) error {
	loaded := make(chan error, 1)
	if !v.begin(func() {
		voice, err := v.voices.acquire(ctx)
		if err == nil {
			v.voices.release(voice)
		}
		loaded <- err
	}) {
		return failed(v.name, "load", errClosed)
	}
	select {
	case err := <-loaded:
		return failed(v.name, "load", err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts a goroutine that Close waits for, unless it is closed.
func (v *Voice) begin(work func()) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.closed {
		v.work.Go(work)
	}
	return !v.closed
}

// Synthesize streams PCM of one sentence, at the model's own rate. Each clause is a piece: the first comes as soon
// as it is made. A voice that the model does not have is another provider's and is passed over. Errors: BadRequest
// for a text that is too long and, with [providers.ErrLanguage], for a language that the model says it does not speak;
// Unavailable when the model cannot be loaded or makes no sound of the text.
func (v *Voice) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		if err := v.synthesize(ctx, req, func(s providers.Sound) bool { return yield(s, nil) }); err != nil {
			yield(providers.Sound{}, err)
		}
	}
}

func (v *Voice) synthesize(ctx context.Context, req providers.TTSRequest, yield func(providers.Sound) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(req.Text); n > MaxChars {
		return &providers.Error{
			Provider: v.name, Op: "synthesize", Kind: providers.BadRequest, Err: fmt.Errorf("text of %d characters: at most %d", n, MaxChars),
		}
	}
	parts := clauses(req.Text)
	if len(parts) == 0 {
		return nil
	}
	if lang := text.TagOf(req.Language); !v.speaks(lang) {
		return &providers.Error{
			Provider: v.name, Op: "synthesize", Kind: providers.BadRequest, Err: fmt.Errorf("%w: %s, but %v", providers.ErrLanguage, lang, v.tongues),
		}
	}
	speaker := v.speaker
	if asked := v.choose(req); asked != "" {
		if n, ok := v.number(asked); ok {
			speaker = n
		}
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	sound := make(chan providers.Sound, maxPieces)
	var broken error // to be read when sound is closed
	if !v.begin(func() {
		defer close(sound)
		broken = v.speak(work, parts, speaker, sound)
	}) {
		return failed(v.name, "synthesize", errClosed)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-v.ended:
			return failed(v.name, "synthesize", errClosed)
		case piece, more := <-sound:
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case !more:
				return failed(v.name, "synthesize", broken)
			case !yield(piece):
				return nil
			}
		}
	}
}

var errSilent = errors.New("the model makes no sound of the text")

// speak makes the sound of clauses, until ctx ends or the voice is closed.
func (v *Voice) speak(ctx context.Context, parts []string, speaker int, sound chan<- providers.Sound) error {
	voice, err := v.voices.acquire(ctx)
	if err != nil {
		return err
	}
	defer v.voices.release(voice)
	if speaker >= voice.Speakers() {
		speaker = v.speaker
	}
	rate, made := voice.Rate(), false
	put := func(samples []float32) bool {
		piece := providers.Sound{Rate: rate, PCM: pcm(samples)}
		select {
		case <-v.ended:
			return false
		case <-ctx.Done():
			return false
		default:
		}
		select {
		case sound <- piece:
			made = made || len(samples) > 0
			return true
		case <-v.ended:
		case <-ctx.Done():
		}
		return false
	}
	for _, part := range parts {
		if ctx.Err() != nil || v.over() {
			return ctx.Err()
		}
		voice.Generate(part, speaker, v.speed, put)
	}
	if !made && ctx.Err() == nil && !v.over() {
		return errSilent
	}
	return ctx.Err()
}

// over reports whether the voice was closed.
func (v *Voice) over() bool {
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

// Retire frees each model as soon as nobody has it, from now on. It may be called at any time.
func (v *Voice) Retire() { v.voices.retire() }

// Close ends every loop with an error, waits until the library has left them, and frees the models.
func (v *Voice) Close() error {
	v.mu.Lock()
	if !v.closed {
		v.closed = true
		close(v.ended)
	}
	v.mu.Unlock()
	v.work.Wait()
	v.voices.retire()
	return nil
}

// pcm makes samples of numbers from -1 to 1.
func pcm(samples []float32) []int16 {
	out := make([]int16, len(samples))
	for i, s := range samples {
		switch {
		case s >= 1:
			out[i] = 32767
		case s <= -1:
			out[i] = -32768
		case s == s: // a number
			out[i] = int16(s * 32767)
		}
	}
	return out
}
