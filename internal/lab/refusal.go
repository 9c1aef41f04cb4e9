package lab

import (
	"errors"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// Kind sorts refusals for programs.
type Kind int

// The kinds of refusals.
const (
	Missing Kind = iota + 1 // what is asked for is not there
	Invalid                 // what is asked for cannot be
	Busy                    // not now
)

// RefusalError says why something is not done, in both languages.
type RefusalError struct {
	Kind Kind
	Text string

	id   string
	args []any
}

// In returns the text in one language.
func (e *RefusalError) In(lang text.Lang) string {
	if e.id == "" {
		return e.Text
	}
	return message.In(lang, e.id, e.args...)
}

// Error implements error.
func (e *RefusalError) Error() string { return e.Text }

func refuse(k Kind, id string, args ...any) *RefusalError {
	return &RefusalError{k, message.Both(id, args...), id, args}
}

// Refuse makes a refusal with a text of the catalogue, for those who implement [Stage].
func Refuse(k Kind, id string, args ...any) error { return refuse(k, id, args...) }

// inWords says in both languages what has failed, and then what a service said of it.
func inWords(err error) string {
	if e, ok := errors.AsType[*RefusalError](err); ok {
		return e.Text
	}
	return words(err, func(id string) string { return message.Both(id) })
}

// WordsIn says in one language what has failed, and then what a service said of it; "" of nothing.
func WordsIn(lang text.Lang, err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*RefusalError](err); ok {
		return e.In(lang)
	}
	return words(err, func(id string) string { return message.In(lang, id) })
}

// words say what has failed at a service.
func words(err error, say func(id string) string) string {
	says := err
	if e, ok := errors.AsType[*providers.Error](err); ok && e.Err != nil {
		says = e.Err
	}
	cause := transport.CauseOf(err, false)
	if cause == "" {
		return transport.Plain(says)
	}
	return say(string(cause)) + ": " + transport.Plain(says)
}
