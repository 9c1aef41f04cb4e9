package aliyun

import (
	"time"

	"xiaozhi/internal/servicetest"
)

const (
	piece = 3200                 // bytes of a voice that are sent at once
	pause = 2 * time.Millisecond // between them
)

// hear begins recognition.
func (s *session) hear(c command, started string) {
	switch c.Payload.Format {
	case "", "pcm", "wav":
	default:
		s.fail(41010100, "Asr:UNSUPPORTED_FORMAT:Unsupported audio format!")
		return
	}
	if s.rate != 16000 && s.rate != 8000 {
		s.fail(41010101, "Asr:UNSUPPORTED_SAMPLE_RATE:Unsupported sample rate!")
		return
	}
	s.ear = servicetest.Ear{Rate: s.rate, Parts: s.fault == servicetest.Parts && s.long() || s.fault == servicetest.Ends}
	s.f.mu.Lock()
	if s.fault == servicetest.Ends && s.f.ended%2 == 1 {
		s.f.ended++
		s.ear.Resume()
	}
	s.f.mu.Unlock()
	s.partials = c.Payload.Intermediate
	if !s.await(started) {
		return
	}
	s.state = hearing
	if s.long() {
		s.say("SentenceBegin", map[string]any{"index": s.index, "time": 0})
	}
}

// long says whether the task is of long speech, which is given in sentences.
func (s *session) long() bool { return s.task.Namespace == "SpeechTranscriber" }

// sound takes a piece of sound. What comes between two tasks is what the client sent
// before it knew that the service had ended the first.
func (s *session) sound(pcm []byte) {
	switch {
	case s.state == waiting && s.fault == servicetest.Ends:
		return
	case s.state != hearing:
		s.fail(40010005, "Gateway:TASK_STATE_ERROR:Got binary message while task is not started!")
		return
	}
	words, ended := s.ear.Hear(pcm)
	if words == "" || words == s.last && !ended {
		return
	}
	s.last = words
	switch {
	case ended && s.fault == servicetest.Ends:
		s.f.mu.Lock()
		s.f.ended++
		s.f.mu.Unlock()
		s.conclude(words)
	case ended:
		s.sentence(words)
		s.say("SentenceBegin", map[string]any{"index": s.index, "time": 500})
	case s.partials && s.long():
		s.result("TranscriptionResultChanged", map[string]any{"index": s.index, "time": 100, "result": words})
	case s.partials:
		s.result("RecognitionResultChanged", map[string]any{"result": words})
	}
}

// sentence gives a finished sentence of long speech.
func (s *session) sentence(words string) {
	s.result("SentenceEnd", map[string]any{
		"index": s.index, "time": 800, "begin_time": 0, "result": words, "confidence": 0.9, "words": []any{},
		"stash_result": map[string]any{"sentenceId": s.index + 1, "beginTime": 0, "currentTime": 0, "text": ""},
	})
	s.index++
}

// conclude gives the last words of a task and ends it.
func (s *session) conclude(words string) {
	switch {
	case !s.long():
		s.result("RecognitionCompleted", map[string]any{"result": words, "duration": 1000})
	default:
		if words != "" {
			s.sentence(words)
		}
		if s.state != finished {
			s.say("TranscriptionCompleted", map[string]any{})
		}
	}
	if s.state == hearing {
		s.state = waiting
	}
}

// stopHearing answers the end of the sound.
func (s *session) stopHearing() {
	if s.fault == servicetest.Late {
		s.l.Hold()
		s.state = finished
		return
	}
	words := s.ear.Rest()
	if words == "" && !s.long() {
		s.fail(40270002, "Asr:SILENT_SPEECH:Silent speech!")
		return
	}
	s.conclude(words)
}

// run speaks a text of a flowing voice.
func (s *session) run(text string) {
	if !s.say("SentenceBegin", map[string]any{"index": s.index, "session_id": s.task.TaskID}) || !s.speak(text) {
		return
	}
	s.say("SentenceSynthesis", map[string]any{"subtitles": []any{}})
	s.say("SentenceEnd", map[string]any{"index": s.index})
	s.index++
}

// complete ends the task of a voice.
func (s *session) complete() {
	if s.say("SynthesisCompleted", map[string]any{}) {
		s.state = waiting
	}
}

// speak sends the sound of a text.
func (s *session) speak(text string) bool {
	sound := servicetest.Speech(text, s.rate)
	switch s.format {
	case "", "pcm":
	case "wav":
		if !s.headed {
			sound = append(servicetest.WAV(s.rate, 0), sound...)
		}
		s.headed = true
	case "mp3":
		sound = servicetest.MP3(text)
	default:
		s.fail(41020001, "TTS:TtsClientError:Unsupported format!")
		return false
	}
	n := piece
	if s.fault == servicetest.Odd {
		n = 1001
	}
	for i, p := range servicetest.Pieces(sound, n) {
		if i > 0 {
			time.Sleep(pause)
		}
		if !s.l.Result(servicetest.Binary(p), servicetest.Text(`{"header":`)) {
			s.state = finished
			return false
		}
	}
	return true
}
