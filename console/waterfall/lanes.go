package waterfall

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/timeline"
	"xiaozhi/store"
)

// lane names who did something.
type lane string

// The lanes, from above.
const (
	laneSpeech lane = "speech"
	laneEnd    lane = "end"
	laneTrial  lane = "trial"
	laneEar    lane = "ear"
	laneModel  lane = "model"
	laneTool   lane = "tool"
	laneVoice  lane = "voice"
	laneWire   lane = "wire"
)

// state names the outcome.
type state int

const (
	done  state = iota
	trial       // it was begun before the user had finished
	lost        // another one answered first
	failed
	left // nobody wanted it any more
)

// bar is something that took time, or, with to equal to from, a moment. Times are milliseconds from zero on.
type bar struct {
	lane     lane
	title    string // of the lane, on its first bar
	name     string
	from, to int64
	first    int64 // the first result; -1 << 62: there was none
	firm     int64 // until then it was a trial; the same: it was none
	state    state
	label    string  // at the bar
	note     string  // of the table
	dots     []int64 // moments within it
}

const never = -1 << 62

// chart collects what is drawn of one turn.
type chart struct {
	turn  *store.Turn
	spans *timeline.Spans
	lang  text.Lang
	bars  []bar

	begin, middle, end int64   // of the axis: beyond middle it is narrower
	broken             float64 // where middle is; -1: the axis is the same all along
}

func (c *chart) say(id string, args ...any) string { return message.In(c.lang, id, args...) }

func (c *chart) add(b bar) {
	if b.title == "" {
		b.title = c.laneName(b.lane)
	}
	c.bars = append(c.bars, b)
}

func (c *chart) laneName(l lane) string {
	switch l {
	case laneSpeech:
		return c.say("waterfall/lane-speech")
	case laneEnd:
		return c.say("waterfall/eou")
	case laneTrial:
		return c.say("waterfall/lane-trial")
	case laneEar:
		return c.say("waterfall/asr")
	case laneModel:
		return c.say("waterfall/ttfs")
	case laneTool:
		return c.say("waterfall/lane-tool")
	case laneVoice:
		return c.say("waterfall/ttfb")
	case laneWire:
		return c.say("waterfall/lane-wire")
	}
	return string(l)
}

// mark returns a moment of the turn.
func (c *chart) mark(m timeline.Mark) (at int64, ok bool) {
	at, ok = c.spans.Marks[m]
	return at, ok
}

// maxSentences is how many sentences are drawn; the table has all.
const maxSentences = 8

// day limits all times of a record, in milliseconds: what lies farther away cannot be true.
const day = 24 * 60 * 60 * 1000

// sane takes out times that cannot be.
func (c *chart) sane() {
	limit := func(ms *int64) { *ms = max(-day, min(*ms, day)) }
	s := c.spans
	for m, at := range s.Marks {
		limit(&at)
		s.Marks[m] = at
	}
	limit(&s.Delay)
	for i := range s.Gaps {
		limit(&s.Gaps[i].Until)
	}
	for i := range s.Attempts {
		a := &s.Attempts[i]
		limit(&a.At)
		a.First, a.Took = max(0, min(a.First, day)), max(0, min(a.Took, day))
	}
	for i := range s.Tools {
		t := &s.Tools[i]
		limit(&t.At)
		if t.Took = max(0, min(t.Took, day)); t.Sent != nil {
			limit(t.Sent)
			*t.Sent = max(*t.Sent, t.At)
		}
	}
}

// collect makes the bars of all lanes.
func (c *chart) collect() {
	c.sane()
	c.speech()
	c.trials()
	c.attempts(laneEar, "recognize")
	c.attempts(laneModel, "think", "converse")
	c.tools()
	c.attempts(laneVoice, "speak")
	c.plain()
	c.wire()
	order := []lane{laneSpeech, laneEnd, laneTrial, laneEar, laneModel, laneTool, laneVoice, laneWire}
	slices.SortStableFunc(c.bars, func(a, b bar) int { return cmp.Compare(slices.Index(order, a.lane), slices.Index(order, b.lane)) })
}

