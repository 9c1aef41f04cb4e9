package wyoming

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// TTS is a voice. Each sentence has a connection of its own.
type TTS struct {
	server
	section service.Section
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
	return func(yield func(providers.Sound, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(providers.Sound{}, err)
			return
		}
		if strings.TrimSpace(req.Text) == "" {
			return
		}
		p := &player{yield: yield}
		if err := t.speak(ctx, req, p); err != nil && !p.left {
			yield(providers.Sound{}, t.account.Wrap(ctx, ctx, "speak", err))
		}
	}
}

// voice is the member of a request that names a voice.
type voice struct {
	Name     string `json:"name,omitempty"`
	Language string `json:"language,omitempty"`
	Speaker  string `json:"speaker,omitempty"`
}

// speak asks for the sound and plays it. Its errors are not yet wrapped.
func (t *TTS) speak(ctx context.Context, req providers.TTSRequest, p *player) error {
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
	for limit := t.limits.First; !p.left; {
		e, err := c.read(limit)
		if err != nil {
			return err
		}
		switch e.Type {
		case "audio-start", "audio-chunk":
			if err := p.format(e); err != nil {
				return err
			}
			if len(e.Payload) > 0 && e.Type == "audio-chunk" {
				p.play(e.Payload)
				limit = t.limits.Next
			}
		case "audio-stop":
			if !p.heard {
				return errors.New("the server sent no sound")
			}
			return nil
		}
	}
	return nil
}

// player hands sound to the consumer of a loop.
type player struct {
	yield    func(providers.Sound, error) bool
	rate     int
	channels int
	raw      []byte  // of a sample that is not whole yet, in front of what comes
	pcm      []int16 // kept for the next piece
	heard    bool    // something was yielded
	left     bool    // the consumer has left the loop
}

// format takes the format of the sound from an event that tells of it.
func (p *player) format(e event) error {
	p.rate, p.channels = e.number("rate", p.rate), e.number("channels", max(p.channels, 1))
	if width := e.number("width", 2); width != 2 || p.rate < 8000 || p.rate > 48000 || p.channels < 1 || p.channels > 2 {
		return fmt.Errorf("the server sent sound of %d bytes a sample, %d Hz and %d channels", width, p.rate, p.channels)
	}
	return nil
}

// play yields sound in pieces of at most 100 ms, the mean of its channels.
func (p *player) play(payload []byte) {
	p.raw = append(p.raw, payload...)
	step := 2 * p.channels
	p.pcm = p.pcm[:0]
	for ; len(p.raw) >= step; p.raw = p.raw[step:] {
		v := int(int16(binary.LittleEndian.Uint16(p.raw)))
		if p.channels == 2 {
			v = (v + int(int16(binary.LittleEndian.Uint16(p.raw[2:])))) / 2
		}
		p.pcm = append(p.pcm, int16(v))
	}
	for pcm := p.pcm; len(pcm) > 0 && !p.left; {
		n := min(len(pcm), p.rate/10)
		p.heard = true
		p.left = !p.yield(providers.Sound{Rate: p.rate, PCM: pcm[:n]}, nil)
		pcm = pcm[n:]
	}
}
