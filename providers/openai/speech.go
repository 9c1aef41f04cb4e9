package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Speech lists the models and voices of a vendor with this wire format. A zero value is neither.
type Speech struct {
	Hears   []string // models, the default first
	Live    []string // those of them that hear over a WebSocket only, while the user speaks
	Sockets bool     // all may be used over a WebSocket
	Streams bool     // results come as events while the model works
	Parts   bool     // each event holds a segment, and none the whole
	Bare    bool     // a request takes the sound and the model, and nothing more

	Speaks   []string // models, the default first
	Voices   []service.Voice
	Formats  []string // the default first; nil: pcm, wav, mp3, opus
	Rate     int      // Hz of bare pcm
	Longest  int      // characters of a request; 0: as OpenAI
	SetsRate bool     // the rate of pcm and wav can be asked for
	Events   bool     // sound comes in events of JSON
	Prefixed bool     // a voice is called by its model and its name
	Lists    bool     // GET audio/voices names the voices
}

// formats are those of a vendor's voices.
func (s Speech) formats() []string {
	if s.Formats != nil {
		return s.Formats
	}
	return []string{"pcm", "wav", "mp3", "opus"}
}

// speeches lists the models and voices of all vendors, by their types.
func speeches() map[string]Speech {
	return map[string]Speech{
		"openai": {
			Hears: []string{"gpt-4o-mini-transcribe", "gpt-4o-transcribe", "gpt-transcribe", "gpt-realtime-whisper", "gpt-live-transcribe", "whisper-1"},
			Live:  []string{"gpt-realtime-whisper", "gpt-live-transcribe"}, Sockets: true, Streams: true,
			Speaks: []string{"gpt-4o-mini-tts", "tts-1", "tts-1-hd"}, Rate: 24000,
			Voices: named("alloy", "ash", "ballad", "coral", "echo", "fable", "nova", "onyx", "sage", "shimmer", "verse"),
		},
		"groq": {
			Hears:  []string{"whisper-large-v3-turbo", "whisper-large-v3"},
			Speaks: []string{"canopylabs/orpheus-v1-english"}, Voices: english("hannah", "austin", "troy"), Formats: []string{"wav"}, Rate: 48000,
		},
		"siliconflow": {
			Hears: []string{"FunAudioLLM/SenseVoiceSmall"}, Bare: true,
			Speaks: []string{"FunAudioLLM/CosyVoice2-0.5B"}, Rate: 24000, SetsRate: true, Prefixed: true,
			Voices: named("alex", "anna", "bella", "benjamin", "charles", "claire", "david", "diana"),
		},
		"glm": {Speaks: []string{"glm-tts"}, Voices: named("tongtong"), Formats: []string{"pcm"}, Rate: 24000, Longest: 1024, Events: true},
		"speaches": {
			Hears: []string{"Systran/faster-whisper-small"}, Streams: true, Parts: true,
			Speaks: []string{"speaches-ai/Kokoro-82M-v1.0-ONNX"}, Voices: kokoro("af_heart", "zf_xiaobei"), Formats: []string{"pcm", "wav", "mp3"}, Rate: 24000, SetsRate: true,
		},
		"kokoro": {
			Speaks: []string{"kokoro"}, Voices: kokoro("zf_xiaobei", "zf_xiaoxiao", "zm_yunxi", "af_heart", "am_adam", "bf_emma", "jf_alpha", "ef_dora", "ff_siwis", "if_sara", "pf_dora", "hf_alpha"), Rate: 24000, Lists: true,
		},
	}
}

func named(names ...string) []service.Voice {
	var out []service.Voice
	for _, n := range names {
		out = append(out, service.Voice{Name: n})
	}
	return out
}

// english names voices that speak English only.
func english(names ...string) []service.Voice {
	out := named(names...)
	for i := range out {
		out[i].Language = []string{"en"}
	}
	return out
}

// kokoro names voices of Kokoro, whose names begin with a sign of their language.
func kokoro(names ...string) []service.Voice {
	tags := map[byte]string{'a': "en", 'b': "en-GB", 'e': "es", 'f': "fr", 'h': "hi", 'i': "it", 'j': "ja", 'p': "pt", 'z': "zh"}
	out := named(names...)
	for i, v := range out {
		if tag := tags[v.Name[0]]; tag != "" {
			out[i].Language = []string{tag}
		}
	}
	return out
}

