package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/providers"
)

// IsSecret reports whether the key at a path holds a secret, which is sealed where people type it.
func IsSecret(path []string) bool { return isSecret(path) }

// IsSealed reports whether a value names a secret that is kept sealed, and which.
func IsSealed(v any) (name string, ok bool) {
	text, ok := v.(string)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(text, sealedPrefix)
}

// SealedAs returns the reference by which settings name a sealed secret.
func SealedAs(name string) string { return sealedPrefix + name }

// UseOf says where the secret at a path goes.
func (c *Config) UseOf(path []string) SecretUse { return c.use(path) }

// Shown returns the part of a value at a path of a layer that people may see. secret: it is, or may hold, one.
func Shown(path []string, v any) (shown any, secret bool) {
	secret = isSecret(path) || len(path) > 0 && (path[0] == "providers" || path[0] == "tools") && slices.ContainsFunc(path, func(name string) bool { return slices.Contains(hidden, name) })
	switch v := v.(type) {
	case nil:
		return nil, secret
	case string:
		_, sealed := IsSealed(v)
		switch {
		case secret && !sealed && v != "":
			return dots, true
		case secret:
			return v, true
		}
		return withoutCredentials(v), false
	case []any:
		if secret && len(v) > 0 {
			return dots, true
		}
		list := make([]any, 0, len(v))
		for _, item := range v {
			shown, hides := Shown(path, item)
			list, secret = append(list, shown), secret || hides
		}
		return list, secret
	case map[string]any:
		tree := map[string]any{}
		for name, item := range v {
			shown, hides := Shown(append(slices.Clone(path), name), item)
			tree[name], secret = shown, secret || hides
		}
		return tree, secret
	}
	if secret {
		return dots, true
	}
	return v, false
}

// Shape says what a value is, for those who ask people for it.
type Shape string

// The shapes of values.
const (
	ShapeText     Shape = "text"
	ShapeSwitch   Shape = "switch" // true or false
	ShapeWhole    Shape = "whole"
	ShapeNumber   Shape = "number"
	ShapeDuration Shape = "duration" // as Go writes it
	ShapeSize     Shape = "size"
	ShapeList     Shape = "list" // of texts
	ShapeSecret   Shape = "secret"
	ShapeOther    Shape = "other" // of several values: as JSON
)

// shapes remember what was found by reflection. What has names of its own is not kept: people could make any number.
var shapes sync.Map // of joined paths

// ShapeOf says what the value at a path is; "": there is no such key.
func ShapeOf(path []string) Shape {
	key := strings.Join(path, keySeparator)
	if known, ok := shapes.Load(key); ok {
		return known.(Shape)
	}
	shape := shapeOf(path)
	if _, fixed := sentences()[keyName(path)]; fixed {
		shapes.Store(key, shape)
	}
	return shape
}

func shapeOf(path []string) Shape {
	t := configType()
	for i, name := range path {
		child, ok := childType(t, name)
		if !ok {
			return ""
		}
		if t = child; t.Kind() == reflect.Interface && i < len(path)-1 {
			return ShapeOther
		}
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return ShapeDuration
	case reflect.TypeFor[Size]():
		return ShapeSize
	case reflect.TypeFor[providers.Secret]():
		return ShapeSecret
	case reflect.TypeFor[[]string]():
		return ShapeList
	}
	switch t.Kind() {
	case reflect.String:
		return ShapeText
	case reflect.Bool:
		return ShapeSwitch
	case reflect.Int:
		return ShapeWhole
	case reflect.Float64:
		return ShapeNumber
	default:
		return ShapeOther
	}
}
