package voices

import (
	"context"
	"errors"
	"math"
	"time"

	"xiaozhi/providers"
)

// Verdict says what is known of who is speaking.
type Verdict int

// The verdicts.
const (
	Unknown  Verdict = iota // it was not found out: nobody is enrolled, or what tells people apart has failed
	Unclear                 // too little was said, or too quietly: it says nothing
	Stranger                // nobody who is known, or more than one
	Known
)

// Speaker says whose voice was heard.
type Speaker struct {
	Verdict Verdict
	ID      string // of the person; "": it is not known
	Name    string
	Sure    int // how much the voices are alike, in per cent
}

const (
	halvesFrom = 3 * time.Second // so much said is looked at in two halves: two people may be speaking
	halfLess   = 0.1             // of a half, which is short, so much less will do
	apart      = 0.05            // two people whose scores are nearer than this are not told apart
	places     = 4               // voices that are looked at at the same time
)

// On reports whether anybody can be known: there is something that tells people apart, and somebody is enrolled with it.
func (b *Book) On() bool {
	e := b.o.Engine()
	return e != nil && len(b.printsFor(e)) > 0
}

// printsFor lists the prints that are of use to an engine.
func (b *Book) printsFor(e providers.Voiceprint) (prints []providers.Print) {
	model := e.Scale().Model
	for _, v := range b.now.Load().Voices {
		if v.Print.Model == model && (v.Print.Data != nil || v.Service == e.Name()) {
			prints = append(prints, v.Print)
		}
	}
	return prints
}

// Identify says who is speaking in sound at [providers.VoiceRate]. It waits for a place and for the engine, no longer than ctx
// lives, and keeps nothing of the sound.
func (b *Book) Identify(ctx context.Context, pcm []int16) Speaker {
	e := b.o.Engine()
	if e == nil {
		return Speaker{}
	}
	prints := b.printsFor(e)
	if len(prints) == 0 {
		return Speaker{}
	}
	part, said, err := spoken(atMost(pcm, mostHeard), MinSaid)
	if err != nil {
		return Speaker{Verdict: Unclear}
	}
	parts := [][]int16{part}
	if said >= halvesFrom {
		parts = [][]int16{part[:len(part)/2], part[len(part)/2:]}
	}
	s, err := b.judge(ctx, e, parts, prints)
	if err != nil && ctx.Err() == nil {
		b.o.Log.Debug("it is not known who is speaking", "provider", e.Name(), "err", err)
	}
	return s
}

// judge has an engine look at the parts of what was said. All must be of one person.
func (b *Book) judge(ctx context.Context, e providers.Voiceprint, parts [][]int16, prints []providers.Print) (s Speaker, err error) {
	select {
	case b.places <- struct{}{}:
		defer func() { <-b.places }()
	case <-ctx.Done():
		return s, ctx.Err()
	}
	threshold, sum := e.Scale().Threshold, 0.0
	less := 0.0
	if len(parts) > 1 {
		less = halfLess
	}
	person := ""
	for i, part := range parts {
		m, err := e.Identify(ctx, part, prints)
		if err != nil {
			return Speaker{}, err
		}
		if m.Person == "" || m.Score < threshold-less || i > 0 && m.Person != person || m.Next > 0 && m.Score-m.Next < apart {
			return Speaker{Verdict: Stranger}, nil
		}
		person, sum = m.Person, sum+m.Score
	}
	mean := sum / float64(len(parts))
	p, there := b.now.Load().person(person)
	if mean < threshold || !there {
		return Speaker{Verdict: Stranger}, nil
	}
	return Speaker{Verdict: Known, ID: p.ID, Name: p.Name, Sure: percent(mean)}, nil
}

func percent(score float64) int { return int(math.Round(100 * min(max(score, 0), 1))) }

// Certain reports whether a speaker is known with room to spare: the scores of one person vary by about as much.
func (b *Book) Certain(s Speaker) bool {
	e := b.o.Engine()
	return e != nil && s.Verdict == Known && s.Sure >= percent(e.Scale().Threshold+room)
}

