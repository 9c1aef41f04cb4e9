// Package tencent is the speech of Tencent Cloud: its recogniser and its voices, both by
// WebSocket with a signed address.
package tencent

import (
	"cmp"
	"context"

	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	hearingAddress  = "https://asr.cloud.tencent.com"
	speakingAddress = "https://tts.cloud.tencent.com"
)

// The limits of time when the settings have none, and how long a signature is good.
const (
	firstTime = 5 * time.Second
	nextTime  = 5 * time.Second
	validity  = 24 * time.Hour
)

// Kind describes the service.
func Kind() service.Kind {
	both := []string{"zh", "en"}
	return service.Kind{
		Type:  "tencent",
		Title: "Tencent Cloud speech",
		Env: []service.Env{
			{Field: service.Key, Name: "TENCENTCLOUD_SECRET_ID"}, {Field: service.Secret, Name: "TENCENTCLOUD_SECRET_KEY"}, {Field: service.ID, Name: "TENCENTCLOUD_APP_ID"},
		},
		Needs:   []service.Field{service.Key, service.Secret, service.ID},
		Address: hearingAddress,
		Models:  map[service.Role][]string{service.ASR: {hearingModel, "16k_zh_large", "16k_zh_en", "16k_multi_lang", "16k_en"}},
		Voices: []service.Voice{
			{Name: speakingVoice, Title: "Zhiyu", Language: both}, {Name: "101016", Title: "Zhitian (girl)", Language: []string{"zh"}},
			{Name: "101015", Title: "Zhimeng (boy)", Language: []string{"zh"}}, {Name: "501001", Title: "Zhilan", Language: both},
			{Name: "601008", Title: "Ai Xiaohao", Language: both},
		},
		Formats: []string{"pcm", "mp3"},
		Extra:   true,
		More: []service.Setting{
			{Name: "hotword_id"}, {Name: "hotwords"}, {Name: "volume", Type: service.Number},
			{Name: "emotion"}, {Name: "pace", Type: service.Number}, // of sound to the recogniser, times as fast as it is spoken
			{Name: "most_connections", Type: service.Number}, // of a role at the same time; others wait
		},
		ASR: newASR,
		TTS: newTTS,
		At: func(s service.Section, r service.Role) string {
			if r == service.TTS {
				return s.Address(nil, speakingAddress)
			}
			return s.Address(nil, hearingAddress)
		},
	}
}

// account holds what the roles of a section share. It may be used by any number of
// goroutines at once.
type account struct {
	section service.Section
	errors  transport.Account
	dialer  *transport.Dialer
	clock   *transport.Clock
	address string // with scheme, without a path
	first   time.Duration
	next    time.Duration
}

func newAccount(s service.Section, address string) (*account, error) {
	if _, err := strconv.ParseUint(s.ID, 10, 64); err != nil && s.BaseURL == "" {
		return nil, errors.New("app_id is not a number")
	}
	a := &account{
		section: s, errors: transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}, clock: &transport.Clock{},
		address: strings.TrimRight(cmp.Or(s.BaseURL, address), "/"),
		first:   cmp.Or(s.Timeouts.First, firstTime), next: cmp.Or(s.Timeouts.Next, nextTime),
	}
	var err error
	a.dialer, err = transport.NewDialer(transport.DialerOptions{
		Account: a.errors, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers, Clock: a.clock,
		Most: max(int(s.Number("most_connections", 0)), 0),
	})
	return a, err
}

// dial opens a socket at a signed address.
func (a *account) dial(ctx context.Context, head, path, parameter string, values url.Values) (*transport.Socket, error) {
	at := service.Join(a.address, path)
	_, hostPath, _ := strings.Cut(at, "://")
	for name, value := range a.section.Extra {
		values.Set(name, fmt.Sprint(value))
	}
	return a.dialer.Dial(ctx, at+"?"+signed(a.section.Secret.Reveal(), head, hostPath, parameter, values), nil)
}

// report is a text message of the service.
type report struct {
	Code      transport.Int `json:"code"`
	Message   string        `json:"message"`
	VoiceID   string        `json:"voice_id"`
	SessionID string        `json:"session_id"`
	RequestID string        `json:"request_id"`
	Final     transport.Int `json:"final"`
	Ready     transport.Int `json:"ready"`
	Result    *struct {
		SliceType transport.Int  `json:"slice_type"`
		Index     transport.Code `json:"index"`
		Text      string         `json:"voice_text_str"`
	} `json:"result"`
}

// read returns the next report or piece of sound. A code that is no success is a
// [*transport.Refusal] of the kind that kindOf says.
func read(s *transport.Socket, within time.Duration, kindOf func(int) providers.Kind) (r report, sound []byte, err error) {
	text, data, err := s.Read(within)
	if err != nil {
		return r, nil, err
	}
	if !text {
		return r, data, nil
	}
	if err := transport.Decode(data, &r); err != nil {
		return r, nil, err
	}
	if r.Code != 0 {
		words := cmp.Or(r.Message, "the service gave no reason")
		return r, nil, &transport.Refusal{Kind: kindOf(int(r.Code)), Code: strconv.Itoa(int(r.Code)), Text: words, LogID: cmp.Or(r.RequestID, r.VoiceID, r.SessionID)}
	}
	return r, nil, nil
}

// learn puts our idea of the service's clock right if a signature was refused. The
// refusal says then that it may be signed again.
func (a *account) learn(s *transport.Socket, err error) error {
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Kind == providers.Unauthorized {
		refused.Skewed = a.clock.Learn(s.Header())
	}
	return err
}
