package azure

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
)

const (
	voiceRate = 24000 // Hz that is asked for
	longest   = 2000  // characters of a request: its sound is cut off after 10 minutes
)

// The speeds that the service takes.
const slowest, fastest = 0.5, 2

// pcmRates are those of bare samples, with the vendor's names.
var pcmRates = map[int]string{
	8000: "raw-8khz-16bit-mono-pcm", 16000: "raw-16khz-16bit-mono-pcm", 22050: "raw-22050hz-16bit-mono-pcm",
	24000: "raw-24khz-16bit-mono-pcm", 44100: "raw-44100hz-16bit-mono-pcm", 48000: "raw-48khz-16bit-mono-pcm",
}

// NewTTS makes a voice. Its sound streams in the answer to a plain request.
func NewTTS(s service.Section) (providers.TTS, error) {
	rate := s.Rate
	if rate == 0 {
		rate = voiceRate
	}
	output, format := pcmRates[rate], s.Format
	switch format {
	case "", "pcm":
		format = "pcm"
		if output == "" {
			return nil, fmt.Errorf("the service has no pcm at %d Hz", rate)
		}
	case "mp3":
		output = "audio-24khz-48kbitrate-mono-mp3"
	case "opus":
		output = "ogg-24khz-16bit-mono-opus"
	default:
		return nil, fmt.Errorf("format %q is none of pcm, mp3 and opus", s.Format)
	}
	base, header := address(s, "tts"), auth(s)
	header.Set("Content-Type", "application/ssml+xml")
	header.Set("X-Microsoft-OutputFormat", output)
	return httpvoice.New(httpvoice.Options{
		Section: s, Judge: judge, Text: sound.Longest{Most: longest}, Format: format, Rate: rate,
		Request: func(ctx context.Context, req providers.TTSRequest) (*http.Request, error) {
			ssml, err := speech(s, req)
			if err != nil {
				return nil, err
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, service.Join(base, "/cognitiveservices/v1"), bytes.NewReader(ssml))
			if err != nil {
				return nil, fmt.Errorf("base_url: %w", err)
			}
			r.Header = header.Clone()
			return r, nil
		},
		Ping: func(ctx context.Context) (*http.Request, error) { return httpvoice.Head(ctx, base+"/") },
	})
}

// speech is a sentence as SSML. The language is that which begins the name of the voice.
func speech(s service.Section, req providers.TTSRequest) ([]byte, error) {
	voice := s.Voice(req, service.Fitting(voices(), req.Language))
	parts := strings.SplitN(voice, "-", 3)
	if len(parts) < 3 {
		return nil, fmt.Errorf("voice %q does not begin with a language, as zh-CN-XiaoxiaoNeural does", voice)
	}
	var b bytes.Buffer
	b.WriteString(`<speak version="1.0" xmlns="http://www.w3.org/2001/10/synthesis" xmlns:mstts="https://www.w3.org/2001/mstts" xml:lang="`)
	escape(&b, parts[0]+"-"+parts[1])
	b.WriteString(`"><voice name="`)
	escape(&b, voice)
	b.WriteString(`">`)
	style := s.Text("style", "")
	if style != "" {
		b.WriteString(`<mstts:express-as style="`)
		escape(&b, style)
		b.WriteString(`">`)
	}
	if s.Speed > 0 {
		fmt.Fprintf(&b, `<prosody rate="%+.0f%%">`, (min(max(s.Speed, slowest), fastest)-1)*100)
	}
	escape(&b, req.Text)
	if s.Speed > 0 {
		b.WriteString(`</prosody>`)
	}
	if style != "" {
		b.WriteString(`</mstts:express-as>`)
	}
	b.WriteString(`</voice></speak>`)
	return b.Bytes(), nil
}

// escape writes a text as XML. What no XML may hold becomes a blank.
func escape(b *bytes.Buffer, words string) {
	words = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == utf8.RuneError || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, words)
	_ = xml.EscapeText(b, []byte(words)) // a buffer takes everything
}
