package mcp

import (
	"fmt"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// Outcome is the meaning of an [ActionResponse], both to a conversation and to
// an MCP client.
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

// Outcome returns what r means. It is the only place that decides by
// [Action]. Where r gives no words for a failure they are in language, "zh" or
// "en".
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

// Failure returns the outcome of a call that failed. result tells the model so,
// reason is for the ear; where one is empty, result and a general text take its
// place.
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
