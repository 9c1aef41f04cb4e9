package agent

import (
	"context"
	"fmt"

	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"

	"xiaozhi/mcp"
)

// act runs a handler of the conversation for a tool that was called from
// outside, and not by a turn: its words are the result and are not spoken. A
// handler that has the device do something waits for it. The response is an
// Error when ctx or the conversation ends first.
func (c *Conversation) act(ctx context.Context, call mcp.ActionResponseCall) mcp.ActionResponse {
	lang := mcp.InfoFrom(ctx).Language
	refuse := func(err error) mcp.ActionResponse {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}
	}
	h, ok := handlers()[call.FuncName]
	if !ok {
		return refuse(fmt.Errorf("there is no handler named %q", call.FuncName))
	}
	var did think.Handled
	err := c.do(ctx, func() (err error) {
		did, err = h(c, caller{lang: lang}, call.Args)
		if err == nil && did.HangUp {
			c.step(turn.Leave{Cause: turn.ErrGoodbye})
		}
		return err
	})
	switch {
	case err != nil:
		return refuse(err)
	case did.Call != nil:
		did.Call.Language = lang
		response, _ := c.Call(ctx, *did.Call)
		return response
	case did.Result != "":
		return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: did.Result}
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: did.Say}
}
