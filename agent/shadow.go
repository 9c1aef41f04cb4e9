package agent

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	core "xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
)

// shadowReport gets every difference between what the conversation does and what
// [core.Rules.Next] wants; nil: nobody compares. Tests set it before they begin.
var shadowReport func(difference string)

// shadow runs the transition function beside the conversation: it gets the same
// events, and its effects and phases are compared.
type shadow struct {
	rules core.Rules
	state core.State
	ids   map[*utterance]uint64
	did   []core.Effect // by the conversation, for the event that is handled
	trace []string      // the last events, for a report
	mu    sync.Mutex
	dead  bool // it has differed once
}

// shadowEvent is an event that only the shadow wants to know.
type shadowEvent struct{ e core.Event }

func newShadow(o *Options, s wire.Session) *shadow {
	if shadowReport == nil {
		return nil
	}
	end := o.Endpoint.WithDefaults()
	return &shadow{
		rules: core.Rules{
			Commit: end.Commit, Trigger: end.Trigger, MinSpeech: end.MinSpeech, Speculations: o.Drafts,
			IdleClose: o.IdleClose, SlowAfter: o.SlowAfter, RecognizeTimeout: o.RecognizeTimeout, StopWords: o.StopWords,
			NoChinese: o.NoChinese, NoEchoGuard: o.NoEchoGuard, DeviceLang: text.Lang(s.Language),
		},
		ids:   map[*utterance]uint64{},
		state: core.State{Mic: core.Mic{Mode: wire.Auto, Deaf: true}},
	}
}

func (s *shadow) id(u *utterance) uint64 {
	if s.ids[u] == 0 {
		s.ids[u] = uint64(len(s.ids) + 1)
	}
	return s.ids[u]
}

// did notes what the conversation does.
func (c *Conversation) did(e core.Effect) {
	if c.shadow != nil {
		c.shadow.did = append(c.shadow.did, e)
	}
}

// shadowed runs f, which handles e, and compares. A nil e is no event of the core.
func (c *Conversation) shadowed(e func() core.Event, f func()) {
	s := c.shadow
	if s == nil || s.dead {
		f()
		return
	}
	ev, seen := e(), c.shadowSeen()
	outer := s.did
	s.did = nil
	raced := c.turn != nil && c.live && (c.turn.floor.gone() || c.state == Thinking && !c.turn.floor.startedAt().IsZero()) // it has sent a start or stop that was not reported yet
	if c.expect != nil && c.expect.off.Load() && s.state.Asked != 0 {
		s.state, _ = s.rules.Next(s.state, seen, core.Withdraw{ID: s.state.Asked})
	}
	if raced && ev != nil { // the turn's own lock has decided what here an event will: nothing can be compared any more
		s.dead = true
	}
	before, thinking := c.turn, c.state == Thinking
	f()
	if thinking && before != nil && !before.floor.startedAt().IsZero() && ev != (core.Ready{Turn: before.id}) {
		s.dead = true // the same, while the event was handled
	}
	switch {
	case s.dead:
	case ev != nil:
		s.compare(c, ev, seen)
	case len(s.did) > 0:
		s.report("no event, but " + show(alike(s.did)))
	}
	s.did = outer
	s.state, _ = s.rules.Next(s.state, c.shadowSeen(), core.Queued{})
	s.phase(c, ev)
}

func (c *Conversation) shadowSeen() core.Seen {
	seen := core.Seen{Now: time.Now(), Expecting: c.dev.expecting(time.Now()), Song: c.dev.song != nil}
	if c.turn != nil {
		seen.Playing = strings.Join(c.turn.floor.saying(seen.Now), " ")
		seen.Stale = c.turn.version != c.dev.history.version
	}
	waiting := slices.DeleteFunc(slices.Clone(c.dev.notices), func(n notice) bool { return n.from != nil && n.from.off.Load() })
	if n := len(waiting); n > 0 {
		head := waiting[0]
		seen.Queue = core.Queue{Len: n, Head: 1, Lang: text.Lang(head.language), Music: head.song != nil, Resumes: head.song != nil && head.song.read > 0}
	}
	return seen
}

// shadowTick has one limit of the state end, as a timer of the conversation does.
func (c *Conversation) shadowTick(due func(*core.State) *time.Time, f func()) {
	s := c.shadow
	if s == nil {
		f()
		return
	}
	if s.dead {
		f()
		return
	}
	all := func() []*time.Time {
		return []*time.Time{&s.state.Due.Greeting, &s.state.Due.Text, &s.state.Due.Announce, &s.state.Due.Idle, &s.state.Reply.Until}
	}
	mine := due(&s.state)
	if c.hungUp { // the core has no limits any more
		f()
		return
	}
	if mine.IsZero() || mine.After(time.Now()) { // it must do nothing
		c.shadowed(func() core.Event { return nil }, f)
		return
	}
	for _, at := range all() {
		if at != mine && !at.IsZero() && !at.After(time.Now()) {
			*at = time.Now().Add(time.Nanosecond)
		}
	}
	c.shadowed(func() core.Event { return core.Tick{} }, f)
}

