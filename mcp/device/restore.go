package device

import (
	"encoding/json"
	"errors"
	"fmt"

	"xiaozhi/mcp"
)

// savedList is the form in which a list outlives the process.
type savedList struct {
	Info  ServerInfo
	Tools []savedTool
}

// savedTool is a tool of a list.
type savedTool struct {
	Name        string
	Description string   `json:",omitempty"`
	Schema      string   // as it came, to the byte: so it is shared with the list that is read
	Kind        mcp.Kind `json:",omitempty"`
	Annotations mcp.Annotations
	Stream      string `json:",omitempty"`
}

// encodeList returns the form of a list; ok is false if it has none, for a device may have sent anything as a schema.
func encodeList(info ServerInfo, tools []mcp.Tool) (doc string, ok bool) {
	saved := savedList{Info: info}
	for _, t := range tools {
		saved.Tools = append(saved.Tools, savedTool{t.Name, t.Description, string(t.Schema), t.Kind, t.Annotations, t.Stream})
	}
	data, err := json.Marshal(saved)
	return string(data), err == nil
}

// decodeList undoes encodeList, within the limits of a list.
func decodeList(doc string) (ServerInfo, []mcp.Tool, error) {
	var saved savedList
	if err := json.Unmarshal([]byte(doc), &saved); err != nil {
		return ServerInfo{}, nil, fmt.Errorf("the tools that were kept: %w", err)
	}
	var list toolList
	for _, t := range saved.Tools {
		if t.Name == "" || !json.Valid([]byte(t.Schema)) {
			return ServerInfo{}, nil, errors.New("the tools that were kept: one has no name or no schema")
		}
		list.add([]mcp.Tool{{
			Name: t.Name, Description: t.Description, Schema: json.RawMessage(t.Schema), Origin: mcp.Remote, Kind: t.Kind, Annotations: t.Annotations, Source: "device", Stream: t.Stream,
		}})
	}
	return saved.Info, list.tools, nil
}

// Restore gives the client the list that Options.Keep was given last, before the program ended. It counts until the
// device's own has been read, as one that the cache remembers does, and changes nothing if there is a list.
func (c *Client) Restore(doc string) error {
	info, tools, err := decodeList(doc)
	if err != nil || len(tools) == 0 {
		return err
	}
	if now := c.ServerInfo(); now != (ServerInfo{}) && now != info {
		return nil // it has another firmware now
	}
	c.tools.restore(info, c.options.Lists.share(tools))
	return nil
}

// restore takes a list of before if there is none.
func (l *lister) restore(info ServerInfo, tools *[]mcp.Tool) {
	l.mu.Lock()
	if l.ended || l.list.read || len(l.list.tools) > 0 {
		l.mu.Unlock()
		return
	}
	l.list = toolList{tools: *tools, held: tools, complete: true, stale: true}
	l.recalled = &info
	l.mu.Unlock()
	l.client.options.Lists.remember(l.client.options.Device, info, tools)
	l.log.Debug("device tools restored", "tools", len(*tools), "name", info.Name, "version", info.Version)
	l.tell()
}

// Kept returns the tools of a list that Options.Keep was given, of a device that is not connected.
func Kept(doc string) ([]mcp.Tool, error) {
	_, tools, err := decodeList(doc)
	return tools, err
}
