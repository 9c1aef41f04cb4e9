package chain

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/timeline"
	"xiaozhi/providers"
)

// packetLength is the length of a packet of [providers.Sound].
const packetLength = 60 * time.Millisecond

// TTS is a chain of voices.
type TTS struct {
	list[providers.TTS]
	paces []pace // of the members
}

// NewTTS makes a chain. It has no members of its own: at least one is needed.
func NewTTS(members []providers.TTS, o Options) (*TTS, error) {
	l, err := newList(members, o, "speak")
	if err != nil {
		return nil, err
	}
	return &TTS{list: l, paces: make([]pace, len(members))}, nil
}

// Capabilities returns what holds of the first member, which speaks unless it is in trouble.
func (t *TTS) Capabilities() providers.Capabilities { return providers.CapabilitiesOf(t.members[0]) }

// Synthesize streams the sound of the first member that gives any. When one is
// late the next is asked beside it, the first sound wins, and the requests of
// the others are closed. After the first sound there is no switch, but for a
// member that breaks off: the next then says the rest of the sentence. How far
// the sentence was is estimated from the length of the sound; the estimate is
// early, so that rather a word is said twice than not at all.
func (t *TTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		walk := t.walk()
		var dead []int // they have failed with this sentence
		for {
			s := &speech{req: req, yield: yield}
			r := newRace(walk, s.pass)
			r.ask = func(ctx context.Context, i int) iter.Seq2[providers.Sound, error] {
				return t.members[i].Synthesize(ctx, req)
			}
			r.weigh = func(_ int, sound providers.Sound) weight {
				if lengthOf(sound) > 0 {
					return answer
				}
				return nothing
			}
			r.name = func(sound *providers.Sound, who string) { sound.Provider = cmp.Or(sound.Provider, who) }
			r.empty = nil // of a sentence with nothing to say
			characters := utf8.RuneCountInString(req.Text)
			r.close = func(a *timeline.Attempt) { a.Characters = characters }
			err := r.run(ctx, nil)
			switch {
			case err == nil:
				if r.winner >= 0 && !s.left { // the sentence was said whole
					t.paces[r.winner].learn(s.req, s.passed)
				}
				return
			case ctx.Err() != nil || r.winner < 0:
				yield(providers.Sound{}, err)
				return
			}
			dead = append(dead, r.dead...)
			if walk = t.after(walk, r.winner, dead, err); len(walk.order) == 0 {
				yield(providers.Sound{}, err)
				return
			}
			if req.Text = t.paces[r.winner].rest(req, s.passed); req.Text == "" {
				return
			}
		}
	}
}

// after returns the walk for the rest of a sentence: those after the member that
// broke off, then those before it, without the dead.
func (t *TTS) after(walk *run[providers.TTS], broken int, dead []int, err error) *run[providers.TTS] {
	next := &run[providers.TTS]{list: walk.list, last: broken, errs: walk.errs}
	next.note(broken, err)
	n := len(t.members)
	for i := range n - 1 {
		if member := (broken + 1 + i) % n; !slices.Contains(dead, member) {
			next.order = append(next.order, member)
		}
	}
	return next
}

// speech passes on the sound of one race for a sentence.
type speech struct {
	req    providers.TTSRequest
	yield  func(providers.Sound, error) bool
	passed time.Duration // of sound
	left   bool          // the consumer has left the loop
}

// pass hands a piece of sound to the consumer.
func (s *speech) pass(sound providers.Sound, err error) bool {
	s.passed += lengthOf(sound)
	s.left = !s.yield(sound, err)
	return !s.left
}

// lengthOf returns the length of a piece of sound.
func lengthOf(sound providers.Sound) time.Duration {
	if len(sound.PCM) > 0 && sound.Rate > 0 {
		return time.Duration(len(sound.PCM)) * time.Second / time.Duration(sound.Rate)
	}
	return time.Duration(len(sound.Packets)) * packetLength
}

// What is known of speech before a voice was heard: a slow one, because an
// estimate that is early says a word twice, and one that is late swallows it.
const (
	slowUnit  = 280 * time.Millisecond // a Chinese syllable, or three or four letters
	leadIn    = 300 * time.Millisecond // of silence before the first word, and of doubt
	lookBack  = 6.0                    // units; a clause that begins no further back is said again from its beginning
	fewUnits  = 5.0                    // a shorter sentence tells nothing of the pace
	forgetful = 0.9                    // how much of a slow sentence is remembered after the next
)

// pace remembers the time that a voice takes for a unit of text, by language: that
// of the slowest recent sentence. Its methods may be called at the same time.
type pace struct {
	mu   sync.Mutex
	unit map[string]time.Duration
}

// learn takes in a sentence that was said whole.
func (p *pace) learn(req providers.TTSRequest, sound time.Duration) {
	n := units(req.Text)
	if n < fewUnits {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unit == nil {
		p.unit = map[string]time.Duration{}
	}
	one := time.Duration(float64(sound) / n)
	p.unit[req.Language] = max(one, time.Duration(forgetful*float64(p.unit[req.Language])+(1-forgetful)*float64(one)))
}

// rest returns the part of a sentence that is left after that much sound.
func (p *pace) rest(req providers.TTSRequest, sound time.Duration) string {
	p.mu.Lock()
	unit := p.unit[req.Language]
	p.mu.Unlock()
	if unit <= 0 {
		unit = slowUnit
	}
	return restOf(req.Text, float64(sound-leadIn)/float64(unit))
}

// restOf returns text without its first units: from the beginning of the clause that
// the estimate falls in, if that is near, else from the beginning of the word.
// It is "" if no word is left.
func restOf(text string, said float64) string {
	var sum, clauseSum float64
	clause, word := 0, 0
	inWord := false
	for i, r := range text {
		han, letter := isSign(r), unicode.IsLetter(r) || unicode.IsDigit(r)
		if letter && (!inWord || han) {
			word = i
		}
		n, pause := weighSign(text[i:], r)
		if letter && sum+n > said {
			if sum-clauseSum <= lookBack {
				word = clause
			}
			return strings.TrimSpace(text[word:])
		}
		inWord = !han && (letter || inWord && !pause && !unicode.IsSpace(r)) // as in "it's" and "3.5"
		sum += n
		if pause {
			clause, clauseSum = i+utf8.RuneLen(r), sum
		}
	}
	return ""
}

// units returns the length of a text as speech.
func units(text string) (sum float64) {
	for i, r := range text {
		n, _ := weighSign(text[i:], r)
		sum += n
	}
	return sum
}

// isSign reports whether r is written without spaces around words, and is a syllable.
func isSign(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }

// weighSign says how long the first sign of text, r, takes to be said, and
// whether it is a pause: a Chinese syllable, a digit and a pause are about as long
// as three or four letters.
func weighSign(text string, r rune) (n float64, pause bool) {
	switch {
	case isSign(r), unicode.Is(unicode.Hangul, r), unicode.IsDigit(r):
		return 1, false
	case unicode.IsLetter(r):
		return 0.3, false
	case strings.ContainsRune("，。、；：！？…\n", r),
		strings.ContainsRune(",.;:!?", r) && (len(text) == 1 || text[1] == ' '): // not as in "3.5"
		return 0.8, true
	}
	return 0, false
}
