package mcp

// Action says what the conversation does with a tool's outcome. The only switch
// over it is [ActionResponse.Outcome] (docs/mcp.md, Dialects 8).
type Action int

// The six actions. Their values are part of the contract.
const (
	ActionTypeError       Action = -1 // it failed
	ActionTypeNotFound    Action = 0  // no such tool
	ActionTypeNone        Action = 1  // nothing more to do
	ActionTypeResponse    Action = 2  // speak Response as it is
	ActionTypeReqLLM      Action = 3  // give Result to the model for one more step
	ActionTypeCallHandler Action = 4  // run the named handler of the conversation
)

// String is the action's stable name in logs.
func (a Action) String() string {
	switch a {
	case ActionTypeError:
		return "error"
	case ActionTypeNotFound:
		return "not_found"
	case ActionTypeNone:
		return "none"
	case ActionTypeResponse:
		return "response"
	case ActionTypeReqLLM:
		return "req_llm"
	case ActionTypeCallHandler:
		return "call_handler"
	}
	return "unknown"
}

// ActionResponse is the outcome of a tool call as a tool returns it.
type ActionResponse struct {
	Action   Action `json:"action"`
	Result   any    `json:"result"`   // any JSON value, or ActionResponseCall
	Response any    `json:"response"` // what to speak
}

// ActionResponseCall names a handler of the conversation, with its arguments.
type ActionResponseCall struct {
	FuncName string `json:"funcName"`
	Args     any    `json:"args"`
}

// ToolType is the older classification of tools. Its values are part of the
// contract; here it only decides a tool's [Kind].
type ToolType int

// The tool types.
const (
	ToolNone            ToolType = iota + 1 // nothing happens after the call
	ToolWait                                // the result is waited for
	ToolChangeSysPrompt                     // changes the system prompt, hence the role
	ToolSystemCtl                           // changes the course of the conversation
	ToolIotCtl                              // works an IoT device, needs the connection
	ToolMcpClient                           // belongs to an MCP peer, which knows best
)

// Kind returns the kind of tools of the type: those that change the conversation
// are queries, since their outcome is a handler to run. It is "" for
// ToolMcpClient and for unknown types: [ExplainKind] decides by the tool itself.
func (t ToolType) Kind() Kind {
	switch t {
	case ToolNone, ToolIotCtl:
		return Control
	case ToolWait, ToolChangeSysPrompt, ToolSystemCtl:
		return Query
	case ToolMcpClient:
	}
	return ""
}
