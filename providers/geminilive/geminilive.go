// Package geminilive is speech to speech by Google's Gemini Live.
package geminilive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/duplex"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	address    = "wss://generativelanguage.googleapis.com"
	path       = "/ws/google.ai.generativelanguage.%s.GenerativeService.BidiGenerateContent"
	setupTime  = 5 * time.Second
	mostBytes  = 4 << 20 // of a message
	mostBefore = 100     // messages before the setup is taken

	asContent = "content"      // the history goes as turns that ask for nothing
	asInitial = "initial"      // as turns that the setup announces
	asText    = "instructions" // at the end of the instructions
)

// Kind describes the service.
func Kind() service.Kind {
	voices := []service.Voice{}
	for _, name := range []string{"Puck", "Charon", "Kore", "Fenrir", "Aoede", "Leda", "Orus", "Zephyr"} {
		voices = append(voices, service.Voice{Name: name})
	}
	return service.Kind{
		Type:    "gemini-live",
		Title:   "Google Gemini Live",
		Env:     []service.Env{{Field: service.Key, Name: "GEMINI_API_KEY"}},
		Needs:   []service.Field{service.Key},
		Address: address,
		Models: map[service.Role][]string{service.Realtime: {
			"gemini-live-2.5-flash-native-audio", "gemini-2.5-flash-native-audio-latest", "gemini-3.8-live",
		}},
		Voices: voices,
		Extra:  true,
		More: []service.Setting{
			{Name: "version"}, {Name: "history", Values: []string{asContent, asInitial, asText}}, {Name: "language_code", Type: service.Flag}, {Name: "resume", Type: service.Flag},
		},
		Realtime: build,
	}
}

// client opens the sessions of a section.
type client struct {
	dialer  *transport.Dialer
	section service.Section
	address string
	setup   time.Duration
}

// build makes a provider. It dials nothing.
func build(s service.Section) (providers.Duplex, error) {
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	base, err := service.Endpoint(s.Address(nil, address), "ws", "wss", "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	if u, err := url.Parse(base); err == nil && !strings.Contains(u.Path, "BidiGenerateContent") {
		base += fmt.Sprintf(path, s.Text("version", "v1beta"))
	}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	c := &client{dialer: dialer, section: s, address: base, setup: cmp.Or(s.Timeouts.First, setupTime)}
	return duplex.New(duplex.Options{
		Account: account, Dial: c.dial, Resume: c.resume, Rate: outRate, Hold: true, Tries: s.Tries(), First: s.Timeouts.First, Next: s.Timeouts.Next,
	}), nil
}

// dial opens a session, and waits until it is set up.
func (c *client) dial(ctx context.Context, req providers.DuplexRequest) (duplex.Wire, error) {
	return c.open(ctx, req, "")
}

// resume goes on with a session that the service has ended, if it has left a handle.
func (c *client) resume(ctx context.Context, req providers.DuplexRequest, ended duplex.Wire) (duplex.Wire, error) {
	w, ok := ended.(*wire)
	if !ok || w.left() == "" {
		return nil, nil
	}
	req.History = nil
	return c.open(ctx, req, w.left())
}

// open opens a session, or goes on with that of a handle.
func (c *client) open(ctx context.Context, req providers.DuplexRequest, handle string) (duplex.Wire, error) {
	header := http.Header{}
	if c.section.Key != "" {
		header.Set("X-Goog-Api-Key", c.section.Key.Reveal())
	}
	socket, err := c.dialer.Dial(ctx, c.address, header)
	if err != nil {
		return nil, judged(err)
	}
	socket.Limit(mostBytes)
	w := &wire{Socket: socket}
	if err := c.begin(w, req, handle); err != nil {
		socket.Close()
		return nil, judged(err)
	}
	return w, nil
}

