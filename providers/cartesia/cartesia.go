// Package cartesia speaks with the voices of Cartesia.
package cartesia

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
)

const (
	cloud      = "https://api.cartesia.ai"
	version    = "2025-04-16"
	voiceModel = "sonic-3"
	voiceRate  = 24000           // Hz that is asked for
	keepTime   = 4 * time.Minute // of a socket without a sentence; the service closes it after about five
)

// The speeds that the service takes.
const slowest, fastest = 0.6, 1.5

// Kind describes Cartesia.
func Kind() service.Kind {
	return service.Kind{
		Type: "cartesia", Title: "Cartesia", Address: cloud,
		Env: []service.Env{{Field: service.Key, Name: "CARTESIA_API_KEY"}}, Needs: []service.Field{service.Key},
		Models:  map[service.Role][]string{service.TTS: {voiceModel, "sonic-turbo", "sonic-2"}},
		Voices:  voices(),
		Formats: []string{"pcm"}, Extra: true,
		More: []service.Setting{{Name: "version"}, {Name: "emotion"}},
		TTS:  NewTTS, ListVoices: listVoices,
	}
}

// voices are some of the library's, one for each language.
func voices() []service.Voice {
	return []service.Voice{
		{Name: "f786b574-daa5-4673-aa0c-cbe3e8534c02", Title: "Katie", Language: []string{"en"}},
		{Name: "e90c6678-f0d3-4767-9883-5d0ecf5894a8", Title: "Chinese Female Conversational", Language: []string{"zh"}},
		{Name: "2b568345-1d48-4047-b25f-7baccf842eb0", Title: "Japanese Woman Conversational", Language: []string{"ja"}},
		{Name: "29e5f8b4-b953-4160-848f-40fae182235b", Title: "Korean Calm Woman", Language: []string{"ko"}},
		{Name: "3f4ade23-6eb4-4279-ab05-6a144947c4d5", Title: "German Conversational Woman", Language: []string{"de"}},
		{Name: "a249eaff-1e96-4d2c-b23b-12efa4f66f41", Title: "French Conversational Lady", Language: []string{"fr"}},
	}
}

// address returns that of the service for a section.
func address(s service.Section) string { return strings.TrimRight(s.Address(nil, cloud), "/") }

// auth are the headers by which the service knows who asks.
func auth(s service.Section) http.Header {
	return http.Header{"Authorization": {"Bearer " + s.Key.Reveal()}, "Cartesia-Version": {s.Text("version", version)}}
}

// NewTTS makes a voice on sockets that are kept: each sentence is a context of its own.
func NewTTS(s service.Section) (providers.TTS, error) {
	if s.Format != "" && s.Format != "pcm" {
		return nil, fmt.Errorf("format %q is not pcm", s.Format)
	}
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, err
	}
	rate := s.Rate
	if rate == 0 {
		rate = voiceRate
	}
	at := service.Join(address(s), "/tts/websocket?"+url.Values{"cartesia_version": {s.Text("version", version)}}.Encode())
	return synthesis.New(synthesis.Options{
		Account: account, Tries: s.Tries(), Rate: rate, Keep: keepTime, First: s.Timeouts.First, Next: s.Timeouts.Next,
		Dial: func(ctx context.Context) (synthesis.Conn, error) {
			socket, err := dialer.Dial(ctx, at, auth(s))
			if err != nil {
				return nil, judged(err)
			}
			return &contexts{Socket: socket, s: s, rate: rate}, nil
		},
	}), nil
}

// contexts is a socket on which each sentence is a context.
type contexts struct {
	*transport.Socket
	s       service.Section
	rate    int
	current string // the context of the newest
}

// Say asks for a sentence: the only piece of its context.
func (c *contexts) Say(req providers.TTSRequest) error {
	c.current = uuid.NewString()
	return c.WriteJSON(request(c.s, req, c.current, c.rate))
}

