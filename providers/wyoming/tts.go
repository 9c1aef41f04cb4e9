package wyoming

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
)

// TTS is a voice. Each sentence has a connection of its own.
type TTS struct {
	server
	section service.Section
	players sound.Pool
}

// NewTTS checks a section and makes a voice. It asks the server nothing.
func NewTTS(s service.Section) (providers.TTS, error) {
	at, err := newServer(s, service.Timeouts{First: 10 * time.Second, Next: 5 * time.Second})
	if err != nil {
		return nil, err
	}
	return &TTS{server: at, section: s}, nil
}

// Name returns the provider's name.
func (t *TTS) Name() string { return t.account.Name }

// Synthesize streams the sound of one sentence as PCM as it comes.
func (t *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return t.players.Speak(ctx, req, sound.Longest{}, func(part providers.TTSRequest, p *sound.Player) error {
		if err := t.speak(ctx, part, p); err != nil && !p.Left() {
			return t.account.Wrap(ctx, ctx, "speak", err)
		}
		return nil
	})
}

// voice is the member of a request that names a voice.
type voice struct {
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
	Speaker  string `json:"speaker,omitempty"`
}

// speak asks for the sound and plays it. Its errors are not yet wrapped.
func (t *TTS) speak(ctx context.Context, req providers.TTSRequest, p *sound.Player) error {
	c, err := t.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	data := struct {
		Text  string `json:"text"`
		Voice *voice `json:"voice,omitempty"`
	}{Text: req.Text}
	if v := (voice{Name: t.section.Voice(req, ""), Speaker: t.section.Text("speaker", "")}); v != (voice{}) {
		if data.Voice = &v; v.Name == "" {
			v.Language = req.Language
		}
	}
	if err := c.write("synthesize", data, nil); err != nil {
		return err
	}
	in := &stream{conn: c, limit: t.limits.First, next: t.limits.Next}
	if err := in.begin(); err != nil {
		return err
	}
	if err := p.Decode(in, sound.Expected{Format: "pcm", Rate: in.rate, MediaType: "audio/pcm"}); err != nil {
		return err
	}
	if !p.Heard() && !p.Left() {
		return errNoSound
	}
	return nil
}

var errNoSound = errors.New("the server sent no sound")

// stream reads the sound of a sentence, as one channel of 16 bit samples.
type stream struct {
	conn     *conn
	limit    time.Duration // for the next event
	next     time.Duration // for those after the first sound
	rate     int           // Hz
	channels int
	raw      []byte // that has come and is not read
	rest     []byte // of raw that is one channel
	ended    bool
}

// begin waits for the format of the sound.
func (s *stream) begin() error {
	for s.rate == 0 && !s.ended {
		if err := s.event(); err != nil {
			return err
		}
	}
	if s.ended && len(s.rest) == 0 {
		return errNoSound
	}
	return nil
}

// Read gives what has come of the sound.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.ended {
			return 0, io.EOF
		}
		if err := s.event(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// event waits for the next event. Those that are not of sound are gone over.
func (s *stream) event() error {
	e, err := s.conn.read(s.limit)
	if err != nil {
		return err
	}
	switch e.Type {
	case "audio-start", "audio-chunk":
		if err := s.format(e); err != nil {
			return err
		}
		if len(e.Payload) > 0 && e.Type == "audio-chunk" {
			s.take(e.Payload)
			s.limit = s.next
		}
	case "audio-stop":
		s.ended = true
	}
	return nil
}

// format takes the format of the sound from an event that tells of it. It stays the same.
func (s *stream) format(e event) error {
	rate, channels := e.number("rate", s.rate), e.number("channels", max(s.channels, 1))
	width := e.number("width", 2)
	changed := s.rate != 0 && (rate != s.rate || channels != s.channels)
	if width != 2 || rate < sound.MinRate || rate > sound.MaxRate || channels < 1 || channels > 2 || changed {
		return fmt.Errorf("the server sent sound of %d bytes a sample, %d Hz and %d channels", width, rate, channels)
	}
	s.rate, s.channels = rate, channels
	return nil
}

// take adds sound: of two channels the mean, as soon as both have come.
func (s *stream) take(payload []byte) {
	if s.channels == 1 {
		s.rest = payload
		return
	}
	s.raw = append(s.raw, payload...)
	var mono []byte
	for ; len(s.raw) >= 4; s.raw = s.raw[4:] {
		left, right := int16(binary.LittleEndian.Uint16(s.raw)), int16(binary.LittleEndian.Uint16(s.raw[2:]))
		mono = binary.LittleEndian.AppendUint16(mono, uint16(int16((int(left)+int(right))/2)))
	}
	s.rest = mono
}
