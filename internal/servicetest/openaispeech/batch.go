package openaispeech

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"xiaozhi/internal/servicetest"
)

// transcribe hears a file.
func (v *vendor) transcribe(w http.ResponseWriter, r *http.Request) {
	f := v.Fault()
	if err := r.ParseMultipartForm(26 << 20); err != nil {
		v.refuse(w, servicetest.None, "request body is not a multipart form")
		return
	}
	v.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: []byte(r.Form.Encode())})
	model, format := r.FormValue("model"), r.FormValue("response_format")
	if f == servicetest.WrongModel || !slices.Contains(v.hears, model) {
		v.refuse(w, servicetest.WrongModel, "")
		return
	}
	if format != "" && format != "json" && strings.HasPrefix(model, "gpt-") {
		v.refuse(w, servicetest.None, "response_format '"+format+"' is not compatible with model '"+model+"'. Use 'json' instead.")
		return
	}
	if len(r.FormValue("language")) > 3 {
		v.refuse(w, servicetest.None, "Invalid language '"+r.FormValue("language")+"'. Language parameter must be specified in ISO-639-1 format.")
		return
	}
	file, head, err := r.FormFile("file")
	if err != nil || !slices.Contains(strings.Fields(".flac .mp3 .mp4 .mpeg .mpga .m4a .ogg .wav .webm"), path.Ext(head.Filename)) {
		v.refuse(w, servicetest.None, "Invalid file format. Supported formats: ['flac', 'm4a', 'mp3', 'mp4', 'mpeg', 'mpga', 'oga', 'ogg', 'wav', 'webm']")
		return
	}
	sound, _ := io.ReadAll(file)
	if pcm, _, ok := servicetest.ReadWAV(sound); ok {
		sound = pcm
	}
	text := ""
	if servicetest.Loud(sound) {
		text = servicetest.Words
	}
	v.Send(w, r, f, v.transcript(text, model, format, r.FormValue("stream") == "true", f))
}

// transcript is the answer to a file.
func (v *vendor) transcript(text, model, format string, stream bool, f servicetest.Fault) servicetest.Reply {
	switch {
	case stream && v.Knows(servicetest.Parts): // speaches
		first, second := servicetest.Halves()
		if text == "" {
			return servicetest.Reply{Type: "text/event-stream"}
		}
		return events(f, map[string]any{"text": first}, map[string]any{"text": second})
	case stream && strings.HasPrefix(model, "gpt-"):
		var all []any
		for _, p := range pieces(text) {
			all = append(all, map[string]any{"type": "transcript.text.delta", "delta": p})
		}
		return events(f, append(all, map[string]any{"type": "transcript.text.done", "text": text, "usage": map[string]any{"type": "tokens", "total_tokens": 20}})...)
	case format == "text":
		return servicetest.Reply{Type: "text/plain; charset=utf-8", Body: []byte(text + "\n"), Broken: []byte("\xff\xfe")}
	}
	body := map[string]any{"text": text}
	if f == servicetest.Odd {
		body["usage"], body["logprobs"] = map[string]any{"type": "duration", "seconds": 1}, nil
	}
	b, _ := json.Marshal(body)
	return servicetest.Reply{Type: "application/json", Body: b, Broken: []byte(`{"text":"` + "\xe4\xbb")}
}

