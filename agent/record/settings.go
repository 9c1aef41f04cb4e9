package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Settings are the members of a struct that are plain values and not zero, by
// their names: numbers, words, and lists and structs of such. Functions and
// engines are none.
type Settings map[string]json.RawMessage

// settingsOf reads them from a struct.
func settingsOf(from any) Settings {
	out := Settings{}
	v := reflect.ValueOf(from)
	for f, value := range v.Fields() {
		if !f.IsExported() || !isPlain(f.Type) || value.IsZero() {
			continue
		}
		if data, err := json.Marshal(value.Interface()); err == nil {
			out[f.Name] = data
		}
	}
	return out
}

// Apply sets them in the struct that to points to.
func (s Settings) Apply(to any) error {
	v := reflect.ValueOf(to).Elem()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		f := v.FieldByName(name)
		if !f.IsValid() || !f.CanSet() || !isPlain(f.Type()) {
			return fmt.Errorf("setting %q of the recording is not known here", name)
		}
		if err := json.Unmarshal(s[name], f.Addr().Interface()); err != nil {
			return fmt.Errorf("setting %q of the recording: %w", name, err)
		}
	}
	return nil
}

// isPlain reports whether values of a type say all there is of them as JSON.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return isPlain(t.Elem())
	case reflect.Map:
		return t.Key().Kind() == reflect.String && isPlain(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !f.IsExported() || !isPlain(f.Type) {
				return false
			}
		}
		return true
	case reflect.Bool, reflect.String:
		return true
	default:
		return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uintptr
	}
}
