package sound

import (
	"context"
	"iter"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// Longest bounds the text of one request: the sum of the sizes of its characters, or their
// number if Size is nil. Its zero value is no limit.
type Longest struct {
	Most int
	Size func(rune) int
}

// Speak is the loop of a voice: it has play speak a text in parts that the service takes,
// one after another, until one fails. A text without a letter or a digit yields nothing.
// The errors of play are those that may leave a provider.
func (t *Pool) Speak(ctx context.Context, req providers.TTSRequest, l Longest, play func(part providers.TTSRequest, p *Player) error) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(providers.Sound{}, err)
			return
		}
		parts := text.Parts(req.Text, l.Most, l.Size)
		if len(parts) == 0 {
			return
		}
		p := t.Get(yield)
		defer t.Put(p)
		p.Limit(req.Text)
		for _, words := range parts {
			part := req
			part.Text = words
			p.part = false
			err := play(part, p)
			if p.left {
				return
			}
			if err != nil {
				yield(providers.Sound{}, err)
				return
			}
		}
	}
}
