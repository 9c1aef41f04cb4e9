package history

import (
	_ "embed"
	"encoding/binary"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cl100k is the table of tokens: the number of lengths, how many tokens there are of
// each (four bytes), then the tokens of one byte, of two and so on, in the order of
// their bytes, each with its rank (three bytes). It is read where it lies in the program.
//
//go:embed cl100k.tokens
var cl100k string

const (
	rankBytes = 3
	noRank    = math.MaxUint32
	// longestPiece bounds the work, which grows with the square of a piece: no word is as long.
	longestPiece = 512
)

// Tokens returns the number of tokens of text by OpenAI's cl100k_base, which is near
// enough for every model we speak to (a budget, not a bill). It never is more than
// the bytes of text. It takes some 100 ns a byte and may be called at the same time.
func Tokens(text string) int {
	var c counter
	for text != "" {
		piece := nextPiece(text)
		text = text[len(piece):]
		for len(piece) > longestPiece {
			c.count(piece[:longestPiece])
			piece = piece[longestPiece:]
		}
		c.count(piece)
	}
	return c.total
}

// counter counts the tokens of pieces.
type counter struct {
	total int
	parts []part
}

// part is one token of a piece: where it begins, and the rank that it would have with the next.
type part struct {
	at   int
	rank uint32
}

// count joins the two neighbours that make the lowest rank, until no two make a token.
func (c *counter) count(piece string) {
	if rankOf(piece) != noRank {
		c.total++
		return
	}
	parts := c.parts[:0]
	for i := range len(piece) + 1 {
		parts = append(parts, part{i, noRank})
	}
	joined := func(i int) uint32 {
		if i+2 >= len(parts) {
			return noRank
		}
		return rankOf(piece[parts[i].at:parts[i+2].at])
	}
	for i := range parts {
		parts[i].rank = joined(i)
	}
	for {
		best := 0
		for i := range parts {
			if parts[i].rank < parts[best].rank {
				best = i
			}
		}
		if parts[best].rank == noRank {
			break
		}
		parts = append(parts[:best+1], parts[best+2:]...)
		parts[best].rank = joined(best)
		if best > 0 {
			parts[best-1].rank = joined(best - 1)
		}
	}
	c.total += len(parts) - 1
	c.parts = parts
}

// rankOf returns the rank of a token, noRank if there is no such token.
func rankOf(token string) uint32 {
	lengths, start := int(cl100k[0]), 0
	if len(token) > lengths {
		return noRank
	}
	number := func(length int) int { // how many there are of a length
		at := 1 + 4*(length-1)
		return int(binary.BigEndian.Uint32([]byte(cl100k[at : at+4])))
	}
	start = 1 + 4*lengths
	for length := 1; length < len(token); length++ {
		start += number(length) * (length + rankBytes)
	}
	size := len(token) + rankBytes
	low, high := 0, number(len(token))
	for low < high {
		middle := (low + high) / 2
		record := cl100k[start+middle*size:][:size]
		switch strings.Compare(record[:len(token)], token) {
		case 0:
			rank := record[len(token):]
			return uint32(rank[0])<<16 | uint32(rank[1])<<8 | uint32(rank[2])
		case -1:
			low = middle + 1
		default:
			high = middle
		}
	}
	return noRank
}

// nextPiece returns the beginning of text, which is not empty, that is split into tokens by itself. It is the
// first that fits of
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func nextPiece(text string) string {
	if n := shortForm(text); n > 0 {
		return text[:n]
	}
	first, size := utf8.DecodeRuneInString(text)
	switch {
	case unicode.IsLetter(first):
		return text[:span(text, unicode.IsLetter)]
	case unicode.IsNumber(first):
		return text[:threeNumbers(text)]
	}
	if n := span(text[size:], unicode.IsLetter); n > 0 && !isEnd(first) {
		return text[:size+n]
	}
	skip := 0
	if first == ' ' {
		skip = 1
	}
	if n := span(text[skip:], isSign); n > 0 {
		return text[:skip+n+span(text[skip+n:], isEnd)]
	}
	space := span(text, unicode.IsSpace)
	if end := strings.LastIndexAny(text[:space], "\r\n"); end >= 0 {
		return text[:end+1]
	}
	if space < len(text) { // the last space belongs to what follows, if there are others
		if _, last := utf8.DecodeLastRuneInString(text[:space]); last < space {
			space -= last
		}
	}
	return text[:space]
}

// shortForm returns the length of an English short form ("'ve") at the beginning of text, or 0.
func shortForm(text string) int {
	for _, form := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if len(text) >= len(form) && strings.EqualFold(text[:len(form)], form) {
			return len(form)
		}
	}
	return 0
}

// threeNumbers returns the length of up to three digits at the beginning of text.
func threeNumbers(text string) int {
	n := 0
	for range 3 {
		r, size := utf8.DecodeRuneInString(text[n:])
		if !unicode.IsNumber(r) {
			break
		}
		n += size
	}
	return n
}

// span returns the length of the beginning of text in which all characters are of a class.
func span(text string, class func(rune) bool) int {
	for i, r := range text {
		if !class(r) {
			return i
		}
	}
	return len(text)
}

// isEnd reports whether a character ends a line.
func isEnd(r rune) bool { return r == '\r' || r == '\n' }

// isSign reports whether a character is neither white space nor in a word or number.
func isSign(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
