// Package gptsovits speaks through a GPT-SoVITS server at home: its newer API (api_v2.py,
// at /tts) and its older one (api.py, at the root).
package gptsovits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	local     = "http://127.0.0.1:9880"
	bareRate  = 32000            // Hz of sound without a header, with the models v1 and v2
	firstTime = 30 * time.Second // the server may have to load its models
)

// Kind describes GPT-SoVITS. A voice is the path of a clip of 3 to 10 s on the server,
// and after bars what is said in it and in which language: "ref.wav|some words|en".
func Kind() service.Kind {
	return service.Kind{
		Type: "gptsovits", Title: "GPT-SoVITS", Address: local, Free: true, Extra: true, Schemes: []string{"http", "https"},
		Formats: []string{"wav", "raw"}, // its ogg is Vorbis
		More: []service.Setting{
			{Name: "api", Values: []string{"v2", "v1"}},
			{Name: "ref_audio"}, {Name: "prompt_text"}, {Name: "prompt_lang"}, {Name: "text_lang"},
			{Name: "streaming", Type: service.Flag},
		},
		TTS: NewTTS,
	}
}

// voice is a clip that the server is to sound like.
type voice struct {
	clip, words, language string
}

// client makes the requests of one section.
type client struct {
	s    service.Section
	base string
	old  bool // the older API
}

// NewTTS makes the voice of a section. It asks the server nothing. One sentence is spoken
// at a time: the server has one model, which requests at the same time would share.
func NewTTS(s service.Section) (providers.TTS, error) {
	c := &client{s: s, base: strings.TrimRight(s.Address(nil, local), "/"), old: s.Text("api", "v2") == "v1"}
	format := s.Format
	switch format {
	case "", "wav":
		format = "wav"
	case "raw":
		format = "pcm"
	default:
		return nil, fmt.Errorf("format %q is none of wav and raw", s.Format)
	}
	rate := s.Rate
	if rate == 0 {
		rate = bareRate
	}
	if !c.old && c.voice(providers.TTSRequest{}).clip == "" {
		return nil, errors.New("it needs a voice or ref_audio: the path of a clip on the server")
	}
	return httpvoice.New(httpvoice.Options{Section: s, Request: c.request, Judge: judge, Format: format, Rate: rate, First: firstTime, Most: 1})
}

// judge makes a sentence of what the server says. It answers 400 to everything: also
// where it failed by itself, which another sentence may not.
func judge(r *transport.Refusal) {
	var body struct{ Message, Exception string }
	if json.Unmarshal([]byte(r.Text), &body) != nil || body.Message == "" {
		return
	}
	r.Text = body.Message
	if body.Exception != "" {
		r.Text += ": " + body.Exception
	}
	missing := strings.Contains(r.Text, "No such file") || strings.Contains(r.Text, "not exist") || strings.Contains(r.Text, "not found")
	switch {
	case r.Kind != providers.BadRequest || body.Exception == "":
	case missing:
		r.Text += " (is the clip of the voice there?)"
	default:
		r.Kind = providers.Unavailable
	}
}

// voice reads the voice of a request.
func (c *client) voice(req providers.TTSRequest) voice {
	parts := strings.SplitN(c.s.Voice(req, c.s.Text("ref_audio", "")), "|", 3)
	v := voice{clip: parts[0], words: c.s.Text("prompt_text", ""), language: c.s.Text("prompt_lang", "zh")}
	if len(parts) > 1 {
		v.words = parts[1]
	}
	if len(parts) > 2 {
		v.language = parts[2]
	}
	return v
}

// language returns the name of a language at the server. It finds out by itself if
// it has no word for it.
func (c *client) language(req providers.TTSRequest) string {
	own := "auto"
	switch base := text.TagOf(req.Language).Base(); base {
	case "zh", "en", "ja", "ko", "yue":
		own = string(base)
	}
	return c.s.Text("text_lang", own)
}

// request asks for one sentence.
func (c *client) request(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
	v := c.voice(req)
	path, body := "/tts", map[string]any{
		"text": req.Text, "text_lang": c.language(req), "ref_audio_path": v.clip, "prompt_text": v.words, "prompt_lang": v.language,
		"media_type": "wav", "streaming_mode": c.s.Flag("streaming", true),
	}
	if c.s.Format != "" {
		body["media_type"] = c.s.Format
	}
	speed := "speed_factor"
	if c.old {
		speed = "speed"
		path, body = "/", map[string]any{"text": req.Text, "text_language": c.language(req)}
		if v.clip != "" { // else the clip is that with which the server was started
			body["refer_wav_path"], body["prompt_text"], body["prompt_language"] = v.clip, v.words, v.language
		}
	}
	if c.s.Speed > 0 {
		body[speed] = c.s.Speed
	}
	maps.Copy(body, c.s.Extra)
	return httpvoice.PostJSON(ctx, service.Join(c.base, path), nil, body)
}
