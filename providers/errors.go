// Package providers holds the contracts between the conversation and the
// engines that hear, think and speak. Each technology has a folder of its own
// below this one; the contracts live here because many folders implement them.
//
// Every implementation is safe for many connections at once; what it opens or
// yields (a stream, a loop) belongs to one goroutine. When the context ends,
// every call returns within 100 ms with the context's error, unchanged.
package providers

import (
	"errors"
	"fmt"
)

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

// ErrLanguage is the cause of an error of kind [BadRequest] from an engine that does not know the
// language of the request. Others may know it.
var ErrLanguage = errors.New("it does not know this language")

// LacksLanguage reports whether the language is all that is wrong: of the errors that err joins,
// such as those of the members of a chain, each is [ErrLanguage].
func LacksLanguage(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it looks into what is wrapped by itself
	case nil:
		return false
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if !LacksLanguage(one) {
				return false
			}
		}
		return len(e.Unwrap()) > 0
	case interface{ Unwrap() error }:
		return LacksLanguage(e.Unwrap())
	}
	return err == ErrLanguage //nolint:errorlint // it is unwrapped
}
