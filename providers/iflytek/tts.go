package iflytek

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
)

const (
	firstTime   = 5 * time.Second // to the first sound
	onlineVoice = "xiaoyan"
	oralVoice   = "x5_lingxiaoxuan_flow"
	onlineRate  = 16000
	oralRate    = 24000
	longestText = 7999 // bytes
)

// voices are the voices of a section: those of both services.
type voices struct {
	section      service.Section
	model        string // "": by the voice
	online, oral *synthesis.Voice
}

// newTTS makes the voices of a section. A sentence has a connection of its own, for the
// services take one text on each.
func newTTS(s service.Section) (providers.TTS, error) {
	v := &voices{section: s}
	if m := s.Model(service.TTS, ""); m == online || m == oral { // one that is set for the whole section may be of recognition
		v.model = m
	}
	var err error
	if v.online, err = newVoice(s, false); err != nil {
		return nil, err
	}
	v.oral, err = newVoice(s, true)
	return v, err
}

// newVoice makes the driver of one service.
func newVoice(s service.Section, large bool) (*synthesis.Voice, error) {
	address := onlineAddress
	if large {
		address = oralAddress
	}
	c, err := newClient(s, address)
	if err != nil {
		return nil, err
	}
	rate := rateOf(s.Rate, large)
	dial := func(ctx context.Context) (synthesis.Conn, error) {
		socket, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		return &speech{Socket: socket, section: s, large: large, rate: rate}, nil
	}
	return synthesis.New(synthesis.Options{
		Account: c.dialer.Account(), Tries: s.Tries(), Dial: dial, Text: sound.Longest{Most: longestText, Size: utf8.RuneLen}, Rate: rate, First: cmp.Or(s.Timeouts.First, firstTime), Next: s.Timeouts.Next,
	}), nil
}

// rateOf returns the rate of the sound in Hz: that of the settings if the service has it.
func rateOf(asked int, large bool) int {
	switch {
	case asked == 8000 || asked == 16000 || asked == 24000 && large:
		return asked
	case large:
		return oralRate
	}
	return onlineRate
}

// Name returns the section's name.
func (v *voices) Name() string { return v.section.Name }

// Synthesize streams the sound of one sentence.
func (v *voices) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	otherwise := onlineVoice
	if v.model == oral {
		otherwise = oralVoice
	}
	req.Voice = v.section.Voice(req, otherwise)
	if v.model == oral || v.model == "" && superhuman(req.Voice) {
		return v.oral.Synthesize(ctx, req)
	}
	return v.online.Synthesize(ctx, req)
}

// speech is the connection of one sentence.
type speech struct {
	*transport.Socket
	section service.Section
	large   bool
	rate    int // Hz that is asked for
	comes   int // Hz in which the sound comes; 0: it was not said
	over    bool
}

// Say sends the text in one message.
func (s *speech) Say(req providers.TTSRequest) error {
	words := plain(req.Text)
	if s.large {
		return s.WriteJSON(s.oralFrame(words, req.Voice))
	}
	return s.WriteJSON(s.onlineFrame(words, req.Voice))
}

// onlineFrame is the message to an online voice.
func (s *speech) onlineFrame(words, voice string) classicFrame {
	return classicFrame{
		Common: &classicCommon{s.section.ID},
		Business: onlineBusiness{
			Encoding: "raw", Format: fmt.Sprintf("audio/L16;rate=%d", s.rate), Voice: voice, Speed: level(s.section.Speed),
			Volume: int(s.section.Within("volume", 50, 0, 100)), Pitch: int(s.section.Within("pitch", 50, 0, 100)), Text: "UTF8",
		},
		Data: classicText{statusLast, []byte(words)},
	}
}

// oralFrame is the message to a super-humanoid voice.
func (s *speech) oralFrame(words, voice string) largeFrame {
	var p oralParameter
	if strings.HasSuffix(voice, "_oral") { // the others are refused, or ignore it
		p.Oral = &oralManner{Level: s.section.Text("oral_level", "mid"), Assist: 1}
	}
	p.TTS.Voice, p.TTS.Speed = voice, level(s.section.Speed)
	p.TTS.Volume, p.TTS.Pitch = int(s.section.Within("volume", 50, 0, 100)), int(s.section.Within("pitch", 50, 0, 100))
	p.TTS.Audio = oralAudio{Encoding: "raw", Rate: s.rate, Channels: 1, Depth: 16}
	var t largeText
	t.Text.Encoding, t.Text.Compress, t.Text.Format, t.Text.Status, t.Text.Text = "utf8", "raw", "plain", statusLast, []byte(words)
	return largeFrame{Header: largeHeader{s.section.ID, statusLast}, Parameter: p, Payload: t}
}

// Receive returns more of the sound. The last message may have some, or none.
func (s *speech) Receive(within time.Duration) ([]byte, error) {
	if s.over {
		return nil, io.EOF
	}
	_, message, err := s.Read(within)
	if err != nil {
		return nil, err
	}
	parse := parseClassic
	if s.large {
		parse = parseLarge
	}
	a, err := parse(message)
	s.over = a.last
	s.comes = cmp.Or(s.comes, a.rate)
	return a.sound, err
}

// Rate is that of the sound: some voices have another one than was asked for.
func (s *speech) Rate() int { return s.comes }

// Cancel gives the connection up, which serves one text.
func (s *speech) Cancel() bool { return false }