// speech shows what the user did, and how its end was found.
func (c *chart) speech() {
	s := c.spans
	if s.Zero == 0 {
		return
	}
	begun := int64(0)
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Op == "recognize" && !a.Void {
			begun = min(begun, a.At)
		}
	}
	b := bar{lane: laneSpeech, from: begun, first: begun, firm: begun}
	switch s.End {
	case timeline.EndVoice, timeline.EndStop:
		if b.name = c.say("waterfall/spoken"); begun < 0 {
			b.label = c.say("waterfall/about", millis(-begun))
		}
	case timeline.EndTyped:
		b.name = c.say("waterfall/typed")
	case timeline.EndServer:
		b.name = c.say("waterfall/unasked")
	}
	c.add(b)
	at, ok := c.mark(timeline.MarkEndpoint)
	if !ok || s.End == timeline.EndTyped || s.End == timeline.EndServer {
		return
	}
	b = bar{lane: laneEnd, to: at, label: c.say("waterfall/silence", millis(at))}
	if b.name = c.say("waterfall/by-silence"); s.End == timeline.EndStop {
		b.name, b.label = c.say("waterfall/by-button"), millis(at)
	}
	if s.End == timeline.EndVoice && s.Delay > 0 && (s.Delay-at > 40 || at-s.Delay > 40) {
		b.label += c.say("waterfall/comma") + c.say("waterfall/learned", millis(s.Delay))
	}
	c.add(b)
}

// trials shows the answers that were begun before the user had finished.
func (c *chart) trials() {
	if c.turn.Speculation == "used" {
		if at, ok := c.mark(timeline.MarkModel); ok {
			over, _ := c.mark(timeline.MarkEndpoint)
			c.add(bar{lane: laneTrial, name: c.say("waterfall/used"), from: at, to: max(at, over), first: never, firm: max(at, over), state: trial,
				label: c.say("waterfall/ahead", millis(max(0, over-at)))})
		}
	}
	for i := range c.spans.Attempts {
		a := &c.spans.Attempts[i]
		if a.Void {
			b := c.bar(a)
			b.lane, b.firm, b.title = laneTrial, b.to, ""
			if b.state != failed {
				b.state, b.note = trial, c.say("waterfall/given-up")
			}
			b.label = join(c.say("waterfall/comma"), c.role(a.Op), c.say("waterfall/given-up"))
			c.add(b)
		}
	}
}

func (c *chart) role(op string) string {
	switch op {
	case "recognize":
		return c.say("waterfall/asr")
	case "speak":
		return c.say("waterfall/ttfb")
	}
	return c.say("waterfall/ttfs")
}

// attempts shows each member of a chain that was asked.
func (c *chart) attempts(l lane, ops ...string) {
	steps := 0
	for i := range c.spans.Attempts {
		if a := &c.spans.Attempts[i]; slices.Contains(ops, a.Op) {
			steps = max(steps, a.Part)
		}
	}
	for i := range c.spans.Attempts {
		a := &c.spans.Attempts[i]
		if a.Void || !slices.Contains(ops, a.Op) {
			continue
		}
		b := c.bar(a)
		b.lane = l
		if steps > 1 && a.Part > 0 {
			b.name = strconv.Itoa(a.Part) + " · " + b.name
		}
		c.add(b)
	}
}