// pieces cuts a text into a few pieces of whole characters.
func pieces(text string) (out []string) {
	for len(text) > 0 {
		n := 0
		for range 5 {
			_, size := utf8.DecodeRuneInString(text[n:])
			n += size
		}
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

// events are a stream of events. One that is odd has comments, names of events, an
// unknown event and the mark of other streams' ends.
func events(f servicetest.Fault, all ...any) servicetest.Reply {
	var b bytes.Buffer
	if f == servicetest.Odd {
		b.WriteString(": ping\n\nevent: unknown\ndata: {\"type\":\"unknown.event\"}\n\n")
	}
	first := 0
	for _, e := range all {
		data, _ := json.Marshal(e)
		_, _ = fmt.Fprintf(&b, "data: %s\n\n", data)
		if first == 0 {
			first = b.Len()
		}
	}
	if f == servicetest.Odd {
		b.WriteString("data: [DONE]\n\n")
	}
	return servicetest.Reply{Type: "text/event-stream", Body: b.Bytes(), Piece: max(first, 1), Broken: []byte("data: {\"type\":\"transcript\n\n")}
}

// speech is a request for speech.
type speech struct {
	Model  string   `json:"model"`
	Input  string   `json:"input"`
	Voice  string   `json:"voice"`
	Format string   `json:"response_format"`
	Speed  *float64 `json:"speed"`
	Rate   int      `json:"sample_rate"`
	Events string   `json:"stream_format"` // of OpenAI and speaches
	Stream *bool    `json:"stream"`        // of the others
	Encode string   `json:"encode_format"` // of Zhipu
}

// asked reads a request for speech, and refuses what is wrong with it.
func (v *vendor) asked(w http.ResponseWriter, r *http.Request, f servicetest.Fault) (s speech, ok bool) {
	body, _ := io.ReadAll(r.Body)
	v.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	if err := json.Unmarshal(body, &s); err != nil {
		v.refuse(w, servicetest.None, "We could not parse the JSON body of your request.")
		return s, false
	}
	if s.Format == "" {
		s.Format = v.formats[0]
	}
	reason, words := servicetest.None, ""
	switch {
	case f == servicetest.WrongModel || !slices.Contains(v.speaks, s.Model):
		reason = servicetest.WrongModel
	case f == servicetest.WrongVoice || !v.voice(s.Model, s.Voice):
		reason = servicetest.WrongVoice
	case s.Input == "":
		words = "input: must not be empty"
	case v.maxInput > 0 && utf8.RuneCountInString(s.Input) > v.maxInput:
		words = fmt.Sprintf("input: String should have at most %d characters", v.maxInput)
	case !slices.Contains(v.formats, s.Format):
		words = "response_format: Input should be one of " + strings.Join(v.formats, ", ")
	case v.rates != nil && s.Rate > 0 && !slices.Contains(v.rates[s.Format], s.Rate):
		words = "sample_rate is not supported for " + s.Format
	case s.Speed != nil && (*s.Speed < 0.25 || *s.Speed > 4):
		words = "speed: Input should be between 0.25 and 4"
	case s.Events == "sse" && strings.HasPrefix(s.Model, "tts-1"):
		words = "stream_format: sse is not supported for this model"
	}
	if reason != servicetest.None || words != "" {
		v.refuse(w, reason, words)
		return s, false
	}
	return s, true
}

// speak answers with sound.
func (v *vendor) speak(w http.ResponseWriter, r *http.Request) {
	f := v.Fault()
	s, ok := v.asked(w, r, f)
	if !ok {
		return
	}
	rate := v.rate
	if v.rated && s.Rate > 0 {
		rate = s.Rate
	}
	if s.Events == "sse" {
		reply := v.soundEvents(f, servicetest.Speech(s.Input, rate))
		v.Send(w, r, f, reply)
		return
	}
	reply := servicetest.Reply{Piece: 4801, Broken: []byte(`{"error":{"message":"The server had an error while processing your request.","type":"server_error"}}`)}
	switch s.Format {
	case "pcm":
		reply.Type, reply.Body = "audio/pcm", servicetest.Speech(s.Input, rate)
	case "wav":
		sound := servicetest.Speech(s.Input, rate)
		reply.Type, reply.Body = "audio/wav", append(servicetest.WAV(rate, v.sizes), sound...)
	case "opus":
		reply.Type, reply.Body = "audio/opus", servicetest.OggOpus(v.t, s.Input, 48000)
	default:
		reply.Type, reply.Body = "audio/mpeg", servicetest.MP3(s.Input)
	}
	if v.sentences {
		reply.Piece, reply.Pause = len(reply.Body)/2+1, 20*time.Millisecond
	}
	switch f {
	case servicetest.Broken:
		reply.Type = "application/json"
	case servicetest.Huge:
		reply.Filler = reply.Body
	case servicetest.Odd:
		if s.Format == "pcm" {
			reply.Type = "" // none, which some proxies leave out
		}
	default:
	}
	v.Send(w, r, f, reply)
}

// soundEvents are the events of OpenAI with sound.
func (v *vendor) soundEvents(f servicetest.Fault, sound []byte) servicetest.Reply {
	var all []any
	for _, p := range servicetest.Pieces(sound, 4801) {
		all = append(all, map[string]any{"type": "speech.audio.delta", "audio": base64.StdEncoding.EncodeToString(p)})
	}
	return events(f, append(all, map[string]any{"type": "speech.audio.done", "usage": map[string]any{"total_tokens": 20}})...)
}

// speakEvents answers as Zhipu does: with events, or whole if stream is not asked for.
func (v *vendor) speakEvents(w http.ResponseWriter, r *http.Request) {
	f := v.Fault()
	s, ok := v.asked(w, r, f)
	if !ok {
		return
	}
	sound := servicetest.Speech(s.Input, v.rate)
	if s.Stream == nil || !*s.Stream {
		if s.Format == "wav" {
			sound = append(servicetest.WAV(v.rate, uint32(len(sound))), sound...)
		}
		v.Send(w, r, f, servicetest.Reply{Type: "audio/" + s.Format, Body: sound, Broken: []byte("<html>")})
		return
	}
	if s.Format != "pcm" {
		v.refuse(w, servicetest.None, "response_format: only pcm can be streamed")
		return
	}
	encode := base64.StdEncoding.EncodeToString
	if s.Encode == "hex" {
		encode = hex.EncodeToString
	}
	var all []any
	for _, p := range servicetest.Pieces(sound, 49999) {
		all = append(all, choice(map[string]any{"role": "assistant", "content": encode(p), "return_sample_rate": v.rate, "return_format": "pcm"}, nil))
	}
	v.Send(w, r, f, events(f, append(all, choice(map[string]any{}, "stop"))...))
}

// choice is an event of Zhipu.
func choice(delta map[string]any, finish any) any {
	return map[string]any{"id": "20260101", "created": 1, "model": "glm-tts", "choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}}
}
