package wyoming

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
)

// format is the format of sound, in events of sound.
type format struct {
	Rate     int `json:"rate"`
	Width    int `json:"width"`
	Channels int `json:"channels"`
}

// newASR checks a section and makes a recogniser. It dials nothing.
func newASR(s service.Section) (providers.ASR, error) {
	at, err := newServer(s, service.Timeouts{})
	if err != nil {
		return nil, err
	}
	model := s.Model(service.ASR, "")
	var streams atomic.Bool // most servers do not: one that does shows it
	dial := func(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
		c, err := at.dial(ctx)
		if err != nil {
			return nil, err
		}
		language, _, _ := strings.Cut(req.Language, "-")
		x := &session{conn: c, streams: &streams, format: format{Rate: req.Rate, Width: 2, Channels: 1}}
		if err := c.write("transcribe", transcribe{Name: model, Language: language}, nil); err != nil {
			c.Close()
			return nil, err
		}
		if err := c.write("audio-start", x.format, nil); err != nil {
			c.Close()
			return nil, err
		}
		return x, nil
	}
	// Servers begin when the sound is over, and a small machine takes its time.
	final := at.limits.First
	if final == 0 {
		final = 20 * time.Second
	}
	return recognition.New(recognition.Options{Account: at.account, Tries: s.Tries(), Dial: dial, Final: final, Streams: streams.Load}), nil
}

// transcribe asks for the words of the sound that follows.
type transcribe struct {
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
}

// session is one utterance. Servers close the connection after it.
type session struct {
	*conn
	format  format
	over    atomic.Bool  // the end was sent
	pieces  bool         // of the text have come
	streams *atomic.Bool // of the server: pieces came before the end
}

// Send hands over sound.
func (s *session) Send(pcm []int16) error {
	return s.write("audio-chunk", s.format, recognition.Bytes(pcm))
}

// Finish says that the sound is complete.
func (s *session) Finish() error {
	s.over.Store(true)
	return s.write("audio-stop", struct{}{}, nil)
}

// Receive waits for the next event. Servers that stream give pieces before the whole.
func (s *session) Receive() (recognition.Result, error) {
	e, err := s.read(0)
	if err != nil {
		return recognition.Result{}, err
	}
	r := recognition.Result{Text: e.text("text"), Language: e.text("language")}
	switch e.Type {
	case "transcript-chunk":
		r.Kind, s.pieces = recognition.Append, true
		if !s.over.Load() {
			s.streams.Store(true)
		}
	case "transcript":
		r.Kind = recognition.Over
	case "transcript-stop":
		if s.pieces { // and the whole was not said again
			r.Kind = recognition.Over
		}
	}
	return r, nil
}
