package openairealtime

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
	"xiaozhi/providers/duplex"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/transport"
)

// errExpired ends a connection that has lasted as long as the service lets it.
var errExpired = errors.New("the session has lasted as long as it may")

// stage is one of the stages of the answer that was asked for last.
type stage int

const (
	none    stage = iota // there is none, or it is complete
	wanted               // it was asked for
	running              // the service has begun it
	dying                // it was cancelled, and is not over yet
)

// wire is a session.
type wire struct {
	*transport.Socket
	truncates bool

	up   *audio.Resampler // belongs to the sender, as pcm and sent do
	rate int
	pcm  []int16
	sent int // samples since the last commit

	mu       sync.Mutex
	stage    stage
	response string // the answer that runs
	dead     string // the last that was cancelled
	again    bool   // another is to be asked for when the dying one is over
	input    string // the user's item that is being heard

	calls []providers.ToolCall // of the answer; belongs to the receiver
	names map[string]string    // of functions, by item
	said  bool                 // the answer has given sound or text
	half  []byte               // of a sample, which the next message completes
}

// begin sends the settings and waits until they are taken.
func (w *wire) begin(settings object, within time.Duration) error {
	w.names = map[string]string{}
	for n, sent := 0, false; ; n++ {
		e, raw, err := w.read(within)
		switch {
		case err != nil:
			return err
		case n > mostBefore:
			return errors.New("the service does not take the settings")
		case e.Type == "error":
			return fault(raw)
		case e.Type == "session.created" && !sent:
			sent = true
			if err := w.WriteJSON(settings); err != nil {
				return err
			}
		case e.Type == "session.updated":
			return nil
		}
	}
}

// tell makes what was said before known.
func (w *wire) tell(history []providers.Message) error {
	for _, m := range history {
		if err := w.WriteJSON(message(m)); err != nil {
			return err
		}
	}
	return nil
}

// Append hands over sound.
func (w *wire) Append(pcm []int16) error {
	w.pcm = w.up.Write(w.pcm[:0], pcm)
	return w.send()
}

// send sends what was resampled.
func (w *wire) send() error {
	if len(w.pcm) == 0 {
		return nil
	}
	w.sent += len(w.pcm)
	return w.WriteJSON(object{"type": "input_audio_buffer.append", "audio": base64.StdEncoding.EncodeToString(recognition.Bytes(w.pcm))})
}

// Commit ends the utterance and asks for an answer. Less than 100 ms would be refused.
func (w *wire) Commit() error {
	w.pcm = w.up.Flush(w.pcm[:0])
	if short := w.rate/10 - w.sent - len(w.pcm); short > 0 {
		w.pcm = append(w.pcm, make([]int16, short)...)
	}
	if err := w.send(); err != nil {
		return err
	}
	w.sent = 0
	w.mu.Lock()
	w.input = ""
	w.mu.Unlock()
	if err := w.WriteJSON(object{"type": "input_audio_buffer.commit", "event_id": "commit"}); err != nil {
		return err
	}
	return w.ask()
}

// ask asks for an answer, at once or when the one before is over.
func (w *wire) ask() error {
	w.mu.Lock()
	wait := w.stage == dying
	w.again = wait
	if !wait {
		w.stage, w.response = wanted, ""
	}
	w.mu.Unlock()
	if wait {
		return nil
	}
	return w.WriteJSON(object{"type": "response.create", "event_id": "respond"})
}

// Results hands over what the functions gave.
func (w *wire) Results(results []providers.ToolResult) error {
	for _, r := range results {
		if err := w.WriteJSON(object{"type": "conversation.item.create", "event_id": "result", "item": object{
			"type": "function_call_output", "call_id": r.ID, "output": r.Output,
		}}); err != nil {
			return err
		}
	}
	return w.ask()
}

