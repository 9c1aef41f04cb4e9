// Package dashscope is the speech of Alibaba Cloud's Model Studio (DashScope, Bailian):
// paraformer, fun-asr and Qwen-ASR hear, CosyVoice and Qwen-TTS speak, each while its
// input still comes.
package dashscope

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// The addresses of the two sites. A key belongs to one of them.
const (
	china         = "https://dashscope.aliyuncs.com"
	international = "https://dashscope-intl.aliyuncs.com"
)

const (
	inferencePath = "/api-ws/v1/inference"
	realtimePath  = "/api-ws/v1/realtime"
	httpPath      = "/api/v1/services/aigc/multimodal-generation/generation"
)

// The models that are taken when the settings name none.
const (
	hearingModel  = "fun-asr-realtime"
	speakingModel = "cosyvoice-v2"
)

// The limits of time when the settings have none.
const (
	firstTime = 5 * time.Second
	nextTime  = 5 * time.Second
)

// regions are the sites by the names of the settings.
func regions() map[string]string { return map[string]string{"cn": china, "intl": international} }

// Kind describes the service.
func Kind() service.Kind {
	return service.Kind{
		Type:    "dashscope",
		Title:   "Alibaba Cloud Model Studio (DashScope, Bailian)",
		Env:     []service.Env{{Field: service.Key, Name: "DASHSCOPE_API_KEY"}},
		Needs:   []service.Field{service.Key},
		Regions: regions(),
		Address: china,
		Models: map[service.Role][]string{
			service.ASR: {hearingModel, "paraformer-realtime-v2", "qwen3-asr-flash-realtime"},
			service.TTS: {speakingModel, "cosyvoice-v3-flash", "cosyvoice-v3-plus", "qwen3-tts-flash-realtime", "qwen3-tts-flash"},
		},
		Voices:  voices(),
		Formats: []string{"pcm", "opus", "wav", "mp3"},
		Extra:   true,
		More: []service.Setting{
			{Name: "workspace"}, {Name: "vocabulary_id"}, {Name: "turn_detection", Values: []string{serverTurns, noTurns}},
			{Name: "max_sentence_silence", Type: service.Number},
			{Name: "instructions"}, {Name: "volume", Type: service.Number}, {Name: "pitch", Type: service.Number},
		},
		ASR: newASR,
		TTS: newTTS,
	}
}

// voices are some of those that come with the models.
func voices() []service.Voice {
	both := []string{"zh", "en"}
	return []service.Voice{
		{Name: "longxiaochun_v2", Title: "Longxiaochun (cosyvoice-v2)", Language: both},
		{Name: "longanyang", Title: "Longanyang (cosyvoice-v3)", Language: both},
		{Name: "Cherry", Title: "Cherry (Qwen-TTS)", Language: both},
	}
}

// site holds what the roles of a section share. It may be used by any number of goroutines
// at once.
type site struct {
	section service.Section
	account transport.Account
	dialer  *transport.Dialer
	address string // with scheme, without a path of ours
	first   time.Duration
	next    time.Duration
}

func newSite(s service.Section) (*site, error) {
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, err
	}
	address := strings.TrimRight(s.Address(regions(), china), "/")
	// One section may serve models too, whose address has a path, as those of the vendor's pages have.
	for _, path := range []string{"/compatible-mode/", "/api-ws/", "/api/v1"} {
		address, _, _ = strings.Cut(address, path)
	}
	return &site{
		section: s, account: account, dialer: dialer, address: address,
		first: cmp.Or(s.Timeouts.First, firstTime), next: cmp.Or(s.Timeouts.Next, nextTime),
	}, nil
}

// header says who asks.
func (s *site) header() http.Header {
	h := http.Header{"Authorization": {"Bearer " + s.section.Key.Reveal()}}
	if w := s.section.Text("workspace", ""); w != "" {
		h.Set("X-DashScope-WorkSpace", w)
	}
	return h
}

// dial opens a socket.
func (s *site) dial(ctx context.Context, path string) (*transport.Socket, error) {
	header := s.header()
	if strings.HasPrefix(path, realtimePath) {
		header.Set("OpenAI-Beta", "realtime=v1") // as in all examples of the vendor
	}
	socket, err := s.dialer.Dial(ctx, service.Join(s.address, path), header)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok {
		return nil, judged(refused)
	}
	return socket, err
}
