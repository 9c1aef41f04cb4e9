package chain

import (
	"slices"
	"time"

	"xiaozhi/providers"
)

// mostMessages is how many messages a member is told of when it takes over.
const mostMessages = 64

// dialog keeps a talk so far, for the member that takes over. It is for
// whoever holds its owner's lock.
type dialog struct {
	past []providers.Message
	// The newest turn.
	heard, text string
	long        time.Duration
}

// newDialog begins with what was said before.
func newDialog(history []providers.Message) dialog { return dialog{past: slices.Clone(history)} }

// next begins another turn.
func (d *dialog) next() {
	for _, m := range []providers.Message{{Role: providers.RoleUser, Content: d.heard}, {Role: providers.RoleAssistant, Content: d.text}} {
		if m.Content != "" {
			d.past = append(d.past, m)
		}
	}
	if n := len(d.past) - mostMessages; n > 0 {
		d.past = slices.Delete(d.past, 0, n)
	}
	d.again()
}

// again forgets the newest turn: another member answers it.
func (d *dialog) again() { d.heard, d.text, d.long = "", "", 0 }

// take adds a piece of the newest turn.
func (d *dialog) take(delta providers.DuplexDelta) {
	if delta.Heard != "" {
		d.heard = delta.Heard
	}
	d.text += delta.Text
	d.long += lengthOf(delta.Sound)
}

// cut keeps so much of the newest answer as was heard, in proportion to its sound.
func (d *dialog) cut(heard time.Duration) {
	if d.long <= 0 || heard >= d.long {
		return
	}
	words := []rune(d.text)
	d.text, d.long = string(words[:int(int64(len(words))*int64(max(heard, 0))/int64(d.long))]), max(heard, 0)
}

// all is all that was said, the newest turn included.
func (d *dialog) all() []providers.Message {
	whole := dialog{past: slices.Clone(d.past), heard: d.heard, text: d.text}
	whole.next()
	return whole.past
}
