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
	quotes   bool                         // its results quote texts of strangers
	destroys bool                         // somebody must say yes to it
	stream   string                       // the group it is listed under outward
	when     func(device []mcp.Tool) bool // it is offered beside these tools of the device; nil: always
	schema   func(string) string          // what it makes of its schema in tools.json; nil: nothing
	off      bool                         // it lacks what it needs
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
// are queries, so that they are waited for. Those that work the device through
// its own tools are offered only where it has none that does the same.
func registry(o Options) []entry {
	const wait, control = mcp.ToolWait, mcp.ToolSystemCtl
	c, out, r, p := clock{o.Now}, outside{o.World, o.Log}, roles(slices.Clone(o.Roles)), player{o.Music, o.Streams, o.Log}
	v, b, d := volume(), brightness(), papers{o.Documents, o.Log}
	noMusic := o.Music == nil
	return slices.DeleteFunc([]entry{
		{name: "get_current_time", stream: "time", runs: wait, handler: c.currentTime, readOnly: true},
		{name: "get_day", stream: "time", runs: wait, handler: c.day, readOnly: true},
		{name: "get_lunar_calendar", stream: "time", runs: wait, handler: c.calendar, readOnly: true},
		{name: "calculate", stream: "util", runs: wait, handler: calculate, readOnly: true},
		{name: "convert_units", stream: "util", runs: wait, handler: convert, readOnly: true},

		out.weatherTool(), out.newsTool(),
		{name: "get_news_details", stream: "info", runs: wait, handler: out.newsDetails, readOnly: true, off: o.World.News.Page != nil || o.World.Feeds == nil},
		{name: "web_search", stream: "info", runs: wait, handler: out.search, readOnly: true, off: o.World.Search == nil},

		{name: "exit", stream: "talk", runs: control, handler: exit},
		{name: "forget_conversation", stream: "talk", runs: control, handler: forget},
		changesRole(r),

		{name: "remember", stream: "memory", runs: wait, handler: remember, off: !o.Memory},
		{name: "recall_memory", stream: "memory", runs: wait, handler: memory(mcp.MemoryRecall), readOnly: true, off: !o.Memory},
		{name: "forget_memory", stream: "memory", runs: wait, handler: memory(mcp.MemoryForget), off: !o.Memory},
		{name: "erase_memory", stream: "memory", runs: wait, handler: memory(mcp.MemoryForgetAll), destroys: true, off: !o.Memory},

		{name: "search_documents", stream: "knowledge", runs: wait, handler: d.search, readOnly: true, quotes: true, off: o.Documents == nil},

		{name: "enrol_voice", stream: "memory", runs: wait, handler: enrol, when: func([]mcp.Tool) bool { return o.Voices() }, off: o.Voices == nil},

		{name: "set_timer", stream: "timer", runs: control, handler: c.setTimer},
		{name: "set_reminder", stream: "timer", runs: control, handler: c.setReminder},
		{name: "list_timers", stream: "timer", runs: control, handler: listTimers, readOnly: true},
		{name: "cancel_timer", stream: "timer", runs: control, handler: cancelTimer},
		{name: "change_timer", stream: "timer", runs: control, handler: changeTimer},
		{name: "snooze_timer", stream: "timer", runs: control, handler: c.snooze},

		{name: "be_quiet", stream: "quiet", runs: control, handler: c.beQuiet, off: !o.Quiet},
		{name: "end_quiet", stream: "quiet", runs: control, handler: endQuiet, off: !o.Quiet},

		{name: "set_routine", stream: "routine", runs: control, handler: c.setRoutine, off: !o.Routines},
		{name: "list_routines", stream: "routine", runs: control, handler: listRoutines, readOnly: true, off: !o.Routines},
		{name: "cancel_routine", stream: "routine", runs: control, handler: cancelRoutine, off: !o.Routines},

		{name: "play_music", stream: "music", runs: control, handler: p.playMusic, when: lacksPlayer, off: noMusic, schema: withoutURL(o.URLs && o.Streams != nil)},
		{name: "list_music", stream: "music", runs: wait, handler: p.listMusic, readOnly: true, when: lacksPlayer, off: noMusic},
		{name: "stop_music", stream: "music", runs: control, handler: playerControl(mcp.MusicStop), when: lacksPlayer, off: noMusic},
		{name: "pause_music", stream: "music", runs: control, handler: playerControl(mcp.MusicPause), when: lacksPlayer, off: noMusic},
		{name: "resume_music", stream: "music", runs: control, handler: playerControl(mcp.MusicResume), when: lacksPlayer, off: noMusic},
		{name: "next_song", stream: "music", runs: control, handler: playerControl(mcp.MusicNext), when: lacksPlayer, off: noMusic},

		{name: "set_volume", stream: "device", runs: wait, handler: v.set, when: v.lacksPlain},
		{name: "adjust_volume", stream: "device", runs: wait, handler: v.adjust, when: v.moves},
		{name: "set_brightness", stream: "device", runs: wait, handler: b.set, when: b.lacksPlain},
		{name: "adjust_brightness", stream: "device", runs: wait, handler: b.adjust, when: b.moves},
		{name: "get_device_status", stream: "device", runs: wait, handler: deviceStatus, readOnly: true, when: lacksStatus},
		{name: "take_photo", stream: "device", runs: wait, handler: takePhoto, when: lacksPhoto},
	}, func(e entry) bool { return e.off })
}

// MemoryTools names the tools by which things are remembered for good.
func MemoryTools() []string {
	return []string{"remember", "recall_memory", "forget_memory", "erase_memory"}
}

// changesRole is the tool that takes another role.
func changesRole(r roles) entry {
	return entry{name: "change_role", stream: "talk", runs: mcp.ToolChangeSysPrompt, handler: r.changeRole, schema: r.schema, off: len(r) == 0}
}

// annotations are what the entry says of itself.
func (e entry) annotations() mcp.Annotations {
	a := mcp.Annotations{ReadOnly: &e.readOnly}
	if e.destroys {
		a.Destructive = &e.destroys
	}
	return a
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
		Annotations: e.annotations(),
		When:        e.when,
		Stream:      e.stream,
		Quotes:      e.quotes,
		NeedsDevice: e.stream == "device" || e.stream == "memory" || e.stream == "knowledge" || e.runs == mcp.ToolSystemCtl || e.runs == mcp.ToolChangeSysPrompt,
	}
}
