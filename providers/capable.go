package providers

import (
	"context"
	"slices"
)

// Capable is a provider that differs from an ordinary one of its role.
type Capable interface {
	// Capabilities says how. It does not wait, and may be called at any time.
	Capabilities() Capabilities
}

// Capabilities say what a provider can do and what must not be done with it. The
// zero value is that of an ordinary language model or voice.
type Capabilities struct {
	Stateful       bool // it keeps the dialogue itself: it is given nothing but what is new
	NoTrials       bool // what it was asked cannot be undone: it is not asked on a guess
	NoHedge        bool // it is never asked beside another, only when another has failed
	OwnTools       bool // it has its own tools, and cannot be given ours
	Vision         bool // it understands pictures
	SpeechToSpeech bool // it hears and speaks by itself
	Instant        bool // its first sound is there within 50 ms: nothing needs to be spoken ahead
}

// CapabilitiesOf returns what a provider says of itself.
func CapabilitiesOf(provider any) Capabilities {
	if c, ok := provider.(Capable); ok {
		return c.Capabilities()
	}
	return Capabilities{}
}

// Narrow returns the request as a provider with these capabilities is to get it.
// A stateful one gets the messages from the user's last one on, and those before them
// apart; one with tools of its own gets none of ours.
func (c Capabilities) Narrow(req LLMRequest) LLMRequest {
	if c.Stateful {
		if last := lastOfUser(req.Messages); last > 0 {
			req.Before, req.Messages = req.Messages[:last:last], req.Messages[last:]
		}
	}
	if c.OwnTools {
		req.Tools, req.NoTools = nil, false
	}
	return req
}

// lastOfUser is the index of the last message of the user; the length if there is none.
func lastOfUser(messages []Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == RoleUser {
			return i
		}
	}
	return len(messages)
}

// NewestText returns the user's last words; "" if there are none.
func (r LLMRequest) NewestText() string {
	if i := lastOfUser(r.Messages); i < len(r.Messages) {
		return r.Messages[i].Content
	}
	return ""
}

// AwaitCertain waits until the request is no trial any more, or ctx ends.
func (r LLMRequest) AwaitCertain(ctx context.Context) error {
	if r.Certain == nil {
		return ctx.Err()
	}
	select {
	case <-r.Certain:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
