package aliyun

import (
	"context"
	"errors"
	"strconv"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// The recognisers: what the service calls short and long speech.
const (
	short = "short"
	long  = "long"
)

const (
	piece        = 40 * time.Millisecond
	pace         = 2                // times as fast as it is spoken; the service wants sound as it is spoken, more or less
	longestSound = 55 * time.Second // of short speech, of which the service takes 60 s
	silence      = 6000             // ms after which a sentence ends by itself: the longest
)

func newASR(s service.Section) (providers.ASR, error) {
	g, err := newGateway(s)
	if err != nil {
		return nil, err
	}
	as, most := recognizer(), longestSound
	if s.Model(service.ASR, short) == long {
		as, most = transcriber(), 0
	}
	return recognition.New(recognition.Options{
		Account: g.account, Tries: s.Tries(), Frame: piece, Pace: s.Number("pace", pace), Final: g.first, Longest: most,
		Dial: func(ctx context.Context, req providers.ASRRequest) (recognition.Session, error) {
			return g.listen(ctx, as, req)
		},
	}), nil
}

// words are the names of the messages to and from a recogniser.
type words struct {
	namespace, start, started, changed, sentence, stop, completed string
}

// recognizer is the one of short speech: it gives one result.
func recognizer() words {
	return words{
		"SpeechRecognizer", "StartRecognition", "RecognitionStarted", "RecognitionResultChanged", "", "StopRecognition", "RecognitionCompleted",
	}
}

// transcriber is the one of long speech: it gives sentences.
func transcriber() words {
	return words{
		"SpeechTranscriber", "StartTranscription", "TranscriptionStarted", "TranscriptionResultChanged", "SentenceEnd", "StopTranscription", "TranscriptionCompleted",
	}
}

// listen opens a session and waits until it takes sound.
func (g *gateway) listen(ctx context.Context, as words, req providers.ASRRequest) (recognition.Session, error) {
	payload := map[string]any{
		"format": "pcm", "sample_rate": req.Rate, "enable_intermediate_result": true,
		"enable_punctuation_prediction": true, "enable_inverse_text_normalization": true,
	}
	if as.sentence != "" {
		limit := silence
		if g.section.Region == "ap-southeast-1" {
			limit = 2000
		}
		payload["max_sentence_silence"] = limit
	}
	for _, name := range []string{"vocabulary_id", "customization_id"} {
		if v := g.section.Text(name, ""); v != "" {
			payload[name] = v
		}
	}
	l := &listening{as: as}
	_, err := g.dial(ctx, func(socket *transport.Socket) error {
		l.task = g.newTask(socket, as.namespace)
		if err := l.command(as.start, merge(payload, g.section.Extra)); err != nil {
			return err
		}
		return l.await(as.started, g.first)
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// listening is a session of recognition.
type listening struct {
	*task
	as words
}

// Send hands over sound.
func (l *listening) Send(pcm []int16) error { return l.socket.WriteBinary(recognition.Bytes(pcm)) }

// Finish says that the sound is complete.
func (l *listening) Finish() error { return l.command(l.as.stop, nil) }

// Close ends the session.
func (l *listening) Close() { l.socket.Close() }

// Receive returns the next result.
func (l *listening) Receive() (recognition.Result, error) {
	r, _, err := l.receive(0)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && refused.Code == strconv.Itoa(nothingHeard) {
		return recognition.Result{Kind: recognition.Over}, nil
	}
	if err != nil {
		return recognition.Result{}, err
	}
	said, long := recognition.Result{Text: r.Payload.Result}, l.as.sentence != ""
	if long {
		said.Part = string(r.Payload.Index)
	}
	switch {
	case r.Header.Name == l.as.changed:
		said.Kind = recognition.Partial
	case long && r.Header.Name == l.as.sentence:
		said.Kind = recognition.Sentence
	case long && r.Header.Name == l.as.completed:
		return recognition.Result{Kind: recognition.Over}, nil // all sentences came before
	case r.Header.Name == l.as.completed:
		said.Kind = recognition.Over
	}
	return said, nil
}