// Cancel gives the answer up.
func (w *wire) Cancel() error {
	w.mu.Lock()
	cancel := object{"type": "response.cancel", "event_id": "cancel"}
	runs := w.stage == wanted || w.stage == running
	if w.again {
		w.again, runs = false, false
	}
	if runs {
		if w.response != "" {
			cancel["response_id"] = w.response
		}
		w.stage, w.dead = dying, w.response
	}
	w.mu.Unlock()
	if !runs {
		return nil
	}
	return w.WriteJSON(cancel)
}

// Truncate says what was heard.
func (w *wire) Truncate(item string, heard time.Duration) error {
	if !w.truncates || item == "" {
		return duplex.ErrNotOffered
	}
	return w.WriteJSON(object{
		"type": "conversation.item.truncate", "event_id": "truncate", "item_id": item, "content_index": 0, "audio_end_ms": heard.Milliseconds(),
	})
}

// Discard clears the sound.
func (w *wire) Discard() error {
	w.up.Reset()
	w.sent = 0
	return w.WriteJSON(object{"type": "input_audio_buffer.clear", "event_id": "clear"})
}

// read reads a message.
func (w *wire) read(within time.Duration) (e event, raw []byte, err error) {
	_, raw, err = w.Read(within)
	if err != nil {
		return e, nil, err
	}
	return e, raw, parse(raw, &e)
}

// Receive waits for the next event.
func (w *wire) Receive() (func() (duplex.Event, error), error) {
	e, raw, err := w.read(0)
	if err != nil {
		return nil, judged(err)
	}
	return func() (duplex.Event, error) { return w.take(e, raw) }, nil
}

// take reads an event.
func (w *wire) take(e event, raw []byte) (duplex.Event, error) {
	switch e.Type {
	case "error":
		return w.complaint(e, raw)
	case "session.finished":
		return duplex.Event{Leaving: true}, nil
	case "input_audio_buffer.committed":
		w.mu.Lock()
		w.input = e.Item
		w.mu.Unlock()
		return duplex.Event{}, nil
	case "conversation.item.input_audio_transcription.delta", "conversation.item.input_audio_transcription.completed",
		"conversation.item.input_audio_transcription.updated":
		return w.words(e), nil
	case "response.created":
		w.created(e.Whole.ID)
		return duplex.Event{}, nil
	case "response.done":
		return w.over(e)
	}
	if !w.ours(e.Response) {
		return duplex.Event{}, nil
	}
	return w.part(e)
}

// words reads what the service understood.
func (w *wire) words(e event) duplex.Event {
	w.mu.Lock()
	other := w.input != "" && e.Item != "" && e.Item != w.input
	w.mu.Unlock()
	switch {
	case other:
		return duplex.Event{}
	case strings.HasSuffix(e.Type, ".delta"):
		return duplex.Event{More: e.Delta}
	}
	return duplex.Event{Heard: strings.TrimSpace(e.Transcript)}
}

// created notes that an answer has begun.
func (w *wire) created(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stage == wanted && (id == "" || id != w.dead):
		w.stage, w.response, w.calls, w.half, w.said = running, id, nil, nil, false
	case w.stage == dying && w.dead == "":
		w.dead = id
	}
}

// ours says whether a part belongs to the answer that runs.
func (w *wire) ours(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.stage {
	case wanted: // a service that does not say that it begins
		if id == "" || id == w.dead {
			return false
		}
		w.stage, w.response, w.calls, w.half, w.said = running, id, nil, nil, false
	case running:
		return id == "" || w.response == "" || id == w.response
	case none, dying:
		return false
	}
	return true
}

