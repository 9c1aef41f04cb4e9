package generation

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
)

// maxID is the longest id of a call that every service takes.
const maxID = 40

// IDs gives the calls of one request ids that a service takes, the same to a call and to
// its result. The ids that come with a dialogue may be another service's.
type IDs struct {
	Short bool // nine letters and digits, no more and no less

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
	if s.Short && len(id) != shortID || len(id) > maxID {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		alphanumeric := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !alphanumeric && (s.Short || r != '_' && r != '-')
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

// Without returns a schema without keys that a service refuses, wherever they stand
// beside a type. A schema that has none of them, or is no JSON, is returned as it is.
func Without(schema json.RawMessage, keys ...string) json.RawMessage {
	if !slices.ContainsFunc(keys, func(key string) bool { return bytes.Contains(schema, []byte(`"`+key+`"`)) }) {
		return schema
	}
	var v any
	if json.Unmarshal(schema, &v) != nil {
		return schema
	}
	strip(v, keys, false)
	out, err := json.Marshal(v)
	if err != nil {
		return schema
	}
	return out
}

// strip takes the keys out of a schema. names: the keys of v are names of properties.
func strip(v any, keys []string, names bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if !names && slices.Contains(keys, key) {
				delete(v, key)
				continue
			}
			strip(value, keys, !names && (key == "properties" || key == "$defs"))
		}
	case []any:
		for _, value := range v {
			strip(value, keys, false)
		}
	}
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
