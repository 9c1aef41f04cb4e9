package agent

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent/identify"
	"xiaozhi/agent/listen"
	"xiaozhi/agent/speak"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/intent"
)

// microphone owns the listener of a conversation and what it needs to know of
// the device's sound. It belongs to the conversation's goroutine.
type microphone struct {
	c        *Conversation
	o        *listen.Options // of utterances to come; not changed once a listener has it
	book     listen.Book
	listener *listen.Listener // nil: nobody listens
	stop     context.CancelCauseFunc
	burst    wakeBurst
	heard    map[uint64]*audio.Packets // of utterances that are over and belong to no turn yet, by id
	rejected bool                      // words were in no language that is known, since the last turn began
	watch    *identify.Watch
	sounds   map[uint64][]int16 // of utterances that were wanted, by id
	failed   error              // the listener did not keep up; the conversation looks after each event
}

func newMicrophone(c *Conversation) *microphone {
	m := &microphone{c: c, heard: map[uint64]*audio.Packets{}, sounds: map[uint64][]int16{}}
	m.watch = identify.New(identify.Options{
		Report: c.report, Child: func() (context.Context, context.CancelCauseFunc) { return c.life.child() }, Go: m.goes,
		Kept: func(id uint64, pcm []int16) { c.post(func() { m.keep(id, pcm) }) },
	})
	m.o = &listen.Options{
		VAD: c.o.VAD, ASR: ears{&c.whom}, Warm: []any{warmth{&c.whom}, readiness{c}}, Book: &m.book, Meter: c.o.Meter,
		Report: c.report, Log: c.env.Log,
		Go:    m.goes,
		Child: func() (context.Context, context.CancelCauseFunc) { return c.life.child() },
	}
	if c.o.Keeper != nil {
		m.o.Record = func() bool { return c.recorded(c.whom.now(), &order{}) != RecordNone }
		m.o.Heard = func(id uint64, packets *audio.Packets) { c.post(func() { m.hears(id, packets) }) }
	}
	m.heed(m.o)
	return m
}

// goes runs f in a goroutine that the conversation joins.
func (m *microphone) goes(f func()) {
	m.c.life.wg.Go(func() {
		_ = speak.Protect(m.c.env.Log, "listening", func() error { f(); return nil }) // it is logged
	})
}

// heed has utterances to come be heard as the conversation's options say.
func (m *microphone) heed(o *listen.Options) {
	from := m.c.o
	o.Endpoint, o.BargeIn, o.Attempts, o.Phrases = from.Endpoint, from.BargeIn, from.Drafts, nil
	if o.Tap = nil; from.Voices != nil {
		o.Tap = func(ctx context.Context, id uint64) listen.Tap { return m.watch.Tap(ctx, id, from.Voices) }
	}
	if phrases := from.Phrases; phrases != nil {
		// The device's own names: others would only be misheard.
		o.Phrases = func() []string { return phrases("en", think.Specs(m.c.env.Tools, true)) }
	}
	guarded := o.FarEnd != nil || o.SelfEcho != nil
	switch {
	case from.NoEchoGuard:
		o.FarEnd, o.SelfEcho = nil, nil
	case guarded:
	case m.c.env.Session.AEC:
		o.FarEnd = &echo.FarEnd{}
		o.FarEnd.Open(m.c.state.Mic.Open)
	default:
		o.SelfEcho = &echo.SelfEcho{}
		o.SelfEcho.Open(m.c.state.Mic.Open)
	}
}

// renew has utterances to come be heard as the conversation's options say now.
func (m *microphone) renew() {
	o := *m.o
	m.heed(&o)
	m.o = &o
	m.tell(listen.Renewal{Options: m.o, Silence: m.c.state.Learned.Pause.Delay(m.c.rules.Commit, intent.Undecided)})
}