// part reads a part of an answer.
func (w *wire) part(e event) (duplex.Event, error) {
	switch e.Type {
	case "response.output_audio.delta", "response.audio.delta":
		b, err := base64.StdEncoding.DecodeString(e.Delta)
		if err != nil {
			return duplex.Event{}, fmt.Errorf("sound is not the base64 expected: %w", err)
		}
		w.said = w.said || len(b) > 0
		return duplex.Event{PCM: w.samples(b), Item: e.Item}, nil
	case "response.output_audio_transcript.delta", "response.audio_transcript.delta", "response.output_text.delta", "response.text.delta":
		w.said = w.said || e.Delta != ""
		return duplex.Event{Text: e.Delta}, nil
	case "response.output_item.added", "response.output_item.done":
		if e.Thing.Type != "function_call" {
			break
		}
		w.names[e.Thing.ID] = e.Thing.Name
		if strings.HasSuffix(e.Type, "done") {
			w.call(e.Thing.CallID, e.Thing.Name, e.Thing.Arguments)
		}
	case "response.function_call_arguments.done":
		if e.Name == "" {
			e.Name = w.names[e.Item]
		}
		w.call(e.CallID, e.Name, e.Arguments)
	}
	return duplex.Event{}, nil
}

// call keeps a call, of which the service tells twice.
func (w *wire) call(id, name, arguments string) {
	for _, c := range w.calls {
		if c.ID == id {
			return
		}
	}
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	if id != "" && name != "" {
		w.calls = append(w.calls, providers.ToolCall{ID: id, Name: name, Arguments: arguments})
	}
}

// samples returns sound of 16 bit, little endian, and keeps the half of a sample for the next.
func (w *wire) samples(b []byte) []int16 {
	b = append(w.half, b...)
	out := make([]int16, len(b)/2)
	for i := range out {
		out[i] = int16(uint16(b[2*i]) | uint16(b[2*i+1])<<8)
	}
	w.half = append(w.half[:0:0], b[len(b)&^1:]...)
	return out
}

// over is the end of an answer.
func (w *wire) over(e event) (duplex.Event, error) {
	w.mu.Lock()
	was, again, id := w.stage, w.again, e.Whole.ID
	mine := was == running && (id == "" || w.response == "" || id == w.response) || was == wanted && id != w.dead
	if mine {
		w.stage = none
	}
	if was == dying && (id == "" || w.dead == "" || id == w.dead) {
		w.dead, w.stage, w.again = id, none, false
	} else {
		again = false
	}
	w.mu.Unlock()
	if again {
		return duplex.Event{}, w.ask()
	}
	if !mine {
		return duplex.Event{}, nil
	}
	calls := w.calls
	w.calls = nil
	clear(w.names)
	if err := w.failure(e, len(calls) > 0); err != nil {
		return duplex.Event{}, err
	}
	return duplex.Event{Calls: calls, Done: true, Usage: usage(e.Whole.Usage)}, nil
}

// complaint is an error that may be of no importance: the connection stays.
func (w *wire) complaint(e event, raw []byte) (duplex.Event, error) {
	code, _ := e.Error.Code.(string)
	switch e.Error.EventID {
	case "commit", "respond", "result":
		return duplex.Event{}, fault(raw)
	case "cancel", "truncate", "clear":
		if e.Error.EventID == "cancel" {
			return duplex.Event{}, w.notCancelled()
		}
		return duplex.Event{}, nil
	}
	switch {
	case strings.Contains(code, "expired") && strings.Contains(code, "session"):
		return duplex.Event{}, errExpired // another connection goes on with what was said
	case strings.Contains(code, "cancel"):
		return duplex.Event{}, w.notCancelled()
	case strings.Contains(code, "truncat") || strings.Contains(code, "audio_end"):
		return duplex.Event{}, nil
	}
	err := fault(raw)
	if refused, ok := errors.AsType[*transport.Refusal](err); ok && (refused.Kind == providers.NoCredit || refused.Kind == providers.RateLimited || refused.Kind == providers.Unauthorized) {
		return duplex.Event{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage != wanted {
		return duplex.Event{}, nil // a failure of an answer that runs comes with its end
	}
	return duplex.Event{Doubt: err}, nil
}

// notCancelled is the answer to a cancel where none ran any more.
func (w *wire) notCancelled() error {
	w.mu.Lock()
	again := w.again
	if w.stage == dying {
		w.stage, w.again = none, false
	}
	w.mu.Unlock()
	if again {
		return w.ask()
	}
	return nil
}
