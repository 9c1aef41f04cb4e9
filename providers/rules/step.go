package rules

import (
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/providers"
)

// scope says how much of its knowledge the brain may use.
type scope bool

const (
	everything scope = true
	fastOnly   scope = false
)

// request is one step being worked out.
type request struct {
	*Brain
	providers.LLMRequest
	scope scope
	lang  text.Lang
	tools []tool
	said  string
}

// step works one step out. It is false where no rule applies.
func (b *Brain) step(req providers.LLMRequest, s scope) (providers.Delta, bool) {
	t, ok := readTurn(req.Messages)
	if !ok {
		return providers.Delta{}, false
	}
	in, understood := b.understand(t.said)
	if s == fastOnly && (!understood || !in.fast() || t.result != nil && !t.result.own()) {
		return providers.Delta{}, false
	}
	r := request{Brain: b, LLMRequest: req, scope: s, lang: langOf(req), said: t.said}
	if !req.NoTools {
		r.tools = readTools(req.Tools)
	}
	switch {
	case t.result != nil:
		return r.afterTool(in, *t.result)
	case understood:
		return r.begin(in)
	}
	return r.deviceTool()
}

// text answers with a phrase.
func (r request) text(id string, args ...string) (providers.Delta, bool) {
	return providers.Delta{Text: r.say(id, r.lang, args...)}, true
}

// missing says that what is needed is not there; the fast path leaves that to
// the model, which may know another way.
func (r request) missing(id string) (providers.Delta, bool) {
	if r.scope == fastOnly {
		return providers.Delta{}, false
	}
	return r.text(id)
}

// call asks for a tool.
func (r request) call(t tool, arguments map[string]any) (providers.Delta, bool) {
	return newCall(r.LLMRequest, t, arguments), true
}

// begin returns the first step of an intent.
func (r request) begin(in intent) (providers.Delta, bool) {
	now := r.options.Now().In(r.options.Zone)
	switch in.act {
	case actTime:
		return r.text(phraseTime, "time", spoken.SayTimeOfDay(now, r.lang))
	case actDate:
		return r.text(phraseDate, "date", spoken.SayDay(now, r.lang), "weekday", spoken.SayWeekday(now, r.lang))
	case actSet, actUp, actDown, actMax, actMin:
		return r.setLevel(in)
	case actAsk, actBattery, actStatus:
		return r.askStatus(in)
	case actStop:
		return r.play(phraseOK, "stop", "cancel")
	case actNext:
		return r.play(phraseNoMusic, "next", "skip")
	case actPause:
		return r.play(phraseNoMusic, "pause")
	case actTimer:
		return r.setTimer(in)
	case actTimers:
		return r.listTimers()
	case actPhoto:
		return r.look()
	case actExit:
		if t, ok := find(r.tools, func(t tool) bool { return t.has("exit", "goodbye") && t.free() }); ok {
			return r.call(t, nil)
		}
		return r.text(phraseGoodbye)
	default:
		return r.smallTalk(in)
	}
}

func (r request) smallTalk(in intent) (providers.Delta, bool) {
	switch in.act {
	case actHelp:
		return r.text(phraseWhatCanIDo)
	case actHello:
		return r.text(phraseHello, "name", r.options.Name)
	case actThanks:
		return r.text(phraseThanks)
	case actWho:
		return r.text(phraseWho, "name", r.options.Name)
	default:
		return providers.Delta{}, false
	}
}

// play calls a tool of the player, or says why not. Stopping what is not
// playing is no failure.
func (r request) play(without string, verbs ...string) (providers.Delta, bool) {
	if t, ok := player(r.tools, verbs...); ok {
		return r.call(t, nil)
	}
	if without == phraseOK {
		return r.text(phraseOK)
	}
	return r.missing(without)
}

// askStatus asks the device how it is.
func (r request) askStatus(in intent) (providers.Delta, bool) {
	t, ok := teller(r.tools, in)
	if !ok {
		return r.missing(phraseNoStatus)
	}
	return r.call(t, nil)
}

// look takes a picture and asks about it.
func (r request) look() (providers.Delta, bool) {
	t, question, ok := camera(r.tools)
	if !ok {
		return r.missing(phraseNoPhoto)
	}
	if question == "" {
		return r.call(t, nil)
	}
	return r.call(t, map[string]any{question: r.said})
}
