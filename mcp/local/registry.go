package local

import (
	"encoding/json"

	"xiaozhi/mcp"
)

// entry is one tool of this server: all that can be said of it in one place.
type entry struct {
	name    string
	zh, en  string // what it does, for the model; both are given to it
	schema  string // JSON Schema of its arguments
	kind    mcp.Kind
	handler Handler

	readOnly bool // it changes nothing
}

// noArguments is the schema of a tool that takes none.
const noArguments = `{"type":"object","properties":{}}`

// registry is every tool that this server runs itself, in the order in which
// models see them.
func (s *Source) registry() []entry {
	return []entry{
		{
			name:    "get_current_time",
			zh:      "获取当前的日期、时间和星期。",
			en:      "Tells the current date, time and weekday.",
			schema:  noArguments,
			kind:    mcp.Query,
			handler: s.currentTime,

			readOnly: true,
		},
		{
			name: "exit",
			zh:   "用户想结束对话、说再见或要求退出时调用。",
			en:   "Ends the conversation. Call it when the user says goodbye or wants to stop talking.",
			schema: `{"type":"object","properties":{"say_goodbye":{"type":"string",` +
				`"description":"告别的话 / a short farewell in the user's language"}}}`,
			kind:    mcp.Query, // its outcome is a handler to run, so it is waited for
			handler: exit,
		},
	}
}

// tool is the entry as sources list it.
func (e entry) tool() mcp.Tool {
	return mcp.Tool{
		Name:        e.name,
		Description: e.zh + " " + e.en,
		Schema:      json.RawMessage(e.schema),
		Kind:        e.kind,
		Annotations: mcp.Annotations{ReadOnly: &e.readOnly},
	}
}
