package sherpaserver

import (
	"encoding/binary"
	"math"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers/transport"
)

// Texts of both servers.
const (
	done = "Done"  // ours: the sound is over
	bye  = "Done!" // that of the streaming server: so are the words
)

// floats appends samples as 32 bit floating point numbers from -1 to 1, little endian.
func floats(to []byte, pcm []int16) []byte {
	for _, v := range pcm {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(v)/32768))
	}
	return to
}

// utterance is a whole utterance for the offline server: rate, length, samples.
func utterance(pcm []int16, rate int) []byte {
	out := make([]byte, 0, 8+4*len(pcm))
	out = binary.LittleEndian.AppendUint32(out, uint32(rate))
	out = binary.LittleEndian.AppendUint32(out, uint32(4*len(pcm)))
	return floats(out, pcm)
}

// result is an answer of either server.
type result struct {
	Text    string        `json:"text"`
	Segment transport.Int `json:"segment"`
	Final   bool          `json:"is_final"` // the server has heard an end; the next answer is of another segment
	EOF     bool          `json:"is_eof"`   // it is the last answer
	Lang    string        `json:"lang"`     // of SenseVoice, as <|zh|>
}

// parse reads an answer. The servers write control characters into texts as they are.
func parse(message []byte) (result, error) {
	clean := make([]byte, len(message))
	for i, b := range message {
		if clean[i] = b; b < ' ' {
			clean[i] = ' '
		}
	}
	var r result
	if err := transport.Decode(clean, &r); err != nil {
		return r, err
	}
	r.Text = strings.Join(strings.Fields(r.Text), " ")
	r.Lang = string(text.TagOf(strings.Trim(r.Lang, "<|>")))
	return r, nil
}

// segments joins the texts of the segments of an utterance: each answer holds the whole
// text of its segment so far.
type segments struct {
	before string // of those that have ended
	last   result
}

// add takes an answer and returns the text of all segments.
func (s *segments) add(r result) string {
	if r.Segment != s.last.Segment || s.last.Final {
		s.before = text.Join(s.before, s.last.Text)
	}
	s.last = r
	return text.Join(s.before, r.Text)
}
