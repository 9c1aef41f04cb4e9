package roster

import (
	"errors"
	"slices"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// Kind says why something is not done.
type Kind int

// The kinds.
const (
	Missing   Kind = iota + 1 // there is no such thing
	Invalid                   // it can never be so
	Conflict                  // somebody else, or the settings, have it
	Full                      // there are too many
	Unwritten                 // it cannot be kept
)

// RefusalError says for people why nothing has changed.
type RefusalError struct {
	Kind Kind
	Text string // in both languages

	id   string
	args []any
}

// In returns the text in one language.
func (r *RefusalError) In(lang text.Lang) string {
	if r.id == "" {
		return r.Text
	}
	return message.In(lang, r.id, r.args...)
}

// About reports whether the refusal is one of those, by the ids of their texts.
func (r *RefusalError) About(ids ...string) bool { return slices.Contains(ids, r.id) }

// Error returns the text.
func (r *RefusalError) Error() string { return r.Text }

func refuse(kind Kind, id string, args ...any) error {
	return &RefusalError{kind, message.Both(id, args...), id, args}
}

func unwritten(err error) error {
	if errors.Is(err, ErrConflict) {
		return refuse(Conflict, "agents/conflict")
	}
	return refuse(Unwritten, "agents/not-written", err)
}
