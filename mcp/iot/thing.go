package iot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/mcp/rawjson"
)

// Limits on what a device may describe.
const (
	maxThings  = 64       // of one device
	maxMembers = 64       // properties of a thing, its methods, parameters of a method: each
	maxName    = 64       // bytes of the name of any of them
	maxText    = 512      // bytes of a description; longer ones are cut
	maxHome    = 64 << 10 // bytes of one device's descriptors
)

// thing is a descriptor that was read. It does not change.
type thing struct {
	name, description string
	properties        []value
	methods           []method
	bytes             int // of the descriptor
}

// has reports whether the thing has a property of that name.
func (t *thing) has(property string) bool {
	return slices.ContainsFunc(t.properties, func(p value) bool { return p.name == property })
}

// value is a property or a parameter.
type value struct {
	name, description string
	kind              string // boolean, integer or string; "" for any other
}

// method is a command of a thing. All parameters are required.
type method struct {
	name, description string
	parameters        []value
}

// descriptorWire is the union of what descriptors, properties and methods have.
// Each member is judged by itself, so that a wrong type in one costs that one only.
type descriptorWire struct {
	Name        json.RawMessage `json:"name"`
	Description json.RawMessage `json:"description"`
	Type        json.RawMessage `json:"type"`
	Properties  json.RawMessage `json:"properties"`
	Methods     json.RawMessage `json:"methods"`
	Parameters  json.RawMessage `json:"parameters"`
}

// parseThing reads one descriptor. odd are parts of it that were left out; the
// error says why there is no thing at all.
func parseThing(raw json.RawMessage) (th *thing, odd []error, err error) {
	var w descriptorWire
	if err := unmarshalObject(raw, &w); err != nil {
		return nil, nil, err
	}
	th = &thing{description: textIn(w.Description), bytes: len(raw)}
	if err := json.Unmarshal(w.Name, &th.name); err != nil || !rawjson.Present(w.Name) {
		return nil, nil, errors.New("its name is missing or not a string")
	}
	if err := checkName(th.name); err != nil {
		return nil, nil, err
	}
	odd = eachMember("property", w.Properties, func(name string, w descriptorWire) error {
		th.properties = append(th.properties, value{name, textIn(w.Description), kindIn(w.Type)})
		return nil
	})
	odd = append(odd, eachMember("method", w.Methods, func(name string, w descriptorWire) error {
		m, err := parseMethod(name, w)
		if err == nil {
			th.methods = append(th.methods, m)
		}
		return err
	})...)
	return th, odd, nil
}

// parseMethod reads a method. One whose parameters are not understood cannot be
// called without guessing, so it is refused.
func parseMethod(name string, w descriptorWire) (method, error) {
	m := method{name: name, description: textIn(w.Description)}
	odd := eachMember("parameter", w.Parameters, func(name string, w descriptorWire) error {
		kind := kindIn(w.Type)
		if kind == "" {
			return fmt.Errorf("type %.32s is not boolean, number or string", w.Type)
		}
		m.parameters = append(m.parameters, value{name, textIn(w.Description), kind})
		return nil
	})
	return m, errors.Join(odd...)
}

// eachMember calls take with the members of a JSON object in the order of their
// names, and gives an error for each that is not taken. No object has none.
func eachMember(what string, raw json.RawMessage, take func(name string, w descriptorWire) error) (odd []error) {
	if !rawjson.Present(raw) {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return []error{fmt.Errorf("the list of each %s is not an object", what)}
	}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i == maxMembers {
			return append(odd, fmt.Errorf("%d of %s are more than %d", len(members), what, maxMembers))
		}
		var w descriptorWire
		err := checkName(name)
		if err == nil {
			err = unmarshalObject(members[name], &w)
		}
		if err == nil {
			err = take(name, w)
		}
		if err != nil {
			odd = append(odd, fmt.Errorf("%s %.64q is left out: %w", what, name, err))
		}
	}
	return odd
}

func unmarshalObject(raw json.RawMessage, into any) error {
	if !rawjson.Present(raw) || json.Unmarshal(raw, into) != nil {
		return errors.New("it is not an object")
	}
	return nil
}

// checkName refuses names that could not be sent back as they came.
func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("its name is empty")
	case len(name) > maxName:
		return fmt.Errorf("its name of %d bytes is over the limit of %d", len(name), maxName)
	case strings.ContainsRune(name, utf8.RuneError):
		return errors.New("its name is not valid UTF-8")
	case strings.ContainsRune(name, 0):
		return errors.New("its name holds a zero byte")
	}
	return nil
}

// textIn reads a description; anything but a string is none.
func textIn(raw json.RawMessage) string {
	var description string
	if len(raw) == 0 || json.Unmarshal(raw, &description) != nil {
		return ""
	}
	return text.Shorten(strings.TrimSpace(description), maxText)
}

// kindIn is the JSON Schema type of a descriptor's type, "" for an unknown one.
// A number of the descriptors is an integer: firmware cuts fractions off.
func kindIn(raw json.RawMessage) string {
	switch string(raw) {
	case `"boolean"`:
		return "boolean"
	case `"number"`, `"integer"`:
		return "integer"
	case `"string"`:
		return "string"
	}
	return ""
}

// parseReport reads one element of states.
func parseReport(raw json.RawMessage) (report, error) {
	var w struct {
		Name  json.RawMessage `json:"name"`
		State json.RawMessage `json:"state"`
	}
	var r report
	if err := unmarshalObject(raw, &w); err != nil {
		return r, err
	}
	if !rawjson.Present(w.Name) || json.Unmarshal(w.Name, &r.thing) != nil || r.thing == "" {
		return r, errors.New("its name is missing or not a string")
	}
	if !rawjson.Present(w.State) || json.Unmarshal(w.State, &r.state) != nil {
		return r, errors.New("its state is not an object")
	}
	return r, nil
}

// readValue reads a property's value, whatever its declared type: some firmware
// sends fractions for its whole numbers.
func readValue(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		return text.Shorten(v, maxStateText), nil
	case json.Number:
		return rawjson.Number(v), nil
	}
	return nil, errors.New("its value is not a boolean, a number or a string")
}
