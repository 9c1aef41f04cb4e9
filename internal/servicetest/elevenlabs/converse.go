package elevenlabs

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// contexts is the number of contexts that may be open at once.
const contexts = 5

// input is a message to the voices.
type input struct {
	Text    *string
	Flush   bool
	Context string    `json:"context_id"`
	Close   bool      `json:"close_context"`
	End     bool      `json:"close_socket"`
	Key     string    `json:"xi_api_key"`
	Voice   *settings `json:"voice_settings"`
}

// talk is a connection to the voices.
type talk struct {
	*fake
	line   *servicetest.Line
	format string
	many   bool
	texts  map[string]string // that were not spoken yet, by context
	before string            // the context that was closed last
}

// converse speaks texts that come in pieces: of one stream, or of many contexts.
func (f *fake) converse(w http.ResponseWriter, r *http.Request, many bool) {
	line, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer line.Close()
	q := r.URL.Query()
	t := &talk{fake: f, line: line, format: q.Get("output_format"), many: many, texts: map[string]string{}}
	_, _, known := format(t.format)
	switch {
	case line.Fault() == servicetest.WrongVoice:
		end(line, wrongVoice)
		return
	case !slices.Contains(models, q.Get("model_id")):
		end(line, wrongModel)
		return
	case !known:
		end(line, badInput)
		return
	}
	key := r.Header.Get("xi-api-key")
	for first := true; ; first = false {
		m, err := line.Next(Idle)
		if errors.Is(err, servicetest.ErrIdle) {
			end(line, refusal{kind: "input_timeout_exceeded", words: "Input timeout exceeded."})
			return
		}
		var in input
		if err != nil {
			return
		}
		if m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &in) != nil {
			end(line, badInput)
			return
		}
		if first {
			if in.Key != "" {
				key = in.Key
			}
			if no := admit(key, line.Fault()); no != nil {
				end(line, *no)
				return
			}
		}
		if no, ok := t.take(in, first); no != nil || !ok {
			if no != nil {
				end(line, *no)
			}
			return
		}
	}
}

// take handles a message.
func (t *talk) take(in input, first bool) (no *refusal, ok bool) {
	if no = in.Voice.refusal(); no != nil {
		return no, true
	}
	if in.End {
		t.line.End(websocket.CloseNormalClosure, "")
		return nil, false
	}
	old, open := t.texts[in.Context]
	if !t.many {
		if first && (in.Text == nil || *in.Text != " ") {
			return &badInput, true // the first text is a blank
		}
		return t.stream(in, old)
	}
	if !open && in.Text == nil {
		return nil, true // of a context that is not there
	}
	if len(t.texts) >= contexts && !open {
		return &refusal{kind: "max_contexts_exceeded", words: "Too many contexts."}, true
	}
	if !open && t.line.Fault() == servicetest.Stale && t.before != "" && !t.audio(t.before, servicetest.Speech("stale", 24000)) {
		return nil, false
	}
	if in.Text != nil {
		old += *in.Text
	}
	if t.texts[in.Context] = old; len([]rune(old)) > longest {
		return &tooBig, true
	}
	if (in.Flush || in.Close) && !t.speak(in.Context) {
		return nil, false
	}
	if in.Close {
		delete(t.texts, in.Context)
		t.before = in.Context
		return nil, t.line.Say(servicetest.JSON(map[string]any{"isFinal": true, "audio": nil, "contextId": in.Context}))
	}
	return nil, true
}

// stream takes a message of a stream without contexts: an empty text ends it.
func (t *talk) stream(in input, old string) (no *refusal, ok bool) {
	last := in.Text != nil && *in.Text == ""
	if in.Text != nil {
		old += *in.Text
	}
	if t.texts[""] = old; len([]rune(old)) > longest {
		return &tooBig, true
	}
	if (in.Flush || last) && !t.speak("") {
		return nil, false
	}
	if last {
		if t.line.Say(servicetest.JSON(map[string]any{"isFinal": true, "audio": nil})) {
			t.line.End(websocket.CloseNormalClosure, "")
		}
		return nil, false
	}
	return nil, true
}

// speak speaks what has come of a context.
func (t *talk) speak(context string) bool {
	text := strings.TrimSpace(t.texts[context])
	t.texts[context] = ""
	if text == "" {
		return true
	}
	sound, piece := t.sound(t.format, text)
	if t.line.Fault() == servicetest.Odd {
		piece = 1001
	}
	for _, p := range servicetest.Pieces(sound, piece) {
		if !t.audio(context, p) || !t.line.Pause(pause) {
			return false
		}
	}
	return true
}

// audio sends a piece of sound.
func (t *talk) audio(context string, p []byte) bool {
	m := map[string]any{"audio": base64.StdEncoding.EncodeToString(p), "isFinal": nil, "alignment": nil, "normalizedAlignment": nil}
	if t.many {
		m["contextId"] = context
	}
	if t.line.Fault() == servicetest.Odd {
		m["unheard_of"] = 1
		m["alignment"] = map[string]any{"chars": []string{"a"}, "charStartTimesMs": []int{0}, "charsDurationsMs": []int{9}}
	}
	return t.line.Result(servicetest.JSON(m), broken)
}
