package devicetest

import (
	"strings"
	"time"
)

// Sentence is one subtitle of a reply.
type Sentence struct {
	Text string
	At   time.Time // when it arrived
}

// Reply holds all of one answer, from tts start to tts stop: words, times and sound.
type Reply struct {
	Heard     string // the last stt text before it; empty for a server turn
	Sentences []Sentence
	Emotion   string // of its llm message; empty if there was none

	Started    time.Time // tts start
	FirstFrame time.Time // arrival; zero when no sound came
	LastFrame  time.Time
	PlayedOut  time.Time // when the last accepted packet had been played, on the model clock
	Stopped    time.Time // tts stop; zero when the connection ended first
	Cut        bool      // the device asked for its end, or realtime mode cut it before play-out

	Frames    int           // packets that arrived
	Dropped   int           // packets of them that were not played
	LeadMin   time.Duration // least sound ahead at an arrival, after the first 300 ms of a burst; 0: never measured
	LeadMax   time.Duration // most sound ahead at an arrival
	Underruns int           // times the speaker fell silent before more sound came

	Rate int     // Hz of PCM
	PCM  []int16 // what was played

	counted int // underruns that Stats has
}

// Text returns all sentences, one after the other, with a space between two that need one.
func (r *Reply) Text() string {
	parts := make([]string, 0, len(r.Sentences))
	for _, s := range r.Sentences {
		parts = append(parts, s.Text)
	}
	return strings.Join(parts, " ")
}

// Duration returns the length of the played sound.
func (r *Reply) Duration() time.Duration {
	if r.Rate == 0 {
		return 0
	}
	return time.Duration(len(r.PCM)) * time.Second / time.Duration(r.Rate)
}

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

// replyCheck holds the replies of a connection to the rules, as they look on the wire, apart from what the device
// makes of them. It looks at no clock. Its owner holds the lock.
type replyCheck struct {
	limits   Limits
	forgiven time.Duration // of the tolerance, for the open reply only
	violate  func(at time.Time, rule Rule, format string, args ...any)

	heard    string // last stt
	reply    *Reply // open reply, or nil
	sentence time.Time
	late     int       // frames on this connection that found less than the floor ahead, and underruns
	burst    time.Time // first frame since the speaker was last silent
	silent   bool      // the last frame was silence
	ending   ending    // of the open reply, once the device has asked for it

	aborts []time.Time // aborts that still want their tts stop
	grace  time.Time   // until when one more tts stop is no fault: it crossed an abort
}

// ending counts the frames of a reply since the device asked for its end.
type ending struct {
	at     time.Time // zero: it has not asked
	frames int
	tail   int // frames later than abortLast
}

// isCut reports whether the device has asked for the end of the open reply.
func (c *replyCheck) isCut() bool { return !c.ending.at.IsZero() }

func (c *replyCheck) start(now time.Time, rate int) *Reply {
	if c.reply != nil {
		c.violate(now, RuleStartTwice, "tts start inside a reply that began %s ago", now.Sub(c.reply.Started))
		return c.reply
	}
	c.forgive(-c.forgiven)
	c.reply = &Reply{Heard: c.heard, Started: now, Rate: rate}
	c.heard = ""
	c.sentence, c.burst, c.silent, c.ending = time.Time{}, time.Time{}, false, ending{}
	if len(c.aborts) > 0 {
		// A start that crossed the abort on its way is cut by it; a later one is of a dead turn.
		c.ending.at = c.aborts[0]
		c.limit(now, now.Sub(c.aborts[0]), abortLast, RuleStartAfterAbort, "tts start %s after an abort that got no tts stop")
	}
	return c.reply
}

func (c *replyCheck) stt(now time.Time, text string) {
	if c.reply != nil {
		c.violate(now, RuleSTTInReply, "stt %q inside a reply", text)
	}
	c.heard = text
}

// emotion takes an llm message. A neutral one without text keeps a channel open, at any time.
func (c *replyCheck) emotion(now time.Time, emotion, text string) {
	if c.reply != nil {
		c.reply.Emotion = emotion
		return
	}
	if emotion != "neutral" || text != "" {
		c.violate(now, RuleOutsideReply, "llm %s outside a reply is lost at the next change of state", emotion)
	}
}

func (c *replyCheck) sentenceStart(now time.Time, text string) {
	if c.reply == nil {
		c.violate(now, RuleOutsideReply, "sentence_start %q outside a reply", text)
		return
	}
	c.reply.Sentences = append(c.reply.Sentences, Sentence{Text: text, At: now})
	c.sentence = now
}

// frame takes the arrival of a packet. It returns the reply that it belongs to, or nil.
func (c *replyCheck) frame(now time.Time) *Reply {
	r := c.reply
	if r == nil {
		c.violate(now, RuleFrameOutside, "a frame with no tts start before it")
		return nil
	}
	if gap := now.Sub(r.Started); gap < startGuard-c.limits.Tolerance {
		c.violate(now, RuleEarlyFrame, "a frame %s after tts start", gap)
	}
	r.Frames++
	r.LastFrame = now
	if r.FirstFrame.IsZero() {
		r.FirstFrame = now
	}
	if c.isCut() {
		c.ending.frames++
		if now.Sub(c.ending.at) > abortLast+c.limits.Tolerance {
			if c.ending.tail++; c.ending.tail > 1 {
				c.violate(now, RuleAbortFrames, "a frame %s after the reply was cut", now.Sub(c.ending.at))
			}
		}
	}
	return r
}

// startsSoon reports whether tts start came so little before now that a main task which has not applied it yet is forgiven.
func (c *replyCheck) startsSoon(now time.Time) bool {
	return c.reply != nil && !c.isCut() && now.Sub(c.reply.Started) < c.limits.Tolerance
}

