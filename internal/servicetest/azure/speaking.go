package azure

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"xiaozhi/internal/servicetest"
)

const (
	piece = 3200                 // bytes of a voice that are sent at once
	pause = 2 * time.Millisecond // between them
	limit = 64 << 10             // bytes of a document
)

// rates are the rates of sound in the names of formats.
var rates = map[string]int{"8khz": 8000, "16khz": 16000, "22050hz": 22050, "24khz": 24000, "44100hz": 44100, "48khz": 48000}

// speech is the sound of a text in a format. It reports false if there is no such format.
func (f *fake) speech(text, format string) (sound []byte, ok bool) {
	parts := strings.Split(format, "-")
	if len(parts) < 4 {
		return nil, false
	}
	rate := rates[parts[1]]
	pcm := servicetest.Speech(text, rate)
	switch parts[0] + parts[len(parts)-1] {
	case "rawpcm":
		return pcm, rate > 0
	case "riffpcm":
		return append(servicetest.WAV(rate, 0), pcm...), rate > 0
	case "audiomp3":
		return servicetest.MP3(text), rate == 24000
	case "oggopus":
		return servicetest.OggOpus(f.t, text, rate), rate > 0
	}
	return nil, false
}

// request is a voice by HTTP.
func (f *fake) request(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header, Body: body})
	if !f.allowed(w, r) {
		return
	}
	text, voice, err := ssml(body)
	sound, known := f.speech(text, r.Header.Get("X-Microsoft-OutputFormat"))
	switch {
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/ssml+xml"):
		f.Refuse(w, http.StatusUnsupportedMediaType, "", "Content-Type", "text/plain")
	case r.Header.Get("User-Agent") == "" || err != nil || len(body) > limit:
		f.Refuse(w, http.StatusBadRequest, "SSML parsing error", "Content-Type", "text/plain")
	case f.Fault() == servicetest.WrongVoice || !strings.Contains(voice, "-"):
		f.Refuse(w, http.StatusBadRequest, "Unsupported voice "+voice+".", "Content-Type", "text/plain")
	case !known:
		f.Refuse(w, http.StatusBadRequest, "Unsupported output format.", "Content-Type", "text/plain")
	default:
		f.Send(w, r, f.Fault(), servicetest.Reply{Type: "audio/basic", Body: sound, Piece: piece, Pause: pause, Broken: []byte("\x00"), Filler: sound})
	}
}

// speaker is a socket of a voice: one document after another.
type speaker struct {
	f *fake
	l *servicetest.Line

	configured bool
	format     string
	context    string // the request for which a format has come
	old        string // the request before
	pieces     string // of a text that comes in pieces
}

// speaking is a socket of a voice.
func (f *fake) speaking(w http.ResponseWriter, r *http.Request) {
	if !f.allowed(w, r) {
		return
	}
	l, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer l.Close()
	s := &speaker{f: f, l: l}
	for s.next() {
	}
}

// next takes a message. It reports false when the socket is over.
func (s *speaker) next() bool {
	m, err := s.l.Next(time.Minute)
	if err != nil {
		return false
	}
	x, err := parse(m)
	if err != nil {
		return refuse(s.l, "the message has no headers")
	}
	if x.path == "speech.config" {
		s.configured = true
		return true
	}
	if !hex32.MatchString(x.id) || !s.configured {
		return refuse(s.l, "X-RequestId is not valid, or speech.config is missing")
	}
	switch x.path {
	case "synthesis.context":
		var c struct {
			Synthesis struct {
				Audio struct{ OutputFormat string }
			}
		}
		if json.Unmarshal(x.body, &c) != nil {
			return refuse(s.l, "synthesis.context is not valid")
		}
		s.context, s.format, s.pieces = x.id, c.Synthesis.Audio.OutputFormat, ""
		return true
	case "ssml":
		text, voice, err := ssml(x.body)
		if err != nil || len(x.body) > limit {
			return refuse(s.l, "SSML parsing error")
		}
		return s.speak(x.id, text, voice)
	case "text.piece":
		s.pieces += string(x.body)
		return true
	case "text.end":
		return s.speak(x.id, s.pieces, "zh-CN-XiaoxiaoNeural")
	}
	return refuse(s.l, "unknown path "+x.path)
}

// speak sends the sound of a text.
func (s *speaker) speak(id, text, voice string) bool {
	fault := s.l.Fault()
	all, known := s.f.speech(text, s.format)
	switch {
	case s.context != id || !known:
		return refuse(s.l, "Unsupported output format.")
	case fault == servicetest.WrongVoice || !strings.Contains(voice, "-"):
		return refuse(s.l, "Unsupported voice "+voice+".")
	case fault == servicetest.Stale && s.old != "":
		s.l.Say(sound(s.old, make([]byte, piece)), message("turn.end", s.old, map[string]any{}))
	}
	s.old = id
	if !s.l.Say(message("turn.start", id, map[string]any{}), message("response", id, map[string]any{"audio": map[string]any{"type": "inline", "streamId": "9F2A"}})) {
		return false
	}
	n := piece
	if fault == servicetest.Odd {
		n = 1001
		s.l.Say(message("something.new", id, map[string]any{"é": []any{nil}}))
	}
	for _, p := range servicetest.Pieces(all, n) {
		if !s.l.Result(sound(id, p), servicetest.Binary([]byte{0xFF, 0xFF, 'P'})) {
			return false
		}
		time.Sleep(pause)
	}
	return s.l.Say(
		message("audio.metadata", id, map[string]any{"Metadata": []any{map[string]any{"Type": "SessionEnd", "Data": map[string]any{"Offset": 1000}}}}),
		sound(id, nil), message("turn.end", id, map[string]any{}))
}
