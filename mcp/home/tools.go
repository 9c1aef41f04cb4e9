package home

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"xiaozhi/mcp"
)

// toolsFile holds the definitions by the tool's name.
//
//go:embed tools.json
var toolsFile []byte

// The names of the tools.
const (
	toolSwitch = "home_switch"
	toolSet    = "home_set"
	toolMedia  = "home_media"
	toolScene  = "home_scene"
	toolDoor   = "home_open_door"
	toolState  = "home_state"
)

// Limits of what models are shown of the things.
const (
	maxListed = 3 << 10 // bytes of the list of what is where
	maxChoice = 60      // names that an argument is one of
)

// can says what a tool works. It tells nothing of doors, which only their own tool opens.
func can(tool string) func(entity) bool {
	domains := map[string][]string{
		toolSwitch: {"light", "switch", "input_boolean", "fan", "cover", "climate", "media_player"},
		toolSet:    {"light", "fan", "cover", "climate", "media_player"},
		toolMedia:  {"media_player"},
		toolScene:  {"scene", "script"},
	}[tool]
	return func(e entity) bool {
		switch tool {
		case toolDoor:
			return e.isDoor()
		case toolState:
			return e.domain() != "scene" && e.domain() != "script"
		}
		return slices.Contains(domains, e.domain()) && !e.isDoor()
	}
}

// definition describes a tool to models, in Chinese and English.
type definition struct {
	Zh, En   string
	Schema   map[string]json.RawMessage // arguments beside name, area and kind
	Required []string
}

// argument is one argument of a schema.
type argument struct {
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	MaxLength   int      `json:"maxLength,omitempty"`
}

// tools makes the tools for what there is.
func (inv *inventory) tools(doors bool) (tools []mcp.Tool) {
	var all map[string]definition
	if err := json.Unmarshal(toolsFile, &all); err != nil {
		panic("the embedded tools.json: " + err.Error())
	}
	for _, name := range []string{toolSwitch, toolSet, toolMedia, toolScene, toolDoor, toolState} {
		of := slices.DeleteFunc(slices.Clone(inv.entities), func(e entity) bool { return !can(name)(e) })
		if len(of) == 0 || name == toolDoor && !doors {
			continue
		}
		d := all[name]
		words := d.Zh + " " + d.En
		if name == toolSwitch || name == toolScene {
			words += "\n" + list(of)
		}
		yes, no := true, false
		t := mcp.Tool{
			Name: name, Description: words, Schema: schema(name, d, all["arguments"], of, inv.areas), Origin: mcp.Remote, Kind: mcp.Control,
			Annotations: mcp.Annotations{ReadOnly: &no, Destructive: &no}, Source: mcp.SourceHome, Stream: "home",
		}
		switch name {
		case toolState:
			t.Kind, t.Annotations = mcp.Query, mcp.Annotations{ReadOnly: &yes}
		case toolDoor:
			t.Annotations.Destructive = &yes
		}
		tools = append(tools, t)
	}
	return tools
}

// schema makes the schema of a tool: names and areas are those that there are, so that a wrong one is noticed before anything is sent.
func schema(name string, d, common definition, of []entity, areas []string) json.RawMessage {
	var names, kinds, rooms []string
	for _, e := range of {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
		if !slices.Contains(kinds, e.domain()) {
			kinds = append(kinds, e.domain())
		}
	}
	for _, area := range areas {
		if slices.ContainsFunc(of, func(e entity) bool { return e.Area == area }) {
			rooms = append(rooms, area)
		}
	}
	choice := func(key string, of []string) argument {
		var a argument
		if err := json.Unmarshal(common.Schema[key], &a); err != nil {
			panic("the embedded tools.json: " + err.Error())
		}
		if a.MaxLength = 100; len(of) <= maxChoice && name != toolState {
			a.MaxLength, a.Enum = 0, of
		}
		return a
	}
	properties := map[string]any{"name": choice("name", names)}
	if len(rooms) > 0 {
		properties["area"] = choice("area", rooms)
	}
	if name == toolSwitch || name == toolSet || name == toolState {
		slices.Sort(kinds)
		kind := choice("kind", kinds)
		kind.Enum, kind.MaxLength = kinds, 0
		properties["kind"] = kind
	}
	for extra, a := range d.Schema {
		properties[extra] = a
	}
	raw, err := json.Marshal(struct {
		Type       string         `json:"type"`
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required,omitempty"`
	}{"object", properties, d.Required})
	if err != nil {
		panic("the schema of " + name + ": " + err.Error())
	}
	return raw
}

// list says what is where: Kitchen: Ceiling, Fan; Bedroom: Lamp.
func list(of []entity) string {
	var b strings.Builder
	area, begun := "", false
	for _, e := range of {
		piece := ", " + e.Name
		if !begun || e.Area != area {
			piece = "; " + e.Area + ": " + e.Name
			if e.Area == "" {
				piece = "; " + e.Name
			}
		}
		if !begun {
			piece = piece[2:]
		}
		if b.Len()+len(piece) > maxListed {
			b.WriteString(", …")
			break
		}
		b.WriteString(piece)
		area, begun = e.Area, true
	}
	return b.String()
}
