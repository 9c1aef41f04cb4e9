package rules

import (
	"cmp"
	"strings"
	"time"

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
	zone  *time.Location
}

// step works one step out. It is false where no rule applies.
func (b *Brain) step(req providers.LLMRequest, s scope) (providers.Delta, bool) {
	t, ok := readTurn(req.Messages)
	if !ok {
		return providers.Delta{}, false
	}
	t.said = b.withoutNote(t.said)
	zone := cmp.Or(req.Zone, b.options.Zone)
	in, understood := intent{}, false
	own := text.Lang(req.Language).IsOwn() // 止めて is not for the Chinese rules, and "halt" not for the English ones
	switch {
	case own && s == everything:
		in, understood = b.understandAfter(b.before(req.Messages, zone), t.said, zone, s)
		if understood && in.act == actAgain {
			in, understood = b.again(req.Messages, in, zone)
		}
		if both, whole, ok := b.withTime(req.Messages, t.said, zone); ok {
			in, understood, t.said = both, true, whole
		}
	case own:
		in, understood = b.understand(t.said, zone, s)
	}
	if s == fastOnly && (!understood || !in.fast() || t.result != nil && !t.result.own()) {
		return providers.Delta{}, false
	}
	r := request{Brain: b, LLMRequest: req, scope: s, lang: langOf(req), said: t.said, zone: zone}
	if !req.NoTools {
		r.tools = readTools(req.Tools)
	}
	if own {
		at := house{r}
		if home, ok := at.understandHome(); ok && (!understood || home.named() && !in.social()) {
			return at.carryOut(home, t.result)
		}
	}
	switch {
	case t.result != nil:
		return r.afterTool(in, *t.result)
	case understood:
		return r.begin(in)
	case !own:
		return providers.Delta{}, false
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
	now := r.options.Now().In(r.zone)
	switch in.act {
	case actTime:
		return r.text(phraseTime, "time", spoken.SayTimeOfDay(now, r.lang))
	case actDate:
		return r.text(phraseDate, "date", spoken.SayDay(now, r.lang), "weekday", spoken.SayWeekday(now, r.lang))
	case actSet, actUp, actDown, actMax, actMin:
		return r.setLevel(in)
	case actAsk, actBattery, actStatus, actNetwork:
		t, ok := teller(r.tools, in)
		return r.callIf(t, ok, phraseNoStatus)
	case actStop:
		return r.play(phraseOK, "stop", "cancel")
	case actNext:
		return r.play(phraseNoMusic, "next", "skip")
	case actPause:
		return r.play(phraseNoMusic, "pause")
	case actTimer:
		return r.setTimer(in)
	case actDay, actUntil, actWeeks, actYear, actMonth, actLunar, actZodiac, actTerm, actFestival, actSum, actConvert, actThen,
		actTimeIn, actUntilAt, actLeap, actDaysIn, actBetween, actWeek, actAge:
		said, ok := in.answer(now, r.lang)
		return providers.Delta{Text: said}, ok
	case actPlay:
		return r.playSong(in)
	case actResume:
		return r.play(phraseNoMusic, "resume", "continue")
	case actSongs:
		t, ok := find(r.tools, func(t tool) bool { return t.has("list") && t.has("music", "songs") && t.free() })
		return r.callIf(t, ok, phraseNoSongs)
	case actTimers, actLeft:
		t, ok := find(r.tools, func(t tool) bool {
			return t.has("timers", "timer", "reminders", "reminder", "alarms", "alarm") && t.has("list", "get", "show") && t.free()
		})
		return r.callIf(t, ok, phraseNoTimer)
	case actRemind, actWake:
		if d, ok := r.telling(in); ok {
			return d, ok
		}
		return r.remind(in)
	case actWhen:
		return r.missing(phraseWhen)
	case actCancel, actCancelAll:
		return r.cancel(in)
	case actChange:
		return r.change(in)
	case actSnooze:
		return r.snooze(in)
	case actWeather:
		return outside{r}.weather(in)
	case actNews:
		return outside{r}.news(in)
	case actDetails:
		return outside{r}.details(in)
	case actSearch:
		return outside{r}.search(in)
	case actPhoto:
		return r.look()
	case actEnrol:
		return r.memory("name", in.slots["about"], "enrol", "voice")
	case actRemember:
		return r.memory("text", in.slots["fact"], "remember")
	case actRecall:
		return r.memory("about", subject(in.slots["about"]), "recall")
	case actUnlearn:
		return r.memory("about", in.slots["about"], "forget", "memory")
	case actErase:
		return r.memory("", "", "erase")
	case actDocuments:
		return r.lookUp(in)
	case actQuiet, actLoud, actRoutine, actRoutines, actUnroutine:
		return r.outbox(in)
	case actForget:
		if t, ok := find(r.tools, func(t tool) bool { return t.has("forget") && !t.has("memory") && t.free() }); ok {
			return r.call(t, nil)
		}
	case actExit:
		if t, ok := find(r.tools, func(t tool) bool { return t.has("exit", "goodbye") && t.free() }); ok {
			return r.call(t, nil)
		}
		return r.text(phraseGoodbye)
	case actHelp:
		return r.help()
	case actHello:
		return r.text(phraseHello, "name", r.options.Name)
	case actThanks:
		return r.text(phraseThanks)
	case actWho:
		return r.text(phraseWho, "name", r.options.Name)
	}
	return providers.Delta{}, false
}

// play calls a tool of the player, or says why not. Stopping what is not
// playing is no failure.
func (r request) play(without string, verbs ...string) (providers.Delta, bool) {
	t, ok := player(r.tools, verbs...)
	if !ok && without == phraseOK {
		return r.text(phraseOK)
	}
	return r.callIf(t, ok, without)
}

// callIf asks for a tool that needs no arguments if it was found.
func (r request) callIf(t tool, found bool, without string) (providers.Delta, bool) {
	if !found {
		return r.missing(without)
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

// levelStep is the step of "louder", in hundredths of the range.
const levelStep = 10

// setLevel sets a level, or asks what it is first when it must know.
func (r request) setLevel(in intent) (providers.Delta, bool) {
	t, argument, ok := setter(r.tools, in.level)
	if !ok {
		return r.missing(map[level]string{volume: phraseNoVolume, brightness: phraseNoBrightness}[in.level])
	}
	low, high := t.bounds(argument)
	switch in.act {
	case actSet:
		to := in.steps(low, high)
		if in.share {
			to += low
		}
		return r.call(t, map[string]any{argument: min(max(to, low), high)})
	case actMax:
		return r.call(t, map[string]any{argument: high})
	case actMin:
		return r.call(t, map[string]any{argument: low})
	default:
		if s, ok := teller(r.tools, in); ok {
			return r.call(s, nil)
		}
		return r.moveLevel(in, (low+high)/2)
	}
}

// moveLevel sets a level some way from where it is now.
func (r request) moveLevel(in intent, now int) (providers.Delta, bool) {
	t, argument, ok := setter(r.tools, in.level)
	if !ok {
		return r.text(phraseFailedPlain)
	}
	low, high := t.bounds(argument)
	by := max(1, (high-low)*levelStep/100)
	if in.number != none {
		by = in.steps(low, high)
	}
	if in.act == actDown {
		by = -by
	}
	return r.call(t, map[string]any{argument: min(max(now+by, low), high)})
}

// steps returns the number that was said in steps of a tool that counts from low to
// high: half of 0 to 20 is 10.
func (in intent) steps(low, high int) int {
	if !in.share {
		return in.number
	}
	return (in.number*(high-low) + 50) / 100
}

// setTimer sets a timer, where there is a tool for it.
func (r request) setTimer(in intent) (providers.Delta, bool) {
	t, _ := find(r.tools, func(t tool) bool {
		return t.has("timer", "reminder", "alarm", "countdown", "remind") && !t.has("cancel", "delete", "list", "get", "stop", "remove")
	})
	arguments, ok := timerArguments(t, in.length, r.said)
	if !ok {
		return r.missing(phraseNoTimer)
	}
	timerText(t, arguments, original(in.asked.what, r.said))
	return r.call(t, arguments)
}

// timerArguments fills in a timer's length and, where texts are required, what
// was said. It is false for a tool that wants more, or no number.
func timerArguments(t tool, length time.Duration, said string) (map[string]any, bool) {
	number, _ := t.integer("seconds", "duration_seconds", "minutes", "duration", "delay")
	p, ok := t.schema.Properties[number]
	if !ok {
		return nil, false
	}
	unit, text := time.Second, strings.ToLower(number+" "+p.Description)
	if !containsAny(text, []string{"sec", "秒"}) && containsAny(text, []string{"min", "分"}) {
		unit = time.Minute
	}
	arguments := map[string]any{number: int(length / unit)}
	for _, name := range t.schema.Required {
		switch {
		case name == number:
		case t.schema.Properties[name].is("string"):
			arguments[name] = said
		default:
			return nil, false
		}
	}
	return arguments, true
}
