package sherpa

import (
	"strings"
	"unicode"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/sherpa/internal/capi"
	"xiaozhi/providers/sherpa/modelfile"
)

// hearing is a loaded recogniser, whose utterances may be heard at the same time.
type hearing interface {
	begin() (utterance, error)
	Free()
}

// utterance is one that a model hears. It is for one goroutine.
type utterance interface {
	// hear takes sound and returns what was understood so far. When stop is true it
	// returns early, and what it returns does not count.
	hear(samples []float32, stop func() bool) string
	// finish completes the utterance. language is "" when the model does not say.
	finish(stop func() bool) (words, language string, err error)
	free()
}

// loadHearing loads a recogniser. It takes up to some seconds and cannot be interrupted.
func loadHearing(lib *capi.Library, m modelfile.Model, language string, threads int) (hearing, error) {
	if m.Kind.Streams() {
		o, err := lib.NewOnline(capi.OnlineModel{Encoder: m.Encoder, Decoder: m.Decoder, Joiner: m.Joiner, Tokens: m.Tokens, Threads: threads})
		if err != nil {
			return nil, err
		}
		return streaming{o, m.Kind == modelfile.Transducer}, nil
	}
	files := capi.OfflineModel{Tokens: m.Tokens, Language: language, Threads: threads}
	limit := providers.MaxUtterance * sampleRate
	switch m.Kind {
	case modelfile.SenseVoice:
		files.SenseVoice = m.Network
	case modelfile.Paraformer:
		files.Paraformer = m.Network
	default:
		files.Encoder, files.Decoder = m.Encoder, m.Decoder
		limit = whisperSamples
	}
	o, err := lib.NewOffline(files)
	if err != nil {
		return nil, err
	}
	return whole{o, limit}, nil
}

// streaming hears while speech goes on.
type streaming struct {
	*capi.Online
	capitals bool // its English is in capitals
}

func (s streaming) begin() (utterance, error) {
	stream, err := s.Stream()
	if err != nil {
		return nil, err
	}
	return &streamed{stream, s.capitals}, nil
}

// streamed is an utterance that is understood while speech goes on.
type streamed struct {
	*capi.OnlineStream
	capitals bool
}

// tail is the silence behind an utterance, 0.66 s: the model looks so far ahead.
const tail = sampleRate * 66 / 100

func (s *streamed) hear(samples []float32, stop func() bool) string {
	s.Accept(samples)
	for !stop() && s.Step() {
	}
	return s.words()
}

func (s *streamed) finish(stop func() bool) (string, string, error) {
	s.Accept(make([]float32, tail))
	s.Finish()
	for !stop() && s.Step() {
	}
	words := s.words()
	return words, tongue(words), nil
}

func (s *streamed) words() string { return tidy(s.Text(), s.capitals) }

func (s *streamed) free() { s.Free() }

// whole hears utterances when they have ended.
type whole struct {
	*capi.Offline
	limit int // samples that the model takes at once
}

func (w whole) begin() (utterance, error) { return &gathered{of: w}, nil }

// gathered is an utterance that is understood when it has ended.
type gathered struct {
	of      whole
	samples []float32
}

func (g *gathered) hear(samples []float32, _ func() bool) string {
	g.samples = append(g.samples, samples...)
	return ""
}

func (g *gathered) finish(stop func() bool) (words, language string, err error) {
	for rest := g.samples; len(rest) > 0 && !stop(); {
		n := cut(rest, g.of.limit)
		more, heard, err := g.of.Recognize(rest[:n])
		if err != nil {
			return "", "", err
		}
		words, rest = text.Join(words, tidy(more, false)), rest[n:]
		if language == "" {
			language = strings.Trim(heard, "<|>")
		}
	}
	if language == "" {
		language = tongue(words)
	}
	if words == "" {
		language = ""
	}
	return words, language, nil
}

func (g *gathered) free() { g.samples = nil }

// Whisper takes 30 s at once: what is longer is cut where it is quiet.
const (
	whisperSamples = 28 * sampleRate
	cutWithin      = 6 * sampleRate
	cutWindow      = sampleRate / 10
)

// cut returns where to end a piece of at most limit samples: at the quietest 100 ms of its last 6 s.
func cut(samples []float32, limit int) int {
	if len(samples) <= limit {
		return len(samples)
	}
	at, quietest := limit, float32(-1)
	for from := limit - cutWithin; from+cutWindow <= limit; from += cutWindow {
		var energy float32
		for _, s := range samples[from : from+cutWindow] {
			energy += s * s
		}
		if quietest < 0 || energy < quietest {
			at, quietest = from+cutWindow/2, energy
		}
	}
	return at
}

// tidy brings the words of a model into the usual form.
func tidy(words string, capitals bool) string {
	words = strings.TrimSpace(words)
	if capitals && strings.IndexFunc(words, unicode.IsLower) < 0 {
		words = strings.ToLower(words)
	}
	return words
}

// tongue is the language of words, or "" of none.
func tongue(words string) string {
	if words == "" {
		return ""
	}
	return text.Of(words).Pick("zh", "en")
}
