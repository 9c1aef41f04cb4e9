package volcengine

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// The codes of errors.
const (
	badRequest  = 45000001
	noSound     = 45000002
	timedOut    = 45000081
	badFormat   = 45000151
	overQuota   = 45000292
	clientError = 45000000
	serverError = 55000000
	tooMany     = 55000001
	success     = 20000000
)

// asked holds the settings in the first message.
type asked struct {
	Audio struct {
		Format, Codec, Language string
		Rate, Bits, Channel     int
	}
	Request struct {
		ModelName      string `json:"model_name"`
		ResultType     string `json:"result_type"`
		ShowUtterances bool   `json:"show_utterances"`
		EndWindowSize  *int   `json:"end_window_size"`
		Corpus         struct {
			Context any
		}
	}
}

// refusal says what is wrong with the first message, or "".
func (a asked) refusal(kind string) (code uint32, words string) {
	_, str := a.Request.Corpus.Context.(string)
	switch {
	case a.Request.ModelName != "bigmodel":
		return badRequest, "request.model_name is required"
	case !among("pcm wav ogg mp3", a.Audio.Format):
		return badFormat, "unsupported format " + a.Audio.Format
	case a.Audio.Rate != 0 && a.Audio.Rate != 16000, a.Audio.Bits != 0 && a.Audio.Bits != 16, a.Audio.Channel > 1:
		return badFormat, "unsupported rate, bits or channel"
	case a.Audio.Language != "" && kind != "bigmodel_nostream":
		return badRequest, "audio.language is not supported here"
	case a.Request.EndWindowSize != nil && *a.Request.EndWindowSize < 200:
		return badRequest, "end_window_size is too small"
	case a.Request.Corpus.Context != nil && !str:
		return badRequest, "corpus.context must be a string"
	}
	return 0, ""
}

// listening is a recognition.
type listening struct {
	line  *servicetest.Line
	kind  string
	asked asked
	ear   servicetest.Ear
	first frame  // what the client sent first: it is answered alike
	next  int32  // the sequence that is to come
	bytes int    // of sound
	done  string // the sentence that has ended
	last  string
}

// hear recognises one utterance.
func (f *fake) hear(w http.ResponseWriter, r *http.Request, kind string) {
	line, ok := f.Line(w, r, upgraded(r))
	if !ok {
		return
	}
	defer line.Close()
	l := &listening{line: line, kind: kind, next: 1}
	l.ear = servicetest.Ear{Rate: 16000, Parts: line.Fault() == servicetest.Parts}
	if code, words := l.run(); code != 0 {
		line.Say(wrong(code, words))
		line.Hold() // it stays open and deaf
	}
}

// run takes the first message and the sound.
func (l *listening) run() (code uint32, words string) {
	first, code, words := l.frame()
	if code != 0 {
		return code, words
	}
	if first.kind != fullRequest || json.Unmarshal(first.payload, &l.asked) != nil {
		return badRequest, "the first packet is no full client request"
	}
	if code, words = l.asked.refusal(l.kind); code != 0 {
		return code, words
	}
	switch l.line.Fault() {
	case servicetest.RateLimited:
		return overQuota, "quota exceeded for types: concurrency"
	case servicetest.NoMoney:
		return overQuota, "quota exceeded for types: audio_duration_lifetime"
	default:
	}
	l.first = first
	if !l.line.Say(l.answer("", false)) {
		return 0, ""
	}
	for {
		packet, code, words := l.frame()
		if code != 0 {
			return code, words
		}
		if packet.kind != audioRequest {
			return badRequest, "not an audio packet"
		}
		if over, code, words := l.packet(packet); over || code != 0 {
			return code, words
		}
	}
}

// frame takes the next frame. Of a client that has gone it says nothing.
func (l *listening) frame() (f frame, code uint32, words string) {
	m, err := l.line.Next(Idle)
	if errors.Is(err, servicetest.ErrIdle) {
		return f, timedOut, "Timeout waiting next packet"
	}
	if err != nil {
		return f, timedOut, "gone"
	}
	if m.Type != websocket.BinaryMessage {
		return f, badRequest, "not a binary message"
	}
	if f, err = parse(m.Data); err != nil {
		return f, badRequest, err.Error()
	}
	want := l.next
	if f.flags&3 == sequenced|ended {
		want = -want
	}
	if f.flags&sequenced != 0 && f.sequence != want {
		return f, badRequest, "autoAssignedSequence mismatch sequence in request"
	}
	l.next++
	return f, 0, ""
}

// packet takes sound and answers as this kind of recognition does.
func (l *listening) packet(p frame) (over bool, code uint32, words string) {
	l.bytes += len(p.payload)
	sentence, finished := l.ear.Hear(p.payload)
	if p.flags&3 >= ended {
		return true, l.finish(), "Invalid audio, no audio data"
	}
	text := strings.TrimSpace(l.done + " " + sentence)
	if finished {
		l.done = text
	}
	changed := text != l.last
	l.last = text
	if l.kind == "bigmodel_nostream" || l.kind == "bigmodel_async" && !changed {
		return false, 0, ""
	}
	if text == "" {
		return !l.line.Say(l.answer("", false)), 0, ""
	}
	return !l.line.Result(l.answer(text, false), broken), 0, ""
}

// broken is no frame: its length is a lie.
var broken = servicetest.Binary([]byte{0x11, 0x91, 0x10, 0, 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, '{', '"'})

// finish answers the last packet. It returns the code of the error if there was no sound.
func (l *listening) finish() uint32 {
	if l.bytes == 0 {
		return noSound
	}
	text := ""
	if l.ear.Heard() {
		text = servicetest.Words
	}
	switch {
	case l.line.Fault() == servicetest.Late:
		l.line.Hold()
		return 0
	case l.line.Fault() == servicetest.Odd && l.last != "":
		l.last, text = servicetest.Words, ""
		l.line.Say(l.answer(servicetest.Words, false))
	}
	if l.line.Result(l.answer(text, true), broken) {
		l.line.End(websocket.CloseNormalClosure, "finish last sequence")
	}
	return 0
}

// answer is a result: the text so far, or of the current sentence.
func (l *listening) answer(text string, last bool) servicetest.Message {
	shown := text
	if l.asked.Request.ResultType == "single" {
		shown = strings.TrimSpace(strings.TrimPrefix(text, l.done))
		if shown == "" {
			shown = l.done
		}
	}
	result := map[string]any{"text": shown, "additions": map[string]any{"log_id": logID}}
	if l.asked.Request.ShowUtterances && text != "" {
		result["utterances"] = []map[string]any{{"text": shown, "start_time": 0, "end_time": l.bytes / 32, "definite": last || text == l.done}}
	}
	body := map[string]any{"audio_info": map[string]any{"duration": l.bytes / 32}, "result": result}
	if l.line.Fault() == servicetest.Odd {
		body["unheard_of"] = []any{1, nil, "x"}
		result["utterances"] = nil
	}
	f := frame{kind: fullAnswer, form: inJSON, pack: l.first.pack, payload: servicetest.JSON(body).Data, flags: sequenced, sequence: l.next - 1}
	if last {
		f.flags, f.sequence = sequenced|ended, -f.sequence
	}
	return f.message()
}
