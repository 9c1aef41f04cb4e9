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
	ErrNotReady  = errors.New("the server is starting or stopping")
	ErrNoPlan    = errors.New("there is no such plan any more")
	ErrNoChange  = errors.New("nothing would change")
	ErrNoneSuch  = errors.New("there is no such revision")
	ErrElsewhere = errors.New("another program has changed the settings")
	ErrNoDoc     = errors.New("that is no document of settings")
)

// reasons are the ids of what is said of each.
func reasons() map[error]string {
	return map[error]string{
		ErrReadOnly: "settings/read-only", ErrNoStore: "settings/no-store", ErrNotReady: "settings/not-ready", ErrNoPlan: "settings/no-plan",
		ErrNoChange: "settings/no-change", ErrNoneSuch: "settings/none-such", ErrElsewhere: "settings/elsewhere", ErrNoDoc: "settings/no-doc", ErrFileOnly: "config/not-by-console", ErrNoKey: "settings/no-key", ErrVariable: "config/console-variable",
	}
}

// Explain says to people why something was not done; "": the error is of something else.
func Explain(lang text.Lang, err error) string {
	if e, ok := errors.AsType[*InvalidError](err); ok {
		return e.In(lang)
	}
	if e, ok := errors.AsType[*PinnedError](err); ok {
		return e.In(lang)
	}
	if e, ok := errors.AsType[*StaleError](err); ok {
		return message.In(lang, "settings/stale", e.Now, e.By)
	}
	if e, ok := errors.AsType[*MachineError](err); ok {
		return message.In(lang, "settings/machine", e.Err)
	}
	if e, ok := errors.AsType[*LeftError](err); ok {
		return message.In(lang, "settings/left", strings.Join(e.keys(), ", "))
	}
	for reason, id := range reasons() {
		if errors.Is(err, reason) {
			return message.In(lang, id)
		}
	}
	return ""
}

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

// In says in a language what is wrong, a line each.
func (e *InvalidError) In(lang text.Lang) string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, Problem(lang, p))
	}
	return strings.Join(lines, "\n")
}

// Problem says in a language what is wrong with a key, with its name in front.
func Problem(lang text.Lang, p *config.Error) string {
	said := p.English
	if lang == text.Chinese && p.Chinese != "" {
		said = p.Chinese
	}
	if key := strings.Join(p.Path, "."); key != "" && !strings.Contains(said, key) {
		said = key + ": " + said
	}
	if p.Place != "" {
		said = p.Place + ": " + said
	}
	return said
}

// invalid is an error about one key.
func invalid(path []string, id string, args ...any) *InvalidError {
	return &InvalidError{[]*config.Error{{Path: path, English: message.In(text.English, id, args...), Chinese: message.In(text.Chinese, id, args...)}}}
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

// In says so in one language.
func (e *PinnedError) In(lang text.Lang) string {
	return message.In(lang, "settings/pinned", strings.Join(e.Path, "."), e.Origin.Place)
}

// StaleError says that others have changed the same keys since.
type StaleError struct {
	Now    int             // revision of which the next is made
	Mine   []config.Change // that were asked for: Old is what they were made of
	Others []config.Change // of the same keys: New is what they hold now
	By     string          // who made the last of those
}

// Error says so in both languages.
func (e *StaleError) Error() string { return message.Both("settings/stale", e.Now, e.By) }

// MachineError says that a server of the settings cannot be made.
type MachineError struct{ Err error }

// Error says so in both languages.
func (e *MachineError) Error() string { return message.Both("settings/machine", e.Err) }

// Unwrap returns why.
func (e *MachineError) Unwrap() error { return e.Err }