// begin sets a session up.
func (c *client) begin(w *wire, req providers.DuplexRequest, handle string) error {
	setup := c.settings(req)
	if c.section.Flag("resume", true) {
		resumption := object{}
		if handle != "" {
			resumption["handle"] = handle
		}
		setup["sessionResumption"] = resumption
	}
	overlay(setup, c.section.Extra)
	if err := w.WriteJSON(object{"setup": setup}); err != nil {
		return err
	}
	for n := 0; ; n++ {
		var m message
		if err := w.ReadJSON(c.setup, &m); err != nil {
			return err
		}
		if len(m.Error) > 0 {
			return fault(m.Error)
		}
		if m.Setup != nil {
			break
		}
		if n > mostBefore {
			return errors.New("the service does not take the settings")
		}
	}
	how := c.section.Text("history", asContent)
	if how == asText || len(req.History) == 0 {
		return nil
	}
	turns := make([]object, len(req.History))
	for i, m := range req.History {
		turns[i] = object{"role": roleOf(m.Role), "parts": []object{{"text": m.Content}}}
	}
	return w.WriteJSON(object{"clientContent": object{"turns": turns, "turnComplete": how == asInitial}})
}

func roleOf(r providers.Role) string {
	if r == providers.RoleAssistant {
		return "model"
	}
	return "user"
}

// settings makes the setup of a session.
func (c *client) settings(req providers.DuplexRequest) object {
	how := c.section.Text("history", asContent)
	instructions := req.Instructions
	if how == asText {
		for _, m := range req.History {
			instructions += "\n" + string(m.Role) + ": " + m.Content
		}
	}
	voice := c.section.Voice(providers.TTSRequest{Language: req.Language, Voice: req.Voice}, Kind().Voices[0].Name)
	speech := object{"voiceConfig": object{"prebuiltVoiceConfig": object{"voiceName": voice}}}
	if req.Language != "" && c.section.Flag("language_code", false) {
		speech["languageCode"] = req.Language
	}
	generation := object{"responseModalities": []string{"AUDIO"}, "speechConfig": speech}
	if t := c.section.Temperature; t != nil {
		generation["temperature"] = *t
	}
	if n := c.section.MaxTokens; n > 0 {
		generation["maxOutputTokens"] = n
	}
	setup := object{
		"model": "models/" + strings.TrimPrefix(c.section.Model(service.Realtime, Kind().Models[service.Realtime][0]), "models/"), "generationConfig": generation,
		"realtimeInputConfig":     object{"automaticActivityDetection": object{"disabled": true}}, // we say where an utterance ends
		"inputAudioTranscription": object{}, "outputAudioTranscription": object{},
	}
	if instructions != "" {
		setup["systemInstruction"] = object{"parts": []object{{"text": instructions}}}
	}
	if how == asInitial && len(req.History) > 0 {
		setup["historyConfig"] = object{"initialHistoryInClientContent": true}
	}
	if len(req.Tools) > 0 {
		functions := make([]object, len(req.Tools))
		for i, t := range req.Tools {
			functions[i] = object{"name": t.Name, "description": t.Description}
			if len(t.Parameters) > 0 {
				functions[i]["parametersJsonSchema"] = t.Parameters
			}
		}
		setup["tools"] = []object{{"functionDeclarations": functions}}
	}
	return setup
}

type object = map[string]any

// overlay puts members over those of m, going into objects.
func overlay(m object, extra map[string]any) {
	for name, value := range extra {
		inner, isObject := value.(map[string]any)
		old, wasObject := m[name].(object)
		if isObject && wasObject {
			overlay(old, inner)
		} else {
			m[name] = value
		}
	}
}

// judged puts right the kind of a refusal by its words: most come as the reason of a close.
func judged(err error) error {
	r, ok := errors.AsType[*transport.Refusal](err)
	if !ok {
		return err
	}
	words := strings.ToLower(r.Code + " " + r.Text)
	for _, k := range []struct {
		kind  providers.Kind
		parts []string
	}{
		{providers.Unauthorized, []string{"api key", "api_key", "unauthenticated", "permission"}},
		{providers.RateLimited, []string{"quota", "resource_exhausted", "rate limit", "too many"}},
		{providers.NoCredit, []string{"billing", "credit", "prepay"}},
		{providers.BadRequest, []string{"not found", "not_found", "not supported", "invalid", "voice"}},
	} {
		for _, part := range k.parts {
			if strings.Contains(words, part) {
				r.Kind = k.kind
				return err
			}
		}
	}
	return err
}
