package iot

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// iotCommand is one command in the form that a device takes (docs/protocol.md 6). Older
// firmware reads its members without looking: a missing or mistyped one crashes it.
type iotCommand struct {
	Name       string         `json:"name"`
	Method     string         `json:"method"`
	Parameters map[string]any `json:"parameters"` // never nil
}

// encodeCommand holds arguments against the descriptor and makes a commands array of one.
// The parameters are as they are sent. The error is for the model: it names the parameter and what is wrong with it.
func encodeCommand(thing string, m *method, arguments map[string]any) (commands json.RawMessage, parameters map[string]any, err error) {
	if parameters, err = m.check(arguments); err != nil {
		return nil, nil, err
	}
	if commands, err = rawjson.Marshal([]iotCommand{{thing, m.name, parameters}}); err != nil {
		return nil, nil, fmt.Errorf("encode command: %w", err)
	}
	if len(commands) > mcp.MaxSend {
		return nil, nil, fmt.Errorf("the command of %d bytes is over the limit of %d: shorten its text", len(commands), mcp.MaxSend)
	}
	return commands, parameters, nil
}

// check gives the parameters exactly as declared: all of them, no others, each of its type.
func (m *method) check(arguments map[string]any) (map[string]any, error) {
	parameters := make(map[string]any, len(m.parameters))
	for _, p := range m.parameters {
		value, ok := arguments[p.name]
		if !ok {
			return nil, fmt.Errorf("parameter %q is missing", p.name)
		}
		value, err := p.check(value)
		if err != nil {
			return nil, fmt.Errorf("parameter %q %w", p.name, err)
		}
		parameters[p.name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if _, ok := parameters[name]; !ok {
			return nil, fmt.Errorf("the method has no parameter %.64q", name)
		}
	}
	return parameters, nil
}

// check gives the value in the one type that the device can read.
func (v value) check(value any) (any, error) {
	switch v.kind {
	case "boolean":
		if b, ok := value.(bool); ok {
			return b, nil
		}
		return nil, errors.New("must be true or false")
	case "integer":
		return wholeNumber(value)
	default:
		text, ok := value.(string)
		if !ok {
			return nil, errors.New("must be a string")
		}
		if strings.ContainsRune(text, 0) {
			return nil, errors.New("must not hold a zero byte")
		}
		return text, nil
	}
}

// wholeNumber takes what the device's 32 bits can hold, without a fraction.
func wholeNumber(value any) (int64, error) {
	var f float64
	switch v := value.(type) {
	case int:
		f = float64(v)
	case int64:
		f = float64(v)
	case float64:
		f = v
	default:
		return 0, errors.New("must be a whole number")
	}
	if f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
		return 0, errors.New("must be a whole number of 32 bits")
	}
	return int64(f), nil
}
