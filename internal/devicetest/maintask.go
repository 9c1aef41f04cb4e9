package devicetest

import (
	"context"
	"slices"
	"time"
)

// jobsLimit is the number of messages that may wait for the main task. A device would run
// out of memory; here what comes on top is dropped and noted as RuleFlood.
const jobsLimit = 1024

// job is work for the main task: a message to apply, or an act of the device's user.
type job struct {
	message *inbound
	at      time.Time // arrival of the message
	act     func() error
	done    chan error // of an act; holds one
}

// mainTask is the main task of the device, a goroutine. It alone applies messages and acts, one after the other; do
// and deliver may be called from anywhere, its other methods only from its own goroutine, or before that has begun.
type mainTask struct {
	link    *link
	body    *body
	journal *Journal
	tools   *toolServer
	things  *things
	delay   time.Duration // how long each message waits before it is applied

	jobs     chan job
	done     chan struct{} // closed at its end
	relisten *time.Timer   // listen start once the sound is played
}

// run applies messages and acts until the connection is gone.
func (m *mainTask) run(ctx context.Context) {
	defer close(m.done)
	defer m.journal.end()
	defer m.relisten.Stop()
	for {
		select {
		case j := <-m.jobs:
			m.perform(ctx, j)
		case <-m.relisten.C:
			m.startListening()
		case <-m.link.gone:
			m.drain(ctx)
			return
		}
	}
}

// drain applies what came in before the connection went, and ends an open reply.
func (m *mainTask) drain(ctx context.Context) {
	for len(m.jobs) > 0 { // nobody else takes them
		m.perform(ctx, <-m.jobs)
	}
	now := time.Now()
	m.enter(now, Idle)
	m.body.mu.Lock()
	r := m.body.check.reply
	for _, v := range m.body.check.overdue(now) {
		m.journal.violate(v.At, v.Rule, "%s", v.Detail)
	}
	m.body.check.reply, m.body.check.aborts = nil, nil
	m.body.mu.Unlock()
	m.complete(now, r)
}

// deliver queues a job without waiting for it. It reports false when too many wait.
func (m *mainTask) deliver(j job) bool {
	select {
	case m.jobs <- j:
		return true
	default:
		return false
	}
}

func (m *mainTask) do(act func() error) error {
	done := make(chan error, 1)
	select {
	case m.jobs <- job{act: act, done: done}:
	case <-m.done:
		return ErrClosed
	}
	select {
	case err := <-done:
		return err
	case <-m.done:
	}
	select {
	case err := <-done:
		return err
	default:
		return ErrClosed
	}
}

func (m *mainTask) perform(ctx context.Context, j job) {
	if j.act != nil {
		j.done <- j.act()
		return
	}
	if m.delay > 0 {
		wait := time.NewTimer(time.Until(j.at.Add(m.delay)))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-m.link.gone:
		}
	}
	m.apply(ctx, j.message)
}

// apply does what a message means to the device's state (3.3).
func (m *mainTask) apply(ctx context.Context, message *inbound) {
	now := time.Now()
	state, mode := m.body.now()
	switch {
	case message.kind == "tts" && message.state == "start":
		switch {
		case state == Connecting:
			m.journal.violate(now, RuleStartConnecting, "tts start is refused while the device is connecting")
		case m.body.traits.realtimeStays && mode == Realtime:
		default:
			m.enter(now, Speaking)
		}
	case message.kind == "tts" && message.state == "stop":
		m.applyStop(now, state, mode)
		m.complete(now, message.reply)
	case message.kind == "iot":
		m.things.run(now, message)
	case message.kind == "mcp":
		m.tools.answer(ctx, message)
	case message.kind == "system" && message.state == "reboot":
		m.link.close()
	}
}

func (m *mainTask) applyStop(now time.Time, state State, mode Mode) {
	switch {
	case state == Speaking && mode == Manual:
		m.enter(now, Idle)
	case state == Speaking:
		m.enter(now, Listening)
		m.listenAgain(now, false)
	case m.body.traits.answersStops && mode == Auto:
		m.enter(now, Listening)
		m.startListening()
	}
}