func (s *shadow) compare(c *Conversation, e core.Event, seen core.Seen) {
	var want []core.Effect
	s.state, want = s.rules.Next(s.state, seen, e)
	s.trace = append(s.trace, fmt.Sprintf("%v %T%+v -> %v", seen.Now.Format("05.000"), e, e, show(alike(want))))
	if len(s.trace) > 12 {
		s.trace = s.trace[1:]
	}
	got, wanted := alike(s.did), alike(want)
	if !reflect.DeepEqual(got, wanted) {
		s.report(fmt.Sprintf("%T%+v\n  did  %s\n  want %s", e, e, show(got), show(wanted)))
	}
}

func (s *shadow) phase(c *Conversation, e core.Event) {
	var out []string
	differ := func(what string, got, want any) {
		if got != want {
			out = append(out, fmt.Sprintf("%s is %v, want %v", what, got, want))
		}
	}
	if !c.hungUp {
		differ("phase", c.state.String(), s.state.Phase().String())
		differ("busy", c.busy(), s.state.Busy())
		differ("voiced", c.voiced.Load(), s.state.Voiced())
		n := map[core.Role]int{}
		for _, u := range s.state.Said {
			n[u.Role]++
		}
		differ("heard", len(c.heard), n[core.Awaited])
		differ("beside", len(c.beside), n[core.Overlap])
		differ("slow", len(c.slow), n[core.Overdue])
		differ("hushed", c.overlap.hushed, s.state.Reply.Stage == core.Paused || s.state.Reply.Stage == core.Held)
		differ("language", c.dev.language, string(s.state.Learned.Lang))
		differ("empties", c.empties, s.state.Learned.Empty)
		differ("pause", c.dev.pause.need, s.state.Learned.Pause.Need)
		differ("fast", c.dev.pause.fast, s.state.Learned.Pause.Fast)
		differ("echoes", c.dev.echoes, s.state.Learned.Echoes)
		differ("asked", c.asked != nil, s.state.Consent.ID != 0)
		differ("expect", c.awaited(), s.state.Asked != 0)
		differ("trials", c.trials, s.state.Speculate.Tries)
		differ("discarded", c.discarded, s.state.Speculate.Discarded)
	}
	if out != nil {
		s.report(fmt.Sprintf("after %T%+v: %s", e, e, strings.Join(out, "; ")))
	}
	s.state.Learned.Echoes = c.dev.echoes
}

func (s *shadow) report(difference string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return
	}
	s.dead = true
	shadowReport(difference + "\n    " + strings.Join(s.trace, "\n    "))
}

// alike are the effects that the conversation notes, in what both know of
// them.
func alike(all []core.Effect) (out []core.Effect) {
	var begins core.Effect // the order beside what the listener does means nothing
	for _, e := range all {
		switch e := e.(type) {
		case core.Release, core.Microphone, core.CloseListener, core.Ignored, core.NotUnderstood, core.NoRecognizer, core.AllowTool:
		case core.AwaitSilence:
			out = append(out, core.AwaitSilence{Silence: e.Silence})
		case core.Begin:
			begins = (core.Begin{Turn: e.Turn, Request: common(e.Request)})
		case core.Adopt:
			out = append(out, core.Adopt{Turn: e.Turn, Request: common(e.Request)})
		case core.Answer:
			out = append(out, core.Answer{Words: e.Words})
		case core.Drop:
		case core.Cut:
			out = append(out, core.Cut{Turn: e.Turn, Cause: e.Cause})
		default:
			out = append(out, e)
		}
	}
	if begins != nil {
		out = append(out, begins)
	}
	return out
}

// common is what order and request have in common.
func common(r core.Request) core.Request {
	answer := ""
	if r.Answer != "" {
		answer = "said"
	}
	announcement := uint64(0)
	if r.Announcement != 0 {
		announcement = 1
	}
	return core.Request{
		Words: r.Words, Shown: r.Shown, Phrase: r.Phrase, Answer: answer, Lang: r.Lang, Told: r.Told, Allow: r.Allow,
		Announcement: announcement, Music: r.Music, HangUp: r.HangUp, Speculative: r.Speculative, Times: r.Times,
	}
}

