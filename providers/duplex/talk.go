package duplex

import (
	"slices"
	"time"

	"xiaozhi/providers"
)

// mostMessages is how many messages go with a new connection.
const mostMessages = 64

// talk keeps what was said. It is for whoever holds the session's lock.
type talk struct {
	past []providers.Message
	// The turn that is the newest.
	heard string
	text  string
	parts []part
}

// part is the sound of an item.
type part struct {
	item string
	long time.Duration
}

// newTalk begins with what was said before, of which only text is kept.
func newTalk(history []providers.Message) talk {
	var t talk
	for _, m := range history {
		if m.Role == providers.RoleUser || m.Role == providers.RoleAssistant {
			t.add(m.Role, m.Content)
		}
	}
	return t
}

func (t *talk) add(r providers.Role, words string) {
	if words == "" {
		return
	}
	t.past = append(t.past, providers.Message{Role: r, Content: words})
	if n := len(t.past) - mostMessages; n > 0 {
		t.past = slices.Delete(t.past, 0, n)
	}
}

// next begins another turn.
func (t *talk) next() {
	t.add(providers.RoleUser, t.heard)
	t.add(providers.RoleAssistant, t.text)
	t.heard, t.text, t.parts = "", "", nil
}

// all is all that was said, the newest turn included.
func (t *talk) all() []providers.Message {
	whole := talk{past: slices.Clone(t.past), heard: t.heard, text: t.text}
	whole.next()
	return whole.past
}

// take adds what was yielded.
func (t *talk) take(d providers.DuplexDelta, item string) {
	if d.Heard != "" {
		t.heard = d.Heard
	}
	t.text += d.Text
	if len(d.Sound.PCM) == 0 {
		return
	}
	if n := len(t.parts); n == 0 || t.parts[n-1].item != item {
		t.parts = append(t.parts, part{item: item})
	}
	t.parts[len(t.parts)-1].long += length(d.Sound)
}

func length(s providers.Sound) time.Duration {
	return time.Duration(len(s.PCM)) * time.Second / time.Duration(s.Rate)
}

// total sums up the sound of the turn.
func (t *talk) total() time.Duration {
	var sum time.Duration
	for _, p := range t.parts {
		sum += p.long
	}
	return sum
}

// cut keeps what was heard of the turn, and lists what became of the items that were not
// heard to their end. whole says that even the last of them was: it ended too early.
func (t *talk) cut(heard time.Duration, whole bool) []part {
	total := t.total()
	heard = min(max(heard, 0), total)
	if total == 0 || heard == total && whole {
		return nil
	}
	words := []rune(t.text)
	t.text = string(words[:int(int64(len(words))*int64(heard)/int64(total))])
	var out []part
	left := heard
	for i, p := range t.parts {
		if p.long > left || i == len(t.parts)-1 {
			out = append(out, part{p.item, min(p.long, left)})
		}
		t.parts[i].long = min(p.long, left)
		left -= t.parts[i].long
	}
	return out
}