// placed says when the frame that arrived now will play, and that the one before it ended at ends.
func (c *replyCheck) placed(now, from, ends time.Time, length time.Duration, silent bool) {
	r := c.reply
	if r == nil {
		return
	}
	c.silent = silent
	if !c.sentence.IsZero() {
		c.limit(now, from.Sub(c.sentence), sentenceAhead, RuleSentenceEarly, "sentence_start %s before its sound")
		c.sentence = time.Time{}
	}
	if c.burst.IsZero() {
		c.burst = now
	} else if ends.Before(now) && !c.isCut() {
		r.Underruns++
		c.late++
		c.burst = now
		if c.limits.StrictLead {
			c.violate(now, RuleUnderrun, "the speaker was silent for %s", now.Sub(ends))
		}
	}
	r.PlayedOut = from.Add(length)
	lead := r.PlayedOut.Sub(now)
	r.LeadMax = max(r.LeadMax, lead)
	most := c.limits.MaxLead
	if c.late >= 2 { // jitter was there to be measured
		most = max(most, leadAdapted)
	}
	c.limit(now, lead, most, RuleLeadHigh, "%s of sound ahead")
	if now.Sub(c.burst) < leadSettles {
		return
	}
	if r.LeadMin == 0 || lead < r.LeadMin {
		r.LeadMin = lead
	}
	if lead < leadFloor {
		c.late++
	}
	if c.limits.StrictLead && lead < leadFloor-c.limits.Tolerance && !c.isCut() {
		c.violate(now, RuleLeadLow, "%s of sound ahead", lead)
	}
}

// stop takes a tts stop. It returns the reply that it ends, or nil.
func (c *replyCheck) stop(now time.Time, mode Mode) *Reply {
	r := c.reply
	if r == nil { // fine only as the answer to an abort
		switch {
		case len(c.aborts) > 0:
			c.answered(now)
		case now.Before(c.grace):
			c.grace = time.Time{}
		default:
			c.violate(now, RuleStopUnpaired, "tts stop with neither a reply nor an abort before it")
		}
		return nil
	}
	c.reply, r.Stopped = nil, now
	switch late := now.Sub(r.PlayedOut); {
	case c.isCut():
		r.Cut = true
		c.stopCut(now, r)
	case r.PlayedOut.IsZero(): // no sound, or none that was played
	case mode == Realtime && now.Before(r.PlayedOut.Add(-c.limits.Tolerance)):
		// The server heard the user speak over the reply.
		r.Cut = true
		c.closingFrame(now)
	default:
		c.limit(now, -late, 0, RuleStopEarly, "tts stop %s before the sound was played")
		c.limit(now, late, stopAfter, RuleStopLate, "tts stop %s after play-out")
	}
	return r
}

// stopCut judges the end of a reply that the device asked for. A stop which fits
// the natural end may have crossed the abort, which then gets a second one.
func (c *replyCheck) stopCut(now time.Time, r *Reply) {
	aborted := len(c.aborts) > 0
	if aborted {
		c.answered(now)
	}
	late := now.Sub(r.PlayedOut)
	if c.ending.frames == 0 && late >= -c.limits.Tolerance && late <= stopAfter+c.limits.Tolerance {
		if aborted {
			c.grace = now.Add(abortPatience)
		}
		return
	}
	switch {
	case r.Frames == 0:
	case c.ending.frames == 0:
		c.violate(now, RuleAbortLoud, "no closing frame after the reply was cut")
	default:
		c.closingFrame(now)
	}
}

func (c *replyCheck) closingFrame(now time.Time) {
	if !c.silent {
		c.violate(now, RuleAbortLoud, "the last frame of a cut reply is not silent")
	}
}

func (c *replyCheck) answered(now time.Time) {
	c.limit(now, now.Sub(c.aborts[0]), abortStop, RuleAbortSlow, "tts stop %s after the abort")
	c.aborts = c.aborts[1:]
}

// cut notes that the device asks for the end of what is being said.
func (c *replyCheck) cut(now time.Time) {
	if c.reply != nil && !c.isCut() {
		c.ending.at = now
	}
}

// abort notes an abort message: it is owed one tts stop.
func (c *replyCheck) abort(now time.Time) {
	c.cut(now)
	c.aborts = append(c.aborts, now)
}

// overdue lists what should have come by now and did not.
func (c *replyCheck) overdue(now time.Time) []Violation {
	var found []Violation
	for _, at := range c.aborts {
		if now.Sub(at) > abortPatience+c.limits.Tolerance {
			found = append(found, Violation{At: now, Rule: RuleStopMissing, Detail: "an abort got no tts stop for " + now.Sub(at).String()})
		}
	}
	if c.reply != nil && c.isCut() && now.Sub(c.ending.at) > abortPatience+c.limits.Tolerance && len(c.aborts) == 0 {
		found = append(found, Violation{At: now, Rule: RuleStopMissing, Detail: "a reply that was cut got no tts stop for " + now.Sub(c.ending.at).String()})
	}
	return found
}

// limit holds a time to a rule's limit, beyond which as much is forgiven as the options say.
func (c *replyCheck) limit(now time.Time, took, limit time.Duration, rule Rule, format string) {
	if took > limit+c.limits.Tolerance {
		c.violate(now, rule, format, took)
	}
}

// forgive is for a device that did not look at its socket for a while: what the
// open reply has waiting there is late or early by as much, which is no fault.
func (c *replyCheck) forgive(d time.Duration) {
	c.limits.Tolerance += d
	c.forgiven += d
}
