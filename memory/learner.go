package memory

import (
	"context"
	"errors"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

const (
	openTalks   = 64       // that are looked at at once
	pieceTurns  = 60       // of a talk that are read at once
	pieceBytes  = 12 << 10 // of what was said in them
	modelTime   = 60 * time.Second
	urgentTurns = 8 // of a talk that goes on: fewer are not worth a request
	firstRetry  = time.Minute
	mostRetries = 4 // then rules read the talk
)

// learner reads talks that are over, one after the other.
type learner struct {
	*Book
	failed map[string]failure // by talk; forgotten when it was read
}

type failure struct {
	times int
	next  time.Time
}

func newLearner(b *Book) *learner { return &learner{b, map[string]failure{}} }

func (l *learner) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-l.wake:
		case <-timer.C:
		}
		next := l.look(l.ctx)
		l.meaning.settle(l.ctx)
		if next.IsZero() {
			timer.Stop()
			continue
		}
		timer.Reset(max(time.Until(next), time.Second))
	}
}

// look reads what is over, and returns when it must look again; zero: when it is woken.
func (l *learner) look(ctx context.Context) (next time.Time) {
	for {
		talks, err := l.o.Store.Open(ctx, openTalks)
		if err != nil {
			if ctx.Err() == nil {
				l.o.Log.Warn("talks to be remembered cannot be listed", "err", err)
			}
			return time.Now().Add(firstRetry)
		}
		next = time.Time{}
		read := 0
		for _, t := range talks {
			due := t.LastAt.Add(l.o.Over)
			if t.Turns-t.Learned >= urgentTurns && l.urgent(t.ID) {
				due = time.Time{}
			}
			if f := l.failed[t.ID]; f.next.After(due) {
				due = f.next
			}
			if time.Now().Before(due) {
				if next.IsZero() || due.Before(next) {
					next = due
				}
				continue
			}
			if ctx.Err() != nil {
				return next
			}
			if l.learn(ctx, t) {
				read++
			} else if at := l.failed[t.ID].next; next.IsZero() || at.Before(next) {
				next = at
			}
		}
		if read == 0 || ctx.Err() != nil {
			return next
		}
	}
}

func (l *learner) urgent(talk string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now[talk]
}

// learn reads the next piece of a talk, and reports whether that is done.
func (l *learner) learn(ctx context.Context, t Talk) bool {
	err := l.piece(ctx, t)
	if err == nil {
		delete(l.failed, t.ID)
		l.mu.Lock()
		delete(l.now, t.ID)
		l.mu.Unlock()
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	f := l.failed[t.ID]
	f.next = time.Now().Add(firstRetry << f.times)
	f.times++
	l.failed[t.ID] = f
	l.o.Log.Warn("a talk could not be remembered yet", "device_id", t.Owner.Device, "talk", t.ID, "attempt", f.times, "err", err)
	return false
}

func (l *learner) piece(ctx context.Context, t Talk) error {
	said, err := l.o.Store.Said(ctx, t.ID, t.Learned, pieceTurns)
	if err != nil {
		return err
	}
	said, words := cutPiece(said)
	c := Change{Talk: t.ID, Learned: t.Turns, Replace: map[string]string{}, Give: l.o.Elsewhere}
	if len(said) > 0 {
		t.Owner.Agent, c.Learned = said[0].Agent, said[len(said)-1].Seq
	}
	c.Owner = t.Owner
	mode := l.o.Mode(t.Owner)
	if !words || mode == Nothing {
		return l.o.Store.Write(ctx, c)
	}
	known, err := l.o.Store.Load(ctx, t.Owner)
	if err != nil {
		return err
	}
	if err := l.read(ctx, t, said, known, mode, &c); err != nil {
		return err
	}
	if l.o.Elsewhere || mode == Summed {
		c.Add, c.Renew, c.Replace = nil, nil, nil
	}
	if err := l.o.Store.Write(ctx, c); err != nil {
		return err
	}
	l.refresh(ctx, t.Owner)
	l.o.Log.Info("a talk was remembered", "device_id", t.Owner.Device, "talk", t.ID, "turns", len(said), "facts", len(c.Add), "replaced", len(c.Replace))
	return nil
}

// read finds out what turns say, by the model of the owner or, if there is none, by rules.
func (l *learner) read(ctx context.Context, t Talk, said []Said, known Known, mode Mode, c *Change) error {
	lang, zone := langOf(said), l.o.Zone(t.Owner)
	llm := l.o.Model(t.Owner)
	if llm != nil && l.failed[t.ID].times < mostRetries {
		run := Run{Owner: t.Owner, Talk: t.ID, At: time.Now()}
		shown := relatedFacts(known.Facts, said)
		err := l.byModel(ctx, llm, requestFor(t.Owner, lang, zone, shown, known.Summary.Text, said), &run, func(a answer) {
			a.accept(c, t.Owner, lang, shown, said, l.o.NewID)
		})
		run.Took, run.Facts, run.Err = time.Since(run.At), len(c.Add), err
		if run.Provider != "" {
			if err := l.o.Store.Spent(ctx, run); err != nil {
				l.o.Log.Warn("what remembering has cost is not kept", "err", err)
			}
		}
		if !errors.Is(err, errNoModel) {
			return err
		}
	}
	for _, turn := range said {
		for _, s := range statements(turn.Heard) {
			if forgotten(s.text, turn.Seq, said) {
				continue
			}
			c.add(Fact{
				ID: l.o.NewID(), Owner: t.Owner, Person: turn.Speaker, Text: s.text, Keys: s.keys, Slot: s.slot, Lang: lang, Talk: t.ID, Turn: turn.ID, At: turn.At, Sure: sureByRules,
			}, known.Facts)
		}
	}
	if s := plainSummary(known.Summary.Text, said, lang, zone); s != known.Summary.Text {
		c.Summary = &Summary{s, time.Now()}
	}
	return nil
}

func (l *learner) byModel(ctx context.Context, llm providers.LLM, req providers.LLMRequest, run *Run, accept func(answer)) error {
	ctx, cancel := context.WithTimeout(ctx, modelTime)
	defer cancel()
	words, err := ask(ctx, llm, req, run)
	if err != nil {
		return err
	}
	a, err := parse(words)
	if err == nil {
		accept(a)
	}
	return err
}

// cutPiece takes the first turns that can be read at once: those of one agent. words: somebody has said something in them.
func cutPiece(said []Said) (piece []Said, words bool) {
	size := 0
	for i, t := range said {
		if size += len(t.Heard) + len(t.Reply)/4; i > 0 && (size > pieceBytes || t.Agent != said[0].Agent) {
			return said[:i], words
		}
		words = words || t.Heard != ""
	}
	return said, words
}

// relatedFacts are those that turns may contradict.
func relatedFacts(known []Fact, said []Said) []Fact {
	if len(known) <= related {
		return known
	}
	texts := make([]string, len(known))
	for i, f := range known {
		texts[i] = f.Text + " " + f.Keys
	}
	var shown []Fact
	for _, h := range newIndex(texts).find(transcript(said), related) {
		shown = append(shown, known[h.place])
	}
	return shown
}

// langOf is the language of the last turn that somebody has said.
func langOf(said []Said) text.Lang {
	for i := len(said) - 1; i >= 0; i-- {
		if said[i].Heard != "" {
			return text.Of(said[i].Heard)
		}
	}
	return text.Chinese
}
