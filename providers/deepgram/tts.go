package deepgram

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
)

const (
	voiceRate   = 24000  // Hz that is asked for
	longest     = 2000   // characters of a request
	voiceModels = "aura" // what the names of voices begin with
)

// NewTTS makes a voice of Aura. Its sound streams in the answer to a plain request, whose
// connection is kept for the next sentence. The WebSocket of the same voices is not used:
// it takes no more than 20 sentences a minute.
func NewTTS(s service.Section) (providers.TTS, error) {
	query := url.Values{}
	rate, format := s.Rate, "pcm"
	if rate == 0 {
		rate = voiceRate
	}
	switch s.Format {
	case "", "linear16", "pcm":
		query.Set("encoding", "linear16")
		query.Set("container", "none")
		query.Set("sample_rate", strconv.Itoa(rate))
	case "mp3":
		format = "mp3"
		query.Set("encoding", "mp3")
	case "opus":
		format = "opus"
		query.Set("encoding", "opus")
		query.Set("container", "ogg")
	default:
		return nil, fmt.Errorf("format %q is none of linear16, mp3 and opus", s.Format)
	}
	for name, value := range s.Extra {
		query.Set(name, fmt.Sprint(value))
	}
	base, header := strings.TrimRight(s.Address(nil, cloud), "/"), auth(s)
	return httpvoice.New(httpvoice.Options{
		Section: s, Judge: judge, Text: sound.Longest{Most: longest}, Format: format, Rate: rate,
		Request: func(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
			voice := s.Voice(req, voiceOf(s, req.Language))
			if voice == "" {
				return nil, fmt.Errorf("%w: there is no voice for %q", providers.ErrLanguage, req.Language)
			}
			query := cloneValues(query)
			query.Set("model", voice)
			return httpvoice.PostJSON(ctx, service.Join(base, "/v1/speak?"+query.Encode()), header, map[string]string{"text": req.Text})
		},
		Ping: func(ctx context.Context) (*http.Request, error) { return httpvoice.Head(ctx, base+"/") },
	})
}

// voiceOf returns the voice for a language where the section names none: its model, which is
// one, unless it is that of the recogniser. There are few languages, and Chinese is none of them: "" then.
func voiceOf(s service.Section, language string) string {
	if model := s.Model(service.TTS, ""); strings.HasPrefix(model, voiceModels) {
		return model
	}
	if language == "" {
		return service.Fitting(voices(), language)
	}
	return service.Speaking(voices(), language)
}

// auth are the headers by which the service knows who asks.
func auth(s service.Section) http.Header {
	return http.Header{"Authorization": {"Token " + s.Key.Reveal()}}
}

func cloneValues(v url.Values) url.Values {
	out := make(url.Values, len(v)+1)
	maps.Copy(out, v)
	return out
}

// listVoices asks for the models that speak.
func listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(s.Address(nil, cloud), "/")+"/v1/models", nil)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	r.Header = auth(s)
	var reply struct {
		Voices []struct {
			Name      string   `json:"canonical_name"`
			Title     string   `json:"name"`
			Languages []string `json:"languages"`
		} `json:"tts"`
	}
	if err := httpvoice.Get(s, r, judge, &reply); err != nil {
		return nil, err
	}
	var out []service.Voice
	for _, v := range reply.Voices {
		out = append(out, service.Voice{Name: v.Name, Title: v.Title, Language: v.Languages})
	}
	return out, nil
}
