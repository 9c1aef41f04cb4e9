// Package schema holds the arguments of a tool against its JSON Schema. It decodes them, repairs
// near misses of a model, and words what is wrong for a model to correct.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/mcp/rawjson"
)

// Empty stands where a tool gives no schema, or no usable one.
const Empty = `{"type":"object"}`

// Limits on a schema.
const (
	MaxSize = 64 << 10 // bytes of a schema that is used for checking
	maxCost = 1000     // subschemas that one value may be held against

	keptSchemas = 512
	keptBytes   = 256 << 10 // of schemas as they came; compiled they are some times larger
)

// compiled keeps schemas by what they were compiled from: each conversation offers the same tools again. Nothing changes a Schema.
var compiled = lru.New[string, *Schema](keptSchemas, keptBytes)

// Schema checks and repairs a tool's arguments.
type Schema struct {
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// Compile reads a schema; none stands for [Empty]. One on which the validator might not end (references in
// a circle, towers of allOf) is an error.
func Compile(raw json.RawMessage) (s *Schema, err error) {
	if len(raw) == 0 {
		raw = json.RawMessage(Empty)
	}
	if len(raw) > MaxSize {
		return nil, fmt.Errorf("schema of %d bytes is over the limit of %d", len(raw), MaxSize)
	}
	if s, ok := compiled.Get(string(raw)); ok {
		return s, nil
	}
	if s, err = compile(raw); err == nil {
		compiled.Put(string(raw), s, len(raw))
	}
	return s, err
}

func compile(raw json.RawMessage) (s *Schema, err error) {
	if err := rawjson.CheckSize(raw); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("read schema: %v", p)
		}
	}()
	var root jsonschema.Schema
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	costs := costs{root: &root, known: make(map[*jsonschema.Schema]int)}
	if err := costs.check(&root); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve schema: %w", err)
	}
	return &Schema{root: &root, resolved: resolved}, nil
}

// costs counts how many subschemas apply to one and the same value.
type costs struct {
	root  *jsonschema.Schema
	known map[*jsonschema.Schema]int // -1 while it is being counted
}

// check counts every subschema of s and fails at the first that never ends.
func (c costs) check(s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	if _, done := c.known[s]; !done {
		if _, err := c.cost(s); err != nil {
			return err
		}
	}
	for _, child := range children(s) {
		if err := c.check(child); err != nil {
			return err
		}
	}
	return nil
}

func (c costs) cost(s *jsonschema.Schema) (int, error) {
	if known, ok := c.known[s]; ok {
		if known < 0 {
			return 0, errors.New("references go in a circle")
		}
		return known, nil
	}
	c.known[s] = -1
	same, err := c.sameValue(s)
	if err != nil {
		return 0, err
	}
	sum := 1
	for _, child := range same {
		n, err := c.cost(child)
		if err != nil {
			return 0, err
		}
		if sum += n; sum > maxCost {
			return 0, errors.New("too many subschemas for one value")
		}
	}
	c.known[s] = sum
	return sum, nil
}

// sameValue are the subschemas that are held against the value of s itself.
func (c costs) sameValue(s *jsonschema.Schema) ([]*jsonschema.Schema, error) {
	if s.DynamicRef != "" || (s.ID != "" && s != c.root) { // they change what a reference means
		return nil, errors.New("$dynamicRef, and $id inside a schema, are not supported")
	}
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else})
	out = slices.AppendSeq(out, maps.Values(s.DependentSchemas))
	if s.Ref != "" {
		target, err := c.local(s.Ref)
		if err != nil {
			return nil, err
		}
		out = append(out, target)
	}
	return slices.DeleteFunc(out, func(child *jsonschema.Schema) bool { return child == nil }), nil
}

// local finds what a reference inside the schema points to: the root or a
// definition. No other references are followed.
func (c costs) local(ref string) (*jsonschema.Schema, error) {
	if ref == "#" {
		return c.root, nil
	}
	name, ok := strings.CutPrefix(ref, "#/$defs/")
	definitions := c.root.Defs
	if !ok {
		name, ok = strings.CutPrefix(ref, "#/definitions/")
		definitions = c.root.Definitions
	}
	if target := definitions[name]; ok && target != nil && !strings.ContainsAny(name, "/~%") {
		return target, nil
	}
	return nil, fmt.Errorf("reference %.80q is not to a definition of its own", ref)
}

// children are all direct subschemas of s; some are nil.
func children(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems, s.ItemsArray, []*jsonschema.Schema{
		s.Not, s.If, s.Then, s.Else, s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems,
		s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties, s.ContentSchema,
	})
	for _, m := range []map[string]*jsonschema.Schema{s.Defs, s.Definitions, s.Properties, s.PatternProperties, s.DependentSchemas} {
		out = slices.AppendSeq(out, maps.Values(m))
	}
	return out
}

// maxReason bounds the description of arguments that cannot be used, in bytes.
const maxReason = 1 << 10

// Read decodes what a model gave as arguments, repairs near misses and holds them against the schema.
// dropped are those that the schema does not know. The error names the argument and what is wrong with
// it, in words for a model; the arguments come with it as far as they were read.
func (s *Schema) Read(given string) (arguments map[string]any, dropped []string, err error) {
	if arguments, err = decode(given); err == nil {
		arguments, dropped = s.coerce(arguments)
		err = s.check(arguments)
	}
	if err != nil {
		err = errors.New(text.Shorten(err.Error(), maxReason)) // it quotes what is wrong, which may be long
	}
	return arguments, dropped, err
}

// check holds arguments, already coerced, against the schema.
func (s *Schema) check(arguments map[string]any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the tool's schema cannot be checked: %v", p)
		}
	}()
	if err := s.resolved.Validate(arguments); err != nil {
		return errors.New(explain(err.Error()))
	}
	return nil
}

// explain rewords an error of the validator so that it names the argument.
func explain(why string) string {
	why = strings.TrimPrefix(why, "validating root: ")
	why = regexp.MustCompile(`validating /properties/([^/:]+): `).ReplaceAllString(why, `argument "$1": `)
	why = regexp.MustCompile(`validating (/[^:]+): `).ReplaceAllString(why, `at $1: `)
	why = regexp.MustCompile(`(\d)/1\b`).ReplaceAllString(why, `$1`)
	why = regexp.MustCompile(`(\d)\.0+\b`).ReplaceAllString(why, `$1`)
	return why
}

// coerce repairs near misses of a model where there is only one thing that can be meant: "55" and
// 55.0 for 55, "true" for true, 5 for "5", null for an optional argument that is left out.
// Arguments that the schema does not know are dropped unless it speaks of them. It returns a new
// map and what it dropped. Whatever it cannot repair stays for the check to find.
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
