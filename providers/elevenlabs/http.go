package elevenlabs

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
)

const voiceRate = 24000 // Hz that is asked for

// The speeds that the service takes.
const slowest, fastest = 0.7, 1.2

// output is the name of a format of sound.
func output(s service.Section) (name, format string, rate int, err error) {
	rate = s.Rate
	if rate == 0 {
		rate = voiceRate
	}
	switch s.Format {
	case "", "pcm":
		return fmt.Sprintf("pcm_%d", rate), "pcm", rate, nil
	case "mp3":
		return "mp3_22050_32", "mp3", rate, nil
	case "opus":
		return "opus_48000_64", "opus", rate, nil
	}
	return "", "", 0, fmt.Errorf("format %q is none of pcm, mp3 and opus", s.Format)
}

// voiceSettings returns those that a section has; nil: none.
func voiceSettings(s service.Section) map[string]any {
	out := map[string]any{}
	for _, name := range []string{"stability", "similarity_boost"} {
		if v := s.Number(name, -1); v >= 0 {
			out[name] = min(v, 1)
		}
	}
	if s.Speed > 0 {
		out["speed"] = max(slowest, min(s.Speed, fastest))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// fluent are the languages of the models of version 2.5.
const fluent = " en ja zh de hi fr ko pt it es ru id nl tr fil pl sv bg ro ar cs el fi hr ms sk da ta uk hu no vi "

// language returns that of a sentence for models that take one and speak it; "" otherwise:
// they then go by the text.
func language(model, tag string) string {
	lang := string(text.TagOf(tag).Base())
	if lang == "nb" || lang == "nn" {
		lang = "no"
	}
	switch {
	case strings.Contains(model, "v3"):
		return lang
	case strings.Contains(model, "v2_5") && strings.Contains(fluent, " "+lang+" "):
		return lang
	}
	return ""
}

// newHTTP makes a voice whose sound streams in the answer to a plain request.
func newHTTP(s service.Section) (providers.TTS, error) {
	name, format, rate, err := output(s)
	if err != nil {
		return nil, err
	}
	base, header, model := address(s), auth(s), modelOf(s, service.TTS)
	return httpvoice.New(httpvoice.Options{
		Section: s, Judge: judge, Text: sound.Longest{Most: longest}, Format: format, Rate: rate,
		Request: func(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
			body := map[string]any{"text": req.Text, "model_id": model}
			if tag := language(model, req.Language); tag != "" {
				body["language_code"] = tag
			}
			if v := voiceSettings(s); v != nil {
				body["voice_settings"] = v
			}
			maps.Copy(body, s.Extra)
			at := service.Join(base, "/v1/text-to-speech/"+url.PathEscape(s.Voice(req, defaultVoice))+"/stream?output_format="+name)
			return httpvoice.PostJSON(ctx, at, header, body)
		},
		Ping: func(ctx context.Context) (*http.Request, error) { return httpvoice.Head(ctx, base+"/") },
	})
}
