// Package doubaodialogue is the end-to-end dialogue of Volcengine (Doubao): speech to
// speech, without tools of ours.
package doubaodialogue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/duplex"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

const (
	address    = "wss://openspeech.bytedance.com"
	path       = "/api/v3/realtime/dialogue"
	resource   = "volc.speech.dialog"
	appKey     = "PlgvMymc7f3tQnJ6" //nolint:gosec // the vendor publishes it: it is the same for all
	outRate    = 24000
	setupTime  = 5 * time.Second
	mostBytes  = 4 << 20               // of a message
	frame      = 20 * time.Millisecond // of sound, as the vendor wants
	pace       = 4                     // times as fast as spoken
	defaultIs  = "1.2.1.1"             // the model, by its version
	mostBefore = 100                   // frames before the settings are taken
	botName    = 20                    // characters
)

// Kind describes the service.
func Kind() service.Kind {
	return service.Kind{
		Type:  "doubao-dialogue",
		Title: "Volcengine Doubao realtime dialogue",
		Env: []service.Env{
			{Field: service.Key, Name: "VOLCENGINE_API_KEY"}, {Field: service.ID, Name: "VOLCENGINE_APP_ID"},
		},
		Needs:   []service.Field{service.ID, service.Key},
		Address: address,
		Models:  map[service.Role][]string{service.Realtime: {defaultIs, "2.2.0.0"}},
		Voices: []service.Voice{
			{Name: "zh_female_vv_jupiter_bigtts", Title: "Vivi"}, {Name: "zh_female_xiaohe_jupiter_bigtts", Title: "Xiaohe"},
			{Name: "zh_male_yunzhou_jupiter_bigtts", Title: "Yunzhou"}, {Name: "zh_male_xiaotian_jupiter_bigtts", Title: "Xiaotian"},
		},
		Extra: true,
		More: []service.Setting{
			{Name: "bot_name"}, {Name: "speaking_style"}, {Name: "resource_id"}, {Name: "app_key"}, {Name: "pace", Type: service.Number},
			{Name: "interrupt", Type: service.Flag},
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
	if u, err := url.Parse(base); err == nil && u.Path == "" {
		base += path
	}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	c := &client{dialer: dialer, section: s, address: base, setup: cmp.Or(s.Timeouts.First, setupTime)}
	return duplex.New(duplex.Options{
		Account: account, Dial: c.dial, Rate: outRate, Frame: frame, Pace: s.Number("pace", pace), Hold: true,
		Tries: s.Tries(), First: s.Timeouts.First, Next: s.Timeouts.Next, Able: providers.Capabilities{OwnTools: true},
	}), nil
}

// dial opens a connection and a session on it.
func (c *client) dial(ctx context.Context, req providers.DuplexRequest) (duplex.Wire, error) {
	header := http.Header{}
	header.Set("X-Api-App-ID", c.section.ID)
	header.Set("X-Api-Access-Key", c.section.Key.Reveal())
	header.Set("X-Api-Resource-Id", c.section.Text("resource_id", resource))
	header.Set("X-Api-App-Key", c.section.Text("app_key", appKey))
	header.Set("X-Api-Connect-Id", volcframe.NewID())
	socket, err := c.dialer.Dial(ctx, c.address, header)
	if err != nil {
		if refused, ok := errors.AsType[*transport.Refusal](err); ok {
			return nil, volcframe.Judged(refused)
		}
		return nil, err
	}
	socket.Limit(mostBytes)
	w := &wire{Socket: socket, session: volcframe.NewID(), interrupts: c.section.Flag("interrupt", false)}
	if err := c.begin(w, req); err != nil {
		socket.Close()
		return nil, err
	}
	return w, nil
}

// begin starts the connection and the session.
func (c *client) begin(w *wire, req providers.DuplexRequest) error {
	settings, err := json.Marshal(c.settings(req))
	if err != nil {
		return err
	}
	for _, step := range []struct {
		event, answer int32
		payload       []byte
	}{
		{volcframe.EventStartConnection, volcframe.EventConnectionStarted, []byte("{}")},
		{volcframe.EventStartSession, volcframe.EventSessionStarted, settings},
	} {
		if err := w.tell(step.event, step.payload); err != nil {
			return err
		}
		for n := 0; ; n++ {
			f, err := w.frame(c.setup)
			switch {
			case err != nil:
				return err
			case n > mostBefore:
				return errors.New("the service does not take the settings")
			}
			if f.Event == step.answer {
				break
			}
		}
	}
	return nil
}

type object = map[string]any

// settings makes the message that starts a session.
func (c *client) settings(req providers.DuplexRequest) object {
	s := c.section
	voice := s.Voice(providers.TTSRequest{Language: req.Language, Voice: req.Voice}, Kind().Voices[0].Name)
	sound := object{"channel": 1, "format": "pcm_s16le", "sample_rate": outRate}
	if s.Speed > 0 {
		sound["speech_rate"] = max(-50, min(100, int((s.Speed-1)*100)))
	}
	dialog := object{"extra": object{"model": s.Model(service.Realtime, defaultIs), "input_mod": "push_to_talk"}}
	if s.Model(service.Realtime, defaultIs) == defaultIs {
		dialog["system_role"] = req.Instructions
		if style := s.Text("speaking_style", ""); style != "" {
			dialog["speaking_style"] = style
		}
	} else {
		dialog["character_manifest"] = req.Instructions
	}
	if name := []rune(s.Text("bot_name", "")); len(name) > 0 {
		dialog["bot_name"] = string(name[:min(len(name), botName)])
	}
	if len(req.History) > 0 {
		past := make([]object, len(req.History))
		for i, m := range req.History {
			past[i] = object{"role": string(m.Role), "text": m.Content}
		}
		dialog["dialog_context"] = past
	}
	settings := object{
		"asr":    object{"audio_info": object{"format": "pcm", "sample_rate": 16000, "channel": 1}},
		"tts":    object{"speaker": voice, "audio_config": sound},
		"dialog": dialog,
	}
	overlay(settings, s.Extra)
	return settings
}

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
