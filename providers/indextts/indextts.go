// Package indextts speaks through a server of IndexTTS at home, the one of
// index-tts-vllm, by each of the routes that people use.
package indextts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	local     = "http://127.0.0.1:6006"
	bareRate  = 24000            // Hz of sound without a header
	firstTime = 20 * time.Second // it answers when the whole sentence is spoken
	seed      = 8                // the server's own
)

// Kind describes IndexTTS. A voice is the name of a character that the server has, or,
// with the api "url" or "v2", the path of a clip on the server; "url" takes several,
// with commas between them.
func Kind() service.Kind {
	return service.Kind{
		Type: "indextts", Title: "IndexTTS", Address: local, Free: true, Extra: true, Schemes: []string{"http", "https"}, Lacks: []string{"speed"},
		Formats: []string{"wav", "pcm"},
		More:    []service.Setting{{Name: "api", Values: []string{"tts", "url", "v2", "speech"}}},
		TTS:     NewTTS,
	}
}

// client makes the requests of one section.
type client struct {
	s    service.Section
	base string
	api  string
}

// NewTTS makes the voice of a section. It asks the server nothing. Sound without a header
// is taken for 16 bit samples.
func NewTTS(s service.Section) (providers.TTS, error) {
	c := &client{s: s, base: strings.TrimRight(s.Address(nil, local), "/"), api: s.Text("api", "tts")}
	switch c.api {
	case "tts", "url", "v2", "speech":
	default:
		return nil, fmt.Errorf("api %q is none of tts, url, v2 and speech", c.api)
	}
	if len(s.Voices) == 0 {
		return nil, errors.New("it needs a voice: a character of the server, or a clip on it")
	}
	rate := s.Rate
	if rate == 0 {
		rate = bareRate
	}
	return httpvoice.New(httpvoice.Options{Section: s, Request: c.request, Judge: judge, Format: "pcm", Rate: rate, First: firstTime})
}

// judge makes a sentence of what the server says, which is where it stands in its code: a
// voice that it does not know is a key that it does not find.
func judge(r *transport.Refusal) {
	lines := strings.Split(strings.TrimSpace(r.Text), "\n")
	r.Text = strings.TrimSpace(lines[len(lines)-1])
	if voice, ok := strings.CutPrefix(r.Text, "KeyError: "); ok {
		r.Kind, r.Text = providers.BadRequest, "the server knows no voice "+voice
	}
}

// request asks for one sentence.
func (c *client) request(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
	voice := c.s.Voice(req, "")
	if voice == "" {
		return nil, fmt.Errorf("%w: there is no voice for %q", providers.ErrLanguage, req.Language)
	}
	var path string
	var body map[string]any
	switch c.api {
	case "url":
		path, body = "/tts_url", map[string]any{"text": req.Text, "audio_paths": clips(voice), "seed": seed}
	case "v2":
		path, body = "/tts_url", map[string]any{"text": req.Text, "spk_audio_path": voice}
	case "speech":
		path, body = "/audio/speech", map[string]any{"input": req.Text, "voice": voice, "model": c.s.Model(service.TTS, "index-tts")}
	default:
		path, body = "/tts", map[string]any{"text": req.Text, "character": voice}
	}
	maps.Copy(body, c.s.Extra)
	header := http.Header{}
	if c.s.Key != "" {
		header.Set("Authorization", "Bearer "+c.s.Key.Reveal())
	}
	return httpvoice.PostJSON(ctx, service.Join(c.base, path), header, body)
}

// clips are the paths of a voice of several clips.
func clips(voice string) []string {
	var out []string
	for path := range strings.SplitSeq(voice, ",") {
		if path = strings.TrimSpace(path); path != "" {
			out = append(out, path)
		}
	}
	return out
}
