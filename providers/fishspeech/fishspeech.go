// Package fishspeech speaks through a Fish-speech server at home, and through the cloud
// of Fish Audio, which has nearly the same API.
package fishspeech

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
)

const (
	local      = "http://127.0.0.1:8080"
	cloud      = "https://api.fish.audio"
	localRate  = 44100            // Hz of sound without a header
	cloudRate  = 24000            // Hz that the cloud is asked for
	firstTime  = 20 * time.Second // a server at home that has much to do
	cloudModel = "s1"
)

// The speeds that the cloud takes.
const slowest, fastest = 0.5, 2

// Kinds describes the server and the cloud. A voice is the reference_id of a voice that
// the server has; without one it takes any.
func Kinds() []service.Kind {
	return []service.Kind{
		{
			Type: "fishspeech", Title: "Fish-speech", Address: local, Free: true, Extra: true, Schemes: []string{"http", "https"},
			Formats: []string{"wav"}, TTS: NewLocal,
		},
		{
			Type: "fishaudio", Title: "Fish Audio", Address: cloud, Extra: true, Schemes: []string{"http", "https"},
			Env: []service.Env{{Field: service.Key, Name: "FISH_API_KEY"}}, Needs: []service.Field{service.Key},
			Models:  map[service.Role][]string{service.TTS: {cloudModel, "s2-pro"}},
			Formats: []string{"pcm", "wav", "mp3", "opus"},
			More:    []service.Setting{{Name: "latency", Values: []string{"balanced", "normal", "low"}}},
			TTS:     NewCloud,
		},
	}
}

// client makes the requests of one section.
type client struct {
	s    service.Section
	base string
	body map[string]any // what all requests have
	head http.Header
}

// NewLocal makes the voice of a server at home. One sentence is spoken at a time, as such
// a server does.
func NewLocal(s service.Section) (providers.TTS, error) {
	if s.Format != "" && s.Format != "wav" {
		return nil, fmt.Errorf("format %q cannot be streamed: only wav can", s.Format)
	}
	c := newClient(s, local, map[string]any{"format": "wav", "streaming": true})
	return httpvoice.New(httpvoice.Options{Section: s, Request: c.request, Format: "pcm", Rate: localRate, First: firstTime, Most: 1})
}

// NewCloud makes a voice of Fish Audio.
func NewCloud(s service.Section) (providers.TTS, error) {
	format, rate := s.Format, s.Rate
	if format == "" {
		format = "pcm"
	}
	if rate == 0 {
		rate = cloudRate
	}
	body := map[string]any{"format": format, "latency": s.Text("latency", "balanced")}
	if format == "pcm" || format == "wav" {
		body["sample_rate"] = rate
	}
	if s.Speed > 0 {
		body["prosody"] = map[string]any{"speed": min(max(s.Speed, slowest), fastest)}
	}
	c := newClient(s, cloud, body)
	c.head.Set("Model", s.Model(service.TTS, cloudModel))
	return httpvoice.New(httpvoice.Options{Section: s, Request: c.request, Ping: c.ping, Format: format, Rate: rate})
}

func newClient(s service.Section, base string, body map[string]any) *client {
	c := &client{s: s, base: strings.TrimRight(s.Address(nil, base), "/"), body: body, head: http.Header{}}
	if s.Key != "" {
		c.head.Set("Authorization", "Bearer "+s.Key.Reveal())
	}
	return c
}

// request asks for one sentence.
func (c *client) request(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
	body := maps.Clone(c.body)
	body["text"] = req.Text
	if voice := c.s.Voice(req, ""); voice != "" {
		body["reference_id"] = voice
	}
	maps.Copy(body, c.s.Extra)
	return httpvoice.PostJSON(ctx, service.Join(c.base, "/v1/tts"), c.head, body)
}

// ping makes a request that costs nothing.
func (c *client) ping(ctx context.Context) (*http.Request, error) {
	return httpvoice.Head(ctx, c.base+"/")
}
