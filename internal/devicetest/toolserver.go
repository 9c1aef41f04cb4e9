package devicetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// pageBytes limits the text of one page of tools (5.3).
const pageBytes = 8000

// toolServer is the MCP server of the device: it answers requests in the main task
// and runs the tools there. It owns where pictures go, as initialize said.
type toolServer struct {
	tools  []Tool
	silent bool // requests are never answered
	plain  bool // errors are JSON with a code, as of the desktop client

	deviceID, clientID string
	client             *http.Client // of the camera

	link     *link
	journal  *Journal
	requests *requests
	freezer  *freezer
	vision   Vision
}

// answer serves an MCP request in the main task, which does nothing else meanwhile (5.4).
func (s *toolServer) answer(ctx context.Context, m *inbound) {
	r, notification, dropped := parseRequest(m)
	if dropped != "" || notification || s.silent {
		return
	}
	member := "result"
	result, err := s.serve(ctx, r)
	if err != nil {
		// The firmware gives no code and pastes the message in without escaping, so that some are not JSON at all (5.1).
		member, result = "error", fmt.Sprintf(`{"message":"%s"}`, err)
		if s.plain {
			text, _ := json.Marshal(err.Error()) // a string always marshals
			result = fmt.Sprintf(`{"code":-32603,"message":%s}`, text)
		}
	}
	s.requests.answered(r.id)
	// A failed write ends the connection, and the receiver tells of that.
	_ = s.link.sendText(fmt.Appendf(nil, `{"session_id":"%s","type":"mcp","payload":{"jsonrpc":"2.0","id":%d,"%s":%s}}`,
		s.link.ownSession(), r.id, member, result))
}

func (s *toolServer) serve(ctx context.Context, r request) (string, error) {
	switch r.method {
	case "initialize":
		p, err := r.initialize()
		if err != nil {
			return "", err
		}
		if p.Capabilities.Vision != nil {
			s.vision = *p.Capabilities.Vision
		}
		return fmt.Sprintf(`{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"%s","version":"%s"}}`,
			mcpVersion, boardName, firmwareVersion), nil
	case "tools/list":
		return s.listTools(r)
	case "tools/call":
		return s.callTool(ctx, r)
	default:
		return "", refusalError("Method not implemented: " + r.method)
	}
}

// listTools makes one page, beginning at the tool that the cursor names.
func (s *toolServer) listTools(r request) (string, error) {
	var cursor string
	var userTools bool
	if raw, ok := r.params["cursor"]; ok && json.Unmarshal(raw, &cursor) != nil {
		cursor = ""
	}
	if raw, ok := r.params["withUserTools"]; ok && json.Unmarshal(raw, &userTools) != nil {
		userTools = false
	}
	var page []string
	size, next := 0, ""
	found := cursor == ""
	for _, t := range s.tools {
		found = found || t.Name == cursor
		if !found || (t.UserOnly && !userTools) {
			continue
		}
		text, err := json.Marshal(t.describe())
		if err != nil {
			return "", err
		}
		if size+len(text) > pageBytes {
			next = t.Name
			break
		}
		size += len(text) + 1
		page = append(page, string(text))
	}
	if len(page) == 0 {
		return "", refusef("Failed to add tool %s because of payload size limit", next)
	}
	result := `{"tools":[` + strings.Join(page, ",") + `]`
	if next != "" {
		result += `,"nextCursor":"` + next + `"`
	}
	return result + "}", nil
}

// callTool checks the arguments as the firmware does and runs the tool.
func (s *toolServer) callTool(ctx context.Context, r request) (string, error) {
	if r.params == nil {
		return "", refusalError("Missing params")
	}
	var name string
	if err := json.Unmarshal(r.params["name"], &name); err != nil || name == "" {
		return "", refusalError("Missing name")
	}
	var given map[string]json.RawMessage
	if raw, ok := r.params["arguments"]; ok {
		if err := json.Unmarshal(raw, &given); err != nil || given == nil {
			return "", refusalError("Invalid arguments")
		}
	}
	i := slices.IndexFunc(s.tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return "", refusalError("Unknown tool: " + name)
	}
	tool := s.tools[i]
	args, err := tool.arguments(given)
	if err != nil {
		return "", err
	}
	s.journal.count(func(c *Stats) { c.ToolCalls++ })
	call := Call{Arguments: args, Vision: s.vision, DeviceID: s.deviceID, ClientID: s.clientID, client: s.client, violate: s.journal.violate}
	thaw := s.freezer.freeze()
	out, err := tool.Call(ctx, call)
	thaw()
	e := Event{At: time.Now(), Kind: KindTool, Type: name, Text: out.Text}
	e.Raw, _ = json.Marshal(args) // each is a bool, an int or a string
	if err != nil {
		e.State, e.Text = "error", err.Error()
	}
	s.journal.add(e)
	if err != nil {
		return "", err
	}
	return out.encode()
}
