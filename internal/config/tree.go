package config

import (
	"reflect"
	"slices"
	"time"
)

// settingsTree is a setting as maps, lists and plain values, by the names of the
// config file, without those that are left out and pointers to nothing. text says
// what becomes of its strings.
func settingsTree(v reflect.Value, text func(reflect.Value) string, leftOut ...string) any {
	if d, ok := reflect.TypeAssert[time.Duration](v); ok {
		return d.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		tree := map[string]any{}
		for f, field := range v.Fields() {
			name := f.Tag.Get("koanf")
			if name == "-" || slices.Contains(leftOut, name) {
				continue
			}
			if value := settingsTree(field, text, leftOut...); value != nil {
				tree[name] = value
			}
		}
		return tree
	case reflect.Map:
		tree := map[string]any{}
		for name, value := range v.Seq2() {
			tree[name.String()] = settingsTree(value, text, leftOut...)
		}
		return tree
	case reflect.Slice:
		list := []any{}
		for _, item := range v.Seq2() {
			list = append(list, settingsTree(item, text, leftOut...))
		}
		return list
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return settingsTree(v.Elem(), text, leftOut...)
	case reflect.String:
		return text(v)
	default:
		return v.Interface()
	}
}
