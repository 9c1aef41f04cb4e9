package local

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"

	"xiaozhi/mcp"
)

// entry is one tool of this server. What models read of it stands in tools.json
// under its name.
type entry struct {
	name    string
	runs    mcp.ToolType // what a call means for the talk, which decides the tool's kind
	handler Handler

	readOnly bool                         // it changes nothing
	stream   string                       // the group it is listed under outward
	device   bool                         // it works on a device, whatever it runs as
	when     func(device []mcp.Tool) bool // it is offered beside these tools of the device; nil: always
	schema   func(string) string          // what it makes of its schema in tools.json; nil: nothing
}

// toolsFile holds the definitions by the tool's name.
//
//go:embed tools.json
var toolsFile []byte

// definition describes a tool to models, in Chinese and in English, both of
// which they are given, with the JSON Schema of its arguments.
type definition struct {
	Zh, En string
	Schema json.RawMessage // nil: it takes none
}

// noArguments is the schema of a tool that takes none.
const noArguments = `{"type":"object","properties":{}}`

// registry returns every tool that this server runs itself, in the order in
// which models see them. Those whose outcome is a handler of the conversation
// are queries, so that they are waited for.
func registry(o Options) []entry {
	c := clock{o.Now}
	return slices.Concat(
		grouped("", c.knowing()), grouped("info", outside{o.Weather, o.News, o.Log}.telling()), grouped("talk", roles(slices.Clone(o.Roles)).talking()),
		grouped("timer", c.ringing()), grouped("music", player{o.Music, o.Log}.playing()), grouped("device", working()),
	)
}

// grouped lists entries under a stream, those that name none themselves.
func grouped(stream string, entries []entry) []entry {
	for i := range entries {
		e := &entries[i]
		if e.stream == "" {
			e.stream = stream
		}
		e.device = stream == "device" || e.runs == mcp.ToolSystemCtl || e.runs == mcp.ToolChangeSysPrompt
	}
	return entries
}

// knowing are the tools that tell something.
func (c clock) knowing() []entry {
	return []entry{
		{name: "get_current_time", stream: "time", runs: mcp.ToolWait, handler: c.currentTime, readOnly: true},
		{name: "get_lunar_calendar", stream: "time", runs: mcp.ToolWait, handler: c.calendar, readOnly: true},
		{name: "calculate", stream: "util", runs: mcp.ToolWait, handler: calculate, readOnly: true},
	}
}

// talking are the tools that touch the conversation.
func (r roles) talking() []entry {
	entries := []entry{
		{name: "exit", runs: mcp.ToolSystemCtl, handler: exit},
		{name: "forget_conversation", runs: mcp.ToolSystemCtl, handler: forget},
	}
	if len(r) > 0 {
		entries = append(entries, entry{name: "change_role", runs: mcp.ToolChangeSysPrompt, handler: r.changeRole, schema: r.schema})
	}
	return entries
}

// ringing are the tools for what is to be told later.
func (c clock) ringing() []entry {
	return []entry{
		{name: "set_timer", runs: mcp.ToolSystemCtl, handler: c.setTimer},
		{name: "set_reminder", runs: mcp.ToolSystemCtl, handler: c.setReminder},
		{name: "list_timers", runs: mcp.ToolSystemCtl, handler: listTimers, readOnly: true},
		{name: "cancel_timer", runs: mcp.ToolSystemCtl, handler: cancelTimer},
	}
}

// working are the tools that work the device through its own tools. Each is
// offered only where the device has no tool that does the same by itself.
func working() []entry {
	v, b := volume(), brightness()
	return []entry{
		{name: "set_volume", runs: mcp.ToolWait, handler: v.set, when: v.lacksPlain},
		{name: "adjust_volume", runs: mcp.ToolWait, handler: v.adjust, when: v.moves},
		{name: "set_brightness", runs: mcp.ToolWait, handler: b.set, when: b.lacksPlain},
		{name: "adjust_brightness", runs: mcp.ToolWait, handler: b.adjust, when: b.moves},
		{name: "get_device_status", runs: mcp.ToolWait, handler: deviceStatus, readOnly: true, when: lacksStatus},
		{name: "take_photo", runs: mcp.ToolWait, handler: takePhoto, when: lacksPhoto},
	}
}

// telling are the tools for what stands in the config.
func (o outside) telling() []entry {
	var entries []entry
	if p := o.weather.Page; p != nil {
		entries = append(entries, entry{name: "get_weather", runs: mcp.ToolWait, handler: o.tellWeather, readOnly: true, schema: ifNamed(p, "city")})
	}
	if p := o.news.Page; p != nil {
		entries = append(entries, entry{name: "get_news", runs: mcp.ToolWait, handler: o.tellNews, readOnly: true, schema: ifNamed(p, "query")})
	}
	return entries
}

// playing are the tools for music of the server's own folder.
func (p player) playing() []entry {
	if p.music == nil {
		return nil
	}
	return []entry{
		{name: "play_music", runs: mcp.ToolSystemCtl, handler: p.playMusic, when: lacksPlayer},
		{name: "list_music", runs: mcp.ToolWait, handler: p.listMusic, readOnly: true, when: lacksPlayer},
		{name: "stop_music", runs: mcp.ToolSystemCtl, handler: playerControl(mcp.MusicStop), when: lacksPlayer},
		{name: "pause_music", runs: mcp.ToolSystemCtl, handler: playerControl(mcp.MusicPause), when: lacksPlayer},
		{name: "resume_music", runs: mcp.ToolSystemCtl, handler: playerControl(mcp.MusicResume), when: lacksPlayer},
		{name: "next_song", runs: mcp.ToolSystemCtl, handler: playerControl(mcp.MusicNext), when: lacksPlayer},
	}
}

// tool returns the entry as sources list it.
func (e entry) tool(d definition) mcp.Tool {
	schema := cmp.Or(string(d.Schema), noArguments)
	if e.schema != nil {
		schema = e.schema(schema)
	}
	return mcp.Tool{
		Name:        e.name,
		Description: d.Zh + " " + d.En,
		Schema:      json.RawMessage(schema),
		Kind:        e.runs.Kind(),
		Annotations: mcp.Annotations{ReadOnly: &e.readOnly},
		When:        e.when,
		Stream:      e.stream,
		NeedsDevice: e.device,
	}
}