// bar makes the bar of an attempt.
func (c *chart) bar(a *timeline.SpanAttempt) bar {
	b := bar{name: a.Provider, from: a.At, to: a.At + max(a.Took, a.First), first: never, firm: a.At}
	if a.First > 0 {
		b.first = a.At + a.First
	}
	if over, ok := c.mark(timeline.MarkEndpoint); ok && a.Op != "recognize" && a.At < over {
		b.firm = min(over, b.to)
	}
	var words []string
	switch {
	case a.Op == "recognize" && a.At < 0 && b.to > 0:
		words = append(words, c.say("waterfall/after", millis(b.to)))
	case a.First > 0 && a.First < a.Took:
		words = append(words, upTo(a.First, a.Took))
	default:
		words = append(words, millis(a.Took))
	}
	if a.In+a.Out > 0 {
		words = append(words, c.say("waterfall/tokens", a.In, a.Out))
	}
	switch a.Outcome {
	case timeline.Lost:
		b.state, b.note = lost, c.say("waterfall/lost")
	case timeline.Failed:
		b.state, b.note = failed, c.say("waterfall/failed")
	case timeline.Left:
		b.state, b.note = left, c.say("waterfall/left")
	case timeline.Answered:
	}
	if b.note != "" {
		words = append([]string{b.note}, words...)
	}
	if b.label = join(c.say("waterfall/comma"), words...); a.Fault != "" {
		b.note = join(c.say("waterfall/colon"), b.note, a.Fault)
	}
	if words := []string{b.note}; a.In+a.Out > 0 || a.Chars > 0 {
		if a.In+a.Out > 0 {
			words = append(words, c.say("waterfall/tokens", a.In, a.Out))
		}
		if a.Chars > 0 {
			words = append(words, c.say("waterfall/chars", a.Chars))
		}
		b.note = join(c.say("waterfall/comma"), words...)
	}
	if b.note == "" {
		b.note = c.say("waterfall/answered")
	}
	return b
}

// upTo writes when the first result came, and the end.
func upTo(first, took int64) string {
	f, t := millis(first), millis(took)
	if strings.HasSuffix(f, " ms") && strings.HasSuffix(t, " ms") {
		f = strings.TrimSuffix(f, " ms")
	}
	return f + " → " + t
}

func join(between string, words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), between)
}

// queued is how long a call waits, in milliseconds, before that is worth a word.
const queued = 5

// tools shows the calls of tools.
func (c *chart) tools() {
	for i := range c.spans.Tools {
		t := &c.spans.Tools[i]
		b := bar{lane: laneTool, name: strings.TrimPrefix(t.Name, "self."), from: t.At, to: t.At, first: never, firm: t.At}
		var words []string
		if t.Failed {
			b.state = failed
			words = append(words, c.say("waterfall/failed"))
		}
		if t.Took > 0 {
			words = append(words, millis(t.Took))
		}
		switch t.Way {
		case timeline.Assumed:
			words = append(words, c.say("waterfall/assumed"))
		case timeline.Job:
			words = append(words, c.say("waterfall/job"))
		case timeline.Asks:
			words = append(words, c.say("waterfall/asks"))
		case timeline.Refused:
			words = append(words, c.say("waterfall/refused"))
		case timeline.Awaited:
		}
		if t.Sent != nil {
			b.first, b.to = *t.Sent, *t.Sent
			if waits := *t.Sent - t.At; waits >= queued {
				words = append(words, c.say("waterfall/queued", millis(waits)))
			}
		}
		b.to += t.Took
		switch t.Kind {
		case "query":
			b.note = c.say("waterfall/query")
		case "control":
			b.note = c.say("waterfall/control")
		}
		b.label, b.note = join(c.say("waterfall/comma"), words...), join(c.say("waterfall/comma"), append(words, b.note)...)
		c.add(b)
	}
}

