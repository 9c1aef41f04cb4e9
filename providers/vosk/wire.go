package vosk

import (
	"strings"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/providers/transport"
)

// farewell ends an utterance. The server compares it byte by byte, blanks included.
const farewell = `{"eof" : 1}`

// greeting is the first message: without it the server takes the sound for 8 kHz.
type greeting struct {
	Config struct {
		Rate  int  `json:"sample_rate"`
		Words bool `json:"words"`
	} `json:"config"`
}

// answer is a message of the server: of a text that still grows, or of one that has ended.
type answer struct {
	Partial *string `json:"partial"`
	Text    *string `json:"text"`
	// Alternatives stand in place of the text where the server was told to give several.
	Alternatives []struct {
		Text string `json:"text"`
	} `json:"alternatives"`
}

// parse reads an answer. ended says that the words are final.
func parse(message []byte) (words string, ended bool, err error) {
	var a answer
	if err := transport.Decode(message, &a); err != nil {
		return "", false, err
	}
	switch {
	case a.Text != nil:
		return together(*a.Text), true, nil
	case len(a.Alternatives) > 0:
		return together(a.Alternatives[0].Text), true, nil
	case a.Partial != nil:
		return together(*a.Partial), false, nil
	}
	return "", false, nil // something that later versions say
}

// together takes away the blanks between Chinese words.
func together(s string) string {
	out := ""
	for word := range strings.FieldsSeq(s) {
		last, _ := utf8.DecodeLastRuneInString(out)
		if first, _ := utf8.DecodeRuneInString(word); out != "" && (!text.IsCJK(last) || !text.IsCJK(first)) {
			out += " "
		}
		out += word
	}
	return out
}
