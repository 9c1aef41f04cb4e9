package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Decode reads a message of JSON into the struct that v points to. A member of another type
// than was expected counts as not there: services change what does not concern us. What is no
// object of JSON is an error.
func Decode(message []byte, v any) error {
	err := json.Unmarshal(message, v)
	if odd, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && odd.Field != "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("a message is not the JSON expected: %w", err)
	}
	return nil
}

// Int is a whole number that a service may write as a text too. Anything else counts as 0.
type Int int64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Int) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `" `), 64)
	if err == nil && math.Abs(v) < 1<<53 {
		*n = Int(v)
	}
	return nil
}

// Code is the vendor's code of a failure: a text, which a service may write as a number too.
type Code string

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Code) UnmarshalJSON(b []byte) error {
	var plain string
	switch {
	case json.Unmarshal(b, &plain) == nil: // null is ""
	case len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		plain = string(b)
	}
	*c = Code(plain)
	return nil
}
