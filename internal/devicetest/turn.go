package devicetest

import (
	"time"
)

// Times that a reply must keep (3.1, 3.2.4, 3.4, 4.3).
const (
	startGuard    = 100 * time.Millisecond // tts start to first frame
	sentenceAhead = 360 * time.Millisecond // subtitle before its sound
	stopAfter     = 120 * time.Millisecond // tts stop after play-out
	abortLast     = 30 * time.Millisecond  // abort to the last frame
	abortStop     = 50 * time.Millisecond  // abort to its tts stop
	leadFloor     = 180 * time.Millisecond // least lead while sound is at hand
	leadAdapted   = 600 * time.Millisecond // most lead after frames were late (4.3, rule 2)
	leadSettles   = 300 * time.Millisecond // from the start of a burst until the floor holds
	abortPatience = time.Second            // after which a missing tts stop is noted
)

// turn follows the replies of a connection as they look on the wire, apart from
// what the device makes of them. It looks at no clock. The owner holds its lock.
type turn struct {
	tolerance  time.Duration
	forgiven   time.Duration // of tolerance, for the open reply only
	maxLead    time.Duration
	strictLead bool
	violate    func(at time.Time, rule Rule, format string, args ...any)

	heard string // last stt

	reply     *Reply // open reply, or nil
	sentence  time.Time
	late      int       // frames on this connection that found less than the floor ahead, and underruns
	burst     time.Time // first frame since the speaker was last silent
	cutAt     time.Time // when the device asked for the end of the open reply
	cutFrames int       // frames since then
	tail      int       // frames later than abortLast since then
	silent    bool      // the last frame was silence

	aborts []time.Time // aborts that still want their tts stop
	grace  time.Time   // until when one more tts stop is no fault: it crossed an abort
}

// start takes a tts start.
func (t *turn) start(now time.Time, rate int) *Reply {
	if t.reply != nil {
		t.violate(now, RuleStartTwice, "tts start inside a reply that began %s ago", now.Sub(t.reply.Started))
		return t.reply
	}
	t.forgive(-t.forgiven)
	t.reply = &Reply{Heard: t.heard, Started: now, Rate: rate}
	t.heard = ""
	t.sentence, t.burst, t.cutAt = time.Time{}, time.Time{}, time.Time{}
	t.cutFrames, t.tail, t.silent = 0, 0, false
	if len(t.aborts) > 0 {
		// A start that crossed the abort on its way is cut by it; a later one is of a dead turn.
		t.cutAt = t.aborts[0]
		if late := now.Sub(t.aborts[0]); late > abortLast+t.tolerance {
			t.violate(now, RuleStartAfterAbort, "tts start %s after an abort that got no tts stop", late)
		}
	}
	return t.reply
}

// stt takes the text that the server heard.
func (t *turn) stt(now time.Time, text string) {
	if t.reply != nil {
		t.violate(now, RuleSTTInReply, "stt %q inside a reply", text)
	}
	t.heard = text
}

// emotion takes an llm message. A neutral one without text keeps a channel open, at any time.
func (t *turn) emotion(now time.Time, emotion, text string) {
	if t.reply != nil {
		t.reply.Emotion = emotion
		return
	}
	if emotion != "neutral" || text != "" {
		t.violate(now, RuleOutsideReply, "llm %s outside a reply is lost at the next change of state", emotion)
	}
}

// sentenceStart takes a subtitle.
func (t *turn) sentenceStart(now time.Time, text string) {
	if t.reply == nil {
		t.violate(now, RuleOutsideReply, "sentence_start %q outside a reply", text)
		return
	}
	t.reply.Sentences = append(t.reply.Sentences, Sentence{Text: text, At: now})
	t.sentence = now
}

// frame takes the arrival of a packet. It returns the reply that it belongs to, or nil.
func (t *turn) frame(now time.Time) *Reply {
	r := t.reply
	if r == nil {
		t.violate(now, RuleFrameOutside, "a frame with no tts start before it")
		return nil
	}
	if gap := now.Sub(r.Started); gap < startGuard-t.tolerance {
		t.violate(now, RuleEarlyFrame, "a frame %s after tts start", gap)
	}
	r.Frames++
	r.LastFrame = now
	if r.FirstFrame.IsZero() {
		r.FirstFrame = now
	}
	if !t.cutAt.IsZero() {
		t.cutFrames++
		if now.Sub(t.cutAt) > abortLast+t.tolerance {
			if t.tail++; t.tail > 1 {
				t.violate(now, RuleAbortFrames, "a frame %s after the reply was cut", now.Sub(t.cutAt))
			}
		}
	}
	return r
}

// placed says when the frame that arrived now will play, and that the one before it ended at ends.
func (t *turn) placed(now, from, ends time.Time, length time.Duration, silent bool) {
	r := t.reply
	if r == nil {
		return
	}
	t.silent = silent
	if !t.sentence.IsZero() {
		if ahead := from.Sub(t.sentence); ahead > sentenceAhead+t.tolerance {
			t.violate(now, RuleSentenceEarly, "sentence_start %s before its sound", ahead)
		}
		t.sentence = time.Time{}
	}
	if t.burst.IsZero() {
		t.burst = now
	} else if ends.Before(now) && t.cutAt.IsZero() {
		r.Underruns++
		t.late++
		t.burst = now
		if t.strictLead {
			t.violate(now, RuleUnderrun, "the speaker was silent for %s", now.Sub(ends))
		}
	}
	t.measureLead(now, from.Add(length).Sub(now))
	r.PlayedOut = from.Add(length)
}

