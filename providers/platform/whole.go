package platform

import (
	"xiaozhi/providers/generation"
	"xiaozhi/providers/sse"
)

// Whole is an answer that is one text, which is over with its stream. The stream is to be
// read as lines.
type Whole struct {
	// Read reads the text, which is not empty.
	Read func(body []byte, give generation.Give) error

	body []byte
}

// Event keeps a line.
func (a *Whole) Event(e sse.Event, _ generation.Give) (bool, error) {
	a.body = append(append(a.body, e.Data...), '\n')
	return false, nil
}

// EOF reads what has come.
func (a *Whole) EOF(give generation.Give) error {
	if len(a.body) == 0 {
		return generation.ErrIncomplete
	}
	return a.Read(a.body, give)
}

// End has nothing left to give.
func (a *Whole) End(generation.Give) error { return nil }
