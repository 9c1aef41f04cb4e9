package iot

import (
	"encoding/json"
	"fmt"
	"reflect"

	"xiaozhi/mcp"
)

// savedHome is the form in which things and their states outlive the process.
type savedHome struct {
	Things []json.RawMessage         `json:"things"` // descriptors
	States map[string]map[string]any `json:"states,omitempty"`
}

// member is a property, a method or a parameter of a descriptor.
type member struct {
	Description string            `json:"description,omitempty"`
	Type        string            `json:"type,omitempty"`
	Parameters  map[string]member `json:"parameters,omitempty"`
}

// descriptor returns what a thing was read from, as far as it was understood.
func (t *thing) descriptor() (json.RawMessage, error) {
	values := func(all []value) map[string]member {
		members := map[string]member{}
		for _, v := range all {
			members[v.name] = member{Description: v.description, Type: v.kind}
		}
		return members
	}
	methods := map[string]member{}
	for _, m := range t.methods {
		methods[m.name] = member{Description: m.description, Parameters: values(m.parameters)}
	}
	return json.Marshal(struct {
		Name        string            `json:"name"`
		Description string            `json:"description,omitempty"`
		Properties  map[string]member `json:"properties,omitempty"`
		Methods     map[string]member `json:"methods,omitempty"`
	}{t.name, t.description, values(t.properties), methods})
}

// same reports whether two things offer the same.
func (t *thing) same(other *thing) bool {
	a, b := *t, *other
	a.bytes, b.bytes = 0, 0
	return reflect.DeepEqual(a, b)
}

// encode returns the form of a home; ok is false if there is none.
func (h *home) encode() (doc string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	saved := savedHome{States: map[string]map[string]any{}}
	for _, k := range h.things {
		raw, err := k.descriptor()
		if err != nil {
			return "", false
		}
		saved.Things = append(saved.Things, raw)
		if len(k.state) == 0 {
			continue
		}
		values := map[string]any{}
		for name, r := range k.state {
			values[name] = r.value
		}
		saved.States[k.name] = values
	}
	data, err := json.Marshal(saved)
	return string(data), err == nil
}

// decodeHome undoes encode. All is stale.
func decodeHome(doc string) (*home, error) {
	var saved struct {
		Things []json.RawMessage                     `json:"things"`
		States map[string]map[string]json.RawMessage `json:"states"`
	}
	if err := json.Unmarshal([]byte(doc), &saved); err != nil {
		return nil, fmt.Errorf("the things that were kept: %w", err)
	}
	h := &home{}
	for _, raw := range saved.Things {
		th, _, err := parseThing(raw)
		if err == nil {
			err = h.describe(th)
		}
		if err != nil {
			return nil, fmt.Errorf("the things that were kept: %w", err)
		}
	}
	for name, state := range saved.States {
		if err := h.merge(&report{thing: name, state: state}); err != nil {
			return nil, fmt.Errorf("the things that were kept: %w", err)
		}
	}
	h.markStale()
	return h, nil
}

// adopt takes the things of another home, which nobody uses, if it has none, and reports whether it did.
func (h *home) adopt(other *home) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.things) > 0 {
		return false
	}
	h.things = other.things
	h.rebuild()
	return len(h.things) > 0
}

// Restore gives the source what Options.Keep was given last, before the program ended. It is stale until the device says
// it again, as what the cache knows is, and changes nothing if the device has described something.
func (t *Source) Restore(doc string) error {
	old, err := decodeHome(doc)
	if err != nil || !t.home.adopt(old) {
		return err
	}
	if t.options.DeviceID != "" {
		t.options.Cache.homes.Put(t.options.DeviceID, t.home, t.home.weight())
	}
	if t.options.OnChange != nil {
		t.options.OnChange()
	}
	return nil
}

// keep hands on what is known, if it is other than before.
func (t *Source) keep(changed bool) {
	if !changed || t.options.Keep == nil {
		return
	}
	if doc, ok := t.home.encode(); ok {
		t.options.Keep(doc)
	}
}

// Kept returns the tools of the things that Options.Keep was given, of a device that is not connected.
func Kept(doc string, kinds map[string]mcp.Kind) ([]mcp.Tool, error) {
	t := New(Options{Kinds: kinds})
	if err := t.Restore(doc); err != nil {
		return nil, err
	}
	return t.GetAvailableTools(), nil
}
