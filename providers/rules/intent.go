package rules

import (
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
)

// act is the action that a request asks for.
type act string

const (
	actTime    act = "time"
	actDate    act = "date"
	actSet     act = "set"  // a level, to number
	actUp      act = "up"   // a level, by number or by a step
	actDown    act = "down" // a level, by number or by a step
	actMax     act = "max"
	actMin     act = "min"
	actAsk     act = "ask" // what a level is
	actStop    act = "stop"
	actNext    act = "next"
	actPause   act = "pause"
	actTimer   act = "timer"
	actTimers  act = "timers" // what timers and reminders there are
	actHelp    act = "help"
	actBattery act = "battery"
	actStatus  act = "status"
	actPhoto   act = "photo"
	actExit    act = "exit"
	actHello   act = "hello"
	actThanks  act = "thanks"
	actWho     act = "who"
)

// level names a quantity that can be set, raised and lowered.
type level string

const (
	volume     level = "volume"
	brightness level = "brightness"
)

// none is the number of an intent that came without one.
const none = -1

// intent is something understood.
type intent struct {
	act    act
	level  level         // of actSet … actAsk
	number int           // none when not said
	share  bool          // the number was said in percent
	length time.Duration // of actTimer
}

// fast reports whether the fast path may take it from a language model.
func (in intent) fast() bool {
	return slices.Contains([]act{actTime, actStop, actNext, actSet, actUp, actDown, actMax, actMin, actAsk}, in.act)
}

// understand finds the rule for a text. Only a text that says nothing else is
// understood, so that "what is the volume of a sphere" is not about loudness.
func (b *Brain) understand(said string) (intent, bool) {
	if text.Of(said) == text.Chinese {
		for _, t := range chineseForms(said, b.options.Name) {
			if in, ok := match(chineseRules(), t, chineseNumber); ok {
				return in.timed(chineseUnit(t))
			}
		}
		return intent{}, false
	}
	for _, t := range englishForms(said, b.options.Name) {
		if in, ok := match(englishRules(), t+" ", digits); ok {
			return in.timed(englishUnit(t))
		}
	}
	return intent{}, false
}

// match takes the first rule that covers the whole text. A number that was said
// but cannot be read is no match.
func match(rules []rule, text string, number func(string) (int, bool)) (intent, bool) {
	for _, r := range rules {
		groups := r.expr.FindStringSubmatch(text)
		if groups == nil {
			continue
		}
		in := r.want
		in.number = none
		for _, g := range groups[1:] {
			if g == "" {
				continue
			}
			bare := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(g, "%"), "个百分点"), "百分之")
			n, ok := number(bare)
			if !ok {
				return intent{}, false
			}
			in.number, in.share = n, bare != g
		}
		return in, true
	}
	return intent{}, false
}

// timed returns a timer its length; without one it is not understood.
func (in intent) timed(unit time.Duration) (intent, bool) {
	if in.act != actTimer {
		return in, true
	}
	in.length = time.Duration(in.number) * unit
	return in, in.number > 0 && unit > 0
}
