package capi

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// VoiceKind says how a voice works.
type VoiceKind int

// The kinds of voices.
const (
	VITS VoiceKind = iota
	Matcha
	Kokoro
)

// VoiceModel names the files of a voice. What its kind does not have is empty.
type VoiceModel struct {
	Kind    VoiceKind
	Model   string // of Matcha: the acoustic model
	Vocoder string // of Matcha
	Voices  string // of Kokoro
	Lexicon string // several with commas between them
	Tokens  string
	Data    string // folder of espeak-ng
	Rules   string // .fst files that write numbers as words, with commas between them
	Archive string // .far files of the same, with commas between them
	Threads int
	Debug   bool // the library tells its settings on standard error
}

// Voice is a voice. It is for one goroutine at a time.
type Voice struct {
	lib *Library
	v   handle
}

// NewVoice loads a voice. It takes seconds and cannot be interrupted. It has to be freed.
func (l *Library) NewVoice(m VoiceModel) (*Voice, error) {
	cfg := &voiceConfig{ruleFsts: text(m.Rules), ruleFars: text(m.Archive), maxSentences: 1}
	c := &cfg.model
	switch m.Kind {
	case VITS:
		c.vits = vitsConfig{model: text(m.Model), lexicon: text(m.Lexicon), tokens: text(m.Tokens), dataDir: text(m.Data)}
	case Matcha:
		c.matcha = matchaConfig{acoustic: text(m.Model), vocoder: text(m.Vocoder), lexicon: text(m.Lexicon), tokens: text(m.Tokens), dataDir: text(m.Data)}
	case Kokoro:
		c.kokoro = kokoroConfig{model: text(m.Model), voices: text(m.Voices), tokens: text(m.Tokens), dataDir: text(m.Data), lexicon: text(m.Lexicon)}
	}
	c.threads, c.provider, c.debug = int32(m.Threads), text("cpu"), flag(m.Debug)
	v := l.voice.create(cfg)
	runtime.KeepAlive(cfg)
	if v == 0 {
		return nil, ErrRefused
	}
	return &Voice{l, v}, nil
}

// Free frees the voice.
func (v *Voice) Free() { v.lib.voice.destroy(v.v) }

// Rate is that of its sound, in Hz.
func (v *Voice) Rate() int { return int(v.lib.voice.rate(v.v)) }

// Speakers is the number of its speakers, at least 1.
func (v *Voice) Speakers() int { return max(1, int(v.lib.voice.speakers(v.v))) }

// Generate speaks a text and calls put with each piece of sound, from -1 to 1, as soon as it is made: a
// sentence of the text is a piece. What put is given is valid until it returns; when it returns false
// the rest is not made. It reports whether anything was made.
func (v *Voice) Generate(words string, speaker int, speed float64, put func(samples []float32) bool) bool {
	calls := &v.lib.voice
	listeners := callbacks()
	id := listeners.add(put)
	defer listeners.remove(id)
	cfg := &generationConfig{silenceScale: 0.2, speed: float32(speed), speaker: int32(speaker)}
	result := calls.generate(v.v, words, cfg, listeners.address, id)
	runtime.KeepAlive(cfg)
	if result == nil {
		return false
	}
	defer calls.forget(result)
	return result.n > 0
}

// callbacks are the functions that wait for sound. There is one table for the process, for a C function
// that was made of a Go one is never given back.
var callbacks = sync.OnceValue(func() *table {
	t := &table{put: make(map[uintptr]func([]float32) bool)}
	t.address = purego.NewCallback(t.call)
	return t
})

// table finds the function that a call of the library is for.
type table struct {
	address uintptr // of the C function

	mu   sync.Mutex
	last uintptr
	put  map[uintptr]func([]float32) bool
}

// call hands sound to its function. The library calls it on the thread that generates.
func (t *table) call(samples *float32, n int32, _ float32, id uintptr) int32 {
	t.mu.Lock()
	put := t.put[id]
	t.mu.Unlock()
	if put == nil || samples == nil || n < 0 {
		return 0
	}
	return flag(put(unsafe.Slice(samples, n)))
}

func (t *table) add(put func([]float32) bool) uintptr {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.put[t.last] = put
	return t.last
}

func (t *table) remove(id uintptr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.put, id)
}