// plain shows what is known of a stage without attempts: a rule that answers, sound that is part of the program.
func (c *chart) plain() {
	for _, s := range []struct {
		lane     lane
		name     string
		from, to timeline.Mark
	}{
		{laneEar, c.turn.ASRName, timeline.MarkEndpoint, timeline.MarkTranscript},
		{laneModel, c.turn.LLMName, timeline.MarkModel, timeline.MarkToken},
		{laneVoice, c.turn.TTSName, timeline.MarkVoice, timeline.MarkSound},
	} {
		from, asked := c.mark(s.from)
		to, got := c.mark(s.to)
		if !asked || s.name == "" || slices.ContainsFunc(c.bars, func(b bar) bool { return b.lane == s.lane }) {
			continue
		}
		b := bar{lane: s.lane, name: s.name, from: from, to: from, first: never, firm: from}
		if got {
			b.to, b.first, b.label = max(from, to), max(from, to), millis(max(0, to-from))
		}
		c.add(b)
	}
}

// wire shows what went to the device.
func (c *chart) wire() {
	start, started := c.mark(timeline.MarkStart)
	frame, heard := c.mark(timeline.MarkFrame)
	stop, stopped := c.mark(timeline.MarkStop)
	if !started && !heard {
		return
	}
	if !started {
		start = frame
	}
	b := bar{lane: laneWire, name: c.say("waterfall/to-speaker"), from: start, to: start, first: never, firm: start}
	for _, g := range c.spans.Gaps {
		if !g.Paused {
			b.dots = append(b.dots, g.Until)
		}
	}
	if heard {
		b.first, b.to = frame, frame
	}
	if stopped {
		b.to = max(b.to, stop)
	}
	var words []string
	if c.spans.Cut {
		b.state = left
		words = append(words, c.say("waterfall/cut"))
	}
	if heard {
		words = append(words, c.say("waterfall/sound", millis(b.to-frame)))
	} else {
		words = append(words, c.say("waterfall/silent"))
	}
	if n := c.turn.Underruns; n > 0 {
		words = append(words, c.say("waterfall/underruns", n))
	}
	b.label = join(c.say("waterfall/comma"), words...)
	b.note = b.label
	c.add(b)
}

// fault says which span of a turn failed, in words.
func (c *chart) fault() string {
	var worst *timeline.SpanAttempt
	for i := range c.spans.Attempts {
		a := &c.spans.Attempts[i]
		if a.Outcome != timeline.Failed || a.Void {
			continue
		}
		helped := slices.ContainsFunc(c.spans.Attempts, func(o timeline.SpanAttempt) bool {
			return o.Op == a.Op && o.Part == a.Part && o.Outcome == timeline.Answered
		})
		if !helped {
			worst = a
		}
	}
	if worst != nil && (c.turn.Fault != "" || c.turn.E2E == 0) {
		return c.say("waterfall/fault-span", c.role(worst.Op), worst.Provider, millis(worst.Took), cmp.Or(worst.Fault, c.say("waterfall/no-reason")))
	}
	if c.turn.Fault != "" {
		return c.say("waterfall/fault", c.turn.Fault)
	}
	for i := range c.spans.Tools {
		if t := &c.spans.Tools[i]; t.Failed && t.Way != timeline.Refused {
			return c.say("waterfall/fault-tool", t.Name, millis(t.Took))
		}
	}
	return ""
}

// title says in one sentence what the picture shows.
func (c *chart) title(p *Picture) string {
	if p.Wait == 0 {
		return c.say("waterfall/title-silent")
	}
	most := slices.MaxFunc(p.Parts, func(a, b Part) int { return cmp.Compare(a.Time, b.Time) })
	return c.say("waterfall/title", Show(p.Wait), most.Name, Show(most.Time))
}

// rows makes the table.
func (c *chart) rows() []Row {
	all := make([]Row, 0, len(c.bars))
	for i := range c.bars {
		b := &c.bars[i]
		r := Row{Lane: b.title, What: b.name, At: millis(b.from), Note: cmp.Or(b.note, b.label)}
		if b.first != never && b.first != b.to && b.first != b.from {
			r.First = millis(b.first - b.from)
		}
		if b.to > b.from {
			r.Took = millis(b.to - b.from)
		}
		all = append(all, r)
	}
	return all
}