func (t *turn) measureLead(now time.Time, lead time.Duration) {
	r := t.reply
	r.LeadMax = max(r.LeadMax, lead)
	most := t.maxLead
	if t.late >= 2 { // jitter was there to be measured
		most = max(most, leadAdapted)
	}
	if lead > most+t.tolerance {
		t.violate(now, RuleLeadHigh, "%s of sound ahead", lead)
	}
	if now.Sub(t.burst) < leadSettles {
		return
	}
	if r.LeadMin == 0 || lead < r.LeadMin {
		r.LeadMin = lead
	}
	if lead < leadFloor {
		t.late++
	}
	if t.strictLead && lead < leadFloor-t.tolerance && t.cutAt.IsZero() {
		t.violate(now, RuleLeadLow, "%s of sound ahead", lead)
	}
}

// stop takes a tts stop. It returns the reply that it ends, or nil.
func (t *turn) stop(now time.Time, mode Mode) *Reply {
	r := t.reply
	if r == nil {
		t.stopAlone(now)
		return nil
	}
	t.reply = nil
	r.Stopped = now
	switch {
	case !t.cutAt.IsZero():
		r.Cut = true
		t.stopCut(now, r)
	case r.PlayedOut.IsZero(): // no sound, or none that was played
	case mode == Realtime && now.Before(r.PlayedOut.Add(-t.tolerance)):
		// The server heard the user speak over the reply.
		r.Cut = true
		t.closingFrame(now)
	default:
		t.stopPlayed(now, r)
	}
	return r
}

// stopAlone judges a tts stop without a reply: fine only as the answer to an abort.
func (t *turn) stopAlone(now time.Time) {
	switch {
	case len(t.aborts) > 0:
		t.answered(now)
	case now.Before(t.grace):
		t.grace = time.Time{}
	default:
		t.violate(now, RuleStopUnpaired, "tts stop with neither a reply nor an abort before it")
	}
}

// stopPlayed judges the end of a reply that nobody cut.
func (t *turn) stopPlayed(now time.Time, r *Reply) {
	switch late := now.Sub(r.PlayedOut); {
	case late < -t.tolerance:
		t.violate(now, RuleStopEarly, "tts stop %s before the sound was played", -late)
	case late > stopAfter+t.tolerance:
		t.violate(now, RuleStopLate, "tts stop %s after play-out", late)
	}
}

// stopCut judges the end of a reply that the device asked for. A stop which fits
// the natural end may have crossed the abort, which then gets a second one.
func (t *turn) stopCut(now time.Time, r *Reply) {
	aborted := len(t.aborts) > 0
	if aborted {
		t.answered(now)
	}
	late := now.Sub(r.PlayedOut)
	if t.cutFrames == 0 && late >= -t.tolerance && late <= stopAfter+t.tolerance {
		if aborted {
			t.grace = now.Add(abortPatience)
		}
		return
	}
	if r.Frames > 0 {
		if t.cutFrames == 0 {
			t.violate(now, RuleAbortLoud, "no closing frame after the reply was cut")
			return
		}
		t.closingFrame(now)
	}
}

func (t *turn) closingFrame(now time.Time) {
	if !t.silent {
		t.violate(now, RuleAbortLoud, "the last frame of a cut reply is not silent")
	}
}

// answered takes the oldest abort as answered.
func (t *turn) answered(now time.Time) {
	if took := now.Sub(t.aborts[0]); took > abortStop+t.tolerance {
		t.violate(now, RuleAbortSlow, "tts stop %s after the abort", took)
	}
	t.aborts = t.aborts[1:]
}

// cut notes that the device asks for the end of what is being said.
func (t *turn) cut(now time.Time) {
	if t.reply != nil && t.cutAt.IsZero() {
		t.cutAt = now
	}
}

// abort notes an abort message: it is owed one tts stop.
func (t *turn) abort(now time.Time) {
	t.cut(now)
	t.aborts = append(t.aborts, now)
}

// overdue lists what should have come by now and did not.
func (t *turn) overdue(now time.Time) []Violation {
	var found []Violation
	for _, at := range t.aborts {
		if now.Sub(at) > abortPatience+t.tolerance {
			found = append(found, Violation{At: now, Rule: RuleStopMissing, Detail: "an abort got no tts stop for " + now.Sub(at).String()})
		}
	}
	if t.reply != nil && !t.cutAt.IsZero() && now.Sub(t.cutAt) > abortPatience+t.tolerance && len(t.aborts) == 0 {
		found = append(found, Violation{At: now, Rule: RuleStopMissing, Detail: "a reply that was cut got no tts stop for " + now.Sub(t.cutAt).String()})
	}
	return found
}

// forgive is for a device that did not look at its socket for a while: what the
// open reply has waiting there is late or early by as much, and nobody's fault.
func (t *turn) forgive(d time.Duration) {
	t.tolerance += d
	t.forgiven += d
}
