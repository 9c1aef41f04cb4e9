package devicetest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// mcpVersion is the protocol revision that devices speak (5).
const mcpVersion = "2024-11-05"

// A tools/call counts as in flight for callAge: a server gives up after 15 s, 60 s for pictures (5.4), and may then send the next one.
const (
	callAge        = 15 * time.Second
	pictureCallAge = 60 * time.Second
)

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