func show(all []core.Effect) string {
	var out []string
	for _, e := range all {
		line := strings.TrimPrefix(fmt.Sprintf("%T%+v", e, e), "turn.")
		for _, empty := range []string{"Words: ", "Shown: ", "Phrase: ", "Answer: ", "Before: ", "Told:false ", "Consent:{ID:0 Action: Until:0001-01-01 00:00:00 +0000 UTC} ", "Allow:false ", "Announcement:0 ", "Music:false ", "HangUp:false ", "Err:<nil> ", "Cause:<nil> ", "Speculative:false ", "0001-01-01 00:00:00 +0000 UTC", " +0000 UTC", "2000-01-01 "} {
			line = strings.ReplaceAll(line, empty, "")
		}
		out = append(out, line)
	}
	return "[" + strings.Join(out, " ") + "]"
}

// request is the order in the words of the core.
func (o *order) request() core.Request {
	r := core.Request{
		Words: o.text, Shown: o.stt, Phrase: o.phrase, Answer: o.reply, Lang: text.Lang(o.language), Told: o.told,
		Allow: o.consent != nil, HangUp: o.hangUp, Speculative: o.trial,
	}
	if o.notice != nil {
		r.Announcement, r.Music = 1, o.notice.song != nil
	}
	if t := o.timing; t != nil {
		r.Times = core.Times{EndOfSpeech: t.endOfSpeech, Endpoint: t.endpoint, Silent: t.silent, Transcript: t.transcript, ASR: t.asr, Discarded: t.discarded}
	}
	return r
}

// shadowReported is what a report of a child means to the core.
func (c *Conversation) shadowReported(v any) core.Event {
	s := c.shadow
	switch v := v.(type) {
	case heardVoice:
		return core.SpeechStarted{ID: s.id(v.u), Epoch: v.u.stretch}
	case heardBargeIn:
		return core.SpeechLong{ID: s.id(v.u), Echo: v.own}
	case heardGuess:
		return core.Interim{ID: s.id(v.u), Words: v.text.Text, Rejected: v.text.Rejected, Echo: v.own}
	case heardPause:
		return core.SpeechPaused{ID: s.id(v.u)}
	case heardResume:
		return core.SpeechResumed{ID: s.id(v.u), Attempt: v.n, Gap: v.pause}
	case heardEnd:
		return core.SpeechEnded{ID: s.id(v.u), Epoch: v.u.stretch, Attempt: v.u.hearing, Spoken: v.u.spoken, Ended: v.u.ended, Echo: v.u.echoed}
	case heardText:
		return core.Transcript{ID: s.id(v.u), Attempt: v.n, Text: textOf(v.transcript, v.err), Echo: v.own}
	case earsFailed:
		if v.ears != c.ears {
			return nil
		}
		return core.ListenFailed{Err: v.err}
	case turnBegan:
		return core.Ready{Turn: v.t.id}
	case turnEnded:
		e := core.Finished{Turn: v.t.id, Played: v.t.out.played, HangUp: v.t.out.hangUp}
		if v.t.out.asked != nil {
			e.Consent = core.Consent{ID: v.t.id, Action: v.t.action}
		}
		if n := v.t.order.notice; n != nil && n.from != nil && n.from.asks && !n.from.off.Load() && answerText(v.t.out.messages) != "" {
			e.Ask = 1
		}
		return e
	case shadowEvent:
		return v.e
	}
	return nil
}

func textOf(t providers.Transcript, err error) core.Text {
	out := core.Text{Status: core.Final, Words: t.Text, Provider: t.Provider, Err: err}
	switch {
	case err != nil:
		out.Status = core.Failed
	case t.Rejected:
		out.Status = core.Rejected
	}
	return out
}

// shadowDevice is what the device does, as the core sees it.
func (c *Conversation) shadowDevice(it wire.Item[wire.Event]) core.Event {
	if it.IsPacket || c.hungUp {
		return nil
	}
	switch ev := it.Event.(type) {
	case wire.ListenStart:
		return core.ListenStart{Mode: ev.Mode}
	case wire.ListenStop:
		return core.ListenStop{}
	case wire.Abort:
		return core.Abort{Wake: strings.Contains(ev.Reason, "wake")}
	case wire.Detect:
		words := strings.TrimSpace(ev.Text)
		now := time.Now()
		burst := len(c.burst) >= burstFrames && now.Sub(c.burst[0]) <= burstWindow+burstWindow/2
		if burst || words == "" || isOneOf(words, c.o.WakeWords) {
			if words == "" {
				words = "…"
			}
			return core.WakeWord{Word: words}
		}
		if r := []rune(words); len(r) > maxTyped {
			words = string(r[:maxTyped])
		}
		return core.Typed{Words: words}
	}
	return nil
}

func langOf(language string) text.Lang { return text.Lang(language) }
