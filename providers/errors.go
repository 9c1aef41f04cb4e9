// Package providers holds the contracts between the conversation and the
// engines that hear, think and speak. Each technology has a folder of its own
// below this one; the contracts live here because many folders implement them.
//
// Every implementation is safe for many connections at once; what it opens or
// yields (a stream, a loop) belongs to one goroutine. When the context ends,
// every call returns within 100 ms with the context's error, unchanged.
package providers

import "fmt"

// Kind says what sort of failure a provider had.
type Kind int

// The kinds of failure.
const (
	Unavailable  Kind = iota // not reachable, crashed, overloaded, timed out
	RateLimited              // asked too often
	Unauthorized             // key missing or refused
	BadRequest               // it will never work as asked
	NoCredit                 // the account has no money, or not for this
)

// String returns the kind's stable name in logs.
func (k Kind) String() string {
	switch k {
	case RateLimited:
		return "rate_limited"
	case Unauthorized:
		return "unauthorized"
	case BadRequest:
		return "bad_request"
	case NoCredit:
		return "no_credit"
	case Unavailable:
	}
	return "unavailable"
}

// Error is the one error type of all providers. Context errors are never wrapped in it.
type Error struct {
	Provider string // name in the config, e.g. "openai"
	Op       string // what was tried, e.g. "transcribe"
	Kind     Kind
	Err      error
}

// Error names the provider, what was tried and why it failed.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s: %s: %v", e.Provider, e.Op, e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
