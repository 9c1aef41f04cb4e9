package turn

import (
	"math/rand/v2"
	"testing"
	"time"

	"xiaozhi/internal/text/intent"
)

const milli = time.Millisecond

func TestDelayUnlearned(t *testing.T) {
	for _, c := range []struct {
		base time.Duration
		said intent.Completeness
		want time.Duration
	}{
		{500 * milli, intent.Finished, 500 * milli}, // behaviour 5: commit 500 after the last voiced sample
		{500 * milli, intent.Undecided, 500 * milli},
		{500 * milli, intent.Unfinished, time.Second},
		{700 * milli, intent.Finished, 700 * milli},
		{700 * milli, intent.Undecided, 700 * milli},
		{700 * milli, intent.Unfinished, 1400 * milli},
		{800 * milli, intent.Undecided, 800 * milli},    // behaviours 6 and 7
		{1500 * milli, intent.Unfinished, 2500 * milli}, // bounded
		{3 * time.Second, intent.Finished, 3 * time.Second},
		{3 * time.Second, intent.Undecided, 3 * time.Second}, // what was configured holds
		{3 * time.Second, intent.Unfinished, 3 * time.Second},
		{0, intent.Undecided, 0},
		{0, intent.Unfinished, 0},
	} {
		var p LearnedPause
		if got := p.Delay(c.base, c.said); got != c.want {
			t.Errorf("base %v, %v: %v, want %v", c.base, c.said, got, c.want)
		}
	}
}

// pausingTalker plays a user against a learned pause, as the conversation does: a
// silence as long as the delay commits, and going on soon after is a cut-off.
// It returns how many of the pauses were cut off.
func pausingTalker(p *LearnedPause, base time.Duration, said intent.Completeness, pauses ...time.Duration) (cuts int) {
	for _, d := range pauses {
		if d < p.Delay(base, said) {
			p.Paused(d)
			continue
		}
		p.CutOff(d)
		cuts++
	}
	p.Answered()
	return cuts
}

// Behaviour 6: a pause of 600 below a commit of 800 is one turn, and teaches
// nothing that would make the next one slower.
func TestPauseBelowCommit(t *testing.T) {
	var p LearnedPause
	for turn := range 20 {
		if cuts := pausingTalker(&p, 800*milli, intent.Undecided, 600*milli); cuts != 0 {
			t.Fatalf("turn %d was cut off", turn)
		}
		if got := p.Delay(800*milli, intent.Undecided); got != 800*milli {
			t.Fatalf("turn %d: the delay is %v", turn, got)
		}
	}
}

// Behaviour 12: after five turns with pauses of 700 to 900 the delay has
// risen so far that such a pause is waited for; ten fast turns bring it back.
func TestPauseIsLearned(t *testing.T) {
	for _, c := range []struct {
		name   string
		base   time.Duration
		said   intent.Completeness
		pauses []time.Duration
	}{
		{"each of them cut off", 700 * milli, intent.Undecided, []time.Duration{700 * milli, 800 * milli, 900 * milli, 750 * milli, 850 * milli}},
		{"rising", 700 * milli, intent.Undecided, []time.Duration{700 * milli, 750 * milli, 800 * milli, 850 * milli, 900 * milli}},
		{"falling", 700 * milli, intent.Undecided, []time.Duration{900 * milli, 850 * milli, 800 * milli, 750 * milli, 700 * milli}},
		{"waited for after unfinished texts", 700 * milli, intent.Unfinished, []time.Duration{700 * milli, 900 * milli, 800 * milli, 700 * milli, 900 * milli}},
		{"a short base", 500 * milli, intent.Undecided, []time.Duration{700 * milli, 900 * milli, 800 * milli, 700 * milli, 900 * milli}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p LearnedPause
			for _, d := range c.pauses {
				pausingTalker(&p, c.base, c.said, d)
			}
			got := p.Delay(c.base, intent.Undecided)
			if got < 850*milli || got > 1100*milli {
				t.Errorf("after five turns: %v", got)
			}
			if done := p.Delay(c.base, intent.Finished); done <= c.base || done >= got {
				t.Errorf("after a finished text: %v, with %v after one that may be", done, got)
			}
			if open := p.Delay(c.base, intent.Unfinished); open < 2*got && open != pauseLimit {
				t.Errorf("after an unfinished text: %v", open)
			}
			for fast := range 10 {
				if p.Delay(c.base, intent.Undecided) == c.base {
					t.Fatalf("fell back after %d fast turns", fast)
				}
				if now := p.Delay(c.base, intent.Undecided); now > got {
					t.Fatalf("rose to %v in fast turns", now)
				} else {
					got = now
				}
				pausingTalker(&p, c.base, intent.Undecided)
			}
			if p != (LearnedPause{}) || p.Delay(c.base, intent.Undecided) != c.base {
				t.Errorf("after ten fast turns: %v", p.Delay(c.base, intent.Undecided))
			}
		})
	}
}