// SpeechKinds describes programs at home that hear or speak with this wire format and are
// no models.
func SpeechKinds() []service.Kind {
	var out []service.Kind
	for _, v := range []Vendor{
		{Type: "speaches", Title: "speaches", Address: "http://127.0.0.1:8000/v1", Free: true},
		{Type: "kokoro", Title: "Kokoro-FastAPI", Address: "http://127.0.0.1:8880/v1", Free: true},
	} {
		k := v.kind()
		k.LLM, k.Schemes = nil, []string{"http", "https"}
		out = append(out, k)
	}
	return out
}

// speech adds to a kind what its vendor hears and speaks.
func (v Vendor) speech(k *service.Kind) {
	s, ok := speeches()[v.Type]
	if !ok {
		return
	}
	if len(s.Hears) > 0 {
		k.Models[service.ASR] = s.Hears
		k.ASR = func(section service.Section) (providers.ASR, error) { return v.recogniser(s, section) }
		k.More = append(k.More, service.Setting{Name: "prompt", Type: service.Text})
		if s.Sockets {
			k.More = append(k.More, service.Setting{Name: "mode", Values: []string{"upload", "realtime"}})
		}
	}
	if len(s.Speaks) > 0 {
		k.Models[service.TTS] = s.Speaks
		k.Voices, k.Formats = s.Voices, s.formats()
		k.TTS = func(section service.Section) (providers.TTS, error) { return v.voice(s, section) }
		if s.Lists {
			k.ListVoices = v.listVoices
		}
	}
}

// recogniser makes the recogniser of a section.
func (v Vendor) recogniser(s Speech, section service.Section) (providers.ASR, error) {
	base, at, err := generation.FromSection(section, service.ASR, section.Address(v.Regions, v.Address), s.Hears[0])
	if err != nil {
		return nil, err
	}
	u := &uploader{at: at, account: base.Account, section: section, model: base.Model, events: s.Streams && base.Model != "whisper-1", parts: s.Parts, bare: s.Bare}
	live := slices.Contains(s.Live, u.model)
	switch mode := section.Text("mode", ""); {
	case mode == "upload" && live:
		return nil, fmt.Errorf("%s: mode: the model %s hears over a WebSocket only", section.Name, u.model)
	case s.Sockets && (live || mode == "realtime"):
		return newRealtime(at, base.Account, section, u.model, live)
	}
	return newUpload(u), nil
}

// judge puts right the kind of a refusal by the words that stand for a lack of money, and
// takes the words out of JSON that is not of OpenAI's shape.
func judge(r *transport.Refusal) {
	var body struct {
		Detail struct {
			Message string `json:"message"`
		} `json:"detail"`
	}
	if json.Unmarshal([]byte(r.Text), &body) == nil && body.Detail.Message != "" {
		r.Text = body.Detail.Message
	}
	if r.Status == http.StatusUnauthorized || r.Kind == providers.BadRequest {
		return
	}
	words := strings.ToLower(r.Text)
	for _, w := range []string{"quota", "balance", "billing", "arrear", "insufficient"} {
		if strings.Contains(words, w) {
			r.Kind = providers.NoCredit
		}
	}
}

// listTime bounds asking a server for its voices.
const listTime = 10 * time.Second

// listVoices asks a server for its voices.
func (v Vendor) listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	base, at, err := generation.FromSection(s, service.TTS, s.Address(v.Regions, v.Address), "any")
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, listTime, transport.ErrStalled)
	defer cancel()
	fail := func(err error) ([]service.Voice, error) {
		return nil, base.Account.Wrap(ctx, limited, "list voices", err)
	}
	req, err := http.NewRequestWithContext(limited, http.MethodGet, at.Base+"/audio/voices", nil)
	if err != nil {
		return fail(err)
	}
	resp, err := at.Client.Do(req)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := refusal(resp); err != nil {
		return fail(err)
	}
	var all struct {
		Voices []string `json:"voices"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(&all); err != nil {
		return fail(fmt.Errorf("the list of voices is not the JSON expected: %w", err))
	}
	if v.Type == "kokoro" {
		return kokoro(all.Voices...), nil
	}
	return named(all.Voices...), nil
}
