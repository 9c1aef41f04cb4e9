package doubaodialogue

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/duplex"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

// Events of a dialogue.
const (
	eventEndASR    = 400
	eventInterrupt = 515
	eventUsage     = 154
	eventTTSEnded  = 359
	eventASRInfo   = 450
	eventASR       = 451
	eventASREnded  = 459
	eventChat      = 550
	eventError     = 599
)

// wire is a session.
type wire struct {
	*transport.Socket
	session    string
	interrupts bool
	begun      bool // sound was sent since the last commit; belongs to the sender

	mu    sync.Mutex
	stale bool // what is said belongs to an answer that was given up
	asked bool // an answer was asked for, and is not complete
	heard bool // words of the user were understood since it had heard all that was said before

	half []byte // of a sample, which the next message completes; belongs to the receiver
}

// tell sends an event with JSON.
func (w *wire) tell(event int32, payload []byte) error {
	f := volcframe.Frame{Kind: volcframe.TypeRequest, Flags: volcframe.FlagEvent, JSON: true, Event: event, ID: w.session, Payload: payload}
	return w.WriteBinary(f.Bytes())
}

// Append hands over sound.
func (w *wire) Append(pcm []int16) error {
	w.begun = true
	f := volcframe.Frame{
		Kind: volcframe.TypeAudio, Flags: volcframe.FlagEvent, Event: volcframe.EventTaskRequest, ID: w.session, Payload: recognition.Bytes(pcm),
	}
	return w.WriteBinary(f.Bytes())
}

// Commit says that the user has finished.
func (w *wire) Commit() error {
	w.begun = false
	w.mu.Lock()
	w.asked = true
	w.mu.Unlock()
	return w.tell(eventEndASR, []byte("{}"))
}

// Results cannot be told: it calls no tools.
func (w *wire) Results([]providers.ToolResult) error {
	return transport.Refused(providers.BadRequest, "", "the service takes no results of tools")
}

// Cancel drops what still comes of the answer, until the user is heard again.
func (w *wire) Cancel() error {
	w.mu.Lock()
	runs := w.asked
	w.stale, w.asked = w.stale || runs, false
	w.mu.Unlock()
	if runs && w.interrupts {
		return w.tell(eventInterrupt, []byte("{}"))
	}
	return nil
}

// Truncate cannot be told.
func (w *wire) Truncate(string, time.Duration) error { return duplex.ErrNotOffered }

// Discard cannot be told once sound was sent.
func (w *wire) Discard() error {
	if w.begun {
		return duplex.ErrNotOffered
	}
	return nil
}

// frame reads a frame; one that says that all is over is an error.
func (w *wire) frame(within time.Duration) (volcframe.Frame, error) {
	f, err := volcframe.Read(w.Socket, within)
	if err != nil {
		return f, err
	}
	switch f.Event {
	case volcframe.EventConnectionFailed, volcframe.EventSessionFailed, eventError:
		return f, volcframe.Refusal(f.Code, f.Payload, w.Header().Get(volcframe.LogHeader))
	case volcframe.EventConnectionFinished, volcframe.EventSessionFinished:
		return f, transport.Refused(providers.Unavailable, "", "the service ended the session")
	}
	return f, nil
}

// Receive waits for the next event.
func (w *wire) Receive() (func() (duplex.Event, error), error) {
	f, err := w.frame(0)
	if err != nil {
		return nil, err
	}
	return func() (duplex.Event, error) { return w.take(f) }, nil
}

// said holds what an event says.
type said struct {
	Content string `json:"content"`
	Results []struct {
		Text string `json:"text"`
	} `json:"results"`
}

// take reads a frame.
func (w *wire) take(f volcframe.Frame) (duplex.Event, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch f.Event {
	case eventASRInfo, eventASREnded:
		w.stale, w.half = false, nil
		if f.Event == eventASRInfo {
			return duplex.Event{}, nil
		}
		nothing := w.asked && !w.heard
		if w.heard = false; nothing { // then it says nothing, which is no fault of it
			return duplex.Event{Doubt: transport.Refused(providers.BadRequest, "", "the service has understood no words")}, nil
		}
		return duplex.Event{}, nil
	case volcframe.EventTTSResponse:
		if w.stale {
			return duplex.Event{}, nil
		}
		return duplex.Event{PCM: w.samples(f.Payload)}, nil
	case eventTTSEnded:
		done := w.asked && !w.stale
		w.asked = w.asked && !done
		return duplex.Event{Done: done}, nil
	case eventUsage:
		return duplex.Event{Usage: w.usage(f.Payload)}, nil
	case eventASR, eventChat:
	default:
		return duplex.Event{}, nil
	}
	var s said
	if err := json.Unmarshal(f.Payload, &s); err != nil {
		return duplex.Event{}, fmt.Errorf("an event is not the JSON expected: %w", err)
	}
	if f.Event == eventChat {
		if w.stale {
			return duplex.Event{}, nil
		}
		return duplex.Event{Text: s.Content}, nil
	}
	w.stale = false
	var words strings.Builder
	for _, r := range s.Results {
		words.WriteString(r.Text)
	}
	w.heard = w.heard || words.Len() > 0
	return duplex.Event{Heard: words.String()}, nil
}

// usage returns what an answer has cost. Its caller holds the lock.
func (w *wire) usage(raw []byte) providers.Usage {
	if w.stale {
		return providers.Usage{}
	}
	return providers.Usage{
		Prompt:     duplex.Count(raw, "usage.input_text_tokens", "usage.input_audio_tokens"),
		Completion: duplex.Count(raw, "usage.output_text_tokens", "usage.output_audio_tokens"),
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
