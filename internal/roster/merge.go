package roster

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
)

// compact returns settings in their one form: keys in order, and nothing but them.
func compact(doc []byte) (string, error) {
	var tree map[string]any
	if len(doc) > maxDoc {
		return "", refuse(Invalid, "agents/too-long", maxDoc)
	}
	if err := decode(doc, &tree); err != nil || tree == nil {
		return "", refuse(Invalid, "agents/no-json")
	}
	data, err := json.Marshal(tree)
	return string(data), err
}

// decode reads settings. No setting of an agent is a number: one that is sent is a text, spelled as it was.
func decode(doc []byte, into *map[string]any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one value")
	}
	for key, value := range *into {
		(*into)[key] = spelled(value)
	}
	return nil
}

func spelled(value any) any {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case []any:
		for i := range v {
			v[i] = spelled(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = spelled(v[key])
		}
	}
	return value
}

// merge applies a merge patch to settings.
func merge(old string, patch []byte) ([]byte, error) {
	var before, change map[string]any
	if len(patch) > maxDoc {
		return nil, refuse(Invalid, "agents/too-long", maxDoc)
	}
	if err := decode(patch, &change); err != nil || change == nil {
		return nil, refuse(Invalid, "agents/no-json")
	}
	if old != "" {
		if err := decode([]byte(old), &before); err != nil {
			return nil, err
		}
	}
	return json.Marshal(merged(before, change))
}

func merged(before, change map[string]any) map[string]any {
	after := map[string]any{}
	maps.Copy(after, before)
	for key, value := range change {
		part, section := value.(map[string]any)
		switch {
		case value == nil:
			delete(after, key)
		case section:
			old, _ := after[key].(map[string]any)
			after[key] = merged(old, part)
		default:
			after[key] = value
		}
	}
	return after
}
