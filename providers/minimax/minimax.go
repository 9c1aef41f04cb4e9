// Package minimax speaks with the voices of MiniMax, by WebSocket or by plain requests
// that are answered with a stream of events.
package minimax

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
	"xiaozhi/providers/synthesis"
	"xiaozhi/providers/transport"
)

// The addresses of the two sites. A key belongs to one of them.
const (
	china         = "https://api.minimaxi.com"
	international = "https://api.minimax.io"
)

const (
	socketPath = "/ws/v1/t2a_v2"
	httpPath   = "/v1/t2a_v2"
)

const (
	model = "speech-02-turbo"
	voice = "female-shaonv"
	rate  = 24000
	// longest is the text of a message in characters, with room for what the service counts twice.
	longest = 5000
	keep    = time.Minute // the service closes an idle connection after about two
)

// The ways to speak.
const (
	webSocket = "websocket"
	plain     = "http"
)

func regions() map[string]string { return map[string]string{"cn": china, "intl": international} }

// Kind describes the service.
func Kind() service.Kind {
	both := []string{"zh", "en"}
	return service.Kind{
		Type:    "minimax",
		Title:   "MiniMax",
		Env:     []service.Env{{Field: service.Key, Name: "MINIMAX_API_KEY"}, {Field: service.ID, Name: "MINIMAX_GROUP_ID"}},
		Needs:   []service.Field{service.Key},
		Regions: regions(),
		Address: china,
		Models:  map[service.Role][]string{service.TTS: {model, "speech-02-hd", "speech-2.6-turbo", "speech-2.6-hd", "speech-2.8-turbo", "speech-2.8-hd"}},
		Voices: []service.Voice{
			{Name: voice, Title: "Shaonv (young woman)", Language: both}, {Name: "female-yujie", Title: "Yujie (woman)", Language: both},
			{Name: "male-qn-qingse", Title: "Qingse (young man)", Language: both}, {Name: "male-qn-jingying", Title: "Jingying (man)", Language: both},
		},
		Formats: []string{"pcm", "mp3"}, // wav is not streamed
		Extra:   true,
		More: []service.Setting{
			{Name: "transport", Values: []string{webSocket, plain}}, {Name: "emotion"}, {Name: "language_boost"},
			{Name: "volume", Type: service.Number}, {Name: "pitch", Type: service.Number},
		},
		TTS: newTTS, ListVoices: listVoices,
	}
}

func newTTS(s service.Section) (providers.TTS, error) {
	v := &speaker{section: s, address: strings.TrimSuffix(strings.TrimRight(s.Address(regions(), china), "/"), "/v1")}
	if s.Text("transport", webSocket) == plain {
		return v.plain()
	}
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, err
	}
	v.dialer = dialer
	return synthesis.New(synthesis.Options{
		Account: account, Tries: s.Tries(), Dial: v.dial, Text: sound.Longest{Most: longest}, Format: v.format(), Rate: v.rate(), Keep: keep, First: s.Timeouts.First, Next: s.Timeouts.Next,
	}), nil
}

// speaker holds what both ways to speak share. It may be used by any number of goroutines
// at once.
type speaker struct {
	section service.Section
	address string // with scheme, without a path of ours
	dialer  *transport.Dialer
}

func (v *speaker) format() string { return cmp.Or(v.section.Format, "pcm") }
func (v *speaker) rate() int      { return cmp.Or(v.section.Rate, rate) }

func (v *speaker) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + v.section.Key.Reveal()}}
}

// settings say how a sentence is to be spoken.
func (v *speaker) settings(name string) map[string]any {
	s := v.section
	how := map[string]any{
		"voice_id": name, "speed": min(max(cmp.Or(s.Speed, 1), 0.5), 2), "vol": s.Within("volume", 1, 0.01, 10), "pitch": int(s.Within("pitch", 0, -12, 12)),
	}
	if e := s.Text("emotion", ""); e != "" {
		how["emotion"] = e
	}
	out := map[string]any{
		"model": s.Model(service.TTS, model), "voice_setting": how,
		"audio_setting":  map[string]any{"sample_rate": v.rate(), "format": v.format(), "channel": 1},
		"language_boost": s.Text("language_boost", "auto"),
	}
	if v.format() == "mp3" {
		out["audio_setting"].(map[string]any)["bitrate"] = 128000
	}
	maps.Copy(out, s.Extra)
	return out
}

// unmarked takes away what the service would read as a pause.
func unmarked(words string) string { return strings.ReplaceAll(words, "<#", "<") }

// report is a message or an event of the service.
type report struct {
	Event   string `json:"event"`
	TraceID string `json:"trace_id"`
	IsFinal bool   `json:"is_final"`
	Data    *struct {
		Audio  string        `json:"audio"`
		Status transport.Int `json:"status"`
	} `json:"data"`
	BaseResp struct {
		StatusCode transport.Int `json:"status_code"`
		StatusMsg  string        `json:"status_msg"`
	} `json:"base_resp"`
}

// The codes of a text without words, which is no failure, and of a connection that was
// idle for too long, which is no refusal: another one will do.
const (
	skippedEmpty = 2203
	wasIdle      = 2201
)

// failure is the refusal in a report, or nil.
func (r report) failure() error {
	code := int(r.BaseResp.StatusCode)
	switch {
	case code == skippedEmpty, code == 0 && r.Event != "task_failed":
		return nil
	case code == wasIdle:
		return fmt.Errorf("the service ended the idle connection: %d", code)
	}
	words := cmp.Or(r.BaseResp.StatusMsg, "the service gave no reason")
	return &transport.Refusal{Kind: kindOf(code), Code: strconv.Itoa(code), Text: words, LogID: r.TraceID}
}

// sound is that in a report.
func (r report) sound() ([]byte, error) {
	if r.Data == nil || r.Data.Audio == "" {
		return nil, nil
	}
	out, err := hex.DecodeString(r.Data.Audio)
	if err != nil {
		return nil, fmt.Errorf("the sound is not hexadecimal: %w", err)
	}
	return out, nil
}

// kindOf maps a code to the kind of failure.
func kindOf(code int) providers.Kind {
	switch code {
	case 1004, 2049:
		return providers.Unauthorized
	case 1008:
		return providers.NoCredit
	case 1002, 1039, 1041, 2045, 2205:
		return providers.RateLimited
	case 1026, 1027, 1042, 2013, 2042, 2202, 2204, 20132:
		return providers.BadRequest
	}
	return providers.Unavailable
}

// errAnotherVoice says that a kept connection speaks with another voice.
var errAnotherVoice = errors.New("the connection speaks with another voice")

// group is the query that names the account, for older keys.
func (v *speaker) group() string {
	if v.section.ID == "" {
		return ""
	}
	return "?GroupId=" + url.QueryEscape(v.section.ID)
}
