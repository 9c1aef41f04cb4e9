package remote

import (
	"context"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// Call goes by the router and the checks that calls of the model go through, behind
// those in the device's queue. The limits of the model, per turn and per day, are
// not for calls from outside.
func (d *device) Call(ctx context.Context, call mcp.Call) (response mcp.ActionResponse, invalid string) {
	call.Outside = true
	info := mcp.InfoFrom(ctx)
	info.DeviceID, info.Language = d.id, call.Language
	ctx = mcp.WithInfo(ctx, info)
	p, bad := d.tools.Prepare(call)
	if bad != nil {
		return *bad, p.Invalid
	}
	if p.Offer.Consent {
		return d.permitted(ctx, p), ""
	}
	return d.run(ctx, p), ""
}

// run runs a call from outside; a handler of the conversation completes it.
func (d *device) run(ctx context.Context, p router.Prepared) mcp.ActionResponse {
	response := d.tools.Run(ctx, p)
	if response.Action != mcp.ActionTypeCallHandler {
		return response
	}
	named, err := mcp.DecodeArgs[mcp.ActionResponseCall](response.Result)
	if err != nil {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}
	}
	return d.act(ctx, named)
}

// permitted asks the user whether to do what somebody outside wants, and does it
// after a yes. The user hears what has become of it.
func (d *device) permitted(ctx context.Context, p router.Prepared) mcp.ActionResponse {
	refuse := func(id, why string) mcp.ActionResponse {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: message.In(text.Lang(p.Call.Language), id) + why}
	}
	var lang text.Lang
	var texts *prompts.Set
	if err := d.Do(ctx, func(h feature.Host) error {
		lang, texts = h.Lang(), h.Env().Texts
		return nil
	}); err != nil {
		return refuse("agent/consent-gone", "")
	}
	action := think.ActionWords(p.Offer.Tool.Name, p.Offer.Tool.Description, lang)
	answer, err := d.Ask(ctx, texts.Phrase(prompts.ConsentAsk, string(lang), "action", action))
	if err != nil {
		why := ""
		if p.Call.Language != "zh" {
			why = ": " + err.Error()
		}
		return refuse("agent/consent-unanswered", why)
	}
	mention := func(id string, args ...string) {
		_ = d.Do(ctx, func(h feature.Host) error { // a conversation that is over says nothing any more
			_, err := h.Announce(feature.Announcement{Lang: lang, Text: texts.Phrase(id, string(lang), args...)})
			return err
		})
	}
	if intent.YesNo(answer, action) != intent.Yes {
		mention(prompts.ConsentNo)
		return refuse("agent/consent-refused", "")
	}
	response := d.run(ctx, p)
	if e := response.Outcome(string(lang)); e.Failed {
		mention(prompts.LateFailure, "action", action, "reason", think.ReasonWords(e.Reason))
	} else {
		mention(prompts.OK)
	}
	return response
}

// act runs a handler of the conversation for a tool that was called from
// outside, and not by a turn: its words are the result and are not spoken. A
// handler that has the device do something waits for it. The response is an
// Error when ctx or the conversation ends first.
func (d *device) act(ctx context.Context, call mcp.ActionResponseCall) mcp.ActionResponse {
	lang := mcp.InfoFrom(ctx).Language
	var did think.Handled
	err := d.Do(ctx, func(h feature.Host) (err error) {
		did, err = h.Handle(call.FuncName, feature.Caller{Lang: text.Lang(lang)}, call.Args)
		if err == nil && did.HangUp {
			h.Step(turn.Leave{Cause: turn.ErrGoodbye})
		}
		return err
	})
	switch {
	case err != nil:
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}
	case did.Call != nil:
		did.Call.Language = lang
		response, _ := d.Call(ctx, *did.Call)
		return response
	case did.Result != "":
		return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: did.Result}
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: did.Say}
}