// enter moves the device to a state. What it was to do after play-out is off when it speaks.
func (m *mainTask) enter(now time.Time, next State) {
	if m.body.enter(now, next) && next == Speaking {
		m.relisten.Stop()
	}
}

// listenAgain opens the microphone after a reply or a wake word. In auto mode
// present firmware first plays out what it has (3.1).
func (m *mainTask) listenAgain(now time.Time, wake bool) {
	m.body.mu.Lock()
	mode, ends := m.body.mode, m.body.speaker.player.ends
	m.body.mu.Unlock()
	traits := m.body.traits
	switch {
	case traits.noRelisten:
		m.body.openMic(now, false)
	case mode == Realtime && !wake:
		// The microphone was open all the time; nothing is sent.
	case mode == Auto && !traits.stopDiscards && ends.After(now):
		m.relisten.Reset(ends.Sub(now))
	default:
		m.startListening()
	}
}

// startListening listens in the present mode, if nothing has changed the state meanwhile.
func (m *mainTask) startListening() {
	if state, mode := m.body.now(); state == Listening {
		_ = m.listen(mode, mode == Auto || m.body.traits.clearOnListen) // the receiver tells of the end of the connection
	}
}

func (m *mainTask) listenStart(mode Mode) error {
	now := time.Now()
	m.body.mu.Lock()
	m.body.mode = mode
	m.body.check.cut(now)
	m.body.mu.Unlock()
	m.relisten.Stop()
	m.enter(now, Listening)
	return m.listen(mode, true)
}

// listen sends listen start and opens the microphone, with what is unplayed thrown away if flush is set.
func (m *mainTask) listen(mode Mode, flush bool) error {
	if err := m.things.report(); err != nil {
		return err
	}
	if err := m.link.sendControl(control{Type: "listen", State: "start", Mode: mode}); err != nil {
		return err
	}
	m.body.openMic(time.Now(), flush)
	return nil
}

func (m *mainTask) listenStop() error {
	if err := m.link.sendControl(control{Type: "listen", State: "stop"}); err != nil {
		return err
	}
	m.enter(time.Now(), Idle)
	return nil
}

func (m *mainTask) detect(text string) error {
	now := time.Now()
	m.body.mu.Lock()
	m.body.check.cut(now)
	idle := m.body.state == Connecting && m.body.mode == Manual
	m.body.mu.Unlock()
	if idle {
		m.enter(now, Idle)
	}
	return m.link.sendControl(control{Type: "listen", State: "detect", Text: text})
}

func (m *mainTask) abort(reason string) error {
	now := time.Now()
	m.body.mu.Lock()
	m.body.check.abort(now) // before it is sent: the answer may be quick
	speaking := m.body.state == Speaking
	m.body.mu.Unlock()
	if err := m.link.sendControl(control{Type: "abort", Reason: reason}); err != nil {
		return err
	}
	traits := m.body.traits
	switch {
	case !speaking:
	case reason != "":
		m.enter(now, Listening)
		m.listenAgain(now, true)
	case traits.abortLeaves && traits.noRelisten:
		m.enter(now, Idle)
	case traits.abortLeaves:
		m.enter(now, Listening)
	}
	return nil
}

// complete hands a reply over, with the sound that was not thrown away.
func (m *mainTask) complete(now time.Time, r *Reply) {
	if r == nil {
		return
	}
	m.body.mu.Lock()
	r.PCM = m.body.speaker.player.take(r)
	done := *r // what still comes for the reply must not change what its reader has
	done.Sentences = slices.Clone(r.Sentences)
	m.body.mu.Unlock()
	m.journal.count(func(s *Stats) { s.Replies++ })
	m.journal.add(Event{At: now, Kind: KindReply, Text: done.Text(), Emotion: done.Emotion, Reply: &done})
}
