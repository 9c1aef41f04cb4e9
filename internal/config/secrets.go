package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/providers"
)

// fileSuffix ends the key of a file whose content becomes the secret of the key before it.
const fileSuffix = "_file"

// secretType is the type of every setting that is a secret.
func secretType() reflect.Type { return reflect.TypeFor[providers.Secret]() }

// isSecret reports whether the key at path holds a secret.
func isSecret(path []string) bool {
	t := configType()
	for _, name := range path {
		if t.Kind() == reflect.Slice { // name is a number
			t = t.Elem()
			continue
		}
		child, ok := childType(t, name)
		if !ok {
			return false
		}
		t = child
	}
	return t == secretType()
}

// missing lists the variables that are not set and that secrets below a path refer to.
func (fs *findings) missing(path ...string) (names []string) {
	owner := strings.Join(path, keySeparator)
	for secret, unset := range fs.unset {
		if secret == owner || strings.HasPrefix(secret, owner+keySeparator) {
			names = append(names, unset...)
		}
	}
	slices.Sort(names)
	return names
}

// eachSection calls f for each section of the settings, v, with what it may change, and its path. An element of a map
// is put back afterwards.
func eachSection(v reflect.Value, path []string, f func(section reflect.Value, path []string)) {
	switch v.Kind() {
	case reflect.Struct:
		f(v, path)
		for _, field := range reflect.VisibleFields(v.Type()) {
			switch name := field.Tag.Get("koanf"); {
			case name == "-" || field.Anonymous || !field.IsExported():
			case name == remain:
				eachSection(v.FieldByIndex(field.Index), path, f)
			default:
				eachSection(v.FieldByIndex(field.Index), append(slices.Clone(path), name), f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachSection(v.Index(i), append(slices.Clone(path), strconv.Itoa(i)), f)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		for _, name := range v.MapKeys() {
			element := reflect.New(v.Type().Elem()).Elem()
			element.Set(v.MapIndex(name))
			eachSection(element, append(slices.Clone(path), name.String()), f)
			v.SetMapIndex(name, element)
		}
	default:
	}
}

// eachSecret calls f for each secret of a section, by its key or, in a map of secrets, its key and name, and keeps what
// f returns.
func eachSecret(section reflect.Value, f func(key []string, s providers.Secret) providers.Secret) {
	for _, field := range keyFields(section.Type()) {
		name, value := field.Tag.Get("koanf"), section.FieldByIndex(field.Index)
		switch {
		case field.Type == secretType():
			value.SetString(string(f([]string{name}, providers.Secret(value.String()))))
		case field.Type == reflect.MapOf(reflect.TypeFor[string](), secretType()):
			for _, key := range value.MapKeys() {
				s := f([]string{name, key.String()}, providers.Secret(value.MapIndex(key).String()))
				value.SetMapIndex(key, reflect.ValueOf(s))
			}
		}
	}
}

// secretFiles reads the secrets that are kept in files of their own. A file counts before a value that is set beside it.
func (l *loader) secretFiles(c *Config) {
	eachSection(reflect.ValueOf(c).Elem(), nil, func(section reflect.Value, path []string) {
		at := func(names ...string) []string { return append(slices.Clone(path), names...) }
		for _, field := range keyFields(section.Type()) {
			key := field.Tag.Get("koanf")
			name, ok := strings.CutSuffix(key, fileSuffix)
			secret, known := secretOf(section, name)
			if !ok || !known {
				continue
			}
			file := section.FieldByIndex(field.Index)
			if file.Kind() == reflect.String {
				if file.String() != "" {
					secret.SetString(string(l.secretFile(file.String(), at(name), at(key))))
				}
				continue
			}
			if secret.IsNil() && file.Len() > 0 {
				secret.Set(reflect.MakeMap(secret.Type()))
			}
			for _, n := range file.MapKeys() {
				s := l.secretFile(file.MapIndex(n).String(), at(name, n.String()), at(key, n.String()))
				secret.SetMapIndex(n, reflect.ValueOf(s))
			}
		}
	})
}

// secretOf returns the secret, or the map of secrets, that a section has under a key.
func secretOf(section reflect.Value, key string) (reflect.Value, bool) {
	for _, field := range keyFields(section.Type()) {
		t := field.Type
		if t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if field.Tag.Get("koanf") == key && t == secretType() {
			return section.FieldByIndex(field.Index), true
		}
	}
	return reflect.Value{}, false
}

// secretFile reads the file, which nobody else may change, whose content becomes a secret; path is that of the key that names it.
func (l *loader) secretFile(file string, secret, path []string) providers.Secret {
	delete(l.unset, strings.Join(secret, keySeparator))
	data, err := readOwn(file)
	if err != nil {
		l.add(l.place(path...), "", "config/secret-not-read", keyName(path), err)
		return ""
	}
	s := strings.TrimSpace(string(data))
	if s == "" {
		l.add(l.place(path...), "", "config/secret-empty", keyName(path), file)
	}
	return providers.Secret(s)
}
