package agent

import (
	"context"
	"fmt"

	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
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
func (m *Remote) Call(ctx context.Context, call mcp.Call) (response mcp.ActionResponse, invalid string) {
	call.Outside = true
	info := mcp.InfoFrom(ctx)
	info.DeviceID, info.Language = m.c.session.DeviceID, call.Language
	ctx = mcp.WithInfo(ctx, info)
	p, bad := m.c.tools.Prepare(call)
	if bad != nil {
		return *bad, p.Invalid
	}
	if p.Offer.Consent {
		return m.permitted(ctx, p), ""
	}
	return m.run(ctx, p), ""
}

// run runs a call from outside; a handler of the conversation completes it.
func (m *Remote) run(ctx context.Context, p router.Prepared) mcp.ActionResponse {
	response := m.c.tools.Run(ctx, p)
	if response.Action != mcp.ActionTypeCallHandler {
		return response
	}
	named, err := mcp.DecodeArgs[mcp.ActionResponseCall](response.Result)
	if err != nil {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}
	}
	return m.act(ctx, named)
}

// permitted asks the user whether to do what somebody outside wants, and does it
// after a yes. The user hears what has become of it.
func (m *Remote) permitted(ctx context.Context, p router.Prepared) mcp.ActionResponse {
	refuse := func(id, why string) mcp.ActionResponse {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: message.In(text.Lang(p.Call.Language), id) + why}
	}
	var lang, action string
	if err := m.do(ctx, func() error {
		lang = m.c.language()
		action = think.ActionWords(p.Offer.Tool.Name, p.Offer.Tool.Description, text.Lang(lang))
		return nil
	}); err != nil {
		return refuse("agent/consent-gone", "")
	}
	answer, err := m.Ask(ctx, m.c.o.Prompts.Phrase(prompts.ConsentAsk, lang, "action", action), 0)
	if err != nil {
		why := ""
		if p.Call.Language != "zh" {
			why = ": " + err.Error()
		}
		return refuse("agent/consent-unanswered", why)
	}
	if intent.YesNo(answer, action) != intent.Yes {
		m.mention(ctx, lang, m.c.o.Prompts.Phrase(prompts.ConsentNo, lang))
		return refuse("agent/consent-refused", "")
	}
	response := m.run(ctx, p)
	if e := response.Outcome(lang); e.Failed {
		m.mention(ctx, lang, m.c.o.Prompts.Phrase(prompts.LateFailure, lang, "action", action, "reason", spokenReason(e.Reason)))
	} else {
		m.mention(ctx, lang, m.c.o.Prompts.Phrase(prompts.OK, lang))
	}
	return response
}

// mention says something at the next pause that nobody waits for.
func (m *Remote) mention(ctx context.Context, language, text string) {
	_ = m.do(ctx, func() error { // a conversation that is over says nothing any more
		m.c.dev.news.tell(notice{language: language, say: text})
		return nil
	})
}

// act runs a handler of the conversation for a tool that was called from
// outside, and not by a turn: its words are the result and are not spoken. A
// handler that has the device do something waits for it. The response is an
// Error when ctx or the conversation ends first.
func (m *Remote) act(ctx context.Context, call mcp.ActionResponseCall) mcp.ActionResponse {
	lang := mcp.InfoFrom(ctx).Language
	refuse := func(err error) mcp.ActionResponse {
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}
	}
	h, ok := handlers()[call.FuncName]
	if !ok {
		return refuse(fmt.Errorf("there is no handler named %q", call.FuncName))
	}
	var did think.Handled
	err := m.do(ctx, func() (err error) {
		did, err = h(m.c, caller{lang: lang}, call.Args)
		if err == nil && did.HangUp {
			m.c.step(turn.Leave{Cause: turn.ErrGoodbye})
		}
		return err
	})
	switch {
	case err != nil:
		return refuse(err)
	case did.Call != nil:
		did.Call.Language = lang
		response, _ := m.Call(ctx, *did.Call)
		return response
	case did.Result != "":
		return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: did.Result}
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: did.Say}
}
