// Package local speaks without a key and without a network: English by flite,
// Chinese by espeak-ng.
//
// flite is loaded at run time, so the program starts without it. espeak-ng is
// GPL and therefore only ever run as a process; its Chinese voice is
// cmn-latn-pinyin and is given pinyin with tone digits, because the voices cmn
// and zh of Debian 12 read most characters as English letters, and because its
// own dictionary knows few words with several readings.
//
// A sentence goes through three steps: the front end turns text into short
// units of one language each (plan.go and what it calls), an engine makes the
// sound of one unit (flite.go, process.go), and the shaper brings it to one
// loudness and cuts the silence around it (shape.go). The next unit is made when
// the former one has been taken, so a slow listener holds the sound of one unit
// in memory, and neither a process nor flite's lock.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"unicode/utf8"

	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// MaxChars is the longest text of one request, in characters.
const MaxChars = 2000

// maxPieces is the number of pieces of sound that wait for a slow listener: three
// times those of the longest unit (about 15 s, in pieces of some 100 ms). So an
// engine does not wait.
const maxPieces = 512

// Options choose the engines and voices. The zero value works.
type Options struct {
	// Name is the provider's name in errors and logs; "" is "local".
	Name string
	// EnglishVoice is a flite voice: rms, slt, awb, kal16 or kal; "" is rms,
	// the one that recognisers understand best.
	EnglishVoice string
	// ChineseSpeed is espeak-ng's speed in words a minute, 80 to 450; 0 is 220.
	ChineseSpeed int
	// EspeakPath is the espeak-ng program; "" looks it up in PATH.
	EspeakPath string
	// FlitePath is a flite program to use in place of the library; "" takes the
	// library and, when there is none, the program found in PATH.
	FlitePath string
	// Log gets what was read over in a text, at Debug; nil is silence.
	Log *slog.Logger
}

// Synthesizer is a providers.TTS. It is safe for many callers at once.
type Synthesizer struct {
	name    string
	log     *slog.Logger
	reader  *reader
	english engine // nil: not installed
	chinese engine // nil: not installed
	found   []string
}

// engine makes the sound of one unit of one language.
type engine interface {
	// speak calls put with pieces of PCM that put may keep. It returns within
	// 100 ms of the end of ctx. put never waits.
	speak(ctx context.Context, text, voice string, put func([]int16)) error
	traits(voice string) voiceTraits
}

// New looks for the engines. A missing engine is no error here: Synthesize says
// what to install when its language is asked for. A setting that can never work
// is an error. ctx is about the looking only.
func New(ctx context.Context, o Options) (*Synthesizer, error) {
	o.Name, o.EnglishVoice, o.ChineseSpeed = cmp.Or(o.Name, "local"), cmp.Or(o.EnglishVoice, defaultVoice), cmp.Or(o.ChineseSpeed, 220)
	if _, ok := fliteVoices[o.EnglishVoice]; !ok {
		return nil, fmt.Errorf("%s: english voice %q: want rms, slt, awb, kal16 or kal", o.Name, o.EnglishVoice)
	}
	if o.ChineseSpeed < 80 || o.ChineseSpeed > 450 {
		return nil, fmt.Errorf("%s: chinese speed %d: want 80 to 450 words a minute", o.Name, o.ChineseSpeed)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Synthesizer{name: o.Name, log: o.Log.With("provider", o.Name), reader: newReader()}
	s.look(ctx, o)
	return s, nil
}

// look finds the engines and notes what was found.
func (s *Synthesizer) look(ctx context.Context, o Options) {
	slots := make(chan struct{}, maxProcesses)
	path, version := findEspeak(ctx, o.EspeakPath)
	if lib, err := findFlite(o, slots); err == nil {
		s.english = lib
		s.found = append(s.found, lib.describe())
	} else if path != "" {
		s.log.Debug("flite not found, espeak-ng speaks English", "err", err)
		s.english = &espeak{path: path, voice: englishVoice, speed: 165, slots: slots}
	}
	if path != "" {
		s.chinese = &espeak{path: path, voice: chineseVoice, speed: o.ChineseSpeed, slots: slots}
		s.found = append(s.found, fmt.Sprintf("espeak-ng %s (%s)", version, chineseVoice))
	}
}

// Found names the engines that were found, for the start banner.
func (s *Synthesizer) Found() []string { return s.found }

// Name returns the provider's name in the config and in logs.
func (s *Synthesizer) Name() string { return s.name }

// Capabilities says that it begins at once: the first sound takes 12 ms in Chinese and 35 ms in English (BenchmarkChinese,
// BenchmarkEnglish), and the phrases that are said often take 280 ms of processor to speak ahead.
func (s *Synthesizer) Capabilities() providers.Capabilities {
	return providers.Capabilities{Instant: true}
}

// Synthesize streams PCM of one sentence, all of it at one rate: the English
// voice's rate (16,000 Hz) when only English is in it, else 22,050 Hz. A voice
// that is not one of flite's is another provider's and is passed over. Errors:
// BadRequest for a text that is too long or has no sign we can read,
// Unavailable for an engine that is missing or broke.
func (s *Synthesizer) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		err := s.synthesize(ctx, req, func(snd providers.Sound) bool { return yield(snd, nil) })
		if err != nil && !errors.Is(err, errLeft) {
			yield(providers.Sound{}, err)
		}
	}
}

