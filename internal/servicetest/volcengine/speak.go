package volcengine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// The events of the voices.
const (
	startConnection    = 1
	finishConnection   = 2
	connectionStarted  = 50
	connectionFailed   = 51
	connectionFinished = 52
	startSession       = 100
	cancelSession      = 101
	finishSession      = 102
	sessionStarted     = 150
	sessionCanceled    = 151
	sessionFinished    = 152
	sessionFailed      = 153
	usage              = 154 // of another product: nobody knows it here
	taskRequest        = 200
	sentenceStart      = 350
	sentenceEnd        = 351
	response           = 352
)

const (
	longest = 1024                  // characters of a request
	pause   = 5 * time.Millisecond  // between two pieces of sound
	piece   = 80 * time.Millisecond // of sound
	patient = 20 * time.Millisecond // that a started session takes to be ready
)

// wanted holds the settings in a request or in the start of a session.
type wanted struct {
	Namespace string
	Event     int
	Params    struct {
		Text      string
		Speaker   string
		Additions any
		Audio     struct {
			Format     string
			SampleRate int `json:"sample_rate"`
			SpeechRate int `json:"speech_rate"`
		} `json:"audio_params"`
	} `json:"req_params"`
}

// refusal says what is wrong with what is asked for, or 0.
func (f *fake) refusal(w wanted, resource string, fault servicetest.Fault) (code int, words string) {
	p := w.Params
	additions, isText := p.Additions.(string)
	switch {
	case fault == servicetest.RateLimited:
		return clientError, "quota exceeded for types: concurrency"
	case fault == servicetest.NoMoney:
		return overQuota, "quota exceeded for types: text_words_lifetime"
	case p.Speaker == "":
		return badRequest, "speaker is required"
	case fault == servicetest.WrongVoice || !fits(resource, p.Speaker):
		return serverError, "resource ID is mismatched with speaker related resource"
	case p.Audio.Format != "" && !among("mp3 ogg_opus pcm wav", p.Audio.Format):
		return badRequest, "unsupported format " + p.Audio.Format
	case p.Audio.SampleRate != 0 && !slices.Contains([]int{8000, 16000, 22050, 24000, 32000, 44100, 48000}, p.Audio.SampleRate):
		return badRequest, "unsupported sample rate"
	case p.Audio.SpeechRate < -50 || p.Audio.SpeechRate > 100:
		return badRequest, "speech_rate out of range"
	case p.Additions != nil && (!isText || !json.Valid([]byte(additions))):
		return badRequest, "additions must be a JSON string"
	case len([]rune(p.Text)) > longest:
		return 40402003, "text too long"
	}
	return 0, ""
}

// fits says whether a voice belongs to a resource.
func fits(resource, speaker string) bool {
	newer := strings.HasSuffix(speaker, "_uranus_bigtts") || strings.HasPrefix(speaker, "saturn_")
	older := strings.HasSuffix(speaker, "_moon_bigtts") || strings.HasSuffix(speaker, "_mars_bigtts") || strings.HasPrefix(speaker, "BV")
	return among(second, resource) && newer || among(first, resource) && older || among(cloned, resource) && !newer && !older
}

// pieces are the sound of a text as it is sent.
func (f *fake) pieces(w wanted, text string, fault servicetest.Fault) [][]byte {
	rate := max(w.Params.Audio.SampleRate, 0)
	if rate == 0 {
		rate = 24000
	}
	n := 2 * int(piece.Seconds()*float64(rate))
	if fault == servicetest.Odd {
		n = 1001
	}
	switch w.Params.Audio.Format {
	case "pcm":
		return servicetest.Pieces(servicetest.Speech(text, rate), n)
	case "wav":
		out := servicetest.Pieces(servicetest.Speech(text, rate), n&^1)
		for i, p := range out {
			out[i] = append(servicetest.WAV(rate, uint32(len(p))), p...)
		}
		return out
	case "ogg_opus":
		return servicetest.Pieces(servicetest.OggOpus(f.t, text, 24000), 777)
	}
	return servicetest.Pieces(servicetest.MP3(text), 777)
}

// lines answers a request by lines of JSON or by server-sent events.
func (f *fake) lines(w http.ResponseWriter, r *http.Request) {
	fault := f.Fault()
	body, _ := io.ReadAll(r.Body)
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	var want wanted
	if err := json.Unmarshal(body, &want); err != nil {
		f.refuse(w, r, http.StatusBadRequest, err.Error())
		return
	}
	events := strings.HasSuffix(r.URL.Path, "/sse")
	line := func(event, code int, words string, more map[string]any) []byte {
		fields := map[string]any{"code": code, "message": words, "data": nil}
		maps.Copy(fields, more)
		if events {
			return fmt.Appendf(nil, "event: %d\ndata: %s\n\n", event, servicetest.JSON(fields).Data)
		}
		return append(servicetest.JSON(fields).Data, '\n')
	}
	var out []byte
	code, words := f.refusal(want, r.Header.Get("X-Api-Resource-Id"), fault)
	if code != 0 {
		out = line(sessionFailed, code, words, nil)
	} else {
		for _, p := range f.pieces(want, want.Params.Text, fault) {
			out = append(out, line(response, 0, "", map[string]any{"data": base64.StdEncoding.EncodeToString(p)})...)
		}
		if fault == servicetest.Odd {
			out = append(out, line(364, 0, "", map[string]any{"unheard_of": map[string]int{"x": 1}})...)
		}
		out = append(out, line(sentenceEnd, 0, "", map[string]any{"sentence": map[string]any{"text": want.Params.Text, "words": []any{}}})...)
		out = append(out, line(sessionFinished, success, "ok", nil)...)
	}
	kind := "application/json"
	if events {
		kind = "text/event-stream"
	}
	f.Send(w, r, fault, servicetest.Reply{
		Type: kind, Body: out, Piece: 4001, Pause: pause, Broken: []byte("data: {\"code\":0,\"data\":\"!!\n\n"), Filler: []byte("A"),
	})
}

// recite speaks one text a request, many requests one after another.
func (f *fake) recite(w http.ResponseWriter, r *http.Request) {
	line, ok := f.Line(w, r, upgraded(r))
	if !ok {
		return
	}
	defer line.Close()
	t := talk{fake: f, line: line, resource: r.Header.Get("X-Api-Resource-Id")}
	for n := 0; ; n++ {
		m, err := line.Next(0)
		if err != nil {
			return
		}
		req, err := parse(m.Data)
		if err == nil && req.event == finishConnection {
			line.Say(t.event(connectionFinished, "c", nil))
			line.End(websocket.CloseNormalClosure, "finished")
			return
		}
		var want wanted
		if err != nil || req.kind != fullRequest || req.flags != 0 || json.Unmarshal(req.payload, &want) != nil {
			line.Say(wrong(badRequest, "not a request"))
			return
		}
		t.begin(fmt.Sprintf("s-%d", n/2)) // whether each request is a session of its own is not said
		if code, words := f.refusal(want, t.resource, line.Fault()); code != 0 {
			refused := t.failed(sessionFailed, t.session, code, words)
			if line.Fault() == servicetest.RateLimited { // this one is told in a text frame, as the real one may
				refused = servicetest.JSON(map[string]any{"status_code": code, "message": words})
			}
			line.Say(refused)
			line.Hold()
			return
		}
		if !t.speak(want, want.Params.Text) {
			return
		}
	}
}
