// Package cosyvoice speaks through a CosyVoice server at home, the FastAPI one of its
// repository. Forks that speak the wire of OpenAI are served by that technology.
package cosyvoice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
)

const (
	local     = "http://127.0.0.1:50000"
	rateV1    = 22050            // Hz of CosyVoice 1, which alone has voices of its own
	rateV2    = 24000            // Hz of CosyVoice 2 and 3
	firstTime = 20 * time.Second // it answers when the first sentence is spoken
	maxClip   = 16 << 20         // bytes
	female    = "\u4e2d\u6587\u5973"
	male      = "\u4e2d\u6587\u7537"
)

// The modes, each a route of the server.
const (
	sft           = "sft"           // voices of the model
	zeroShot      = "zero_shot"     // the voice of a clip whose words are known
	crossLingual  = "cross_lingual" // the voice of a clip in another language
	instruct      = "instruct"      // voices of the model, told how to speak
	instructClip  = "instruct2"     // the voice of a clip, told how to speak
	allModesNames = "sft, zero_shot, cross_lingual, instruct and instruct2"
)

var modes = []string{sft, zeroShot, crossLingual, instruct, instructClip}

// Kind describes CosyVoice at home.
func Kind() service.Kind {
	return service.Kind{
		Type: "cosyvoice", Title: "CosyVoice (local server)", Address: local, Free: true, Extra: true, Schemes: []string{"http", "https"}, Lacks: []string{"speed"},
		Formats: []string{"pcm"},
		Voices:  []service.Voice{{Name: female, Language: []string{"zh"}}, {Name: male, Language: []string{"zh"}}},
		More:    []service.Setting{{Name: "mode", Values: modes}, {Name: "prompt_wav"}, {Name: "prompt_text"}, {Name: "instruct"}},
		TTS:     NewTTS,
	}
}

// client makes the requests of one section.
type client struct {
	s    service.Section
	base string
	mode string
	clip []byte // of prompt_wav
}

// NewTTS makes the voice of a section: it reads the clip that prompt_wav names, and asks
// the server nothing.
func NewTTS(s service.Section) (providers.TTS, error) {
	c := &client{s: s, base: strings.TrimRight(s.Address(nil, local), "/"), mode: s.Text("mode", sft)}
	if !slices.Contains(modes, c.mode) {
		return nil, fmt.Errorf("mode %q is none of %s", c.mode, allModesNames)
	}
	rate := s.Rate
	switch {
	case rate > 0:
	case c.mode == sft || c.mode == instruct:
		rate = rateV1
	default:
		rate = rateV2
	}
	if c.mode == zeroShot && s.Text("prompt_text", "") == "" {
		return nil, errors.New("mode zero_shot needs prompt_text: the words of the clip")
	}
	if c.mode == zeroShot || c.mode == crossLingual || c.mode == instructClip {
		if err := c.readClip(s.Text("prompt_wav", "")); err != nil {
			return nil, err
		}
	}
	return httpvoice.New(httpvoice.Options{Section: s, Request: c.request, Format: "pcm", Rate: rate, First: firstTime})
}

// readClip reads the clip whose voice is to be taken.
func (c *client) readClip(path string) error {
	if path == "" {
		return fmt.Errorf("mode %s needs prompt_wav: a clip of the voice", c.mode)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("prompt_wav: %w", err)
	}
	if info.Size() > maxClip {
		return fmt.Errorf("prompt_wav: %s is longer than %d MiB", path, maxClip>>20)
	}
	if c.clip, err = os.ReadFile(path); err != nil {
		return fmt.Errorf("prompt_wav: %w", err)
	}
	return nil
}

// request asks for one sentence.
func (c *client) request(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
	fields := map[string]string{"tts_text": req.Text}
	switch c.mode {
	case sft:
		fields["spk_id"] = c.s.Voice(req, female)
	case instruct:
		fields["spk_id"], fields["instruct_text"] = c.s.Voice(req, female), c.s.Text("instruct", "")
	case instructClip:
		fields["instruct_text"] = c.s.Text("instruct", "")
	case zeroShot:
		fields["prompt_text"] = c.s.Text("prompt_text", "")
	}
	for name, value := range c.s.Extra {
		fields[name] = fmt.Sprint(value)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range fields {
		if err := form.WriteField(name, value); err != nil {
			return nil, fmt.Errorf("write form: %w", err)
		}
	}
	if c.clip != nil {
		part, err := form.CreateFormFile("prompt_wav", "prompt.wav")
		if err != nil {
			return nil, fmt.Errorf("write form: %w", err)
		}
		if _, err := part.Write(c.clip); err != nil {
			return nil, fmt.Errorf("write form: %w", err)
		}
	}
	if err := form.Close(); err != nil {
		return nil, fmt.Errorf("write form: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, service.Join(c.base, "/inference_"+c.mode), bytes.NewReader(body.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r, nil
}
