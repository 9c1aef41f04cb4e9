package light

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/schema"
)

// Confirmations of a registration. The first is fixed, word for word (docs/mcp.md, Dialects 1).
const (
	statusRegistered = "registered"
	allRegistered    = "Tools were successfully registered."
	noneRegistered   = "No tool was registered."

	maxNamed = 16 // rejected entries that an answer names; the rest is counted
)

// registration is the parameters of mcp/registerTools, read entry by entry.
type registration struct {
	size     int    // of tools, as mcp.MaxToolList counts
	address  string // mac_addr; "" for none
	tools    []mcp.Tool
	rejected []string // entries that are left out, and why
	odd      []string // entries that are kept although something is wrong with them
}

// register takes the place of the list by the one in f, and answers.
func (l *Source) register(f inbound) {
	r, err := readRegistration(f.params, l.options.HasLocal)
	if err == nil {
		err = l.checkOwner(r.address)
	}
	if err != nil {
		l.logSome(l.log.Warn, "light device registration refused", "err", err)
		if f.id != nil {
			l.refuse(f.id, codeInvalidParams, text.Shorten(err.Error(), 1<<10))
		}
		return
	}
	l.mu.Lock()
	ended := l.ended
	if !ended {
		l.tools, l.registered = r.tools, true
	}
	l.mu.Unlock()
	if ended {
		return
	}
	l.log.Info("light device tools registered", "tools", len(r.tools), "rejected", len(r.rejected))
	if len(r.rejected) > 0 || len(r.odd) > 0 {
		l.logSome(l.log.Warn, "light device registration has flaws", "rejected", named(r.rejected), "odd", named(r.odd))
	}
	if f.id == nil {
		l.logSome(l.log.Warn, "light device registration without id is not confirmed")
	} else {
		l.reply(response{Version: version2, ID: f.id, Result: registerResult{statusRegistered, r.message()}})
	}
	if l.options.OnTools != nil {
		l.options.OnTools()
	}
}

// checkOwner refuses an address that is not the device's.
func (l *Source) checkOwner(address string) error {
	if address == "" || l.options.DeviceID == "" || SameAddress(address, l.options.DeviceID) {
		return nil
	}
	return fmt.Errorf("mac_addr %q is not the Device-Id of this connection", text.Shorten(address, 64))
}

// SameAddress reports whether two spellings name the same device: separators and case do not count.
func SameAddress(a, b string) bool { return plainAddress(a) == plainAddress(b) }

// plainAddress is an address in lower case, without separators.
func plainAddress(address string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '-', ':', '.', '_', ' ', '\t':
			return -1
		}
		return r
	}, strings.ToLower(address))
}

// message is the text of the confirmation.
func (r registration) message() string {
	switch {
	case len(r.rejected) == 0:
		return allRegistered
	case len(r.tools) == 0:
		return noneRegistered + " Rejected: " + named(r.rejected) + "."
	}
	return allRegistered + " Rejected: " + named(r.rejected) + "."
}

// named lists flaws, the last of them only as a number if there are many.
func named(flaws []string) string {
	if over := len(flaws) - maxNamed; over > 0 {
		return strings.Join(flaws[:maxNamed], "; ") + fmt.Sprintf("; and %d more", over)
	}
	return strings.Join(flaws, "; ")
}

// readRegistration reads the parameters. Entries that cannot be used are left
// out and named; an error means that there is no list at all.
func readRegistration(params json.RawMessage, hasLocal func(string) bool) (registration, error) {
	var r registration
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil || fields == nil {
		return r, errors.New("params is missing or no object")
	}
	if address := fields["mac_addr"]; rawjson.Present(address) && json.Unmarshal(address, &r.address) != nil {
		return r, errors.New("params.mac_addr is no text")
	}
	var items []json.RawMessage
	if json.Unmarshal(fields["tools"], &items) != nil || items == nil {
		return r, errors.New("params.tools is missing or no array")
	}
	seen := make(map[string]struct{})
	for i, item := range items {
		if len(r.tools) == mcp.MaxTools {
			r.reject(i, "", fmt.Sprintf("and all after it are over the limit of %d tools", mcp.MaxTools))
			break
		}
		r.take(i, item, seen, hasLocal)
	}
	return r, nil
}

// reject notes why an entry is left out.
func (r *registration) reject(i int, name, why string) {
	r.rejected = append(r.rejected, entryName(i, name)+" "+why)
}

