// Package sentence cuts a model's text into segments that can be spoken one by
// one, and cleans each of what must not be read aloud.
package sentence

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// The weights of a splitter: the length of a piece of text as speech. One CJK
// character is about as long as three Latin letters.
const (
	weightCJK    = 10
	weightOther  = 3
	firstClause  = 4 * weightCJK  // the first segment may end at a comma from here
	overdue      = 125            // the first segment ends at any mark before this: 12 CJK characters and a mark
	laterMinimum = 8 * weightCJK  // later sentences are merged up to here
	longQuote    = 30 * weightCJK // a quote or bracket that is longer is cut at its full stops
	forcedCut    = 60 * weightCJK // 60 CJK characters or 200 Latin letters
	tagLimit     = 64             // runes; a longer "<…" is no tag
)

// Splitter cuts a stream of text into segments that can be spoken one by one: the first as early
// as it makes sense, later ones at full stops. Joined they are the text without the white space
// around the cuts. Its zero value is ready, for Chinese and English. It is for one goroutine.
type Splitter struct {
	Lang  text.Lang      // in which the text is probably written
	Words *prompts.Words // with the abbreviations of a language that is neither of the two; nil: none are known

	buf  []rune
	some bool // a segment has been cut
}

// Feed adds text and returns the segments that it completes.
func (s *Splitter) Feed(words string) []string {
	s.buf = append(s.buf, []rune(words)...)
	return s.drain(false)
}

// Flush returns what is left, as one or more segments.
func (s *Splitter) Flush() []string {
	return s.drain(true)
}

func (s *Splitter) drain(final bool) []string {
	var out []string
	for {
		n := s.cut(final)
		if n <= 0 {
			return out
		}
		seg := strings.TrimSpace(string(s.buf[:n]))
		s.buf = append(s.buf[:0], s.buf[n:]...)
		if seg != "" {
			out = append(out, seg)
			s.some = s.some || strings.ContainsFunc(seg, text.IsWord)
		}
	}
}

// cut finds where the first segment of the buffer ends, or 0 when it must wait for more text.
func (s *Splitter) cut(final bool) int {
	sc := scan{buf: s.buf, first: !s.some, final: final, spelling: spelling{s.Lang, s.Words}}
	for i := 0; i < len(s.buf); i++ {
		if n := sc.step(i); n > 0 {
			return n
		}
		if sc.first && sc.mark > 0 && sc.weight > overdue {
			return sc.mark
		}
		if sc.weight >= forcedCut {
			return sc.forced(i)
		}
	}
	if final {
		return len(s.buf)
	}
	return 0
}

// scan walks over one segment.
type scan struct {
	spelling
	buf    []rune
	first  bool
	final  bool
	weight int
	open   []rune // closing marks that are awaited
	tag    int    // 1 + index of an open '<', 0 for none
	pause  int    // last place after a mark or a space
	mark   int    // last place after a mark, with words before it
	words  bool   // there is something to say
}

// step looks at rune i and returns the length of the segment if it ends there.
func (c *scan) step(i int) int {
	r := c.buf[i]
	if c.inTag(i, r) {
		return 0
	}
	if text.IsCJK(r) {
		c.weight += weightCJK
	} else if !unicode.IsSpace(r) {
		c.weight += weightOther
	}
	c.words = c.words || text.IsWord(r)
	closed := c.quote(i, r)
	switch {
	case r == '\n':
		if len(c.open) == 0 || c.weight > laterMinimum {
			return c.accept(i+1, true)
		}
	case closed && i > 0 && isStop(c.buf[i-1]) && len(c.open) == 0:
		return c.accept(c.extend(i+1), true)
	case isStop(r) && c.ends(i):
		if len(c.open) == 0 || c.weight > longQuote {
			return c.accept(c.extend(i+1), true)
		}
		c.pausedAt(i + 1)
	case isPause(r) && c.ends(i):
		c.pausedAt(i + 1)
		if len(c.open) == 0 {
			return c.accept(i+1, false)
		}
	case unicode.IsSpace(r):
		c.pause = i + 1
	}
	return 0
}

// pausedAt notes a mark that ends before n.
func (c *scan) pausedAt(n int) {
	c.pause = n
	if c.words {
		c.mark = n
	}
}

