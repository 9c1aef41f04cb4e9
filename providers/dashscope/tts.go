package dashscope

import (
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"maps"
	"net/url"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
)

// rate is that of the sound that is asked for, in Hz, if the settings do not say.
const rate = 24000

// The longest texts of one task and of one request, in characters. A task counts Chinese ones
// twice.
const (
	longest      = 10000
	longestPlain = 500
)

// keep is how long a connection is kept between two tasks: the service closes it after a
// minute.
const keep = 50 * time.Second

func newTTS(s service.Section) (providers.TTS, error) {
	at, err := newSite(s)
	if err != nil {
		return nil, err
	}
	model := s.Model(service.TTS, speakingModel)
	o := synthesis.Options{
		Account: at.account, Tries: s.Tries(), Text: sound.Longest{Most: longest}, Format: cmp.Or(s.Format, "pcm"), Rate: cmp.Or(s.Rate, rate), First: s.Timeouts.First, Next: s.Timeouts.Next,
	}
	switch {
	case !strings.Contains(model, "qwen") || strings.HasPrefix(model, "qwen-audio"):
		o.Keep = keep
		o.Dial = func(ctx context.Context) (synthesis.Conn, error) {
			socket, err := at.dial(ctx, inferencePath)
			return &speaking{Socket: socket, site: at, model: model}, err
		}
	case strings.Contains(model, "realtime"):
		o.Dial = func(ctx context.Context) (synthesis.Conn, error) {
			socket, err := at.dial(ctx, realtimePath+"?model="+url.QueryEscape(model))
			return &reciting{Socket: socket, site: at}, err
		}
	default:
		return at.plain(model)
	}
	return synthesis.New(o), nil
}

// voiceOf chooses the voice for a sentence. Voices belong to models.
func (s *site) voiceOf(req providers.TTSRequest, model string) string {
	otherwise := "longxiaochun_v2"
	switch {
	case strings.Contains(model, "qwen"):
		otherwise = "Cherry"
	case strings.Contains(model, "-v3"):
		otherwise = "longanyang"
	}
	return s.section.Voice(req, otherwise)
}

// speaking is a connection of the inference protocol, which speaks one task after another.
type speaking struct {
	*transport.Socket
	*site
	model string
	task  *task
}

// Say has a sentence spoken as a task.
func (c *speaking) Say(req providers.TTSRequest) error {
	c.task = newTask(c.Socket)
	s := c.section
	p := map[string]any{
		"text_type": "PlainText", "voice": c.voiceOf(req, c.model), "format": cmp.Or(s.Format, "pcm"), "sample_rate": cmp.Or(s.Rate, rate),
		"volume": int(s.Within("volume", 50, 0, 100)), "rate": min(max(cmp.Or(s.Speed, 1), 0.5), 2), "pitch": s.Within("pitch", 1, 0.5, 2),
	}
	if how := s.Text("instructions", ""); how != "" {
		p["instruction"] = how
	}
	maps.Copy(p, s.Extra)
	if err := c.task.run("tts", "SpeechSynthesizer", c.model, p, c.first); err != nil {
		return err
	}
	if err := c.task.command("continue-task", commandPayload{Input: map[string]any{"text": req.Text}}); err != nil {
		return err
	}
	return c.task.finish()
}

// Receive returns sound of the sentence.
func (c *speaking) Receive(within time.Duration) ([]byte, error) {
	m, err := c.task.receive(within)
	if err == nil && m.report.Header.Event == taskFinished {
		err = io.EOF
	}
	return m.sound, err
}

// Cancel says that nothing but the end of the connection ends a task.
func (c *speaking) Cancel() bool { return false }

// reciting is a connection of the realtime protocol, which speaks one sentence.
type reciting struct {
	*transport.Socket
	*site
}

// Say has a sentence spoken as a session.
func (c *reciting) Say(req providers.TTSRequest) error {
	s := c.section
	session := map[string]any{
		"mode": "server_commit", "voice": c.voiceOf(req, "qwen"), "language_type": languageType(req.Language),
		"response_format": cmp.Or(s.Format, "pcm"), "sample_rate": cmp.Or(s.Rate, rate),
	}
	if s.Speed != 0 {
		session["speech_rate"] = min(max(s.Speed, 0.5), 2)
	}
	if s.Number("volume", -1) >= 0 {
		session["volume"] = int(s.Within("volume", 50, 0, 100))
	}
	if s.Number("pitch", -1) >= 0 {
		session["pitch_rate"] = s.Within("pitch", 1, 0.5, 2)
	}
	if how := s.Text("instructions", ""); how != "" {
		session["instructions"] = how
	}
	maps.Copy(session, s.Extra)
	if err := c.begin(c.Socket, session); err != nil {
		return err
	}
	if err := sendEvent(c.Socket, "input_text_buffer.append", map[string]any{"text": req.Text}); err != nil {
		return err
	}
	return sendEvent(c.Socket, "session.finish", nil)
}

// Receive returns sound of the sentence.
func (c *reciting) Receive(within time.Duration) ([]byte, error) {
	var e event
	if err := c.ReadJSON(within, &e); err != nil {
		return nil, err
	}
	switch e.Type {
	case "response.audio.delta":
		return base64.StdEncoding.DecodeString(e.Delta)
	case "session.finished":
		return nil, io.EOF
	}
	return nil, e.failure()
}

// Cancel says that a connection serves one sentence.
func (c *reciting) Cancel() bool { return false }

// languageType names a language as Qwen-TTS does.
func languageType(tag string) string {
	names := map[string]string{
		"zh": "Chinese", "en": "English", "ja": "Japanese", "ko": "Korean", "de": "German", "fr": "French", "es": "Spanish",
		"pt": "Portuguese", "ru": "Russian", "it": "Italian",
	}
	if name, ok := text.Find(names, text.TagOf(tag)); ok {
		return name
	}
	return "Auto"
}
