package config

import (
	"math"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// scalar reads a text, a number or a switch.
func (r reader) scalar(n *yaml.Node, t reflect.Type, path []string) (any, bool) {
	tag := n.ShortTag()
	if n.Kind != yaml.ScalarNode {
		tag = ""
	}
	switch t.Kind() {
	case reflect.String:
		if tag == "" || tag == "!!bool" || tag == "!!null" {
			return r.wrong(n, path, "config/a-text")
		}
		return n.Value, true // a number is taken as it is written
	case reflect.Bool:
		if b, err := strconv.ParseBool(n.Value); err == nil && tag == "!!bool" {
			return b, true
		}
		return r.wrong(n, path, "config/a-switch")
	case reflect.Int:
		var i int
		if tag != "!!int" || n.Decode(&i) != nil {
			return r.wrong(n, path, "config/a-integer")
		}
		return i, true
	case reflect.Float64:
		var f float64
		if tag != "!!int" && tag != "!!float" || n.Decode(&f) != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return r.wrong(n, path, "config/a-number")
		}
		return f, true
	default:
		return r.wrong(n, path, t.String())
	}
}

// duration reads a length of time with its unit.
func (r reader) duration(n *yaml.Node, path []string) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		return r.wrong(n, path, "config/a-time")
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		r.wrongType(r.at(n), path, "config/a-duration", strconv.Quote(n.Value))
		return nil, false
	}
	return d.String(), true
}

// voices reads one voice name for all languages, or one for each.
func (r reader) voices(n *yaml.Node, path []string) (any, bool) {
	if n.Kind == yaml.ScalarNode {
		v, ok := r.scalar(n, reflect.TypeFor[string](), path)
		return map[string]any{"": v, "zh": v, "en": v}, ok
	}
	if n.Kind != yaml.MappingNode {
		return r.wrong(n, path, "config/a-voices")
	}
	return r.mapping(n, reflect.TypeFor[voiceNames](), path)
}

// voiceNames are the languages that a map of voices may name.
type voiceNames struct {
	Chinese string `koanf:"zh"`
	English string `koanf:"en"`
}
