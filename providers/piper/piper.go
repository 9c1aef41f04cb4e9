// Package piper speaks with the HTTP server of Piper, which answers a sentence with a whole
// WAV file.
package piper

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	address   = "http://127.0.0.1:5000"
	firstTime = 20 * time.Second // it answers when the whole sentence is spoken
)

// Kind describes the server.
func Kind() service.Kind {
	return service.Kind{
		Type: "piper", Title: "Piper", Address: address, Free: true, Extra: true, Schemes: []string{"http", "https"},
		More: []service.Setting{{Name: "speaker", Type: service.Text}},
		TTS:  NewTTS, ListVoices: listVoices,
	}
}

// client makes the requests of one section.
type client struct {
	section service.Section
	base    string
	older   atomic.Bool // the server knows the path of older versions only
}

// newClient checks a section.
func newClient(s service.Section) (*client, error) {
	base, err := service.Endpoint(s.Address(nil, address), "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	return &client{section: s, base: base}, nil
}

// NewTTS checks a section and makes a voice. It asks the server nothing.
func NewTTS(s service.Section) (providers.TTS, error) {
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	if s.Retries == nil { // the request that finds out that the server is an older one
		one := 1
		s.Retries = &one
	}
	return httpvoice.New(httpvoice.Options{Section: s, Request: c.request, Judge: c.judge, Format: "wav", First: firstTime})
}

// request asks for one sentence.
func (c *client) request(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
	body := map[string]any{"text": req.Text}
	if voice := c.section.Voice(req, ""); voice != "" {
		body["voice"] = voice
	}
	if speaker := c.section.Text("speaker", ""); speaker != "" {
		body["speaker"] = speaker
	}
	if c.section.Speed > 0 {
		body["length_scale"] = 1 / c.section.Speed
	}
	maps.Copy(body, c.section.Extra)
	path := "/synthesize"
	if c.older.Load() {
		path = "/"
	}
	return httpvoice.PostJSON(ctx, service.Join(c.base, path), nil, body)
}

// judge finds out that there is no such voice, or that the server is an older one: the
// request is made again then.
func (c *client) judge(r *transport.Refusal) {
	if strings.Contains(strings.ToLower(r.Text), "voice not found") {
		r.Kind = providers.BadRequest
		return
	}
	lost := r.Status == http.StatusMethodNotAllowed || r.Status == http.StatusNotFound
	if lost && c.older.CompareAndSwap(false, true) {
		r.Kind = providers.Unavailable
	}
}

// listVoices asks a server for the voices that it has.
func listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	c, err := newClient(s)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, service.Join(c.base, "/voices"), nil)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	var raw json.RawMessage
	if err := httpvoice.Get(s, r, nil, &raw); err != nil {
		return nil, err
	}
	names, err := namesOf(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	var out []service.Voice
	for _, n := range names {
		language, _, _ := strings.Cut(n, "-") // zh_CN-huayan-medium
		out = append(out, service.Voice{Name: n, Language: []string{strings.ReplaceAll(language, "_", "-")}})
	}
	return out, nil
}

// namesOf reads the list of voices: an object by name, or a list of names.
func namesOf(body []byte) ([]string, error) {
	var byName map[string]json.RawMessage
	if json.Unmarshal(body, &byName) == nil {
		names := make([]string, 0, len(byName))
		for n := range byName {
			names = append(names, n)
		}
		slices.Sort(names)
		return names, nil
	}
	var names []string
	if err := json.Unmarshal(body, &names); err != nil {
		return nil, fmt.Errorf("the list of voices is not the JSON expected: %w", err)
	}
	return names, nil
}
