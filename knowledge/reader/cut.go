package reader

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

// Sizes of pieces, in bytes: a Chinese character has three.
const (
	fullPiece  = 1200 // a paragraph that follows begins another one
	maxPiece   = 1800 // longer paragraphs are cut
	maxHeading = 160
	maxLevels  = 6
)

// slicer cuts a text into pieces as it is read: between paragraphs, long ones between sentences.
type slicer struct {
	title    string
	pieces   []Piece
	headings [maxLevels]string
	page     int
	chars    int  // of the text that was taken
	bytes    int  // of it
	cut      bool // no more is taken
	lacks    bool // something is left out

	now     strings.Builder // of the piece that is being made
	begin   int             // characters before it
	heading string
	bare    string // the last heading, while nothing stands under it; "": something does
	level   int    // of the last heading
}

// full reports whether no more is taken.
func (c *slicer) full() bool { return c.cut }

// setPage says that what follows stands on a page.
func (c *slicer) setPage(n int) {
	c.flush()
	c.page = n
}

// setHeading says under which heading what follows stands, from level 1 on.
func (c *slicer) setHeading(level int, words string) {
	words = strings.Join(strings.Fields(clean(words)), " ")
	if words == "" || c.cut {
		return
	}
	level = min(max(level, 1), maxLevels) - 1
	if level <= c.level {
		c.keepBare()
	}
	c.flush()
	whole := words
	words = text.Cut(words, maxHeading/2)
	c.headings[level] = words
	clear(c.headings[level+1:])
	var path []string
	for _, h := range c.headings {
		if h != "" {
			path = append(path, h)
		}
	}
	for len(path) > 1 && len(strings.Join(path, " > ")) > maxHeading {
		path = path[1:]
	}
	c.heading = strings.Join(path, " > ")
	if c.bare, c.level = words, level; whole != words { // it is a paragraph that looks like a heading
		c.add(whole)
		return
	}
	c.chars += utf8.RuneCountInString(words) + 1
}

// keepBare takes the last heading as text if nothing stands under it: some people write whole pages in headings.
func (c *slicer) keepBare() {
	if words := c.bare; words != "" {
		c.chars -= utf8.RuneCountInString(words) + 1
		c.add(words)
	}
}

// add takes a paragraph, which may have lines.
func (c *slicer) add(paragraph string) {
	paragraph = strings.TrimSpace(clean(paragraph))
	if paragraph == "" || c.cut {
		return
	}
	if room := MaxText - c.bytes; len(paragraph) > room {
		paragraph, c.cut = text.Cut(paragraph, room), true
	}
	c.bytes, c.bare = c.bytes+len(paragraph), ""
	for paragraph != "" {
		part := paragraph
		if len(part) > maxPiece {
			part = paragraph[:sentenceEnd(paragraph, maxPiece)]
		}
		if c.now.Len() > 0 && c.now.Len()+len(part) > fullPiece {
			c.flush()
		}
		if c.now.Len() == 0 {
			c.begin = c.chars
		} else {
			c.now.WriteByte('\n')
		}
		c.now.WriteString(strings.TrimSpace(part))
		c.chars += utf8.RuneCountInString(part)
		paragraph = paragraph[len(part):]
	}
	c.chars++ // the end of the line
}

// sentenceEnd returns where a text is cut that has more than most bytes: after the last sentence that fits, else after a
// space, else between two signs.
func sentenceEnd(s string, most int) int {
	sentence, space, sign := 0, 0, 0
	for at, r := range s {
		next := at + utf8.RuneLen(r) // of text that is clean
		if next > most {
			break
		}
		sign = next
		switch {
		case r == '\n', strings.ContainsRune(".!?;。！？；", r):
			sentence = next
		case unicode.IsSpace(r):
			space = next
		}
	}
	switch {
	case sentence > most/3:
		return sentence
	case space > most/3:
		return space
	}
	return sign
}

// flush ends the piece that is being made.
func (c *slicer) flush() {
	if s := strings.TrimSpace(c.now.String()); s != "" {
		c.pieces = append(c.pieces, Piece{Text: s, Heading: c.heading, Page: c.page, At: c.begin})
	}
	c.now.Reset()
}

// finish returns what was taken.
func (c *slicer) finish() (title string, pieces []Piece, chars int, cut bool) {
	c.keepBare()
	c.flush()
	return text.Cut(strings.Join(strings.Fields(clean(c.title)), " "), maxTitle), c.pieces, c.chars, c.cut || c.lacks
}
