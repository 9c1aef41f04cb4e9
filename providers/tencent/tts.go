package tencent

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
)

const (
	speakingVoice = "101001"
	rate          = 16000 // Hz of the sound that is asked for, if the settings do not say
	longest       = 10000 // characters of a session
)

func newTTS(s service.Section) (providers.TTS, error) {
	a, err := newAccount(s, speakingAddress)
	if err != nil {
		return nil, err
	}
	return synthesis.New(synthesis.Options{
		Account: a.errors, Tries: s.Tries(), Text: sound.Longest{Most: longest}, Format: cmp.Or(s.Format, "pcm"), Rate: cmp.Or(s.Rate, rate), First: s.Timeouts.First, Next: s.Timeouts.Next,
		Dial: func(context.Context) (synthesis.Conn, error) { return &speaking{account: a}, nil },
	}), nil
}

// speaking speaks one sentence. The voice stands in the address, so that the socket is
// opened when the sentence is known.
type speaking struct {
	*account
	open    func(url.Values) (*transport.Socket, error)
	socket  *transport.Socket
	session string
}

// Bind makes the end of ctx end the sentence.
func (c *speaking) Bind(ctx context.Context) (release func() bool) {
	c.open = func(values url.Values) (*transport.Socket, error) {
		return c.dial(ctx, "GET", "/stream_wsv2", "Signature", values)
	}
	return func() bool { return false } // a session speaks once
}

// values are those of the address.
func (c *speaking) values(req providers.TTSRequest) (url.Values, error) {
	s := c.section
	name := s.Voice(req, speakingVoice)
	if _, err := strconv.Atoi(name); err != nil {
		return nil, transport.Refused(providers.BadRequest, "", "a voice of this service is a number")
	}
	now := c.clock.Now()
	values := url.Values{
		"Action": {"TextToStreamAudioWSv2"}, "AppId": {s.ID}, "SecretId": {s.Key.Reveal()}, "SessionId": {c.session},
		"Timestamp": {unix(now)}, "Expired": {unix(now.Add(validity))}, "VoiceType": {name},
		"Codec": {cmp.Or(s.Format, "pcm")}, "SampleRate": {strconv.Itoa(cmp.Or(s.Rate, rate))},
	}
	if s.Speed != 0 {
		values.Set("Speed", strconv.FormatFloat(speedOf(s.Speed), 'f', -1, 64))
	}
	if v := s.Within("volume", 0, -10, 10); v != 0 {
		values.Set("Volume", strconv.FormatFloat(v, 'f', -1, 64))
	}
	if v := s.Text("emotion", ""); v != "" {
		values.Set("EmotionCategory", v)
	}
	return values, nil
}

// speedOf writes a speed as the service does: −2 is 0.6 of the normal one, 0 the normal
// one, 1 is 1.2, 2 is 1.5 and 6 is 2.5 times as fast.
func speedOf(speed float64) float64 {
	var out float64
	switch {
	case speed <= 1.2:
		out = (speed - 1) / 0.2
	case speed <= 1.5:
		out = 1 + (speed-1.2)/0.3
	default:
		out = 2 + (speed-1.5)*4
	}
	return float64(int(min(max(out, -2), 6)*100)) / 100
}

// Say opens a session and sends it the sentence, twice where the clocks were not the same.
func (c *speaking) Say(req providers.TTSRequest) error {
	err := c.say(req)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Skewed {
		c.Close()
		err = c.say(req)
	}
	return err
}

func (c *speaking) say(req providers.TTSRequest) error {
	c.session = uuid.NewString()
	values, err := c.values(req)
	if err != nil {
		return err
	}
	if c.socket, err = c.open(values); err != nil {
		return err
	}
	for ready := false; !ready; {
		r, _, err := read(c.socket, c.first, kindOfSpeaking)
		if err != nil {
			return c.learn(c.socket, judged(err))
		}
		ready = r.Ready == 1
	}
	if err := c.command("ACTION_SYNTHESIS", req.Text); err != nil {
		return err
	}
	return c.command("ACTION_COMPLETE", "")
}

// command sends a command.
func (c *speaking) command(action, data string) error {
	return c.socket.WriteJSON(map[string]string{"session_id": c.session, "message_id": uuid.NewString(), "action": action, "data": data})
}

// Receive returns sound of the sentence.
func (c *speaking) Receive(within time.Duration) ([]byte, error) {
	r, sound, err := read(c.socket, within, kindOfSpeaking)
	if err == nil && r.Final == 1 {
		err = io.EOF
	}
	return sound, judged(err)
}

// Cancel says that a session speaks once.
func (c *speaking) Cancel() bool { return false }

// Close ends the session.
func (c *speaking) Close() {
	if c.socket != nil {
		c.socket.Close()
	}
}

// kindOfSpeaking maps a code of the voices to the kind of failure.
func kindOfSpeaking(code int) providers.Kind {
	switch code {
	case 10003:
		return providers.Unauthorized
	case 10002:
		return providers.RateLimited
	case 10001, 10006, 10007:
		return providers.BadRequest
	}
	return providers.Unavailable
}

// judged puts right the kind of a refusal of the voices by its words, where the codes are
// not told apart.
func judged(err error) error {
	if refused, ok := errors.AsType[*transport.Refusal](err); ok {
		words := strings.ToLower(refused.Text)
		switch {
		case strings.Contains(words, "arrear") || strings.Contains(words, "balance") || strings.Contains(words, "overdue") || strings.Contains(words, "quota") || strings.Contains(words, "pkgexhausted"):
			refused.Kind = providers.NoCredit
		case strings.Contains(words, "signature") || strings.Contains(words, "authorization") || strings.Contains(words, "authentication"):
			refused.Kind = providers.Unauthorized
		}
	}
	return err
}
