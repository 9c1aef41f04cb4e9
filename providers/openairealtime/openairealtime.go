// Package openairealtime is speech to speech by OpenAI's Realtime protocol, and by the older
// shape of it that Qwen-Omni speaks.
package openairealtime

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
	"xiaozhi/providers/duplex"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	address     = "wss://api.openai.com/v1/realtime"
	qwenAddress = "wss://dashscope.aliyuncs.com/api-ws/v1/realtime"
	qwenAbroad  = "wss://dashscope-intl.aliyuncs.com/api-ws/v1/realtime"
	outRate     = 24000           // Hz of the sound that comes
	setupTime   = 5 * time.Second // for each answer before the sound
	mostBytes   = 4 << 20         // of a message
	mostBefore  = 100             // messages before the settings are taken
	hears       = "gpt-4o-mini-transcribe"
	qwenHears   = "qwen3-asr-flash-realtime"
	asItems     = "items"        // the history goes as messages
	asText      = "instructions" // the history goes at the end of the instructions
)

// Kinds describes the services.
func Kinds() []service.Kind {
	history := func(usual, other string) service.Setting {
		return service.Setting{Name: "history", Values: []string{usual, other}}
	}
	return []service.Kind{{
		Type:    "openai-realtime",
		Title:   "OpenAI Realtime",
		Env:     []service.Env{{Field: service.Key, Name: "OPENAI_API_KEY"}},
		Needs:   []service.Field{service.Key},
		Address: address,
		Models: map[service.Role][]string{service.Realtime: {
			"gpt-realtime", "gpt-realtime-mini", "gpt-realtime-1.5", "gpt-realtime-2", "gpt-realtime-2.1", "gpt-realtime-2.1-mini",
		}},
		Voices: voices("marin", "cedar", "alloy", "ash", "ballad", "coral", "echo", "sage", "shimmer", "verse"),
		Extra:  true,
		More: []service.Setting{
			{Name: "transcription_model"}, {Name: "noise_reduction", Values: []string{"far_field", "near_field", "none"}}, history(asItems, asText),
			{Name: "truncate", Type: service.Flag},
		},
		Realtime: func(s service.Section) (providers.Duplex, error) { return build(s, ga, address) },
	}, {
		Type:    "qwen-omni",
		Title:   "Qwen-Omni realtime",
		Env:     []service.Env{{Field: service.Key, Name: "DASHSCOPE_API_KEY"}},
		Needs:   []service.Field{service.Key},
		Address: qwenAddress,
		Regions: map[string]string{"cn": qwenAddress, "intl": qwenAbroad},
		Models: map[service.Role][]string{service.Realtime: {
			"qwen3.5-omni-flash-realtime", "qwen3.5-omni-plus-realtime", "qwen3.8-omni-flash-realtime", "qwen3-omni-flash-realtime", "qwen-omni-turbo-realtime",
		}},
		Voices: voices("Cherry", "Serena", "Ethan", "Chelsie"),
		Extra:  true,
		More: []service.Setting{
			{Name: "workspace"}, {Name: "transcription_model"}, history(asText, asItems), {Name: "truncate", Type: service.Flag},
		},
		Realtime: func(s service.Section) (providers.Duplex, error) { return build(s, beta, qwenAddress) },
	}}
}

func voices(names ...string) []service.Voice {
	out := make([]service.Voice, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

// shape is one of the two shapes of the protocol.
type shape int

const (
	ga   shape = iota // OpenAI since 2025
	beta              // what came before, which Qwen speaks
)

// client opens the sessions of a section.
type client struct {
	dialer  *transport.Dialer
	section service.Section
	shape   shape
	address string
	setup   time.Duration
}

// build makes a provider. It dials nothing.
func build(s service.Section, as shape, usual string) (providers.Duplex, error) {
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	regions := map[string]string{"cn": qwenAddress, "intl": qwenAbroad}
	models := Kinds()[as].Models[service.Realtime]
	base, err := service.Endpoint(s.Address(regions, usual), "ws", "wss", "http", "https")
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: %w", s.Name, err)
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("%s: base_url: it is not a URL", s.Name)
	}
	switch {
	case strings.HasSuffix(u.Path, "/realtime"):
	case u.Path == "" && as == beta:
		u.Path = "/api-ws/v1/realtime"
	case u.Path == "":
		u.Path = "/v1/realtime"
	default:
		u.Path = strings.TrimRight(u.Path, "/") + "/realtime"
	}
	query := u.Query()
	query.Set("model", s.Model(service.Realtime, models[0]))
	u.RawQuery = query.Encode()
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	c := &client{dialer: dialer, section: s, shape: as, address: u.String(), setup: cmp.Or(s.Timeouts.First, setupTime)}
	return duplex.New(duplex.Options{
		Account: account, Dial: c.dial, Rate: outRate, Tries: s.Tries(), First: s.Timeouts.First, Next: s.Timeouts.Next,
	}), nil
}

// dial opens a session, and waits until its settings are taken.
func (c *client) dial(ctx context.Context, req providers.DuplexRequest) (duplex.Wire, error) {
	header := http.Header{}
	if c.section.Key != "" {
		header.Set("Authorization", "Bearer "+c.section.Key.Reveal())
	}
	if workspace := c.section.Text("workspace", ""); workspace != "" {
		header.Set("X-DashScope-WorkSpace", workspace)
	}
	socket, err := c.dialer.Dial(ctx, c.address, header)
	if err != nil {
		return nil, judged(err)
	}
	socket.Limit(mostBytes)
	w := &wire{Socket: socket, truncates: c.section.Flag("truncate", c.shape == ga)}
	rate := outRate
	if c.shape == beta {
		rate = audio.Recognition.Rate
	}
	w.rate = rate
	if w.up, err = audio.NewResampler(audio.Recognition.Rate, rate); err == nil {
		err = w.begin(c.settings(req), c.setup)
	}
	if err == nil && c.section.Text("history", c.usualHistory()) == asItems {
		err = w.tell(req.History)
	}
	if err != nil {
		socket.Close()
		return nil, judged(err)
	}
	return w, nil
}

func (c *client) usualHistory() string {
	if c.shape == ga {
		return asItems
	}
	return asText
}
