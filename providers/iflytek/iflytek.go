// Package iflytek is the recognisers and the voices of iFlytek: dictation and its large
// model, online voices and super-humanoid ones.
package iflytek

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Models: which of the services is meant.
const (
	spark  = "spark"  // recognition by a large model
	iat    = "iat"    // classic recognition
	online = "online" // classic voices
	oral   = "oral"   // super-humanoid voices
)

// Addresses of the services.
const (
	sparkAddress  = "wss://iat.xf-yun.com/v1"
	iatAddress    = "wss://iat-api.xfyun.cn/v2/iat"
	onlineAddress = "wss://tts-api.xfyun.cn/v2/tts"
	oralAddress   = "wss://cbm01.cn-huabei-1.xf-yun.com/v1/private/mcd9m97e6"
)

// Kind describes the services.
func Kind() service.Kind {
	return service.Kind{
		Type:  "iflytek",
		Title: "iFlytek",
		Env: []service.Env{
			{Field: service.ID, Name: "IFLYTEK_APP_ID"}, {Field: service.Key, Name: "IFLYTEK_API_KEY"}, {Field: service.Secret, Name: "IFLYTEK_API_SECRET"},
		},
		Needs:   []service.Field{service.ID, service.Key, service.Secret},
		Address: sparkAddress,
		Extra:   true,
		Models:  map[service.Role][]string{service.ASR: {spark, iat}, service.TTS: {online, oral}},
		Voices: []service.Voice{
			{Name: "xiaoyan", Title: "Xiaoyan", Language: []string{"zh", "en"}},
			{Name: "aisjiuxu", Title: "Xu Jiu", Language: []string{"zh", "en"}},
			{Name: "aisxping", Title: "Xiaoping", Language: []string{"zh", "en"}},
			{Name: "aisjinger", Title: "Xiaojing", Language: []string{"zh", "en"}},
			{Name: "aisbabyxu", Title: "Xu Xiaobao", Language: []string{"zh", "en"}},
			{Name: "x5_lingxiaoxuan_flow", Title: "Ling Xiaoxuan", Language: []string{"zh", "en"}},
			{Name: "x5_lingfeiyi_flow", Title: "Ling Feiyi", Language: []string{"zh", "en"}},
		},
		Formats: []string{"pcm"},
		More: []service.Setting{
			{Name: "language"},
			{Name: "accent"},
			{Name: "domain"},
			{Name: "pace", Type: service.Number},
			{Name: "volume", Type: service.Number},
			{Name: "pitch", Type: service.Number},
			{Name: "oral_level", Values: []string{"high", "mid", "low"}},
			{Name: "most_connections", Type: service.Number},
		},
		ASR: newASR,
		TTS: newTTS,
		At:  at,
	}
}

// at returns the address of a role: each has one for each of its two services.
func at(s service.Section, r service.Role) string {
	switch {
	case s.BaseURL != "":
		return s.BaseURL
	case r == service.ASR && s.Model(service.ASR, spark) != iat:
		return sparkAddress
	case r == service.ASR:
		return iatAddress
	}
	model := s.Model(service.TTS, "")
	if model == oral || model != online && superhuman(s.Voice(providers.TTSRequest{}, onlineVoice)) {
		return oralAddress
	}
	return onlineAddress
}

// client opens the signed sockets of a section, to one of the services.
type client struct {
	dialer      *transport.Dialer
	clock       *transport.Clock
	target      *url.URL
	app         string
	key, secret providers.Secret
}

// newClient makes one for a service. A base_url takes the place of its scheme and host, and
// goes before its path.
func newClient(s service.Section, address string) (*client, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if s.BaseURL != "" {
		base, err := url.Parse(service.Join(s.BaseURL, target.Path))
		if err != nil || base.Host == "" {
			return nil, errors.New("base_url: it is not a URL with a host")
		}
		target = base
	}
	c := &client{clock: &transport.Clock{}, target: target, app: s.ID, key: s.Key, secret: s.Secret}
	c.dialer, err = transport.NewDialer(transport.DialerOptions{
		Account: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful},
		Proxy:   s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers, Most: int(s.Number("most_connections", 0)), Clock: c.clock,
	})
	return c, err
}

// dial opens a socket, signed with the time as the service has it. Where a refusal has
// put our idea of that right, it signs once more.
func (c *client) dial(ctx context.Context) (*transport.Socket, error) {
	socket, err := c.dialer.Dial(ctx, signed(c.target, c.key, c.secret, c.clock.Now()), nil)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Skewed {
		socket, err = c.dialer.Dial(ctx, signed(c.target, c.key, c.secret, c.clock.Now()), nil)
	}
	if refused, ok := errors.AsType[*transport.Refusal](err); ok {
		var body struct {
			Message string `json:"message"`
		}
		if json.Unmarshal([]byte(refused.Text), &body) == nil && body.Message != "" {
			refused.Text = body.Message
		}
	}
	return socket, err
}