// request is the message that asks for a sentence.
func request(s service.Section, req providers.TTSRequest, id string, rate int) map[string]any {
	m := map[string]any{
		"model_id": s.Model(service.TTS, voiceModel), "transcript": req.Text, "context_id": id, "continue": false, "max_buffer_delay_ms": 0,
		"voice":         map[string]any{"mode": "id", "id": s.Voice(req, service.Fitting(voices(), req.Language))},
		"output_format": map[string]any{"container": "raw", "encoding": "pcm_s16le", "sample_rate": rate},
	}
	if lang := text.TagOf(req.Language).Base(); lang != "" {
		m["language"] = string(lang)
	}
	how := map[string]any{}
	if s.Speed > 0 {
		how["speed"] = max(slowest, min(s.Speed, fastest))
	}
	if emotion := s.Text("emotion", ""); emotion != "" {
		how["emotion"] = emotion
	}
	if len(how) > 0 {
		m["generation_config"] = how
	}
	maps.Copy(m, s.Extra)
	return m
}

// Receive waits for the next sound of the sentence. That of one before is none.
func (c *contexts) Receive(within time.Duration) ([]byte, error) {
	_, b, err := c.Read(within)
	if err != nil {
		return nil, judged(err)
	}
	m, err := parse(b)
	switch {
	case err != nil:
		return nil, err
	case m.context != "" && m.context != c.current:
		return nil, nil
	case m.failed != nil:
		return nil, m.failed
	case m.done:
		return m.sound, io.EOF
	}
	return m.sound, nil
}

// Cancel gives up the context. What still comes of it is left out.
func (c *contexts) Cancel() bool {
	return c.WriteJSON(map[string]any{"context_id": c.current, "cancel": true}) == nil
}

// message is one of the service.
type message struct {
	context string
	sound   []byte
	done    bool
	failed  error // the service says what went wrong
}

// parse reads a message. Those of kinds that are not known say nothing.
func parse(b []byte) (message, error) {
	var m struct {
		Type    string          `json:"type"`
		Context string          `json:"context_id"`
		Data    string          `json:"data"`
		Status  transport.Int   `json:"status_code"`
		Title   string          `json:"title"`
		Message string          `json:"message"`
		Code    string          `json:"error_code"`
		Error   json.RawMessage `json:"error"`
	}
	if err := transport.Decode(b, &m); err != nil {
		return message{}, err
	}
	out := message{context: m.Context}
	switch m.Type {
	case "chunk":
		sound, err := base64.StdEncoding.DecodeString(m.Data)
		if err != nil {
			return message{}, fmt.Errorf("the sound of a message: %w", err)
		}
		out.sound = sound
	case "done":
		out.done = true
	case "error":
		words := strings.TrimSpace(m.Title + " " + m.Message)
		if words == "" && json.Unmarshal(m.Error, &words) != nil {
			words = string(m.Error)
		}
		r := transport.Refused(transport.KindOf(int(m.Status)), m.Code, words)
		judge(r)
		out.failed = r
	}
	return out, nil
}

// judge puts right a refusal by its words.
func judge(r *transport.Refusal) {
	var body struct {
		Title   string `json:"title"`
		Message string `json:"message"`
		Code    string `json:"error_code"`
	}
	if json.Unmarshal([]byte(r.Text), &body) == nil && body.Title+body.Message != "" {
		r.Code, r.Text = body.Code, strings.TrimSpace(body.Title+" "+body.Message)
	}
	words := strings.ToLower(r.Code + " " + r.Text)
	switch {
	case strings.Contains(words, "credit") || strings.Contains(words, "quota"):
		r.Kind = providers.NoCredit
	case strings.Contains(words, "concurrency") || strings.Contains(words, "rate limit"):
		r.Kind = providers.RateLimited
	case strings.Contains(words, "api key") || strings.Contains(words, "unauthorized"):
		r.Kind = providers.Unauthorized
	}
}

// judged is err with a refusal in it put right.
func judged(err error) error {
	if r, ok := errors.AsType[*transport.Refusal](err); ok {
		judge(r)
	}
	return err
}

// listVoices asks for the voices of the account. The list has a page; what does not fit
// on the first one is left out.
func listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address(s)+"/voices?limit=100", nil)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	r.Header = auth(s)
	var raw json.RawMessage
	if err := httpvoice.Get(s, r, judge, &raw); err != nil {
		return nil, err
	}
	type voice struct{ ID, Name, Language string }
	var page struct{ Data []voice }
	var all []voice
	if json.Unmarshal(raw, &page) == nil && page.Data != nil {
		all = page.Data
	} else if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%s: the list of voices is not the JSON expected: %w", s.Name, err)
	}
	var out []service.Voice
	for _, v := range all {
		out = append(out, service.Voice{Name: v.ID, Title: v.Name, Language: []string{v.Language}})
	}
	return out, nil
}
