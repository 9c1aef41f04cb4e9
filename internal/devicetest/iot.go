package devicetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
	Name        string `json:"-"`
	Description string `json:"description"`
	Type        string `json:"type"` // boolean, number (an integer) or string
}

// ThingMethod is one command of a thing. All parameters are required.
type ThingMethod struct {
	Name, Description string
	Parameters        []ThingProperty
	Call              func(parameters map[string]any) // bool, int or string
}

type thingMethod struct {
	Description string                   `json:"description"`
	Parameters  map[string]ThingProperty `json:"parameters"`
}

type descriptor struct {
	Name        string                   `json:"name"`
	Description string                   `json:"description"`
	Properties  map[string]ThingProperty `json:"properties"`
	Methods     map[string]thingMethod   `json:"methods"`
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

func named(properties []ThingProperty) map[string]ThingProperty {
	m := make(map[string]ThingProperty)
	for _, p := range properties {
		m[p.Name] = p
	}
	return m
}

// things is the IoT side of older firmware: it describes its things, reports what
// changed, and runs commands. Only the main task calls it, and Dial before that.
type things struct {
	list    []Thing
	atOnce  bool // what a command changed is reported right after it
	link    *link
	journal *Journal
	states  map[string][]byte // of things, as sent last
}

// describe sends one descriptor per message, right after the server's hello.
func (ts *things) describe() error {
	for _, t := range ts.list {
		methods := make(map[string]thingMethod)
		for _, m := range t.Methods {
			methods[m.Name] = thingMethod{Description: m.Description, Parameters: named(m.Parameters)}
		}
		err := ts.send(iotMessage{Descriptors: []descriptor{{
			Name: t.Name, Description: t.Description, Properties: named(t.Properties), Methods: methods,
		}}})
		if err != nil {
			return err
		}
	}
	return nil
}

// report sends the things that changed since the last time: all of them at first.
func (ts *things) report() error {
	var changed []thingState
	for _, t := range ts.list {
		if t.State == nil {
			continue
		}
		state := t.State()
		raw, err := json.Marshal(state)
		if err != nil {
			return fmt.Errorf("state of %s: %w", t.Name, err)
		}
		if !bytes.Equal(ts.states[t.Name], raw) {
			ts.states[t.Name] = raw
			changed = append(changed, thingState{Name: t.Name, State: state})
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return ts.send(iotMessage{States: changed})
}

func (ts *things) send(m iotMessage) error {
	m.Type, m.Update, m.SessionID = "iot", true, ts.link.ownSession()
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return ts.link.sendText(raw)
}

// run executes commands in order. A device of that firmware crashes at the first that is not exactly as it should be:
// it is RuleIoT, counted, and the connection is gone as if the device had started anew.
func (ts *things) run(now time.Time, m *inbound) {
	if len(ts.list) == 0 {
		return // newer firmware ignores them; the receiver has noted it
	}
	if err := ts.try(now, m); err != nil {
		ts.journal.count(func(s *Stats) { s.Crashes++ })
		ts.journal.violate(now, RuleIoT, "the device crashed: %s", err)
		ts.link.close()
	} else if ts.atOnce {
		_ = ts.report() // the receiver sees the end of the connection too, and tells of it
	}
}

func (ts *things) try(now time.Time, m *inbound) error {
	if name, ok := foreign(m.fields, "session_id", "type", "commands"); ok {
		return fmt.Errorf("the message has a member %s", name)
	}
	var commands []json.RawMessage
	if err := json.Unmarshal(m.fields["commands"], &commands); err != nil || commands == nil {
		return fmt.Errorf("commands cannot be read: %s", shorten(m.fields["commands"]))
	}
	for _, raw := range commands {
		name, method, given, err := readCommand(raw)
		if err != nil {
			return err
		}
		called, ok := ts.method(name, method)
		if !ok {
			return fmt.Errorf("no method %s of %s", method, name)
		}
		args, err := called.arguments(given)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", name, method, err)
		}
		ts.journal.add(Event{At: now, Kind: KindTool, Type: name + "." + method})
		if called.Call != nil {
			called.Call(args)
		}
	}
	return nil
}

// readCommand reads one command as that firmware does.
func readCommand(raw json.RawMessage) (name, method string, parameters map[string]json.RawMessage, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return "", "", nil, fmt.Errorf("a command is no object: %s", shorten(raw))
	}
	if name, ok := foreign(fields, "name", "method", "parameters"); ok {
		return "", "", nil, fmt.Errorf("a command has a member %s", name)
	}
	for member, into := range map[string]any{"name": &name, "method": &method, "parameters": &parameters} {
		if value := fields[member]; string(value) == "null" || json.Unmarshal(value, into) != nil {
			return "", "", nil, fmt.Errorf("a command without a usable %s: %s", member, shorten(raw))
		}
	}
	return name, method, parameters, nil
}

func foreign(fields map[string]json.RawMessage, known ...string) (string, bool) {
	for name := range fields {
		if !slices.Contains(known, name) {
			return name, true
		}
	}
	return "", false
}

// method finds a command by the names of its thing and its own.
func (ts *things) method(thing, name string) (ThingMethod, bool) {
	for _, t := range ts.list {
		if i := slices.IndexFunc(t.Methods, func(m ThingMethod) bool { return m.Name == name }); i >= 0 && t.Name == thing {
			return t.Methods[i], true
		}
	}
	return ThingMethod{}, false
}

// arguments takes the parameters, each of exactly its type.
func (m ThingMethod) arguments(given map[string]json.RawMessage) (map[string]any, error) {
	args := make(map[string]any)
	for name := range given {
		if !slices.ContainsFunc(m.Parameters, func(p ThingProperty) bool { return p.Name == name }) {
			return nil, fmt.Errorf("there is no parameter %s", name)
		}
	}
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
	var power atomic.Bool
	var level atomic.Int64
	level.Store(50)
	return Thing{
		Name: "Lamp", Description: "a test lamp",
		Properties: []ThingProperty{
			{Name: "power", Description: "is it on", Type: "boolean"},
			{Name: "level", Description: "how bright it is", Type: "number"},
		},
		Methods: []ThingMethod{
			{Name: "TurnOn", Description: "switch on", Call: func(map[string]any) { power.Store(true) }},
			{Name: "TurnOff", Description: "switch off", Call: func(map[string]any) { power.Store(false) }},
			{
				Name: "SetLevel", Description: "dim", Parameters: []ThingProperty{{Name: "level", Description: "0-100", Type: "number"}},
				Call: func(p map[string]any) { level.Store(int64(p["level"].(int))) },
			},
		},
		State: func() map[string]any { return map[string]any{"power": power.Load(), "level": int(level.Load())} },
	}
}

// Speaker is the loudspeaker that every device of that firmware had, as a thing,
// and a function that tells its volume. It starts at 70.
func Speaker() (speaker Thing, volume func() int) {
	var now atomic.Int64
	now.Store(70)
	volume = func() int { return int(now.Load()) }
	return Thing{
		Name: "Speaker", Description: "扬声器",
		Properties: []ThingProperty{{Name: "volume", Description: "当前音量值", Type: "number"}},
		Methods: []ThingMethod{{
			Name: "SetVolume", Description: "设置音量",
			Parameters: []ThingProperty{{Name: "volume", Description: "0到100之间的整数", Type: "number"}},
			Call:       func(p map[string]any) { now.Store(int64(p["volume"].(int))) },
		}},
		State: func() map[string]any { return map[string]any{"volume": volume()} },
	}, volume
}
