package settings

import (
	"errors"
	"strings"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// Why nothing was changed.
var (
	ErrReadOnly  = errors.New("console.edit is off")
	ErrNoStore   = errors.New("nothing is stored")
	ErrNoPlan    = errors.New("there is no such plan any more")
	ErrNoChange  = errors.New("nothing would change")
	ErrNoneSuch  = errors.New("there is no such revision")
	ErrTooSecret = errors.New("a secret must be typed")
)

// InvalidError says which keys are wrong, as the loader of the settings does.
type InvalidError struct{ Problems []*config.Error }

// Error lists what is wrong, a line each.
func (e *InvalidError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, p.Error())
	}
	return strings.Join(lines, "\n")
}

// PinnedError says that a key is set where it counts before what people set.
type PinnedError struct {
	Path   []string
	Origin config.Origin // Place says where
}

// Error says so in both languages.
func (e *PinnedError) Error() string {
	return message.Both("settings/pinned", strings.Join(e.Path, "."), e.Origin.Place)
}

// In is what the error says in a language.
func (e *PinnedError) In(lang text.Lang) string {
	return message.In(lang, "settings/pinned", strings.Join(e.Path, "."), e.Origin.Place)
}

// StaleError says that others have changed the same keys since.
type StaleError struct {
	Now    int             // revision in force
	Mine   []config.Change // that were asked for: Old is what they were made of
	Others []config.Change // of the same keys: New is what they hold now
	By     string          // who made the last of those
}

// Error says so in both languages.
func (e *StaleError) Error() string { return message.Both("settings/stale", e.Now, e.By) }
