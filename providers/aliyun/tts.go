package aliyun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
)

// The voices: what takes a whole text at once, and what takes it in pieces. The first is
// one round trip faster.
const (
	plain   = "plain"
	flowing = "flowing"
)

const (
	voice   = "xiaoyun"
	rate    = 16000           // Hz of the sound that is asked for, if the settings do not say
	keep    = 8 * time.Second // the service closes an idle connection after ten
	longest = 300             // characters that the plain voices take
	most    = 5000            // characters that the others take in a message
)

func newTTS(s service.Section) (providers.TTS, error) {
	flows := s.Model(service.TTS, plain) == flowing
	if flows && s.BaseURL == "" && s.Region == "" {
		s.Region = "cn-beijing" // where the vendor documents those voices
	}
	g, err := newGateway(s)
	if err != nil {
		return nil, err
	}
	o := synthesis.Options{
		Account: g.account, Tries: s.Tries(), Text: sound.Longest{Most: most}, Format: cmp.Or(s.Format, "pcm"), Rate: cmp.Or(s.Rate, rate), First: s.Timeouts.First, Next: s.Timeouts.Next,
	}
	if flows {
		o.Keep = keep
	}
	o.Dial = func(ctx context.Context) (synthesis.Conn, error) {
		socket, err := g.dial(ctx, func(*transport.Socket) error { return nil })
		return &speaking{Socket: socket, gateway: g, flows: flows}, err
	}
	return synthesis.New(o), nil
}

// speaking is a connection to the voices.
type speaking struct {
	*transport.Socket
	*gateway
	flows bool
	task  *task
}

// payload says how a sentence is to be spoken.
func (c *speaking) payload(req providers.TTSRequest) map[string]any {
	s := c.section
	p := map[string]any{
		"voice": s.Voice(req, voice), "format": cmp.Or(s.Format, "pcm"), "sample_rate": cmp.Or(s.Rate, rate),
		"volume": int(s.Within("volume", 50, 0, 100)), "speech_rate": speechRate(s.Speed), "pitch_rate": int(s.Within("pitch", 0, -500, 500)),
	}
	return merge(p, s.Extra)
}

// speechRate writes a speed as the service does: −500 is half of the normal one, 500 twice.
func speechRate(speed float64) int {
	switch {
	case speed == 0:
		return 0
	case speed < 1:
		return max(int((1-1/speed)*500), -500)
	}
	return min(int((speed-1)*500), 500)
}

// Say has a sentence spoken as a task.
func (c *speaking) Say(req providers.TTSRequest) error {
	if c.flows {
		return c.flow(req)
	}
	namespace := "SpeechSynthesizer"
	if len([]rune(req.Text)) > longest {
		namespace = "SpeechLongSynthesizer"
	}
	c.task = c.newTask(c.Socket, namespace)
	return c.task.command("StartSynthesis", merge(c.payload(req), map[string]any{"text": req.Text}))
}

// flow has a sentence spoken by the voices that take a text in pieces.
func (c *speaking) flow(req providers.TTSRequest) error {
	c.task = c.newTask(c.Socket, "FlowingSpeechSynthesizer")
	if err := c.task.command("StartSynthesis", c.payload(req)); err != nil {
		return err
	}
	if err := c.task.await("SynthesisStarted", c.first); err != nil {
		return c.refused(err)
	}
	if err := c.task.command("RunSynthesis", map[string]any{"text": req.Text}); err != nil {
		return err
	}
	return c.task.command("StopSynthesis", nil)
}

// Receive returns sound of the sentence.
func (c *speaking) Receive(within time.Duration) ([]byte, error) {
	r, sound, err := c.task.receive(within)
	if err == nil && r.Header.Name == "SynthesisCompleted" {
		err = io.EOF
	}
	return sound, c.refused(err)
}

// refused drops the token if it is what was refused, so that the next sentence has a new
// one. The end of an idle connection is no refusal: another one will do.
func (c *speaking) refused(err error) error {
	refused, ok := errors.AsType[*transport.Refusal](err)
	switch {
	case !ok:
	case tokenRefused(refused):
		c.tokens.forget(c.tokens.kept())
	case refused.Code == strconv.Itoa(wasIdle):
		return fmt.Errorf("the service ended the idle connection: %s", refused.Code)
	}
	return err
}

// Cancel says that nothing but the end of the connection ends a sentence.
func (c *speaking) Cancel() bool { return false }
