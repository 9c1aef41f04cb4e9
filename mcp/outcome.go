package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

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
	names := [...]string{"error", "not_found", "none", "response", "req_llm", "call_handler"}
	if a < ActionTypeError || a > ActionTypeCallHandler {
		return "unknown"
	}
	return names[a-ActionTypeError]
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

// Outcome is the meaning of an [ActionResponse], both to a conversation and to an MCP client.
type Outcome struct {
	Text    string              // the one result of the call in the history
	Say     string              // to be spoken as it is; "" for nothing
	Again   bool                // the model is asked once more
	Handler *ActionResponseCall // a handler of the conversation to run; nil for none
	Failed  bool                // the tool failed, or its outcome cannot be used
	Reason  string              // why it failed, for the ear
	Value   any                 // the result as it came, for an MCP client; nil for none
	Blocks  []any               // Value as texts and [Image] values; empty if there is nothing to show
}

// Outcome returns what r means. It is the only place that decides by [Action]. Where r gives
// no words for a failure they are in that language, by its tag.
func (r ActionResponse) Outcome(language string) Outcome {
	switch r.Action {
	case ActionTypeNone:
		return Outcome{Text: ResultText(r)}
	case ActionTypeResponse:
		value := r.Response
		if value == nil {
			value = r.Result
		}
		return Outcome{Text: TextOf(value), Say: TextOf(value), Value: value, Blocks: blocks(value)}
	case ActionTypeReqLLM:
		return Outcome{Text: ResultText(r), Again: true, Value: r.Result, Blocks: blocks(r.Result)}
	case ActionTypeCallHandler:
		call, err := DecodeArgs[ActionResponseCall](r.Result)
		if err != nil || call.FuncName == "" {
			return Failure(message.In(text.Lang(language), "mcp/no-handler"), "", language)
		}
		return Outcome{Handler: &call, Value: r.Result, Blocks: blocks(r.Result)}
	case ActionTypeError, ActionTypeNotFound:
		reason, _ := r.Response.(string)
		o := Failure(ResultText(r), reason, language)
		o.Value, o.Blocks = r.Result, blocks(r.Result)
		return o
	}
	return Failure(fmt.Sprintf("unknown action %d", r.Action), "", language)
}

// Failure returns the outcome of a call that failed. result tells the model so, reason is
// for the ear; where one is empty, result and a general text take its place.
func Failure(result, reason, language string) Outcome {
	if result == "" {
		result = message.In(text.Lang(language), "mcp/failed")
	}
	if reason == "" {
		reason = result
	}
	return Outcome{Text: result, Again: true, Failed: true, Reason: reason, Value: result, Blocks: []any{result}}
}

// Failed reports whether a is the action of a failure.
func (a Action) Failed() bool { return a == ActionTypeError || a == ActionTypeNotFound }

// blocks returns value as texts and images, in their order.
func blocks(value any) []any {
	list, ok := value.([]any)
	if !ok || !HasImage(list) {
		list = []any{value}
	}
	out := make([]any, len(list))
	for i, block := range list {
		if image, ok := block.(Image); ok {
			out[i] = image
		} else {
			out[i] = TextOf(block)
		}
	}
	return out
}

// Image is a picture that a tool returned.
type Image struct {
	MIMEType string
	Data     []byte
}

// ResultText is the outcome of a call as text for the history: that of Result, or of
// Response where there is no result, by [TextOf].
func ResultText(r ActionResponse) string {
	if r.Result == nil {
		return TextOf(r.Response)
	}
	return TextOf(r.Result)
}

// TextOf returns a value as text: a string as it is, an [Image] as its type and
// size, everything else as JSON. It never panics.
func TextOf(value any) (text string) {
	defer func() {
		if recover() != nil { // a payload's own MarshalJSON or Error
			text = fmt.Sprintf("[%T]", value)
		}
	}()
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.RawMessage:
		return string(v)
	case error:
		return v.Error()
	case Image:
		return fmt.Sprintf("[%s image, %d bytes]", v.MIMEType, len(v.Data))
	case []any: // blocks of a result; pictures must not be spelled out
		if HasImage(v) {
			texts := make([]string, len(v))
			for i, block := range v {
				texts[i] = TextOf(block)
			}
			return strings.Join(texts, "\n")
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("[%T]", value)
	}
	return string(data)
}

// HasImage reports whether one of the blocks of a result is an [Image].
func HasImage(blocks []any) bool {
	return slices.ContainsFunc(blocks, func(block any) bool { _, ok := block.(Image); return ok })
}
