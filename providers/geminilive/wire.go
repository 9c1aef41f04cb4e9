package geminilive

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/duplex"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/transport"
)

const outRate = 24000 // Hz of the sound that comes

// wire is a session. The service tells the end of each turn once, an interrupted one's too,
// and names none: which turn an end belongs to is counted here.
type wire struct {
	*transport.Socket
	active bool // the user's turn was begun; belongs to the sender

	mu    sync.Mutex
	open  bool // a turn was asked for whose end has not come
	owed  bool // the end of an earlier turn has not come either
	stale bool // what comes is of a turn that was given up

	asked  bool   // for an answer, or handed over what it waits for
	handle string // by which the session can be gone on with, all answers included; "": it cannot

	half []byte // of a sample, which the next message completes; belongs to the receiver
}

// Append hands over sound. The first begins the user's turn, which ends the model's.
func (w *wire) Append(pcm []int16) error {
	if !w.active {
		w.active = true
		if err := w.WriteJSON(object{"realtimeInput": object{"activityStart": object{}}}); err != nil {
			return err
		}
	}
	return w.WriteJSON(object{"realtimeInput": object{"audio": object{
		"data": base64.StdEncoding.EncodeToString(recognition.Bytes(pcm)), "mimeType": "audio/pcm;rate=16000",
	}}})
}

// Commit ends the user's turn.
func (w *wire) Commit() error {
	w.active = false
	w.mu.Lock()
	w.owed, w.open = w.owed || w.open, true
	w.asked, w.handle = true, ""
	w.mu.Unlock()
	return w.WriteJSON(object{"realtimeInput": object{"activityEnd": object{}}})
}

// Results hands over what the functions gave.
func (w *wire) Results(results []providers.ToolResult) error {
	list := make([]object, len(results))
	for i, r := range results {
		key := "output"
		if r.Failed {
			key = "error"
		}
		list[i] = object{"id": r.ID, "name": r.Name, "response": object{key: r.Output}}
	}
	w.mu.Lock()
	w.open, w.asked, w.handle = true, true, ""
	w.mu.Unlock()
	return w.WriteJSON(object{"toolResponse": object{"functionResponses": list}})
}

// Cancel drops what still comes of the answer; the user's next turn ends it.
func (w *wire) Cancel() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = w.open
	return nil
}

// Truncate cannot be told.
func (w *wire) Truncate(string, time.Duration) error { return duplex.ErrNotOffered }

// Discard cannot be told once the user's turn was begun.
func (w *wire) Discard() error {
	if w.active {
		return duplex.ErrNotOffered
	}
	return nil
}

// left returns the handle by which the session can be gone on with; "" for none.
func (w *wire) left() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handle
}

// message is one of the service. Any of its members may be there.
type message struct {
	Setup   *struct{}       `json:"setupComplete"`
	Error   json.RawMessage `json:"error"`
	Content *struct {
		Turn struct {
			Parts []struct {
				Thought bool `json:"thought"`
				Inline  struct {
					Data string `json:"data"`
					MIME string `json:"mimeType"`
				} `json:"inlineData"`
			} `json:"parts"`
		} `json:"modelTurn"`
		In          words `json:"inputTranscription"`
		Out         words `json:"outputTranscription"`
		Interrupted bool  `json:"interrupted"`
		Generated   bool  `json:"generationComplete"`
		Complete    bool  `json:"turnComplete"`
	} `json:"serverContent"`
	Call *struct {
		Functions []struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCalls"`
	} `json:"toolCall"`
	Away   *struct{} `json:"goAway"`
	Resume *struct {
		Handle    string `json:"newHandle"`
		Resumable bool   `json:"resumable"`
	} `json:"sessionResumptionUpdate"`

	Usage json.RawMessage `json:"usageMetadata"`
}

type words struct {
	Text string `json:"text"`
}

// Receive waits for the next message.
func (w *wire) Receive() (func() (duplex.Event, error), error) {
	_, raw, err := w.Read(0)
	if err != nil {
		return nil, judged(err)
	}
	return func() (duplex.Event, error) { return w.take(raw) }, nil
}

// take reads a message.
func (w *wire) take(raw []byte) (duplex.Event, error) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return duplex.Event{}, fmt.Errorf("a message is not the JSON expected: %w", err)
	}
	if len(m.Error) > 0 {
		return duplex.Event{}, fault(m.Error)
	}
	e := duplex.Event{Leaving: m.Away != nil, Usage: providers.Usage{
		Prompt:     duplex.Count(m.Usage, "promptTokenCount", "toolUsePromptTokenCount"),
		Cached:     duplex.Count(m.Usage, "cachedContentTokenCount"),
		Completion: duplex.Count(m.Usage, "responseTokenCount", "candidatesTokenCount", "thoughtsTokenCount"),
	}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Content != nil {
		if err := w.content(&m, &e); err != nil {
			return duplex.Event{}, err
		}
	}
	if r := m.Resume; r != nil {
		if w.handle = ""; r.Resumable && w.asked && !w.open { // one of before the answer would lose it
			w.handle = r.Handle
		}
	}
	if m.Call == nil || w.stale {
		return e, nil
	}
	for _, f := range m.Call.Functions {
		arguments := strings.TrimSpace(string(f.Args))
		if arguments == "" || arguments == "null" {
			arguments = "{}"
		}
		if f.ID == "" {
			f.ID = generation.NewID()
		}
		e.Calls = append(e.Calls, providers.ToolCall{ID: f.ID, Name: f.Name, Arguments: arguments})
	}
	if len(e.Calls) > 0 { // the service waits for the results
		w.asked, w.handle = false, ""
		e.Done, w.owed, w.open = true, false, false
	}
	return e, nil
}

// content reads what is said, and which turns are over. Its caller holds the lock.
func (w *wire) content(m *message, e *duplex.Event) error {
	c := m.Content
	if c.Interrupted { // what follows is of the next turn, but for an end
		w.stale = false
		if !w.owed { // the next turn was not asked for yet
			w.owed, w.open = w.open, false
		}
	}
	if !w.stale {
		e.More = c.In.Text // what is still understood of a turn that was given up is nobody's
	}
	if !w.stale && !c.Interrupted {
		e.Text = c.Out.Text
		for _, p := range c.Turn.Parts {
			if p.Thought || !strings.HasPrefix(p.Inline.MIME, "audio/") {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(p.Inline.Data)
			if err != nil {
				return fmt.Errorf("sound is not the base64 expected: %w", err)
			}
			e.PCM = append(e.PCM, w.samples(b)...)
		}
		if len(e.PCM) > 0 {
			w.owed = false
		}
		e.Nearly = c.Generated && !w.owed
	}
	if !c.Complete {
		return nil
	}
	switch {
	case w.owed:
		w.owed, w.stale = false, false
	case w.stale:
		w.open, w.stale = false, false
	default:
		e.Done, w.open = w.open, false
	}
	return nil
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

// fault is the refusal in a message.
func fault(raw []byte) error {
	if f := generation.FaultOf([]byte(`{"error":` + string(raw) + `}`)); f != nil {
		return judged(f.Refusal())
	}
	return transport.Refused(providers.Unavailable, "", "the service has failed, and does not say why")
}
