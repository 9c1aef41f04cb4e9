package turn

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
)

// speculate begins the answer to what was said so far, if that may be all.
func speculate(x *step, u *Utterance) {
	if u.Epoch != x.Mic.Epoch || x.Phase() != Listening {
		return
	}
	words, heard, ok := soFar(x, u)
	lang, who := x.langOf(words, heard), speaker(x, append(x.all(Awaited), u))
	if ok || text.Bare(words) != "" {
		u.Delay = x.Learned.Pause.Delay(x.Commit, x.tongue(lang).Complete(words))
		x.do(AwaitSilence{u.ID, u.Delay})
	}
	if x.Speculates() && x.guesses(words, lang, who) {
		return // it answers these words already
	}
	x.discard(ErrReplaced)
	if !ok || x.Busy() && x.Reply.Stage != Discarded || x.Greeting != "" || x.Farewell.Step != Staying || x.Speculate.Tries >= x.Speculations {
		return
	}
	x.Speculate.Tries++
	x.begin(Request{
		Words: words, Shown: words, Lang: lang, Before: x.Learned.Lang, Speaker: who, Speculative: true,
		Times: timeline.Times{ASR: u.Text.Provider},
	})
}

// draft takes the words that a recogniser has understood at a pause.
func draft(x *step, e Draft) {
	u := x.find(e.ID)
	if u == nil || u.final() || e.Attempt != u.Attempt || u.Role != Live || u.Over != OverNothing || text.Bare(e.Words) == "" {
		return
	}
	u.Text = Text{Status: Pending, Words: e.Words, Lang: e.Lang, Provider: e.Provider}
	speculate(x, u)
}

// guess returns the request that the speculation answers, or will.
func guess(x *step) Request {
	if x.Pending != nil {
		return *x.Pending
	}
	return x.Reply.Request
}

// guesses reports whether the speculation answers these words, punctuation apart, in this
// language, to who is speaking. A point within a number is none: 2.5 is not 25.
func (x *step) guesses(words string, lang text.Lang, speaker Speaker) bool {
	guess := guess(x)
	return guess.Lang == lang && guess.Speaker.ID == speaker.ID && text.Bare(guess.Words) == text.Bare(words) && slices.Equal(numbers(guess.Words), numbers(words))
}

// numbers lists the numbers that are written in digits with signs within.
func numbers(words string) (out []string) {
	for _, n := range strings.FieldsFunc(words, func(r rune) bool { return !unicode.IsDigit(r) && !strings.ContainsRune(".,:/-．，：", r) }) {
		n = strings.TrimFunc(n, func(r rune) bool { return !unicode.IsDigit(r) })
		if strings.ContainsFunc(n, func(r rune) bool { return !unicode.IsDigit(r) }) {
			out = append(out, n)
		}
	}
	return out
}

// soFar returns all that was said so far, in which language it was heard, and whether its answer can
// begin before the end: whatever has an effect beside the answer waits for that.
func soFar(x *step, u *Utterance) (words string, heard text.Lang, ok bool) {
	ok = true
	for _, said := range append(x.all(Awaited), u) {
		if said.Text.Status != Final && (said.ID != u.ID || said.Text.Status != Pending || said.Text.Words == "") {
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
// the words, punctuation apart, and all that the model was told must be the same.
func adopt(x *step, r Request) bool {
	switch {
	case !x.Speculates():
		return false
	case r.Phrase != "" || r.Answer != "" || r.Consent.ID != 0 || r.Told,
		!x.guesses(r.Words, r.Lang, r.Speaker), x.Pending == nil && x.seen.Stale:
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
