package agent

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/providers"
)

// renewAfter is how old a session may become: its instructions say what time it is.
const renewAfter = 30 * time.Minute

var (
	errNoDuplex = errors.New("nothing that hears and speaks by itself is open")
	errNoSound  = errors.New("the sound of the utterance is not there")
)

// duplex owns the session with who hears and speaks by itself, and the sound of the
// utterances that may be answered by it. A session lives over the turns that it has answered
// all of; when anything else was said, or somebody else is to answer, another is opened.
//
// # Concurrency
//
// Begin, Write and Release are for the listener too, what [sounds] offers is for a turn that runs;
// all else is for the conversation.
type duplex struct {
	whom  *whom
	onset func() // has the conversation call prepare; may wait
	child func() (context.Context, context.CancelCauseFunc)
	start func(func()) // starts a goroutine that the conversation joins
	log   *slog.Logger

	mu      sync.Mutex
	kept    map[uint64]*keptSound // by utterance
	live    uint64                // the utterance that began last
	session providers.DuplexSession
	end     context.CancelCauseFunc // of session
	with    partner                 // that session is with
	opened  time.Time
	input   []inputPart // what session has heard since its last answer
	hears   bool        // it is the one that is to hear what is said now
	answers bool        // it answers at the moment, and is given nothing
}

// keptSound is the sound of one utterance.
type keptSound struct {
	pcm  []int16
	stop func() // ends what reads it
}

// inputPart says how many samples of an utterance a session has heard.
type inputPart struct {
	id uint64
	n  int
}

// partner is all that a session depends on.
type partner struct {
	provider providers.Duplex // nil: none answers
	name     string           // of the assistant
	agent    string
	revision int
	prompt   string // its name, or itself
	notes    string // what is known beside what was said
	language string
	voice    string
	tools    []providers.ToolSpec
	version  uint64 // of what was said
}

// same reports whether a session with p can go on with q.
func (p *partner) same(q *partner) bool {
	return sameProvider(p.provider, q.provider) && p.name == q.name && p.agent == q.agent && p.revision == q.revision && p.prompt == q.prompt && p.notes == q.notes &&
		p.language == q.language && p.voice == q.voice && p.version == q.version &&
		slices.EqualFunc(p.tools, q.tools, func(a, b providers.ToolSpec) bool {
			return a.Name == b.Name && a.Description == b.Description && string(a.Parameters) == string(b.Parameters)
		})
}

// sameProvider reports whether two are known to be one.
func sameProvider(a, b providers.Duplex) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// Begin says that an utterance begins, and reports whether it is to be answered by its sound.
func (d *duplex) Begin(id uint64) bool {
	if p := d.whom.now(); p.Realtime == nil || rests(p.Realtime) && p.ASR != nil && p.LLM != nil {
		return false
	}
	d.mu.Lock()
	d.kept[id], d.live, d.hears = &keptSound{stop: func() {}}, id, false
	d.mu.Unlock()
	d.onset()
	return true
}

// rests reports whether a provider had better not be asked: it has failed a moment ago.
func rests(p providers.Duplex) bool {
	r, ok := p.(interface{ Rests() bool })
	return ok && r.Rests()
}

// Write keeps sound of an utterance, and hands it on while nothing is answered.
func (d *duplex) Write(id uint64, pcm []int16) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[id]
	switch {
	case k == nil:
		return true // nobody wants it any more
	case len(k.pcm)+len(pcm) > providers.MaxUtterance*audio.Recognition.Rate:
		return false
	}
	k.pcm = append(audio.Grow(k.pcm, len(pcm)), pcm...)
	d.feed(id)
	return true
}

// feed hands over what the session has not heard of the utterance that goes on. Its caller holds the lock.
func (d *duplex) feed(id uint64) {
	k := d.kept[id]
	if k == nil || len(k.pcm) == 0 || id != d.live || d.session == nil || d.answers || !d.hears {
		return
	}
	d.give(id, k.pcm)
}

// give hands over what the session has not heard of an utterance. What fails is told by its
// answer. Its caller holds the lock.
func (d *duplex) give(id uint64, pcm []int16) {
	if n := len(d.input); n == 0 || d.input[n-1].id != id {
		d.input = append(d.input, inputPart{id: id})
	}
	part := &d.input[len(d.input)-1]
	if part.n < len(pcm) {
		if err := d.session.Write(pcm[part.n:]); err != nil {
			d.log.Debug("the realtime service takes no sound", "err", err)
		}
		part.n = len(pcm)
	}
}

// Release lets go of an utterance. If it is not answered, the session is told to forget it.
func (d *duplex) Release(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.kept[id]; k != nil {
		k.stop()
		delete(d.kept, id)
	}
	if slices.ContainsFunc(d.input, func(p inputPart) bool { return p.id == id }) {
		d.discard()
	}
}

