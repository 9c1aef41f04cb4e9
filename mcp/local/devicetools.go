package local

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"xiaozhi/mcp"
)

// What makers call their tools differs: self.audio_speaker.set_volume (standard
// firmware, docs/protocol.md 5.5), amplify_volume (docs/mcp.md, Dialects 1), Speaker SetVolume
// (IoT). They are known by the words of their names and the shape of their
// arguments.

// deviceTool is a tool of the device, read for its shape.
type deviceTool struct {
	name  string
	words []string // of its name, in lower case
	raw   json.RawMessage
	shape *shape // nil: not read yet
}

// shape is the part of a schema that decides what a tool does.
type shape struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
	broken     bool
}

// property is one argument.
type property struct {
	Type    any      `json:"type"` // a name, or a list of names
	Minimum *float64 `json:"minimum"`
	Maximum *float64 `json:"maximum"`
}

// readTool reads the name of a tool, if one of the parts is in it, in lower case.
// Names are looked at before schemas: this is done at every look-up of a tool.
func readTool(t mcp.Tool, parts ...string) (*deviceTool, bool) {
	name := strings.ToLower(t.Name)
	if !slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) }) {
		return nil, false
	}
	return &deviceTool{name: t.Name, words: mcp.NameWords(t.Name), raw: t.Schema}, true
}

// schema reads the tool's schema. One that is broken has no arguments, and free
// says that it wants some.
func (t *deviceTool) schema() *shape {
	if t.shape == nil {
		t.shape = &shape{}
		t.shape.broken = len(t.raw) > 0 && json.Unmarshal(t.raw, t.shape) != nil
	}
	return t.shape
}

// has reports whether the name holds one of the words.
func (t *deviceTool) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(t.words, w) })
}

// free reports whether it can be called without arguments, or with the given one alone.
func (t *deviceTool) free(argument string) bool {
	s := t.schema()
	return !s.broken && !slices.ContainsFunc(s.Required, func(name string) bool { return name != argument })
}

// only is the name of its one argument of a type: one of the names, else the
// only one there is. "" is for none, and for a tool that wants more.
func (t *deviceTool) only(kind []string, names ...string) string {
	var fit []string
	for name, p := range t.schema().Properties {
		if slices.ContainsFunc(kind, p.is) {
			fit = append(fit, name)
		}
	}
	found := ""
	if len(fit) == 1 {
		found = fit[0]
	}
	if i := slices.IndexFunc(names, func(name string) bool { return slices.Contains(fit, name) }); i >= 0 {
		found = names[i]
	}
	if found == "" || !t.free(found) {
		return ""
	}
	return found
}

// bounds are the least and the greatest value of a number, 0 and 100 where the
// schema does not say.
func (t *deviceTool) bounds(argument string) (low, high int) {
	p := t.schema().Properties[argument]
	low, high = 0, 100
	if p.Minimum != nil {
		low = int(*p.Minimum)
	}
	if p.Maximum != nil {
		high = int(*p.Maximum)
	}
	return low, max(low, high)
}

func (p property) is(kind string) bool {
	switch v := p.Type.(type) {
	case string:
		return v == kind
	case []any:
		return slices.Contains(v, any(kind))
	}
	return false
}

// camera is the device's tool that takes a picture; its zero value is none.
type camera struct {
	tool, argument string
	plain          bool // the model needs no other: it is named so and takes the question
}

func cameraOf(tools []mcp.Tool) camera {
	for _, tool := range tools {
		t, ok := readTool(tool, "photo", "picture", "camera")
		if !ok || t.has("set", "get", "stop", "off", "on", "preview", "show", "delete") {
			continue
		}
		argument := t.only([]string{"string"}, "question", "prompt", "text", "query")
		if argument == "" && !t.free("") {
			continue
		}
		return camera{t.name, argument, argument != "" && t.has("photo", "picture")}
	}
	return camera{}
}

// lacksPhoto reports whether take_photo is offered: there is a camera, but its tool is
// not one that a model can just ask.
func lacksPhoto(tools []mcp.Tool) bool {
	c := cameraOf(tools)
	return c.tool != "" && !c.plain
}

// takePhoto leaves it to the conversation, which can look at the picture.
func takePhoto(ctx context.Context, arguments map[string]any) mcp.ActionResponse {
	c := cameraOf(mcp.PeerFrom(ctx).Tools())
	if c.tool == "" {
		return fail(say(ctx, "local/no-camera"))
	}
	question := strings.TrimSpace(textArg(arguments, "question"))
	if question == "" {
		question = say(ctx, "local/in-picture")
	}
	return handOver(mcp.HandlerTakePhoto, mcp.PhotoArgs{Question: question, Tool: c.tool, Argument: c.argument})
}