// room is how far above the threshold a score has to be to be certain.
const room = 0.15

// Trial holds what came of looking at a voice by hand.
type Trial struct {
	Speaker Speaker
	Nearest string        // name of the person whose voice is most like it; "": nobody's is
	Score   int           // how much they are alike, in per cent
	Needed  int           // from which on it counts
	Said    time.Duration // pauses apart
}

// Try looks at a voice that somebody wants to try. The error is [ErrOff], [ErrNobody] if nobody is enrolled, [ErrShort],
// [ErrQuiet], or the engine's.
func (b *Book) Try(ctx context.Context, pcm []int16) (t Trial, err error) {
	e := b.o.Engine()
	if e == nil {
		return t, ErrOff
	}
	prints := b.printsFor(e)
	if len(prints) == 0 {
		return t, ErrNobody
	}
	part, said, err := spoken(atMost(pcm, mostHeard), MinSaid)
	t.Said, t.Needed = said, percent(e.Scale().Threshold)
	if err != nil {
		return t, err
	}
	m, err := e.Identify(ctx, part, prints)
	if err != nil {
		return t, err
	}
	p, _ := b.now.Load().person(m.Person)
	t.Nearest, t.Score = p.Name, percent(m.Score)
	t.Speaker = b.Identify(ctx, pcm)
	return t, ctx.Err()
}

// Enrol makes a print of a person's voice in sound, and keeps it. The error is [ErrOff], [ErrNobody], [ErrShort], [ErrQuiet],
// [ErrUnlike], an [*OtherError], or the engine's.
func (b *Book) Enrol(ctx context.Context, person string, source Source, device string, pcm []int16) (v Voice, err error) {
	e := b.o.Engine()
	if e == nil {
		return v, ErrOff
	}
	p, there := b.now.Load().person(person)
	if !there {
		return v, ErrNobody
	}
	part, said, err := spoken(atMost(pcm, providers.MaxVoice), MinEnrol)
	if err != nil {
		return v, err
	}
	if err := b.fits(ctx, e, p, part); err != nil {
		return v, err
	}
	id := b.o.NewID()
	// Whatever becomes of it, the service does not keep what is not known here.
	if err := b.o.Store.Begin(ctx, Removal{ID: id, Service: e.Name(), Next: time.Now().Add(enrolTime)}); err != nil {
		return v, err
	}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, enrolTime/2)
	defer cancel()
	v = Voice{Service: e.Name(), Source: source, Device: device, Length: said, At: time.Now()}
	if v.Print, err = e.Enrol(ctx, id, part); err == nil {
		v.Print.Person = person
		err = b.o.Store.AddVoice(ctx, v, MaxVoices)
	}
	if err != nil {
		return v, errors.Join(err, b.noticed(whole))
	}
	return v, b.reload(ctx)
}

// enrolTime is how long a print may be in the making before it counts as left behind.
const enrolTime = 2 * time.Minute

// fits compares a voice that is to be somebody's with those that are known.
func (b *Book) fits(ctx context.Context, e providers.Voiceprint, p Person, part []int16) error {
	prints := b.printsFor(e)
	if len(prints) == 0 {
		return nil
	}
	m, err := e.Identify(ctx, part, prints)
	if err != nil {
		return err
	}
	threshold := e.Scale().Threshold
	if other, there := b.now.Load().person(m.Person); there && other.ID != p.ID && m.Score >= threshold {
		return &OtherError{other.Name}
	}
	own := make([]providers.Print, 0, len(prints))
	for _, print := range prints {
		if print.Person == p.ID {
			own = append(own, print)
		}
	}
	if len(own) == 0 {
		return nil
	}
	if m, err = e.Identify(ctx, part, own); err != nil {
		return err
	}
	if m.Score < threshold-halfLess {
		return ErrUnlike
	}
	return nil
}

// Faulty reports whether an error is one of what was said, which people can do something about.
func Faulty(err error) bool {
	_, other := errors.AsType[*OtherError](err)
	return other || errors.Is(err, ErrShort) || errors.Is(err, ErrQuiet) || errors.Is(err, ErrUnlike)
}