// discard has the session forget what it has heard since its last answer. Its caller holds the lock.
func (d *duplex) discard() {
	d.input = nil
	if d.session == nil {
		return
	}
	if err := d.session.Discard(); err != nil {
		d.log.Debug("the realtime service forgets nothing", "err", err)
	}
}

// prepare opens a session with p, unless there is one that can go on. request makes the rest of
// what it is told. While an answer runs nothing is changed: the turn after it comes here again.
func (d *duplex) prepare(p partner, request func() (providers.DuplexRequest, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() {
		d.hears = true
		d.feed(d.live)
	}()
	if d.answers || d.session != nil && d.with.same(&p) && time.Since(d.opened) < renewAfter {
		return
	}
	d.leave()
	if p.provider == nil {
		return
	}
	req, err := request()
	if err == nil {
		ctx, end := d.child()
		if d.session, err = p.provider.Open(ctx, req); err == nil {
			d.with, d.end, d.opened = p, end, time.Now()
			return
		}
		d.session = nil
		end(err)
	}
	d.log.Warn("the realtime service cannot be opened", "realtime", p.provider.Name(), "err", err)
}

// leave closes the session, if there is one. Its caller holds the lock.
func (d *duplex) leave() {
	if d.session == nil {
		return
	}
	session, end := d.session, d.end
	d.session, d.end, d.input = nil, nil, nil
	d.start(func() {
		_ = session.Close() // nothing can be done about it
		end(nil)
	})
}

// goesOn says that the session knows all that has come to the history since a version of it.
func (d *duplex) goesOn(before, now uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.with.version == before {
		d.with.version = now
	}
}

// close ends all. Nothing uses it any more.
func (d *duplex) close() {
	d.mu.Lock()
	session := d.session
	d.session, d.input = nil, nil
	clear(d.kept)
	d.mu.Unlock()
	if session != nil {
		_ = session.Close()
	}
}

// sound returns what was heard of an utterance, and has stop called when it is let go; false: there is none.
func (d *duplex) sound(id uint64, stop func()) ([]int16, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.kept[id]
	if k == nil {
		return nil, false
	}
	k.stop = stop
	return slices.Clip(k.pcm), true
}

// of returns the sounds of the utterances that a turn answers. They stay when the utterances are
// let go.
func (d *duplex) of(ids []uint64) *sounds {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &sounds{d: d, ids: ids}
	for _, id := range ids {
		if k := d.kept[id]; k != nil {
			s.pcm = append(s.pcm, slices.Clip(k.pcm))
		}
	}
	return s
}

// sounds are the utterances that one turn answers. They are for that turn.
type sounds struct {
	d       *duplex
	ids     []uint64
	pcm     [][]int16
	session providers.DuplexSession // that was asked; nil: none was
}

// Name is the name of who answers.
func (s *sounds) Name() string {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if p := s.d.with.provider; p != nil {
		return p.Name()
	}
	return ""
}

// Respond has the session answer the utterances, or the results of what it has called for them.
func (s *sounds) Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		if err := s.ask(len(results) == 0); err != nil {
			yield(providers.DuplexDelta{}, err)
			return
		}
		defer s.answered()
		for d, err := range s.session.Respond(ctx, results) {
			if len(d.Sound.PCM)+len(d.Sound.Packets) > 0 {
				s.pcm = nil // nobody else answers any more
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// ask makes sure that the session has heard the utterances and nothing else.
func (s *sounds) ask(first bool) error {
	d := s.d
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.session == nil, !first && s.session != d.session:
		return errNoDuplex
	case len(s.pcm) < len(s.ids) || len(s.ids) == 0:
		return errNoSound
	}
	if first {
		if !s.heardBy(d.input) {
			d.discard()
		}
		for i := max(0, len(d.input)-1); i < len(s.ids); i++ {
			d.give(s.ids[i], s.pcm[i])
		}
		d.input = nil
		if slices.Contains(s.ids, d.live) {
			d.live = 0 // it is over
		}
	}
	s.session, d.answers = d.session, true
	return nil
}

// heardBy reports whether what a session has heard is the beginning of the utterances.
func (s *sounds) heardBy(input []inputPart) bool {
	if len(input) > len(s.ids) {
		return false
	}
	for i, p := range input {
		if p.id != s.ids[i] || i < len(input)-1 && p.n < len(s.pcm[i]) {
			return false
		}
	}
	return true
}

// answered lets the session hear what is said now.
func (s *sounds) answered() {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.answers = false
	s.d.feed(s.d.live)
}

// truncate tells the session how much was heard of its answer, which was cut.
func (s *sounds) truncate(heard time.Duration) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.session == nil || s.session != s.d.session {
		return
	}
	if err := s.session.Truncate(heard); err != nil {
		s.d.log.Debug("the realtime service does not take what was heard", "err", err)
	}
}
