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

// decode reads JSON with its numbers as they are written.
func decode(doc []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one value")
	}
	return nil
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
