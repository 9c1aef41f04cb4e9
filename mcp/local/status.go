package local

import (
	"context"
	"encoding/json"
	"strings"

	"xiaozhi/mcp"
)

// maxReaders bounds how many of a device's tools are asked for its status.
const maxReaders = 8

// statusTool is the device's tool that tells all of its status, "" if there is none.
func statusTool(tools []mcp.Tool) string {
	for _, tool := range tools {
		t, ok := readTool(tool, "status")
		if ok && t.has("device") && !t.has("set") && t.free("") {
			return t.name
		}
	}
	return ""
}

// statusReaders are the tools that each tell a part of it: get_state of an IoT
// thing, self.battery.get_level.
func statusReaders(tools []mcp.Tool) []string {
	var readers []string
	for _, tool := range tools {
		t, ok := readTool(tool, "get", "state", "status")
		if ok && t.has("get", "state", "status") && !t.has("set", "camera", "photo") && len(readers) < maxReaders && t.free("") {
			readers = append(readers, t.name)
		}
	}
	return readers
}

// lacksStatus reports whether get_device_status is offered: the device tells parts of
// its status, but has no tool for all of it.
func lacksStatus(tools []mcp.Tool) bool {
	return statusTool(tools) == "" && len(statusReaders(tools)) > 0
}

// deviceStatus asks the device how it is, and puts it in words.
func deviceStatus(ctx context.Context, _ map[string]any) mcp.ActionResponse {
	device := mcp.PeerFrom(ctx)
	tools := device.Tools()
	if name := statusTool(tools); name != "" {
		r := device.Call(ctx, name, nil)
		if r.Action.Failed() {
			return r
		}
		return tell(statusText(ctx, r))
	}
	readers := statusReaders(tools)
	if len(readers) == 0 {
		return fail(say(ctx, "local/status-none"))
	}
	var lines []string
	for _, name := range readers {
		lines = append(lines, name+": "+mcp.ResultText(device.Call(ctx, name, nil)))
	}
	return tell(strings.Join(lines, "\n"))
}

// firmwareStatus is the result of self.get_device_status (docs/protocol.md 5.5).
type firmwareStatus struct {
	Speaker struct{ Volume *int } `json:"audio_speaker"`
	Screen  struct {
		Brightness *int
		Theme      string
	}
	Battery struct {
		Level    *int
		Charging bool
	}
	Network struct{ Type, SSID, Carrier, Signal string }
	Chip    struct{ Temperature *float64 }
}

// statusText words a status; one of another form stays as it is.
func statusText(ctx context.Context, r mcp.ActionResponse) string {
	raw := mcp.ResultText(r)
	var s firmwareStatus
	if json.Unmarshal([]byte(raw), &s) != nil {
		return raw
	}
	var parts []string
	add := func(id string, args ...any) { parts = append(parts, say(ctx, id, args...)) }
	if v := s.Speaker.Volume; v != nil {
		add("local/status-volume", *v)
	}
	if v := s.Screen.Brightness; v != nil {
		add("local/status-brightness", *v)
	}
	if s.Screen.Theme != "" {
		add("local/status-theme", s.Screen.Theme)
	}
	if v := s.Battery.Level; v != nil {
		add("local/status-battery", *v)
		if s.Battery.Charging {
			add("local/status-charging")
		}
	}
	if n := s.Network; n.Type != "" {
		add("local/status-network", strings.Join(strings.Fields(n.Type+" "+n.SSID+" "+n.Carrier), " "))
		if n.Signal != "" {
			add("local/status-signal", n.Signal)
		}
	}
	if v := s.Chip.Temperature; v != nil {
		add("local/status-chip", *v)
	}
	if len(parts) == 0 {
		return raw
	}
	return strings.Join(parts, language(ctx).Pick("，", ", "))
}