// entryName returns the name of an entry in an answer.
func entryName(i int, name string) string {
	if name == "" {
		return fmt.Sprintf("tools[%d]", i)
	}
	return fmt.Sprintf("tools[%d] %q", i, text.Shorten(name, 64))
}

// take reads one entry into the list.
func (r *registration) take(i int, raw json.RawMessage, seen map[string]struct{}, hasLocal func(string) bool) {
	tool, origin, odd, err := readEntry(raw)
	if err != nil {
		r.reject(i, tool.Name, err.Error())
		return
	}
	if _, twice := seen[tool.Name]; twice {
		r.reject(i, tool.Name, "is there twice, the first is kept")
		return
	}
	seen[tool.Name] = struct{}{}
	for _, what := range odd {
		r.odd = append(r.odd, entryName(i, tool.Name)+" "+what)
	}
	if origin == mcp.Remote {
		if r.size += tool.Size(); r.size > mcp.MaxToolList {
			r.size -= tool.Size()
			r.reject(i, tool.Name, fmt.Sprintf("makes the list larger than %d bytes", mcp.MaxToolList))
			return
		}
		r.tools = append(r.tools, tool)
		return
	}
	// The server's tool is offered to all its devices anyway, by its own source.
	if !hasLocal(tool.Name) {
		r.reject(i, tool.Name, "is no tool of this server")
	}
}

// listedTool is an entry as a device sends it.
type listedTool struct {
	Name        json.RawMessage `json:"name"`
	Description json.RawMessage `json:"description"`
	MainType    json.RawMessage `json:"main_type"`
	SubType     json.RawMessage `json:"sub_type"`
	Parameters  json.RawMessage `json:"parameters"`
}

// readEntry reads one entry. odd is what is wrong with it and can be lived with.
// With an error the tool has its name, if there is one.
func readEntry(raw json.RawMessage) (tool mcp.Tool, origin mcp.Origin, odd []string, err error) {
	var w listedTool
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &w) != nil {
		return tool, "", nil, errors.New("is no object")
	}
	if json.Unmarshal(w.Name, &tool.Name) != nil || strings.TrimSpace(tool.Name) == "" {
		return mcp.Tool{}, "", nil, errors.New("has no name")
	}
	if len(tool.Name) > mcp.MaxToolName {
		return tool, "", nil, fmt.Errorf("has a name of more than %d bytes", mcp.MaxToolName)
	}
	if tool.Schema, err = readParameters(w.Parameters); err != nil {
		return tool, "", nil, err
	}
	if tool.Description = rawjson.Text(w.Description); len(tool.Description) > mcp.MaxDescription {
		odd = append(odd, fmt.Sprintf("has a description of %d bytes, it is cut", len(tool.Description)))
		tool.Description = text.Shorten(tool.Description, mcp.MaxDescription)
	}
	tool.Origin, tool.Source = mcp.Remote, "light"
	if rawjson.Present(w.SubType) {
		switch tool.Kind = mcp.Kind(rawjson.Text(w.SubType)); tool.Kind {
		case mcp.Control, mcp.Query:
		default:
			odd = append(odd, fmt.Sprintf("has the unknown sub_type %q, query is assumed", text.Shorten(string(tool.Kind), 64)))
			tool.Kind = mcp.Query
		}
	}
	origin = mcp.Remote
	if rawjson.Present(w.MainType) {
		switch origin = mcp.Origin(rawjson.Text(w.MainType)); origin {
		case mcp.Remote, mcp.Local:
		default:
			odd = append(odd, fmt.Sprintf("has the unknown main_type %q, remote is assumed", text.Shorten(string(origin), 64)))
			origin = mcp.Remote
		}
	}
	return tool, origin, odd, nil
}

// readParameters is the schema of the arguments as it came, or the empty one.
func readParameters(raw json.RawMessage) (json.RawMessage, error) {
	if raw = bytes.TrimSpace(raw); !rawjson.Present(raw) {
		return json.RawMessage(schema.Empty), nil
	}
	var fields map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &fields) != nil {
		return nil, errors.New("has parameters that are no object")
	}
	if kind := fields["type"]; rawjson.Present(kind) && !slices.Equal(kind, []byte(`"object"`)) {
		return nil, errors.New("has parameters whose type is not object") // models take nothing else
	}
	if len(raw) > schema.MaxSize {
		return nil, fmt.Errorf("has parameters of more than %d bytes", schema.MaxSize)
	}
	return bytes.ToValidUTF8(raw, []byte("\uFFFD")), nil // a copy
}
