package rules

import "xiaozhi/providers"

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
		return r.call(t, map[string]any{argument: min(max(in.steps(low, high)+in.zero(low), low), high)})
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

// zero returns the value from which a share counts.
func (in intent) zero(low int) int {
	if !in.share {
		return 0
	}
	return low
}
