package capi

import (
	"runtime"
	"unsafe"
)

// OfflineModel names the files of a recogniser of whole utterances: SenseVoice, Paraformer, or Whisper's two.
type OfflineModel struct {
	SenseVoice       string
	Paraformer       string
	Encoder, Decoder string // of Whisper
	Tokens           string
	Language         string // of SenseVoice ("" and "auto": it finds out) and of Whisper ("": it finds out)
	Threads          int
	Debug            bool // the library tells its settings on standard error
}

// Offline is a recogniser of whole utterances. Any number of utterances may be recognised at the same time.
type Offline struct {
	lib *Library
	r   handle
}

// NewOffline loads a recogniser. It takes seconds and cannot be interrupted. It has to be freed.
func (l *Library) NewOffline(m OfflineModel) (*Offline, error) {
	cfg := &offlineConfig{feature: featureConfig{sampleRate, 80}}
	c := &cfg.model
	c.paraformer = text(m.Paraformer)
	c.senseVoice, c.senseLanguage, c.senseUseNumber = text(m.SenseVoice), text(m.Language), 1
	if m.Encoder != "" {
		c.whisper = whisperConfig{
			encoder: text(m.Encoder), decoder: text(m.Decoder), language: text(m.Language), task: text("transcribe"), tailPaddings: -1,
		}
	}
	c.tokens, c.threads, c.provider, c.debug = text(m.Tokens), int32(m.Threads), text("cpu"), flag(m.Debug)
	r := l.offline.create(cfg)
	runtime.KeepAlive(cfg)
	if r == 0 {
		return nil, ErrRefused
	}
	return &Offline{l, r}, nil
}

// Free frees the recogniser while it recognises nothing.
func (o *Offline) Free() { o.lib.offline.destroy(o.r) }

// Recognize gives the words of one utterance, from -1 to 1 at 16 kHz, and the language that the model
// heard, which is "" when it does not say. It takes as long as the model needs and cannot be interrupted.
func (o *Offline) Recognize(samples []float32) (words, language string, err error) {
	if len(samples) == 0 {
		return "", "", nil
	}
	calls := &o.lib.offline
	s := calls.stream(o.r)
	if s == 0 {
		return "", "", ErrRefused
	}
	defer calls.release(s)
	calls.accept(s, sampleRate, unsafe.SliceData(samples), int32(len(samples)))
	runtime.KeepAlive(samples)
	calls.decode(o.r, s)
	result := calls.result(s)
	if result == nil {
		return "", "", nil
	}
	defer calls.forget(result)
	return read(result.text), read(result.lang), nil
}
