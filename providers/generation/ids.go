package generation

import (
	"crypto/rand"
	"encoding/json"
	"hash/fnv"
	"strings"
)

// maxID is the longest id of a call that every service takes.
const maxID = 40

// maxLoose is the longest one where points are taken: it holds the name of a function.
const maxLoose = 96

// IDs gives the calls of one request ids that a service takes, the same to a call and to
// its result. The ids that come with a dialogue may be another service's.
type IDs struct {
	Short bool // nine letters and digits, no more and no less
	Loose bool // points and colons are taken, too: models that count their calls in their ids want those back

	given map[string]string
	used  map[string]bool
}

// Of returns the id for a call; "" for "".
func (s *IDs) Of(id string) string {
	if id == "" {
		return ""
	}
	if out, ok := s.given[id]; ok {
		return out
	}
	if s.given == nil {
		s.given, s.used = map[string]string{}, map[string]bool{}
	}
	out := id
	for n := 0; !s.fits(out) || s.used[out]; n++ {
		out = s.made(id + strings.Repeat("+", n))
	}
	s.given[id], s.used[out] = out, true
	return out
}

func (s *IDs) fits(id string) bool {
	if s.Short && len(id) != shortID || len(id) > maxID && !s.Loose || len(id) > maxLoose {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		alphanumeric := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !alphanumeric && (s.Short || r != '_' && r != '-' && (!s.Loose || r != '.' && r != ':'))
	})
}

const shortID = 9

// made makes an id from a text.
func (s *IDs) made(id string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // it never fails
	const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	out := make([]byte, shortID)
	for i, sum := 0, h.Sum64(); i < len(out); i++ {
		out[i], sum = digits[sum%uint64(len(digits))], sum/uint64(len(digits))
	}
	if s.Short {
		return string(out)
	}
	return "call_" + string(out)
}

// NewID returns an id for a call of a service that gives none.
func NewID() string { return "call_" + rand.Text()[:16] }

// Object returns arguments as an object of JSON; an empty one if they are none.
func Object(arguments string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(arguments)
}
