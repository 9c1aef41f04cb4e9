package openai

import (
	"bytes"
	"net/http"

	"xiaozhi/providers/generation"
	"xiaozhi/providers/transport"
)

// refusals remember what a server does not take for a model. They may be used by any
// number of goroutines at once.
type refusals struct{ generation.Memory }

// What is remembered beside the keys of a body.
const (
	swapLimit   = "the other name of the token limit"
	effortKey   = "reasoning_effort"
	minimal     = "an effort of minimal"
	low         = "an effort of low"
	noteEchoed  = "reasoning in every message"
	noteVersion = "the version part of the address"
)

// drop takes what was refused out of a body.
func (r *refusals) drop(body map[string]any) {
	r.Drop(body)
	if _, sent := body[effortKey]; sent {
		switch {
		case r.Has(low):
			body[effortKey] = "low"
		case r.Has(minimal):
			body[effortKey] = "minimal"
		}
	}
}

// limitKey returns the name of the token limit that the server takes.
func (r *refusals) limitKey(usual string) string {
	switch {
	case !r.Has(swapLimit):
		return usual
	case usual == "max_tokens":
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// learn notes what a refusal names, and reports whether that is new. own are the keys that
// the user has set: they stay.
func (r *refusals) learn(status int, said []byte, own map[string]any) bool {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return false
	}
	learned := r.Learn(status, said, own, droppable()...)
	if _, set := own[effortKey]; !set && generation.Names(said, effortKey) {
		switch { // the least that the words allow
		case generation.Names(said, "minimal") && r.Note(minimal), generation.Names(said, "low") && r.Note(low):
			learned = true
		default:
			learned = r.Note(effortKey) || learned
		}
	}
	if generation.Names(said, "max_tokens") && generation.Names(said, "max_completion_tokens") {
		learned = r.Note(swapLimit) || learned
	}
	if generation.Names(said, reasoningContent) {
		learned = r.Note(noteEchoed) || learned
	}
	return learned
}

// Adapt leaves out of the next requests what the server has refused in this one. One that
// knows nothing at an address without a version part is asked with that of the vendor.
func (w *wire) Adapt(refusal *transport.Refusal, said []byte) bool {
	if refusal.Status == http.StatusNotFound && w.o.versioned != "" && !bytes.Contains(said, []byte("model")) {
		return w.refused.Note(noteVersion)
	}
	return w.refused.learn(refusal.Status, said, w.o.Extra)
}
