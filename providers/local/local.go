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
// sound of one unit (flite.go, espeak.go), and the shaper brings it to one
// loudness and cuts the silence around it (shape.go). The next unit is made when
// the former one has been taken, so a slow listener holds the sound of one unit
// in memory, and neither a process nor flite's lock.
package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"unicode/utf8"

	"xiaozhi/audio"
	"xiaozhi/providers"
)

// MaxChars is the longest text of one request, in characters.
const MaxChars = 2000

const op = "synthesize"

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
	front   *frontEnd
	english engine // nil: not installed
	chinese engine // nil: not installed
	found   []string
}

// engine makes the sound of one unit of one language.
type engine interface {
	// speak calls put with pieces of PCM that put may keep. It returns within
	// 100 ms of the end of ctx. put never waits.
	speak(ctx context.Context, text, voice string, put func([]int16)) error
	rate(voice string) int // Hz
	gain(voice string) float32
}

// New looks for the engines. A missing engine is no error here: Synthesize says
// what to install when its language is asked for. A setting that can never work
// is an error. ctx is about the looking only.
func New(ctx context.Context, o Options) (*Synthesizer, error) {
	if o.Name == "" {
		o.Name = "local"
	}
	if o.EnglishVoice == "" {
		o.EnglishVoice = defaultVoice
	}
	if _, ok := fliteVoices[o.EnglishVoice]; !ok {
		return nil, fmt.Errorf("%s: english voice %q: want rms, slt, awb, kal16 or kal", o.Name, o.EnglishVoice)
	}
	if o.ChineseSpeed == 0 {
		o.ChineseSpeed = 220
	}
	if o.ChineseSpeed < 80 || o.ChineseSpeed > 450 {
		return nil, fmt.Errorf("%s: chinese speed %d: want 80 to 450 words a minute", o.Name, o.ChineseSpeed)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	front, err := newFrontEnd()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	s := &Synthesizer{name: o.Name, log: o.Log.With("provider", o.Name), front: front}
	s.look(ctx, o)
	return s, nil
}

// look finds the engines and notes what was found.
func (s *Synthesizer) look(ctx context.Context, o Options) {
	slots := make(chan struct{}, maxProcesses)
	path, version := findEspeak(ctx, o.EspeakPath)
	if path != "" {
		s.chinese = &espeak{path: path, voice: chineseVoice, speed: o.ChineseSpeed, slots: slots}
		defer func() {
			s.found = append(s.found, fmt.Sprintf("espeak-ng %s (%s)", version, chineseVoice))
		}()
	}
	if lib, err := findFlite(o); err == nil {
		s.english = lib
		s.found = append(s.found, lib.describe())
	} else if path != "" {
		s.log.Debug("flite not found, espeak-ng speaks English", "err", err)
		s.english = &espeak{path: path, voice: englishVoice, speed: 165, slots: slots}
	}
}

// Found names the engines that were found, for the start banner.
func (s *Synthesizer) Found() []string { return s.found }

// Languages lists what can be spoken: "en", "zh", both or neither.
func (s *Synthesizer) Languages() []string {
	var all []string
	if s.english != nil {
		all = append(all, "en")
	}
	if s.chinese != nil {
		all = append(all, "zh")
	}
	return all
}

// Name returns the provider's name in the config and in logs.
func (s *Synthesizer) Name() string { return s.name }

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
	units, foreign := s.front.plan(req.Text, req.Language)
	if foreign != "" {
		if len(units) == 0 {
			return s.fail(providers.BadRequest,
				fmt.Errorf("no English or Chinese in the text, only other scripts (first sign %q)", foreign))
		}
		s.log.Debug("signs of other scripts are not spoken", "first", foreign)
	}
	rate, err := s.pick(units, req.Voice)
	if err != nil {
		return err
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

// pick checks that every unit has an engine and chooses the rate of the sentence.
func (s *Synthesizer) pick(units []unit, voice string) (int, error) {
	rate := 0
	for _, u := range units {
		e, err := s.engineFor(u.lang)
		if err != nil {
			return 0, err
		}
		rate = max(rate, e.rate(voice))
	}
	return rate, nil
}

func (s *Synthesizer) engineFor(lang string) (engine, error) {
	if lang == zh {
		if s.chinese == nil {
			return nil, s.fail(providers.Unavailable, errors.New("no engine for Chinese: install the Debian package espeak-ng"))
		}
		return s.chinese, nil
	}
	if s.english == nil {
		return nil, s.fail(providers.Unavailable, errors.New("no engine for English: install the Debian package flite"))
	}
	return s.english, nil
}

// speakUnit makes the sound of one unit in a goroutine of its own, so that the
// engine never waits for the listener, and hands it on. It returns when that
// goroutine has ended.
func (s *Synthesizer) speakUnit(ctx context.Context, u unit, voice string, rate int, yield func(providers.Sound) bool) error {
	e, err := s.engineFor(u.lang)
	if err != nil {
		return err
	}
	sh := newShaper(e.gain(voice), e.rate(voice))
	if e.rate(voice) != rate {
		if sh.resampler, err = audio.NewResampler(e.rate(voice), rate); err != nil {
			return s.fail(providers.Unavailable, err)
		}
	}
	work, cancel := context.WithCancel(ctx)
	sound := newSoundBuffer()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := e.speak(work, u.text, voice, func(pcm []int16) { sound.put(sh.write(pcm)) })
		if err == nil {
			sound.put(sh.finish(u.pause))
		}
		sound.end(err)
	}()
	defer func() { cancel(); <-done }()
	for {
		pcm, err := sound.take(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return s.fail(providers.Unavailable, err)
		case pcm == nil:
			return nil
		case !yield(providers.Sound{Rate: rate, PCM: pcm}):
			return errLeft
		}
	}
}

func (s *Synthesizer) fail(k providers.Kind, err error) error {
	return &providers.Error{Provider: s.name, Op: op, Kind: k, Err: err}
}
