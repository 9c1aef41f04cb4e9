package turn

import (
	"cmp"

	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
)

// speculate begins the answer to what was said so far, if that may be all.
func speculate(x *step, u *Utterance) {
	if u.Epoch != x.Mic.Epoch || x.Phase() != Listening {
		return
	}
	words, heard, ok := draft(x, u)
	lang := x.langOf(words, heard)
	if ok || text.Bare(words) != "" {
		x.do(AwaitSilence{u.ID, x.Learned.Pause.Delay(x.Commit, x.tongue(lang).Complete(words))})
	}
	if !ok || x.Busy() || x.Greeting != "" || x.Farewell.Step != Staying || x.Speculate.Tries >= x.Speculations {
		return
	}
	x.Speculate.Tries++
	x.begin(Request{
		Words: words, Shown: words, Lang: lang, Before: x.Learned.Lang, Speculative: true,
		Times: timeline.Times{ASR: u.Text.Provider},
	})
}

// draft returns all that was said so far, in which language it was heard, and whether its answer can
// begin before the end: whatever has an effect beside the answer waits for that.
func draft(x *step, u *Utterance) (words string, heard text.Lang, ok bool) {
	ok = true
	for _, said := range append(x.all(Awaited), u) {
		if said.Text.Status != Final {
			ok = false
			continue
		}
		words, heard = text.Join(words, said.Text.Words), cmp.Or(said.Text.Lang, heard)
	}
	return words, heard, ok && text.Bare(words) != "" && x.Consent.ID == 0 && x.Asked == 0 && !x.seen.Song
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
		x.Pending != nil && (x.Pending.Words != r.Words || x.Pending.Lang != r.Lang),
		x.Pending == nil && (x.Reply.Request.Words != r.Words || x.Reply.Request.Lang != r.Lang || x.seen.Stale):
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
