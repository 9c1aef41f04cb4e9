package turn

import (
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/timeline"
)

// speculate begins the answer to what was said so far, if that may be all.
func speculate(x *step, u *Utterance) {
	if u.Epoch != x.Mic.Epoch || x.Phase() != Listening {
		return
	}
	words, ok := draft(x, u)
	if ok || text.Bare(words) != "" {
		x.do(AwaitSilence{u.ID, x.Learned.Pause.Delay(x.Commit, intent.Complete(words, x.langOf(words)))})
	}
	if !ok || x.Busy() || x.Greeting != "" || x.Farewell.Step != Staying || x.Speculate.Tries >= x.Speculations {
		return
	}
	x.Speculate.Tries++
	x.begin(Request{
		Words: words, Shown: words, Lang: x.langOf(words), Before: x.Learned.Lang, Speculative: true,
		Times: timeline.Times{ASR: u.Text.Provider},
	})
}

// draft returns all that was said so far, and whether its answer can begin before the
// end: whatever has an effect beside the answer waits for that.
func draft(x *step, u *Utterance) (words string, ok bool) {
	ok = true
	for _, said := range append(x.all(Awaited), u) {
		if said.Text.Status != Final {
			ok = false
			continue
		}
		words = text.Join(words, said.Text.Words)
	}
	return words, ok && text.Bare(words) != "" && x.Consent.ID == 0 && x.Asked == 0 && !x.seen.Song
}

// discard undoes a speculation.
func (x *step) discard(cause error) {
	if x.Speculates() {
		x.Speculate.Discarded++
		x.cut(cause)
	}
}

// adopt makes a speculation the answer to a request, and reports whether it is:
// the words and all that the model was told must be the same.
func adopt(x *step, r Request) bool {
	switch {
	case !x.Speculates():
		return false
	case r.Phrase != "" || r.Answer != "" || r.Consent.ID != 0 || r.Told,
		x.Pending != nil && x.Pending.Words != r.Words,
		x.Pending == nil && (x.Reply.Request.Words != r.Words || x.seen.Stale):
		x.discard(ErrReplaced)
		return false
	case x.Pending != nil: // it has not begun
		x.Speculate.Discarded++
		x.Pending = nil
		return false
	}
	x.Reply.Request = r
	x.do(Adopt{x.Reply.Turn, r})
	commit(x)
	return true
}