// perform does what concerns the listener, and reports whether that was so.
func (m *microphone) perform(e turn.Effect) bool {
	switch e := e.(type) {
	case turn.Microphone:
		m.o.FarEnd.Open(e.Open)
		m.o.SelfEcho.Open(e.Open)
	case turn.Listen:
		m.listen(e)
	case turn.Mute, turn.EndUtterance, turn.Watch, turn.AwaitSilence, turn.Expect:
		m.tell(e)
	case turn.Read:
		m.read(e.ID)
	case turn.Release:
		m.book.Release(e.ID, e.Cause)
		m.c.duplex.Release(e.ID)
	case turn.CloseListener:
		m.close(e.Cause)
	default:
		return false
	}
	return true
}

func (m *microphone) listen(l turn.Listen) {
	if m.listener != nil && m.listener.Mode() == l.Mode {
		m.tell(l)
		return
	}
	m.close(turn.ErrReplaced)
	listener := listen.New(m.o, l)
	var ctx context.Context
	ctx, m.stop = m.o.Child()
	m.listener = listener
	m.o.Go(func() {
		if err := listener.Run(ctx); err != nil {
			m.c.post(func() {
				if m.listener == listener {
					m.o.Log.Error("hearing failed", "err", err)
					m.c.step(turn.ListenFailed{Err: err})
				}
			})
		}
	})
}

// maxHeard is the number of utterances whose packets wait for the end of their turn. Most are of one; noises may come before.
const maxHeard = 8

// hears keeps the packets of an utterance that is over. nil: there are none.
func (m *microphone) hears(id uint64, packets *audio.Packets) {
	if packets == nil {
		return
	}
	m.heard[id] = packets
	if len(m.heard) > maxHeard {
		delete(m.heard, slices.Min(slices.Collect(maps.Keys(m.heard))))
	}
}

// heardOf takes out the packets of utterances, and lets go of what came before them.
func (m *microphone) heardOf(utterances []uint64) *audio.Packets {
	all := &audio.Packets{}
	for _, id := range utterances {
		all.Append(m.heard[id])
	}
	if len(utterances) > 0 {
		last := slices.Max(utterances)
		maps.DeleteFunc(m.heard, func(id uint64, _ *audio.Packets) bool { return id <= last })
	}
	if all.Length() == 0 {
		return nil
	}
	return all
}

// maxSounds is how many utterances' sound is kept.
const maxSounds = 4

// keep keeps the sound of an utterance that was wanted.
func (m *microphone) keep(id uint64, pcm []int16) {
	m.sounds[id] = pcm
	if len(m.sounds) > maxSounds {
		delete(m.sounds, slices.Min(slices.Collect(maps.Keys(m.sounds))))
	}
}

// keepSound has the sound of utterances to come be kept, or not any more.
func (m *microphone) keepSound(on bool) {
	m.watch.Want(on)
	clear(m.sounds)
}

// soundOf takes out the sound of utterances, one after the other, if it was wanted.
func (m *microphone) soundOf(utterances []uint64) (pcm []int16) {
	for _, id := range utterances {
		pcm = append(pcm, m.sounds[id]...)
	}
	clear(m.sounds)
	return pcm
}

func (m *microphone) close(cause error) {
	if m.listener != nil {
		m.stop(cause)
		m.listener, m.stop = nil, nil
	}
}

func (m *microphone) tell(e turn.Effect) {
	if m.listener == nil {
		return
	}
	if err := m.listener.Tell(e); err != nil { // it hangs in a recogniser that breaks its contract
		m.o.Log.Error("the listener does not keep up", "err", err)
		m.failed = err
	}
}

// detected is a wake word to be greeted, or typed text to be answered.
func (c *Conversation) detected(words string) turn.Event {
	burst := c.mic.burst.before(time.Now())
	words = strings.TrimSpace(words)
	switch {
	case words == "":
		return turn.WakeWord{Word: "…"}
	case burst, text.In(words, c.whom.now().WakeWords), text.In(words, c.o.Prompts.Words(c.rules.DeviceLang).Wake):
		return turn.WakeWord{Word: words}
	}
	if r := []rune(words); len(r) > maxTyped {
		c.env.Log.Warn("typed text is cut", "chars", len(r), "limit", maxTyped)
		words = string(r[:maxTyped])
	}
	return turn.Typed{Words: words}
}
