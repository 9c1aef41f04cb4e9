package elevenlabs

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// chunk is a piece of sound.
type chunk struct {
	Type       string  `json:"message_type"`
	Audio      *string `json:"audio_base_64"`
	Commit     bool
	SampleRate int     `json:"sample_rate"`
	Previous   *string `json:"previous_text"`
}

// listening is a session of recognition.
type listening struct {
	f      *fake
	line   *servicetest.Line
	ear    servicetest.Ear
	rate   int
	times  bool // words come with times too
	chunks int
	last   string
	fresh  bool // sound came after the last commit
}

// hear recognises utterances, one after another.
func (f *fake) hear(w http.ResponseWriter, r *http.Request) {
	line, ok := f.Line(w, r, nil)
	if !ok {
		return
	}
	defer line.Close()
	q := r.URL.Query()
	rate, err := strconv.Atoi(strings.TrimPrefix(q.Get("audio_format"), "pcm_"))
	l := &listening{line: line, rate: rate, times: q.Get("include_timestamps") == "true"}
	ends := line.Fault() == servicetest.Ends
	l.ear = servicetest.Ear{Rate: rate, Parts: line.Fault() == servicetest.Parts || ends}
	if ends && f.ended.Load()%2 == 1 {
		f.ended.Add(1)
		l.ear.Resume()
	}
	l.f = f
	no := admit(r.Header.Get("xi-api-key"), line.Fault())
	switch {
	case no != nil:
	case q.Get("model_id") != "scribe_v2_realtime":
		no = &wrongModel
	case err != nil || !slices.Contains([]int{8000, 16000, 22050, 24000, 44100, 48000}, rate), q.Get("commit_strategy") != "manual":
		no = &badInput // it commits by itself in another mode, which this one has not
	}
	if no != nil {
		l.fail(*no)
		return
	}
	if line.Say(servicetest.JSON(map[string]any{"message_type": "session_started", "session_id": "s-1", "config": map[string]any{"sample_rate": rate}})) {
		l.run()
	}
}

// fail ends the session with an error.
func (l *listening) fail(no refusal) {
	if l.line.Say(servicetest.JSON(map[string]any{"message_type": no.scribe, "error": no.words})) {
		l.line.End(websocket.ClosePolicyViolation, no.words)
	}
}

// run takes chunks until the session ends.
func (l *listening) run() {
	for {
		m, err := l.line.Next(Idle)
		if errors.Is(err, servicetest.ErrIdle) {
			l.line.End(websocket.ClosePolicyViolation, "no audio for too long")
			return
		}
		if err != nil {
			return
		}
		var c chunk
		if m.Type != websocket.TextMessage || json.Unmarshal(m.Data, &c) != nil || c.Type != "input_audio_chunk" || c.Audio == nil {
			l.fail(badInput)
			return
		}
		if no, ok := l.take(c); no != nil || !ok {
			if no != nil {
				l.fail(*no)
			}
			return
		}
	}
}

// take takes a chunk.
func (l *listening) take(c chunk) (no *refusal, ok bool) {
	pcm, err := base64.StdEncoding.DecodeString(*c.Audio)
	l.chunks++
	switch {
	case err != nil || len(pcm)%2 != 0 || c.SampleRate != 0 && c.SampleRate != l.rate || c.Previous != nil && l.chunks > 1:
		return &badInput, true
	case len(pcm) > 2*l.rate:
		return &tooBig, true // more than a second
	case c.Commit && !l.fresh && len(pcm) == 0:
		return &refusal{scribe: "commit_throttled", words: "Commit request ignored: too little audio"}, true
	}
	l.fresh = l.fresh || len(pcm) > 0
	sentence, ended := l.ear.Hear(pcm)
	if l.line.Fault() == servicetest.Ends && ended {
		l.f.ended.Add(1)
		return &refusal{scribe: "session_time_limit_exceeded", words: "The session was too long."}, l.committed(sentence)
	}
	if ended {
		l.last = sentence
		return nil, l.committed(sentence)
	}
	if c.Commit {
		return l.commit()
	}
	if sentence == "" || sentence == l.last {
		return nil, true
	}
	l.last = sentence
	return nil, l.result(map[string]any{"message_type": "partial_transcript", "text": sentence})
}

// commit ends an utterance.
func (l *listening) commit() (no *refusal, ok bool) {
	if l.line.Fault() == servicetest.Late {
		l.line.Hold()
		return nil, false
	}
	l.fresh = false
	heard := l.ear.Heard()
	if l.line.Fault() == servicetest.Odd && !heard {
		return &refusal{scribe: "insufficient_audio_activity", words: "Not enough audio activity"}, true
	}
	return nil, l.line.Pause(pause) && l.committed(l.ear.Rest())
}

// committed sends a finished text, twice if it was asked for with times.
func (l *listening) committed(text string) bool {
	if !l.result(map[string]any{"message_type": "committed_transcript", "text": text}) {
		return false
	}
	return !l.times || l.result(map[string]any{
		"message_type": "committed_transcript_with_timestamps", "text": text, "language_code": "zh",
		"words": []map[string]any{{"text": text, "start": 0, "end": time.Second.Seconds(), "type": "word", "logprob": 0}},
	})
}

// result sends words.
func (l *listening) result(m map[string]any) bool {
	if l.line.Fault() == servicetest.Odd {
		m["unheard_of"] = []int{1}
		l.line.Say(servicetest.Text(`{"message_type":"unheard_of","text":"nothing"}`))
	}
	return l.line.Result(servicetest.JSON(m), broken)
}

// broken is no message of the service.
var broken = servicetest.Text(`{"message_type":"committed_transcript","audio":"`)
