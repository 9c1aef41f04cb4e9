package generation

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// noParameters is the schema of a tool that takes nothing.
const noParameters = `{"type":"object","properties":{}}`

// combined are the keys that most services refuse at the top of a schema.
func combined() []string { return []string{"anyOf", "oneOf", "allOf"} }

// Schema returns the schema of a tool's arguments as every service takes it: that of an
// object with properties, none of them in a choice of whole objects, whose properties it
// then has together. keys are those that this service refuses; "$ref" among them has what is
// referred to put in its place. What was taken out is checked when the tool is called.
func Schema(schema json.RawMessage, keys ...string) json.RawMessage {
	if s := bytes.TrimSpace(schema); len(s) == 0 || string(s) == "null" {
		return json.RawMessage(noParameters)
	}
	var v map[string]any
	if json.Unmarshal(schema, &v) != nil || v == nil {
		return json.RawMessage(noParameters)
	}
	plain := isPlain(v)
	if !plain {
		flatten(v)
	}
	if slices.Contains(keys, "$ref") && bytes.Contains(schema, []byte(`"$ref"`)) {
		r := &resolver{maps.Clone(v), maxParts}
		delete(v, "$defs")
		delete(v, "definitions")
		v, _ = r.resolve(v, nil).(map[string]any)
		plain = false
	}
	if plain && !slices.ContainsFunc(keys, func(key string) bool { return bytes.Contains(schema, []byte(`"`+key+`"`)) }) {
		return schema
	}
	strip(v, keys, false)
	out, err := json.Marshal(v)
	if err != nil {
		return schema
	}
	return out
}

// TakesNothing reports whether a schema is of a tool that takes no arguments.
func TakesNothing(schema json.RawMessage) bool {
	var v struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(Schema(schema), &v) == nil && len(v.Properties) == 0
}

// isPlain reports whether a schema is that of one object with properties.
func isPlain(v map[string]any) bool {
	_, has := v["properties"].(map[string]any)
	_, list := v["required"].([]any)
	return has && v["type"] == "object" && (v["required"] == nil && !hasKey(v, "required") || list) &&
		!slices.ContainsFunc(combined(), func(key string) bool { return hasKey(v, key) })
}

func hasKey(v map[string]any, key string) bool { _, ok := v[key]; return ok }

// flatten makes a schema plain.
func flatten(v map[string]any) {
	properties, _ := v["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	required, _ := v["required"].([]any)
	for _, key := range combined() {
		choices, _ := v[key].([]any)
		delete(v, key)
		for i := range choices {
			choice, _ := choices[i].(map[string]any)
			if to, ok := local(v, choice["$ref"]); ok {
				choice, _ = to.(map[string]any)
			}
			more, _ := choice["properties"].(map[string]any)
			for name, of := range more {
				if !hasKey(properties, name) {
					properties[name] = of
				}
			}
			if wanted, _ := choice["required"].([]any); key == "allOf" || len(choices) == 1 {
				required = append(slices.Clip(required), wanted...)
			}
		}
	}
	v["type"], v["properties"] = "object", properties
	if delete(v, "required"); len(required) > 0 {
		v["required"] = required
	}
}

// Bounds of what references become.
const (
	maxDepth = 12   // one within another
	maxParts = 2000 // of the whole
)

// resolver puts what a schema refers to in the place of each reference. What refers to
// itself, or is too much, becomes any object.
type resolver struct {
	root map[string]any
	left int // parts that may still be made
}

// resolve returns a part of the schema without references. within are those that it stands in.
func (r *resolver) resolve(part any, within []string) any {
	if r.left--; r.left < 0 {
		return map[string]any{"type": "object"}
	}
	switch p := part.(type) {
	case []any:
		out := make([]any, len(p))
		for i := range p {
			out[i] = r.resolve(p[i], within)
		}
		return out
	case map[string]any:
		if to, refers := local(r.root, p["$ref"]); refers {
			return r.referred(p, to, within)
		}
		out := make(map[string]any, len(p))
		for key, value := range p {
			out[key] = r.resolve(value, within)
		}
		return out
	}
	return part
}

// referred returns what a part refers to, with what stands beside the reference.
func (r *resolver) referred(part map[string]any, to any, within []string) any {
	name, _ := part["$ref"].(string)
	if slices.Contains(within, name) || len(within) >= maxDepth {
		return map[string]any{"type": "object"}
	}
	out, ok := r.resolve(to, append(slices.Clip(within), name)).(map[string]any)
	if !ok {
		return map[string]any{"type": "object"}
	}
	for key, value := range part {
		if key != "$ref" {
			out[key] = value
		}
	}
	return out
}

// local finds what a reference within a schema refers to.
func local(root map[string]any, ref any) (any, bool) {
	name, _ := ref.(string)
	path, ok := strings.CutPrefix(name, "#/")
	if !ok {
		return nil, false
	}
	var at any = root
	for step := range strings.SplitSeq(path, "/") {
		object, _ := at.(map[string]any)
		if at, ok = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
			return nil, false
		}
	}
	return at, true
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