// errLeft says that the listener left the loop.
var errLeft = errors.New("listener left")

func (s *Synthesizer) synthesize(ctx context.Context, req providers.TTSRequest, yield func(providers.Sound) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(req.Text); n > MaxChars {
		return s.fail(providers.BadRequest, fmt.Errorf("text of %d characters: at most %d", n, MaxChars))
	}
	if !text.Lang(req.Language).IsOwn() {
		return s.fail(providers.BadRequest, fmt.Errorf("%w: %s, only Chinese and English", providers.ErrLanguage, req.Language))
	}
	lang := req.Language
	if text.Lang(lang).IsChinese() {
		lang = zh
	}
	units, foreign := s.reader.plan(req.Text, lang)
	if foreign != "" {
		if len(units) == 0 {
			return s.fail(providers.BadRequest,
				fmt.Errorf("%w: no English or Chinese in the text, only other scripts (first sign %q)", providers.ErrLanguage, foreign))
		}
		s.log.Debug("signs of other scripts are not spoken", "first", foreign)
	}
	rate := 0
	for _, u := range units {
		e, err := s.engine(u.lang)
		if err != nil {
			return err
		}
		rate = max(rate, e.traits(req.Voice).rate)
	}
	for i, u := range units {
		if i == len(units)-1 {
			u.pause = 0
		}
		if err := s.speakUnit(ctx, u, req.Voice, rate, yield); err != nil {
			return err
		}
	}
	return nil
}

// engine returns the engine of a language, or says what to install.
func (s *Synthesizer) engine(lang string) (engine, error) {
	switch {
	case lang == zh && s.chinese != nil:
		return s.chinese, nil
	case lang == zh:
		return nil, s.fail(providers.Unavailable, errors.New("no engine for Chinese: install the Debian package espeak-ng"))
	case s.english != nil:
		return s.english, nil
	}
	return nil, s.fail(providers.Unavailable, errors.New("no engine for English: install the Debian package flite"))
}

// speakUnit makes the sound of one unit in a goroutine of its own, so that the
// engine never waits for the listener, and hands it on. It returns when that
// goroutine has ended.
func (s *Synthesizer) speakUnit(ctx context.Context, u unit, voice string, rate int, yield func(providers.Sound) bool) error {
	e, err := s.engine(u.lang)
	if err != nil {
		return err
	}
	from := e.traits(voice)
	sh := newShaper(from)
	if from.rate != rate {
		if sh.resampler, err = audio.NewResampler(from.rate, rate); err != nil {
			return s.fail(providers.Unavailable, err)
		}
	}
	work, cancel := context.WithCancel(ctx)
	sound := make(chan []int16, maxPieces)
	put := func(pcm []int16) {
		if len(pcm) > 0 {
			select {
			case sound <- slices.Clone(pcm):
			case <-work.Done():
			}
		}
	}
	var broken error // to be read when sound is closed
	go func() {
		defer close(sound)
		broken = e.speak(work, u.text, voice, func(pcm []int16) { put(sh.write(pcm)) })
		if broken == nil {
			put(sh.finish(u.pause))
		}
	}()
	defer func() { // until the engine is done
		cancel()
		for range sound {
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case pcm, more := <-sound:
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case !more && broken != nil:
				return s.fail(providers.Unavailable, broken)
			case !more:
				return nil
			case !yield(providers.Sound{Rate: rate, PCM: pcm}):
				return errLeft
			}
		}
	}
}

func (s *Synthesizer) fail(k providers.Kind, err error) error {
	return &providers.Error{Provider: s.name, Op: "synthesize", Kind: k, Err: err}
}