// inTag keeps cuts out of <tags>.
func (c *scan) inTag(i int, r rune) bool {
	if c.tag == 0 {
		if r == '<' && i+1 < len(c.buf) && (unicode.IsLetter(c.buf[i+1]) || c.buf[i+1] == '/') {
			c.tag = i + 1
			return true
		}
		return false
	}
	if r == '>' || i-c.tag > tagLimit {
		c.tag = 0
	}
	return true
}

// quote follows quotes and brackets, and reports whether the rune r at i closed
// one. Inches (5") and faces made of signs open none.
func (c *scan) quote(i int, r rune) bool {
	if n := len(c.open); n > 0 && c.open[n-1] == r {
		c.open = c.open[:n-1]
		return true
	}
	if i > 0 && ((r == '"' && unicode.IsDigit(c.buf[i-1])) || (r == '(' && strings.ContainsRune(":;=-", c.buf[i-1]))) {
		return false
	}
	if want, ok := c.closer(r); ok && len(c.open) < 4 {
		c.open = append(c.open, want)
	}
	return false
}

// accept decides whether a segment of n runes is long enough to stand alone.
func (c *scan) accept(n int, stop bool) int {
	switch {
	case c.weight == 0:
		return 0
	case stop && (c.first || c.weight >= laterMinimum):
		return n
	case !stop && c.first && c.weight >= firstClause:
		return n
	}
	return 0
}

// extend takes in further stops and closing marks that follow a stop.
func (c *scan) extend(n int) int {
	for n < len(c.buf) && (isStop(c.buf[n]) || isCloser(c.buf[n])) {
		n++
	}
	return n
}

// ends reports whether the mark at i ends something there: CJK marks do, but
// within a number (12：30) or a dash (——), Latin ones only before a space (so
// that 3.14, 1,000 and URLs stay whole) and never in an abbreviation.
func (c *scan) ends(i int) bool {
	r := c.buf[i]
	if r > 0x7f {
		number := isPause(r) && i > 0 && unicode.IsDigit(c.buf[i-1])
		switch {
		case !number && r != '—':
			return true
		case i+1 == len(c.buf):
			return c.final
		case r == '—':
			return c.buf[i+1] != '—'
		}
		return !unicode.IsDigit(c.buf[i+1])
	}
	if i+1 == len(c.buf) {
		if !c.final {
			return false
		}
	} else if next := c.buf[i+1]; !unicode.IsSpace(next) && !text.IsCJK(next) && !isCloser(next) && !isStop(next) && next != '¿' && next != '¡' {
		return false
	}
	return r != '.' || !c.abbreviation(i)
}

// abbreviation reports whether the dot at i belongs to a shortened word, an
// initial or the number of a list item.
func (c *scan) abbreviation(i int) bool {
	from := i
	for from > 0 && (unicode.IsLetter(c.buf[from-1]) || unicode.IsDigit(c.buf[from-1]) || c.buf[from-1] == '.') && !text.IsCJK(c.buf[from-1]) {
		from--
	}
	word := string(c.buf[from:i])
	if first, size := utf8.DecodeRuneInString(word); size > 0 && size == len(word) && unicode.IsUpper(first) && word != "I" {
		return true
	}
	if c.shortened(strings.ToLower(word)) {
		return true
	}
	if word == "" || strings.Trim(word, "0123456789") != "" || len(word) > 2 {
		return false
	}
	return from == 0 || strings.TrimSpace(string(c.buf[:from])) == "" || c.buf[from-1] == '\n'
}

// forced returns the best place to cut a segment that has become too long at i.
func (c *scan) forced(i int) int {
	if c.pause > 0 {
		return c.pause
	}
	n := i + 1
	for n > 1 && glued(c.buf[n-1], c.buf, n) {
		n--
	}
	if n <= 1 {
		n = i + 1
	}
	return n
}

// glued reports whether a cut before index n would split a number, a word or an emoji cluster.
func glued(before rune, buf []rune, n int) bool {
	if n >= len(buf) {
		return !text.IsCJK(before)
	}
	after := buf[n]
	if unicode.Is(unicode.M, after) || after == 0x200d || before == 0x200d || after == 0xfe0f || (after >= 0x1f3fb && after <= 0x1f3ff) {
		return true
	}
	word := func(r rune) bool {
		return !text.IsCJK(r) && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '.' || r == ',')
	}
	return word(before) && word(after)
}

func isStop(r rune) bool   { return strings.ContainsRune("。！？；…!?;.", r) }
func isPause(r rune) bool  { return strings.ContainsRune("，、：,:—", r) }
func isCloser(r rune) bool { return strings.ContainsRune("”’」』）)】》]\"»›", r) }
