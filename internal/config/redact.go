package config

import (
	"net/url"
	"reflect"
	"slices"
	"time"

	"xiaozhi/mcp/rawjson"
	"xiaozhi/providers"
)

// hidden are keys whose values are never shown: credentials may be anywhere in the
// arguments, headers and bodies of programs and requests.
var hidden = []string{"args", "extra", "headers", "env"}

// Redacted returns the settings as JSON that may be shown: without secrets, and
// without what may hold one.
func (c *Config) Redacted() []byte {
	data, err := rawjson.Marshal(redacted(reflect.ValueOf(*c)))
	if err != nil {
		return []byte("{}")
	}
	return data
}

// redacted returns a setting as maps, lists and plain values by the keys of the
// settings file, without pointers to nothing.
func redacted(v reflect.Value) any {
	switch special := v.Interface().(type) {
	case time.Duration:
		return special.String()
	case providers.Secret:
		return special.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		tree := map[string]any{}
		for _, f := range keyFields(v.Type()) {
			name, value := f.Tag.Get("koanf"), v.FieldByIndex(f.Index)
			if !slices.Contains(hidden, name) && (value.Kind() != reflect.Pointer || !value.IsNil()) {
				tree[name] = redacted(value)
			}
		}
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.Tag.Get("koanf") == remain {
				for name, value := range v.FieldByIndex(f.Index).Seq2() {
					tree[name.String()] = redacted(value)
				}
			}
		}
		return tree
	case reflect.Map:
		tree := map[string]any{}
		for name, value := range v.Seq2() {
			tree[name.String()] = redacted(value)
		}
		return tree
	case reflect.Slice:
		list := []any{}
		for _, item := range v.Seq2() {
			list = append(list, redacted(item))
		}
		return list
	case reflect.Pointer:
		return redacted(v.Elem())
	case reflect.String:
		return withoutCredentials(v.String())
	default:
		return v.Interface()
	}
}

// withoutCredentials returns an address without its query and its user, where keys
// are often put, and any other text as it is.
func withoutCredentials(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User == nil && u.RawQuery == "" {
		return text
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// Secrets returns all texts of the settings that may be secret, so that they can be taken out of what is shown: of keys
// that hide what they hold, all that is longer than a few signs.
func (c *Config) Secrets() []string { return secretsIn(reflect.ValueOf(*c), false) }

// shortSecret is the length under which a text that may be secret is taken for a plain word.
const shortSecret = 8

func secretsIn(v reflect.Value, hides bool) (all []string) {
	if secret, ok := v.Interface().(providers.Secret); ok {
		if secret != "" {
			all = append(all, string(secret))
		}
		return all
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(v.Type()) {
			if f.IsExported() && !f.Anonymous {
				all = append(all, secretsIn(v.FieldByIndex(f.Index), hides || slices.Contains(hidden, f.Tag.Get("koanf")))...)
			}
		}
	case reflect.Map:
		for _, value := range v.Seq2() {
			all = append(all, secretsIn(value, hides)...)
		}
	case reflect.Slice:
		for _, item := range v.Seq2() {
			all = append(all, secretsIn(item, hides)...)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			all = secretsIn(v.Elem(), hides)
		}
	case reflect.String:
		if hides && v.Len() >= shortSecret {
			all = append(all, v.String())
		}
		all = append(all, credentials(v.String())...)
	default: // numbers and the like are none
	}
	return all
}

// credentials finds those that [withoutCredentials] takes out of an address.
func credentials(text string) (all []string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil
	}
	if word, ok := u.User.Password(); ok {
		all = append(all, word)
	}
	for _, values := range u.Query() {
		all = append(all, values...)
	}
	return slices.DeleteFunc(all, func(s string) bool { return len(s) < shortSecret })
}
