package devicetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Thing is one thing of the IoT protocol that older firmware speaks (section 6).
// Only devices whose hello does not offer MCP have things.
type Thing struct {
	Name        string
	Description string
	Properties  []ThingProperty
	Methods     []ThingMethod
	// State gives the values of the properties. It is asked before each listen
	// start; a change since the last time is sent then.
	State func() map[string]any
}

// ThingProperty is one value of a thing.
type ThingProperty struct {
	Name, Description string
	Type              string // boolean, number (an integer) or string
}

// ThingMethod is one command of a thing. All parameters are required.
type ThingMethod struct {
	Name, Description string
	Parameters        []ThingProperty
	Call              func(parameters map[string]any) // bool, int or string
}

type thingValue struct {
	Description string `json:"description"`
	Type        string `json:"type"`
}

type thingMethod struct {
	Description string                `json:"description"`
	Parameters  map[string]thingValue `json:"parameters"`
}

type descriptor struct {
	Name        string                 `json:"name"`
	Description string                 `json:"description"`
	Properties  map[string]thingValue  `json:"properties"`
	Methods     map[string]thingMethod `json:"methods"`
}

type thingState struct {
	Name  string         `json:"name"`
	State map[string]any `json:"state"`
}

type iotMessage struct {
	SessionID   string       `json:"session_id"`
	Type        string       `json:"type"`
	Update      bool         `json:"update"`
	Descriptors []descriptor `json:"descriptors,omitempty"`
	States      []thingState `json:"states,omitempty"`
}

func values(properties []ThingProperty) map[string]thingValue {
	m := make(map[string]thingValue)
	for _, p := range properties {
		m[p.Name] = thingValue{Description: p.Description, Type: p.Type}
	}
	return m
}

// describeThings sends one descriptor per message, right after the server's hello.
func (d *Device) describeThings() error {
	for _, t := range d.opt.Things {
		methods := make(map[string]thingMethod)
		for _, m := range t.Methods {
			methods[m.Name] = thingMethod{Description: m.Description, Parameters: values(m.Parameters)}
		}
		err := d.sendIoT(iotMessage{Descriptors: []descriptor{{
			Name: t.Name, Description: t.Description, Properties: values(t.Properties), Methods: methods,
		}}})
		if err != nil {
			return err
		}
	}
	return nil
}

// sendStates sends the things that changed since the last time: all of them at first.
func (d *Device) sendStates() error {
	var changed []thingState
	for _, t := range d.opt.Things {
		if t.State == nil {
			continue
		}
		state := t.State()
		raw, err := json.Marshal(state)
		if err != nil {
			return fmt.Errorf("state of %s: %w", t.Name, err)
		}
		d.mu.Lock()
		if !bytes.Equal(d.states[t.Name], raw) {
			d.states[t.Name] = raw
			changed = append(changed, thingState{Name: t.Name, State: state})
		}
		d.mu.Unlock()
	}
	if len(changed) == 0 {
		return nil
	}
	return d.sendIoT(iotMessage{States: changed})
}

func (d *Device) sendIoT(m iotMessage) error {
	m.Type, m.Update = "iot", true
	if !d.traits.emptySession {
		m.SessionID = d.SessionID()
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return d.sendText(raw)
}

// runCommands executes commands in order. What crashes that firmware is RuleIoT.
func (d *Device) runCommands(now time.Time, m *inbound) {
	var commands []struct {
		Name       *string                    `json:"name"`
		Method     *string                    `json:"method"`
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal(m.fields["commands"], &commands); err != nil {
		d.journal.violate(now, RuleIoT, "commands cannot be read: %s", shorten(m.fields["commands"]))
		return
	}
	for _, c := range commands {
		if c.Name == nil || c.Method == nil || c.Parameters == nil {
			d.journal.violate(now, RuleIoT, "a command needs name, method and parameters")
			continue
		}
		method, ok := d.method(*c.Name, *c.Method)
		if !ok {
			d.journal.violate(now, RuleIoT, "no method %s of %s", *c.Method, *c.Name)
			continue
		}
		args, err := method.arguments(c.Parameters)
		if err != nil {
			d.journal.violate(now, RuleIoT, "%s.%s: %s", *c.Name, *c.Method, err)
			continue
		}
		d.journal.add(Event{At: now, Kind: KindTool, Type: *c.Name + "." + *c.Method})
		if method.Call != nil {
			method.Call(args)
		}
	}
}

func (d *Device) method(thing, name string) (ThingMethod, bool) {
	for _, t := range d.opt.Things {
		for _, m := range t.Methods {
			if t.Name == thing && m.Name == name {
				return m, true
			}
		}
	}
	return ThingMethod{}, false
}

// arguments takes the parameters, each of exactly its type.
func (m ThingMethod) arguments(given map[string]json.RawMessage) (map[string]any, error) {
	args := make(map[string]any)
	for _, p := range m.Parameters {
		kind := p.Type
		if kind == "number" {
			kind = "integer"
		}
		raw := given[p.Name]
		v, ok := Property{Name: p.Name, Type: kind}.read(raw)
		if !ok || kind == "integer" && strings.ContainsAny(string(raw), ".eE") {
			return nil, fmt.Errorf("parameter %s must be a %s, got %q", p.Name, p.Type, raw)
		}
		args[p.Name] = v
	}
	return args, nil
}

// Lamp is a thing with one switch and one dimmer, for tests.
func Lamp() Thing {
	var mu sync.Mutex
	power, level := false, 50
	return Thing{
		Name: "Lamp", Description: "a test lamp",
		Properties: []ThingProperty{
			{Name: "power", Description: "is it on", Type: "boolean"},
			{Name: "level", Description: "how bright it is", Type: "number"},
		},
		Methods: []ThingMethod{
			{Name: "TurnOn", Description: "switch on", Call: func(map[string]any) { mu.Lock(); defer mu.Unlock(); power = true }},
			{Name: "TurnOff", Description: "switch off", Call: func(map[string]any) { mu.Lock(); defer mu.Unlock(); power = false }},
			{
				Name: "SetLevel", Description: "dim", Parameters: []ThingProperty{{Name: "level", Description: "0-100", Type: "number"}},
				Call: func(p map[string]any) { mu.Lock(); defer mu.Unlock(); level = p["level"].(int) },
			},
		},
		State: func() map[string]any {
			mu.Lock()
			defer mu.Unlock()
			return map[string]any{"power": power, "level": level}
		},
	}
}