// Who pauses 700 to 900 is cut off a few times at most, and then no more.
func TestCutOffsEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var p LearnedPause
	for turn := range 200 {
		d := 700*milli + time.Duration(r.IntN(200))*milli
		if cuts := pausingTalker(&p, 700*milli, intent.Undecided, d); cuts > 0 && turn >= 5 {
			t.Errorf("turn %d: a pause of %v was cut off, the delay is %v", turn, d, p.Delay(700*milli, intent.Undecided))
		}
	}
}

// A long pause in every third turn keeps what was learned.
func TestPauseIsKept(t *testing.T) {
	var p LearnedPause
	for range 5 {
		pausingTalker(&p, 700*milli, intent.Undecided, 900*milli)
	}
	for turn := range 30 {
		if turn%3 == 2 {
			pausingTalker(&p, 700*milli, intent.Undecided, 850*milli)
		} else {
			pausingTalker(&p, 700*milli, intent.Undecided, 250*milli) // a breath
		}
		if got := p.Delay(700*milli, intent.Undecided); got < 850*milli {
			t.Fatalf("turn %d: %v", turn, got)
		}
	}
}

// Breaths do not count as long pauses: with nothing else it falls back.
func TestBreathsForget(t *testing.T) {
	var p LearnedPause
	for range 5 {
		pausingTalker(&p, 700*milli, intent.Undecided, 900*milli)
	}
	for range 10 {
		pausingTalker(&p, 700*milli, intent.Undecided, 250*milli)
	}
	if got := p.Delay(700*milli, intent.Undecided); got != 700*milli {
		t.Errorf("after ten turns with breaths: %v", got)
	}
}

// Who speaks again while a slow answer is awaited has not paused.
func TestImpatienceTeachesNothing(t *testing.T) {
	var p LearnedPause
	for range 10 {
		p.CutOff(pauseLimit + time.Second)
	}
	if p != (LearnedPause{}) {
		t.Errorf("learned %+v", p)
	}
}

// One strange pause teaches little.
func TestOnePause(t *testing.T) {
	for _, teach := range []func(*LearnedPause, time.Duration){(*LearnedPause).Paused, (*LearnedPause).CutOff} {
		for _, d := range []time.Duration{-time.Second, 0, 300 * milli, 900 * milli, 2 * time.Second, time.Hour} {
			var p LearnedPause
			teach(&p, d)
			if got := p.Delay(700*milli, intent.Undecided); got != 700*milli {
				t.Errorf("after one pause of %v: %v", d, got)
			}
		}
	}
}

// Whatever happens, the delay lies between base and the limit, a finished text
// waits the shortest and an unfinished one the longest, and the same events
// give the same delays.
func TestDelayIsBounded(t *testing.T) {
	run := func(seed uint64) []time.Duration {
		r := rand.New(rand.NewPCG(seed, 3))
		var p LearnedPause
		var all []time.Duration
		for range 300 {
			d := time.Duration(r.Int64N(int64(4*time.Second))) - time.Second
			switch r.IntN(4) {
			case 0:
				p.Paused(d)
			case 1:
				p.CutOff(d)
			default:
				p.Answered()
			}
			base := time.Duration(r.IntN(2400)+100) * milli
			done, maybe, open := p.Delay(base, intent.Finished), p.Delay(base, intent.Undecided), p.Delay(base, intent.Unfinished)
			if done < base || maybe < done || open < maybe || open > pauseLimit {
				t.Fatalf("base %v: %v, %v, %v with %+v", base, done, maybe, open, p)
			}
			all = append(all, done, maybe, open)
		}
		return all
	}
	for seed := range uint64(50) {
		a, b := run(seed), run(seed)
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("seed %d: %v and %v", seed, a[i], b[i])
			}
		}
	}
}
