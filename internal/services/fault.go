package services

import (
	"context"
	"errors"

	"xiaozhi/internal/engines"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/transport"
)

// Fault says why something did not work.
type Fault struct {
	why string // id of a message; "": only words are known
	raw string // what the service said
	// both is what was said in both languages, where it has no id.
	both string
}

// In says in a language what is wrong, and what to look at.
func (f *Fault) In(lang text.Lang) string {
	switch {
	case f.why != "":
		return text.Sentence(message.In(lang, f.why))
	case f.both == "":
		return text.Sentence(message.In(lang, "services/unavailable"))
	}
	return text.Sentence(message.Part(f.both, lang))
}

// Raw returns the words of the service itself; "": nothing more is known.
func (f *Fault) Raw() string { return f.raw }

// ID is that of the message; "": there is none.
func (f *Fault) ID() string { return f.why }

// faultOf says why a service has failed. free says that it has no keys that could be wrong.
func faultOf(err error, free bool) *Fault {
	switch {
	case errors.Is(err, chain.ErrLate):
		return &Fault{why: "services/overtaken"}
	case errors.Is(err, context.DeadlineExceeded):
		return &Fault{why: "services/hung"}
	}
	cause := string(transport.CauseOf(err, free))
	raw := transport.Plain(err)
	if failed, ok := errors.AsType[*providers.Error](err); ok {
		raw = transport.Plain(failed.Err)
	} else if cause == "" {
		return &Fault{both: engines.Readable(err)}
	}
	if cause == "" {
		return &Fault{raw: raw}
	}
	return &Fault{why: cause, raw: raw}
}
