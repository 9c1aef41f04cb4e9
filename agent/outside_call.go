package agent

import (
	"context"

	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// Call runs a tool of the device for somebody outside: by the router and the
// checks that calls of the model go through, behind those in the device's queue.
// It waits for the true result, of a control too. A tool that needs the user's yes
// is run when the user, who is asked aloud, has said so. invalid is why the
// arguments cannot be used, if that is what the response is about. The limits of
// the model, per turn and per day, are not for calls from outside.
func (c *Conversation) Call(ctx context.Context, call mcp.Call) (response mcp.ActionResponse, invalid string) {
	call.Outside = true
	info := mcp.InfoFrom(ctx)
	info.DeviceID, info.Language = c.session.DeviceID, call.Language
	ctx = mcp.WithInfo(ctx, info)
	p, bad := c.tools.Prepare(call)
	if bad != nil {
		return *bad, p.Invalid
	}
	if p.Offer.Consent {
		return c.permitted(ctx, p), ""
	}
	return c.run(ctx, p), ""
}

// run runs a call from outside; a handler of the conversation completes it.
func (c *Conversation) run(ctx context.Context, p router.Prepared) mcp.ActionResponse {
	response := c.tools.Run(ctx, p)
	if response.Action != mcp.ActionTypeCallHandler {
		return response
	}
	named, err := mcp.DecodeArgs[mcp.ActionResponseCall](response.Result)
	if err != nil {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}
	}
	return c.act(ctx, named)
}

// permitted asks the user whether to do what somebody outside wants, and does it
// after a yes. The user hears what has become of it.
func (c *Conversation) permitted(ctx context.Context, p router.Prepared) mcp.ActionResponse {
	refuse := func(id, why string) mcp.ActionResponse {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: message.In(text.Lang(p.Call.Language), id) + why}
	}
	var lang, action string
	if err := c.do(ctx, func() error {
		lang = c.language()
		action = think.ActionWords(p.Offer.Tool.Name, p.Offer.Tool.Description, text.Lang(lang))
		return nil
	}); err != nil {
		return refuse("consent-gone", "")
	}
	answer, err := c.Ask(ctx, c.o.Prompts.Phrase(prompts.ConsentAsk, lang, "action", action), 0)
	if err != nil {
		why := ""
		if p.Call.Language != "zh" {
			why = ": " + err.Error()
		}
		return refuse("consent-unanswered", why)
	}
	if intent.YesNo(answer, action) != intent.Yes {
		c.mention(ctx, lang, c.o.Prompts.Phrase(prompts.ConsentNo, lang))
		return refuse("consent-refused", "")
	}
	response := c.run(ctx, p)
	if e := response.Outcome(lang); e.Failed {
		c.mention(ctx, lang, c.o.Prompts.Phrase(prompts.LateFailure, lang, "action", action, "reason", spokenReason(e.Reason)))
	} else {
		c.mention(ctx, lang, c.o.Prompts.Phrase(prompts.OK, lang))
	}
	return response
}

// mention says something at the next pause that nobody waits for.
func (c *Conversation) mention(ctx context.Context, language, text string) {
	_ = c.do(ctx, func() error { // a conversation that is over says nothing any more
		c.tell(notice{language: language, say: text})
		return nil
	})
}
