package reader

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// decode returns bytes as text, whatever encoding they are in. The error is [Binary] or [Encoding].
func decode(data []byte) (string, error) {
	e := marked(data)
	if e == nil {
		if s := wholeRunes(data); utf8.Valid(s) && !binary(s) {
			return string(s), nil
		}
		e = wide(data)
	}
	if e == nil {
		if binary(data) {
			return "", fault(Binary, nil)
		}
		e = guess(data)
	}
	if e == nil {
		return "", fault(Encoding, nil)
	}
	return decodeAs(data, e)
}

// decodeAs returns bytes of an encoding as text, unless that gives too much that is none.
func decodeAs(data []byte, e encoding.Encoding) (string, error) {
	all, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return "", fault(Encoding, err)
	}
	s := string(all)
	if bad := strings.Count(s, "\uFFFD"); bad > 2 && bad*100 > utf8.RuneCountInString(s) {
		return "", fault(Encoding, nil)
	}
	if binary(all) {
		return "", fault(Binary, nil)
	}
	return s, nil
}

// marked returns the encoding that a byte order mark tells; nil: there is none.
func marked(data []byte) encoding.Encoding {
	switch {
	case bytes.HasPrefix(data, []byte("\xEF\xBB\xBF")):
		return unicode.UTF8BOM
	case bytes.HasPrefix(data, []byte("\xFF\xFE\x00\x00")):
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	case bytes.HasPrefix(data, []byte("\x00\x00\xFE\xFF")):
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case bytes.HasPrefix(data, []byte("\xFF\xFE")), bytes.HasPrefix(data, []byte("\xFE\xFF")):
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	}
	return nil
}

// wholeRunes drops the last sign if it was cut.
func wholeRunes(data []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax-1, len(data)); i++ {
		if tail := data[len(data)-i:]; utf8.RuneStart(tail[0]) && !utf8.FullRune(tail) {
			return data[:len(data)-i]
		}
	}
	return data
}

// binary reports whether bytes have what no text has: zeros, or many control characters.
func binary(data []byte) bool {
	odd := 0
	for _, b := range data {
		switch {
		case b == 0:
			return true
		case b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != '\x1B' && b != '\v' && b != '\b':
			odd++
		}
	}
	return odd*100 > len(data)
}

// wide returns the encoding of two bytes for each sign in which text has no mark; nil: it is in none. It has zeros, for line
// ends, spaces and digits, and in the right order nearly all of its signs are of scripts that people write.
func wide(data []byte) encoding.Encoding {
	data = data[:len(data)&^1]
	if len(data) < 4 || bytes.IndexByte(data, 0) < 0 {
		return nil
	}
	var usual [2]int // signs, with the low or the high byte first
	for i := 0; i < len(data); i += 2 {
		for order := range 2 {
			if written(rune(data[i+order]) | rune(data[i+1-order])<<8) {
				usual[order]++
			}
		}
	}
	n := len(data) / 2
	switch {
	case usual[0]*100 >= n*97 && usual[0] > usual[1]:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case usual[1]*100 >= n*97 && usual[1] > usual[0]:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	return nil
}

// written reports whether a sign is of a usual script, punctuation or a line end.
func written(r rune) bool {
	switch {
	case r == '\n', r == '\r', r == '\t', r >= ' ' && r <= '~', r >= 0xA0 && r <= 0x52F, r >= 0x2010 && r <= 0x2027, r >= 0x3000 && r <= 0x30FF,
		r >= 0x4E00 && r <= 0x9FFF, r >= 0xAC00 && r <= 0xD7A3, r >= 0xFF01 && r <= 0xFFE6:
		return true
	}
	return false
}

// guess returns the encoding of a text that is not Unicode; nil: it cannot be told. Each of the encodings of Chinese and
// Japanese has its usual signs in a part of its table, which few pairs of bytes of the others hit.
func guess(data []byte) encoding.Encoding {
	var high int
	for _, b := range data {
		if b >= 0x80 {
			high++
		}
	}
	type candidate struct {
		encoding.Encoding
		lead, trail, usual func(b byte) bool // of a pair
		trailUsual         func(b byte) bool
	}
	in := func(ranges ...byte) func(byte) bool {
		return func(b byte) bool {
			for i := 0; i < len(ranges); i += 2 {
				if ranges[i] <= b && b <= ranges[i+1] {
					return true
				}
			}
			return false
		}
	}
	best, most := encoding.Encoding(nil), 0.0
	for _, c := range []candidate{
		{simplifiedchinese.GB18030, in(0x81, 0xFE), in(0x30, 0x39, 0x40, 0xFE), in(0xA1, 0xA3, 0xB0, 0xD7), in(0xA1, 0xFE)},
		{traditionalchinese.Big5, in(0x81, 0xFE), in(0x40, 0x7E, 0xA1, 0xFE), in(0xA1, 0xA1, 0xA4, 0xC6), in(0x40, 0x7E, 0xA1, 0xFE)},
		{japanese.ShiftJIS, in(0x81, 0x9F, 0xE0, 0xFC), in(0x40, 0x7E, 0x80, 0xFC), in(0x81, 0x83, 0x88, 0x97), in(0x40, 0x7E, 0x80, 0xFC)},
	} {
		pairs, usual, wrong := 0, 0, 0
		for i := 0; i < len(data); i++ {
			switch b := data[i]; {
			case b < 0x80:
			case !c.lead(b):
				wrong++
			case i+1 == len(data): // cut
			case !c.trail(data[i+1]):
				wrong++
			default:
				pairs++
				if c.usual(b) && c.trailUsual(data[i+1]) {
					usual++
				}
				i++
			}
		}
		if pairs == 0 || wrong*50 > pairs {
			continue
		}
		score := float64(usual) / float64(pairs+wrong)
		if c.Encoding == traditionalchinese.Big5 { // whose usual part holds more pairs: of the same text the other counts
			score *= 0.9
		}
		if score > most {
			best, most = c.Encoding, score
		}
	}
	if most >= 0.6 {
		return best
	}
	if high*4 <= len(data) { // letters with accents among others
		return charmap.Windows1252
	}
	return nil
}
