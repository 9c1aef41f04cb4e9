package offer

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"strings"

	"xiaozhi/mcp/gateway/catalog"
)

//go:embed tools.json
var files embed.FS

// definitions are the descriptions and schemas of the core tools.
type definitions struct {
	DeviceID json.RawMessage       `json:"device_id"` // schema of the argument that names a device
	Tools    map[string]definition `json:"tools"`     // by full name
}

// definition describes one tool.
type definition struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// readDefinitions reads the definitions, which are built in.
func readDefinitions() (definitions, error) {
	var d definitions
	data, err := files.ReadFile("tools.json")
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(data, &d)
}

// tool returns t with the description and the schema of its name.
func (d definitions) tool(t catalog.Tool) (catalog.Tool, error) {
	def, ok := d.Tools[catalog.JoinName(t.Stream, t.Name)]
	if !ok {
		return t, errors.New("it has no definition")
	}
	var schema bytes.Buffer
	if err := json.Compact(&schema, def.Schema); err != nil {
		return t, err
	}
	t.Description, t.Schema = strings.TrimSpace(def.Description), schema.Bytes()
	return t, nil
}
