// Package wyoming hears and speaks with servers of Home Assistant's protocol, such as
// wyoming-faster-whisper and wyoming-piper: lines of JSON and sound over plain TCP.
package wyoming

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// listTime bounds asking a server for what it has.
const listTime = 5 * time.Second

// Kind describes the servers. One address is one server: a recogniser or a voice.
func Kind() service.Kind {
	return service.Kind{
		Type: "wyoming", Title: "Wyoming (Home Assistant)", Free: true, Schemes: []string{"tcp", "wyoming"}, Lacks: []string{"speed", "proxy", "api_key", "headers"},
		More: []service.Setting{{Name: "speaker", Type: service.Text}},
		ASR:  newASR,
		TTS:  func(s service.Section) (providers.TTS, error) { return NewTTS(s) }, ListVoices: listVoices,
	}
}

// listVoices asks a server for its voices.
func listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	at, err := newServer(s, service.Timeouts{First: listTime})
	if err != nil {
		return nil, err
	}
	c, err := at.dial(ctx)
	if err != nil {
		return nil, at.account.Wrap(ctx, ctx, "list voices", err)
	}
	defer c.Close()
	if err := c.write("describe", nil, nil); err != nil {
		return nil, at.account.Wrap(ctx, ctx, "list voices", err)
	}
	for {
		e, err := c.read(at.limits.First)
		if err != nil {
			return nil, at.account.Wrap(ctx, ctx, "list voices", err)
		}
		if e.Type == "info" {
			voices, err := voicesOf(e)
			if err != nil {
				return nil, at.account.Wrap(ctx, ctx, "list voices", err)
			}
			return voices, nil
		}
	}
}

// voicesOf reads the voices that are installed from what a server says of itself.
func voicesOf(e event) ([]service.Voice, error) {
	var programs []struct {
		Voices []struct {
			Name        string   `json:"name"`
			Description string   `json:"description"`
			Languages   []string `json:"languages"`
			Installed   *bool    `json:"installed"`
		} `json:"voices"`
	}
	if raw, ok := e.Data["tts"]; ok {
		if err := json.Unmarshal(raw, &programs); err != nil {
			return nil, errors.New("what the server says of its voices is not understood")
		}
	}
	var out []service.Voice
	for _, p := range programs {
		for _, v := range p.Voices {
			if v.Installed == nil || *v.Installed {
				out = append(out, service.Voice{Name: v.Name, Title: v.Description, Language: v.Languages})
			}
		}
	}
	return out, nil
}
