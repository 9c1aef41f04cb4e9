package devicetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// pageBytes is how long the text of one page of tools may be (5.3).
const pageBytes = 8000

// answer serves an MCP request in the main task, which does nothing else meanwhile (5.4).
func (d *Device) answer(ctx context.Context, m *inbound) {
	r, notification, silent := parseRequest(m)
	if silent != "" || notification || d.opt.MuteMCP || !d.offersMCP() {
		return
	}
	result, err := d.serve(ctx, r)
	var payload string
	if err != nil {
		payload = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":%s}`, r.id, d.errorObject(err))
	} else {
		payload = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, r.id, result)
	}
	session := ""
	if !d.traits.emptySession {
		session = d.SessionID()
	}
	d.mu.Lock()
	delete(d.requests.calls, r.id)
	d.mu.Unlock()
	// A failed write ends the connection, and the reader tells of that.
	_ = d.sendText(fmt.Appendf(nil, `{"session_id":"%s","type":"mcp","payload":%s}`, session, payload))
}

// errorObject is the firmware's: no code, and the message pasted in without
// escaping, so that some are not JSON at all (5.1). The desktop client does better.
func (d *Device) errorObject(err error) string {
	if d.opt.Profile == PyXiaozhi {
		text, _ := json.Marshal(err.Error()) // a string always marshals
		return fmt.Sprintf(`{"code":-32603,"message":%s}`, text)
	}
	return fmt.Sprintf(`{"message":"%s"}`, err)
}

func (d *Device) serve(ctx context.Context, r request) (string, error) {
	switch r.method {
	case "initialize":
		p, err := r.initialize()
		if err != nil {
			return "", err
		}
		if p.Capabilities.Vision != nil {
			d.mu.Lock()
			d.vision = *p.Capabilities.Vision
			d.mu.Unlock()
		}
		return fmt.Sprintf(`{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"%s","version":"%s"}}`,
			mcpVersion, boardName, firmwareVersion), nil
	case "tools/list":
		return d.listTools(r)
	case "tools/call":
		return d.callTool(ctx, r)
	default:
		return "", refusalError("Method not implemented: " + r.method)
	}
}

// listTools makes one page, beginning at the tool that the cursor names.
func (d *Device) listTools(r request) (string, error) {
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
	for _, t := range d.opt.Tools {
		found = found || t.Name == cursor
		if !found || (t.UserOnly && !userTools) {
			continue
		}
		text, err := json.Marshal(t.description())
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
func (d *Device) callTool(ctx context.Context, r request) (string, error) {
	if !r.hasParams {
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
	tool, ok := d.tool(name)
	if !ok {
		return "", refusalError("Unknown tool: " + name)
	}
	args, err := tool.arguments(given)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	d.stats.ToolCalls++
	call := Call{Arguments: args, Vision: d.vision, DeviceID: d.opt.DeviceID, ClientID: d.opt.ClientID, client: d.opt.HTTPClient, violate: d.journal.violate}
	d.mu.Unlock()
	thaw := d.freeze()
	out, err := tool.Call(ctx, call)
	thaw()
	e := Event{At: time.Now(), Kind: KindTool, Type: name, Text: out.Text}
	if raw, err := json.Marshal(args); err == nil {
		e.Raw = raw
	}
	if err != nil {
		e.State, e.Text = "error", err.Error()
	}
	d.journal.add(e)
	if err != nil {
		return "", err
	}
	return out.encode()
}

func (d *Device) tool(name string) (Tool, bool) {
	for _, t := range d.opt.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// freeze stops reader and microphone of a device that Freezes, until thaw is called.
func (d *Device) freeze() (thaw func()) {
	if !d.opt.Freezes {
		return func() {}
	}
	d.awake <- struct{}{}
	began := time.Now()
	d.setFrozen(true)
	return func() {
		d.setFrozen(false)
		d.mu.Lock()
		d.turn.forgive(time.Since(began))
		d.mu.Unlock()
		<-d.awake
	}
}

func (d *Device) setFrozen(frozen bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = frozen
}
