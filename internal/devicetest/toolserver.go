package devicetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	mcpVersion = "2024-11-05" // protocol revision that devices speak (5)
	pageBytes  = 8000         // of text in one page of tools (5.3)

	// A tools/call counts as in flight for so long: then a server gives up, later for pictures (5.4), and may send the next one.
	callAge        = 15 * time.Second
	pictureCallAge = 60 * time.Second
)

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
	_ = json.Unmarshal(r.params["cursor"], &cursor) // absent or of another type: as if it were empty
	_ = json.Unmarshal(r.params["withUserTools"], &userTools)
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

// requests judges the MCP requests of a connection, which it remembers. Its methods may be called at the same time.
type requests struct {
	journal *Journal
	mu      sync.Mutex
	seen    map[int64]bool
	calls   map[int64]time.Time // until when a tools/call counts as in flight
}

func newRequests(j *Journal) *requests {
	return &requests{journal: j, seen: make(map[int64]bool), calls: make(map[int64]time.Time)}
}

func (q *requests) answered(id int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.calls, id)
}

type request struct {
	id     int64 // saturated as the firmware does
	exact  bool  // the id was an integer in 1..2147483647
	method string
	raw    json.RawMessage            // the parameters
	params map[string]json.RawMessage // nil: there are none
}

// parseRequest reads a payload. Silent says why the firmware would never answer
// it; notification says that it should not.
func parseRequest(m *inbound) (r request, notification bool, silent string) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(m.fields["payload"], &fields); err != nil || fields == nil {
		return r, false, "payload is not an object"
	}
	var version string
	if err := json.Unmarshal(fields["jsonrpc"], &version); err != nil || version != "2.0" {
		return r, false, `jsonrpc is not "2.0"`
	}
	if err := json.Unmarshal(fields["method"], &r.method); err != nil || r.method == "" {
		return r, false, "no method"
	}
	if strings.HasPrefix(r.method, "notifications") {
		return r, true, ""
	}
	if raw, ok := fields["params"]; ok {
		if err := json.Unmarshal(raw, &r.params); err != nil || r.params == nil {
			return r, false, "params is not an object: " + shorten(raw)
		}
		r.raw = raw
	}
	raw, ok := fields["id"]
	if !ok {
		return r, false, "no id"
	}
	id, err := strconv.ParseFloat(string(bytes.TrimSpace(raw)), 64)
	if err != nil {
		return r, false, "id is not a number: " + shorten(raw)
	}
	r.exact = id == math.Trunc(id) && id >= 1 && id <= math.MaxInt32
	r.id = int64(max(math.MinInt32, min(id, math.MaxInt32)))
	return r, false, ""
}

// check judges an MCP request at its arrival.
func (q *requests) check(now time.Time, m *inbound, offered bool) {
	if !offered {
		q.journal.violate(now, RuleMCPRequest, "MCP to a device whose hello does not offer it")
		return
	}
	r, notification, silent := parseRequest(m)
	if silent != "" {
		q.journal.violate(now, RuleMCPSilent, "%s", silent)
		return
	}
	if notification {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !r.exact:
		q.journal.violate(now, RuleMCPID, "%s with an id outside 1..2147483647", r.method)
	case q.seen[r.id]:
		q.journal.violate(now, RuleMCPID, "%s with id %d for the second time", r.method, r.id)
	}
	q.seen[r.id] = true
	switch r.method {
	case "initialize":
		q.checkInitialize(now, r)
	case "tools/call":
		q.checkCall(now, r)
	}
}

type initializeParams struct {
	ProtocolVersion string `json:"protocolVersion"`
	Capabilities    struct {
		Vision *Vision `json:"vision"`
	} `json:"capabilities"`
}

func (r request) initialize() (initializeParams, error) {
	var p initializeParams
	if r.params == nil {
		return p, nil
	}
	err := json.Unmarshal(r.raw, &p)
	return p, err
}

func (q *requests) checkInitialize(now time.Time, r request) {
	p, err := r.initialize()
	if err != nil {
		q.journal.violate(now, RuleMCPRequest, "initialize: %s", err)
		return
	}
	if p.ProtocolVersion != mcpVersion {
		q.journal.violate(now, RuleMCPRequest, "protocolVersion %q, devices speak %s", p.ProtocolVersion, mcpVersion)
	}
	if v := p.Capabilities.Vision; v != nil && !strings.HasPrefix(v.URL, "http://") && !strings.HasPrefix(v.URL, "https://") {
		q.journal.violate(now, RuleMCPRequest, "vision url %q", v.URL)
	}
}

// checkCall judges a tools/call. The caller holds mu.
func (q *requests) checkCall(now time.Time, r request) {
	if raw, ok := r.params["arguments"]; ok && string(raw) == "null" {
		q.journal.violate(now, RuleMCPRequest, "arguments is null: leave it out or send an object")
	}
	if _, ok := r.params["stackSize"]; ok {
		q.journal.violate(now, RuleMCPRequest, "stackSize must not be sent")
	}
	for id, until := range q.calls {
		if now.Before(until) {
			q.journal.violate(now, RuleMCPBusy, "tools/call %d while %d is in flight", r.id, id)
		}
	}
	age := callAge
	var name string
	if err := json.Unmarshal(r.params["name"], &name); err == nil && (strings.HasPrefix(name, "self.camera.") ||
		name == "self.screen.snapshot" || name == "self.screen.preview_image") {
		age = pictureCallAge
	}
	q.calls[r.id] = now.Add(age)
}
