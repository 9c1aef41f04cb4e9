package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"xiaozhi/mcp/rawjson"
)

// coerce repairs near misses of a model where there is only one thing that can
// be meant: "55" and 55.0 for 55, "true" for true, 5 for "5", null for an
// optional argument that is left out. Arguments that the schema does not know
// are dropped unless it speaks of them. It returns a new map and what it dropped.
// Whatever it cannot repair stays for the check to find.
func (s *Schema) coerce(arguments map[string]any) (out map[string]any, dropped []string) {
	out = maps.Clone(arguments)
	for name, value := range arguments {
		property, known := s.root.Properties[name]
		switch {
		case !known && s.closed():
			delete(out, name)
			dropped = append(dropped, name)
		case value == nil && property != nil && !slices.Contains(s.root.Required, name) && !allows(property, "null"):
			delete(out, name)
		default:
			out[name] = coerceValue(property, value)
		}
	}
	slices.Sort(dropped)
	return out, dropped
}

// closed reports whether the schema's properties are all there is: it names
// some, and no keyword speaks of others.
func (s *Schema) closed() bool {
	r := s.root
	return len(r.Properties) > 0 && r.AdditionalProperties == nil && r.PatternProperties == nil &&
		r.UnevaluatedProperties == nil && r.Ref == "" && r.AllOf == nil && r.AnyOf == nil && r.OneOf == nil &&
		r.If == nil && r.DependentSchemas == nil
}

// allows reports whether the schema says nothing about types or names this one.
func allows(s *jsonschema.Schema, kind string) bool {
	return s.Type == "" && s.Types == nil || declares(s, kind)
}

// declares reports whether the schema names the type.
func declares(s *jsonschema.Schema, kind string) bool {
	return s.Type == kind || slices.Contains(s.Types, kind)
}

// coerceValue repairs one value, and all in it. Without a schema it only makes
// an int64 of every whole number that fits, and a float64 of the others.
func coerceValue(s *jsonschema.Schema, value any) any {
	if s == nil {
		s = &jsonschema.Schema{}
	}
	switch v := value.(type) {
	case json.Number:
		if !allows(s, "integer") && !allows(s, "number") && declares(s, "string") {
			return v.String()
		}
		return rawjson.Number(v)
	case string:
		return coerceString(s, v)
	case bool:
		if !allows(s, "boolean") && declares(s, "string") {
			return strconv.FormatBool(v)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = coerceValue(s.Properties[name], member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = coerceValue(s.Items, item)
		}
		return out
	}
	return value
}

func coerceString(s *jsonschema.Schema, text string) any {
	if allows(s, "string") {
		return text
	}
	word := strings.TrimSpace(text)
	if declares(s, "boolean") && (strings.EqualFold(word, "true") || strings.EqualFold(word, "false")) {
		return strings.EqualFold(word, "true")
	}
	if declares(s, "integer") || declares(s, "number") {
		if n, ok := numberIn(word); ok {
			return n
		}
	}
	return text
}

// numberIn reads a decimal number; a fraction stays one, for the check to refuse.
func numberIn(word string) (any, bool) {
	if strings.ContainsAny(word, "xXpP_iInN") { // hexadecimal, infinities and the like
		return nil, false
	}
	if _, err := strconv.ParseFloat(word, 64); err != nil {
		return nil, false
	}
	return rawjson.Number(json.Number(word)), true
}

// decode reads what a model gave as arguments: an object, nothing or
// null (no arguments), or an object inside a JSON string.
func decode(text string) (map[string]any, error) {
	if len(text) > MaxSize {
		return nil, fmt.Errorf("arguments of %d bytes are over the limit of %d", len(text), MaxSize)
	}
	if text = strings.TrimSpace(text); text == "" {
		return map[string]any{}, nil
	}
	if err := rawjson.CheckSize([]byte(text)); err != nil {
		return nil, fmt.Errorf("arguments are %w", err)
	}
	var inner string
	if text[0] == '"' && json.Unmarshal([]byte(text), &inner) == nil && strings.HasPrefix(strings.TrimSpace(inner), "{") {
		text = inner
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var arguments map[string]any
	if err := decoder.Decode(&arguments); err != nil {
		return nil, fmt.Errorf("arguments are no JSON object: %w", err)
	}
	if decoder.More() {
		return nil, fmt.Errorf("arguments are more than one JSON object")
	}
	if arguments == nil {
		arguments = map[string]any{}
	}
	return arguments, nil
}
