package schema

import (
	"encoding/json"
	"errors"

	"xiaozhi/internal/text"
)

// Checker reads and checks the arguments of one tool as a router does, for callers
// that run tools without a router. It may be used at the same time.
type Checker struct{ schema *Schema }

// NewChecker compiles a tool's schema. The error says why it cannot be used.
func NewChecker(schema json.RawMessage) (*Checker, error) {
	if len(schema) == 0 {
		schema = json.RawMessage(Empty)
	}
	s, err := Compile(schema)
	if err != nil {
		return nil, err
	}
	return &Checker{s}, nil
}

// maxReason bounds the description of arguments that cannot be used, in bytes.
const maxReason = 1 << 10

// Read decodes arguments, repairs near misses and holds them against the
// schema. "" stands for {}. The error names the argument and what is wrong with it.
func (c *Checker) Read(given string) (map[string]any, error) {
	arguments, err := Decode(given)
	if err != nil {
		return nil, err
	}
	arguments, _ = c.schema.Coerce(arguments)
	if err := c.schema.Check(arguments); err != nil {
		return nil, errors.New(text.Shorten(err.Error(), maxReason)) // it quotes what is wrong, which may be long
	}
	return arguments, nil
}
