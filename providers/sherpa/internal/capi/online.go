package capi

import (
	"errors"
	"runtime"
	"unsafe"
)

// ErrRefused says that the library made no object of the files that it was given. It says why on
// standard error.
var ErrRefused = errors.New("the library refused the model")

// sampleRate is that of all sound for recognition, in Hz.
const sampleRate = 16000

// OnlineModel names the files of a streaming recogniser: those of a transducer, or without a joiner those
// of a paraformer.
type OnlineModel struct {
	Encoder, Decoder, Joiner string
	Tokens                   string
	Threads                  int
	Debug                    bool // the library tells its settings on standard error
}

// Online is a streaming recogniser. Any number of its streams may be used at the same time.
type Online struct {
	lib *Library
	r   handle
}

// NewOnline loads a streaming recogniser. It takes seconds and cannot be interrupted. It has to be freed.
func (l *Library) NewOnline(m OnlineModel) (*Online, error) {
	cfg := &onlineConfig{feature: featureConfig{sampleRate, 80}, method: text("greedy_search")}
	c := &cfg.model
	if m.Joiner != "" {
		c.transducer = [3]*byte{text(m.Encoder), text(m.Decoder), text(m.Joiner)}
	} else {
		c.paraformer = [2]*byte{text(m.Encoder), text(m.Decoder)}
	}
	c.tokens, c.threads, c.provider, c.debug = text(m.Tokens), int32(m.Threads), text("cpu"), flag(m.Debug)
	r := l.online.create(cfg)
	runtime.KeepAlive(cfg)
	if r == 0 {
		return nil, ErrRefused
	}
	return &Online{l, r}, nil
}

// Free frees the recogniser, whose streams are all freed already.
func (o *Online) Free() { o.lib.online.destroy(o.r) }

// OnlineStream is one utterance. It is for one goroutine.
type OnlineStream struct {
	of *Online
	s  handle
}

// Stream begins an utterance. It has to be freed.
func (o *Online) Stream() (*OnlineStream, error) {
	s := o.lib.online.stream(o.r)
	if s == 0 {
		return nil, ErrRefused
	}
	return &OnlineStream{o, s}, nil
}

// Accept takes sound, from -1 to 1.
func (s *OnlineStream) Accept(samples []float32) {
	if len(samples) > 0 {
		s.of.lib.online.accept(s.s, sampleRate, unsafe.SliceData(samples), int32(len(samples)))
		runtime.KeepAlive(samples)
	}
}

// Finish says that the utterance is complete.
func (s *OnlineStream) Finish() { s.of.lib.online.finish(s.s) }

// Step searches the next piece of what was accepted, some tenths of a second, and reports whether there was one.
func (s *OnlineStream) Step() bool {
	if s.of.lib.online.ready(s.of.r, s.s) != 1 {
		return false
	}
	s.of.lib.online.decode(s.of.r, s.s)
	return true
}

// Text returns the words so far.
func (s *OnlineStream) Text() string {
	result := s.of.lib.online.result(s.of.r, s.s)
	if result == nil {
		return ""
	}
	defer s.of.lib.online.forget(result)
	return read(result.text)
}

// Free ends the utterance.
func (s *OnlineStream) Free() { s.of.lib.online.release(s.s) }

// flag makes a C truth value.
func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
