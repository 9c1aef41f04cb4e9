package audio

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

const testFrame = 60 * ms

// pacerTest drives a pacer in a time of its own.
type pacerTest struct {
	*testing.T
	p     *Pacer
	start time.Time
	now   time.Duration
}

func newPacerTest(t *testing.T, lead int) *pacerTest {
	t.Helper()
	return &pacerTest{T: t, p: NewPacer(testFrame, lead), start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func (t *pacerTest) at(d time.Duration) time.Time { return t.start.Add(d) }

// next waits until the next frame is due, at most a frame's length late, and
// sends it; it gives the time of sending.
func (t *pacerTest) next(late time.Duration) time.Duration {
	if due := t.p.Due(t.at(t.now)); due.After(t.at(t.now)) {
		t.now = due.Sub(t.start) + late
	}
	t.p.Sent(t.at(t.now))
	return t.now
}

func (t *pacerTest) send(n int) {
	for range n {
		t.next(0)
	}
}

func TestPacerOpeningLead(t *testing.T) {
	pt := newPacerTest(t, 0)
	var got []time.Duration
	for range 9 {
		got = append(got, pt.next(0))
	}
	want := []time.Duration{0, 0, 0, 0, 30 * ms, 90 * ms, 150 * ms, 210 * ms, 270 * ms}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sent at %v, want %v", got, want)
	}
	if pt.p.PlayoutEnd() != pt.at(9*testFrame) || pt.p.Frames() != 9 || pt.p.Underruns() != 0 || pt.p.MinLead() != 210*ms {
		t.Errorf("playout ends %v, %d frames, %d underruns, smallest lead %v",
			pt.p.PlayoutEnd().Sub(pt.start), pt.p.Frames(), pt.p.Underruns(), pt.p.MinLead())
	}
}

func TestPacerLateness(t *testing.T) {
	pt := newPacerTest(t, 4)
	random := rand.New(rand.NewPCG(7, 8))
	for range 1000 {
		pt.next(time.Duration(random.IntN(30)) * ms)
	}
	if want := pt.at(1000 * testFrame); pt.p.PlayoutEnd() != want {
		t.Errorf("playout ends %v late", pt.p.PlayoutEnd().Sub(want))
	}
	if pt.p.MinLead() < 180*ms || pt.p.Underruns() != 0 {
		t.Errorf("smallest lead %v, %d underruns", pt.p.MinLead(), pt.p.Underruns())
	}
}

func TestPacerAfterShortStall(t *testing.T) {
	pt := newPacerTest(t, 4)
	pt.send(10)
	lead := pt.p.Lead(pt.at(pt.now))
	pt.now += 200 * ms // less than the lead: the sound never stopped
	stalled := pt.now
	burst := 0
	for pt.next(0) == stalled {
		burst++
	}
	if burst != 3 { // 200 ms of a grid of 60
		t.Errorf("a burst of %d frames after the stall, want 3", burst)
	}
	if pt.p.Underruns() != 0 || pt.p.MinLead() != lead-200*ms {
		t.Errorf("%d underruns, smallest lead %v, want %v", pt.p.Underruns(), pt.p.MinLead(), lead-200*ms)
	}
}

func TestPacerAfterUnderrun(t *testing.T) {
	pt := newPacerTest(t, 4)
	pt.send(10)
	pt.now = 3 * time.Second
	if due := pt.p.Due(pt.at(pt.now)); due.After(pt.at(pt.now)) {
		t.Errorf("after a stall the next frame is due in %v", due.Sub(pt.at(pt.now)))
	}
	burst := 0
	for pt.next(0) == 3*time.Second {
		burst++
	}
	if burst != 4 || pt.p.Underruns() != 1 || pt.p.MinLead() != 0 {
		t.Errorf("a burst of %d, %d underruns, smallest lead %v", burst, pt.p.Underruns(), pt.p.MinLead())
	}
	if gaps := pt.p.Gaps(); len(gaps) != 1 || gaps[0] != (Gap{Until: pt.at(3 * time.Second), Played: 10 * testFrame}) {
		t.Errorf("%+v", gaps)
	}
	if want := pt.at(3*time.Second + 5*testFrame); pt.p.PlayoutEnd() != want {
		t.Errorf("playout ends at %v", pt.p.PlayoutEnd().Sub(pt.start))
	}
}

func TestPacerSentAtEnd(t *testing.T) {
	pt := newPacerTest(t, 4)
	pt.p.Sent(pt.at(0))
	pt.p.Sent(pt.at(testFrame))
	if pt.p.Underruns() != 0 || pt.p.PlayoutEnd() != pt.at(2*testFrame) {
		t.Errorf("%d underruns, end %v", pt.p.Underruns(), pt.p.PlayoutEnd().Sub(pt.start))
	}
	pt.p.Sent(pt.at(2*testFrame + 1))
	if pt.p.Underruns() != 1 {
		t.Errorf("%d underruns, want 1", pt.p.Underruns())
	}
}

func TestPacerHeard(t *testing.T) {
	pt := newPacerTest(t, 4)
	pt.send(3) // plays from 0 to 180 ms
	for _, c := range []struct {
		at, heard time.Duration
		played    int
	}{
		{0, 0, 0},
		{1, 1, 1},
		{60 * ms, 60 * ms, 1},
		{61 * ms, 61 * ms, 2},
		{150 * ms, 150 * ms, 3},
		{180 * ms, 180 * ms, 3},
		{10 * time.Second, 180 * ms, 3},
	} {
		if heard, played := pt.p.Heard(pt.at(c.at)), pt.p.Played(pt.at(c.at)); heard != c.heard || played != c.played {
			t.Errorf("at %v: heard %v, %d frames; want %v, %d", c.at, heard, played, c.heard, c.played)
		}
	}
	pt.now = time.Second // a gap, then two more from 1000 to 1120 ms
	pt.send(2)
	for _, c := range []struct {
		at, heard time.Duration
		played    int
	}{
		{1000 * ms, 180 * ms, 3}, {1030 * ms, 210 * ms, 4}, {1090 * ms, 270 * ms, 5}, {5 * time.Second, 300 * ms, 5},
	} {
		if heard, played := pt.p.Heard(pt.at(c.at)), pt.p.Played(pt.at(c.at)); heard != c.heard || played != c.played {
			t.Errorf("after the gap, at %v: heard %v, %d frames; want %v, %d", c.at, heard, played, c.heard, c.played)
		}
	}
}

func TestPacerBeforeTheFirstFrame(t *testing.T) {
	p := NewPacer(0, -1)
	now := time.Now()
	fresh := func(when string) {
		t.Helper()
		if p.Started() || p.Frames() != 0 || p.Underruns() != 0 || p.Lead(now) != 0 || p.Heard(now) != 0 ||
			p.Played(now) != 0 || !p.PlayoutEnd().IsZero() || p.Due(now).After(now) || p.MinLead() != 240*ms {
			t.Errorf("%s: %+v", when, p)
		}
	}
	fresh("new")
	p.Sent(now)
	p.Sent(now.Add(time.Minute))
	if p.Lead(now.Add(time.Minute)) != 60*ms || p.Lead(now.Add(time.Hour)) != 0 {
		t.Errorf("lead %v, later %v", p.Lead(now.Add(time.Minute)), p.Lead(now.Add(time.Hour)))
	}
	p.Reset()
	fresh("after Reset")
}

// TestPacerWithRandomProducers simulates producers that deliver in bursts and
// stall, and timers that fire late, against a device of its own reckoning.
func TestPacerWithRandomProducers(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 9))
		pt := newPacerTest(t, 4)
		var (
			available           time.Duration // when the next frame is made
			played, deviceEnd   time.Duration // the device's own clock
			gaps, sinceRestart  int
			stalledSinceRestart bool
		)
		for i := range 400 {
			if random.IntN(25) == 0 {
				available += time.Duration(random.IntN(1500)) * ms
			}
			atHand := available <= pt.now
			pt.now = max(pt.now, available)
			stalledSinceRestart = stalledSinceRestart || !atHand
			sent := pt.next(time.Duration(random.IntN(25)) * ms)

			if i > 0 && sent > deviceEnd {
				gaps++
				sinceRestart, stalledSinceRestart = 0, false
			}
			lead := max(0, deviceEnd-sent)
			if sinceRestart >= 4 && !stalledSinceRestart && lead < 180*ms {
				t.Fatalf("seed %d, frame %d: lead %v with sound at hand", seed, i, lead)
			}
			deviceEnd = max(deviceEnd, sent) + testFrame
			played += testFrame
			sinceRestart++
			if over := deviceEnd - sent; over > 360*ms {
				t.Fatalf("seed %d, frame %d: lead %v", seed, i, over)
			}
			if pt.p.PlayoutEnd() != pt.at(deviceEnd) || pt.p.Underruns() != gaps {
				t.Fatalf("seed %d, frame %d: end %v, %d underruns; the device says %v, %d", seed, i,
					pt.p.PlayoutEnd().Sub(pt.start), pt.p.Underruns(), deviceEnd, gaps)
			}
			if want := played - (deviceEnd - sent); pt.p.Heard(pt.at(sent)) != want {
				t.Fatalf("seed %d, frame %d: heard %v, want %v", seed, i, pt.p.Heard(pt.at(sent)), want)
			}
			if lead >= 180*ms {
				stalledSinceRestart = false // caught up by the grid
			}
		}
		if pt.p.Heard(pt.at(deviceEnd)) != played || pt.p.Played(pt.at(deviceEnd)) != 400 {
			t.Fatalf("seed %d: heard %v of %v", seed, pt.p.Heard(pt.at(deviceEnd)), played)
		}
	}
}

// arrive sends the frames that are due by a sender who is late by a given time
// at each, tells the pacer so, and returns the largest lead after a sending.
func (t *pacerTest) arrive(frames int, late time.Duration) (largest time.Duration) {
	for range frames {
		if due := t.p.Due(t.at(t.now)); due.After(t.at(t.now)) {
			t.now = due.Sub(t.start)
		}
		if late > 0 {
			t.now += late
			t.p.Late(late)
		}
		t.p.Sent(t.at(t.now))
		largest = max(largest, t.p.Lead(t.at(t.now)))
	}
	return largest
}

func TestPacerLeadPunctual(t *testing.T) {
	for lead, most := range map[int]time.Duration{0: 270 * ms, 3: 210 * ms, 5: 330 * ms, 6: 360 * ms} {
		pt := newPacerTest(t, lead)
		if got := pt.arrive(500, 20*ms); got > most {
			t.Errorf("lead of %d frames: %v at the device, want at most %v", lead, got, most)
		}
		if pt.p.Underruns() != 0 || pt.p.Aim() > 360*ms {
			t.Errorf("lead of %d frames: %d underruns, aim %v", lead, pt.p.Underruns(), pt.p.Aim())
		}
	}
}

func TestPacerLeadAdapts(t *testing.T) {
	pt := newPacerTest(t, 4)
	pt.send(20)
	pt.arrive(1, 200*ms)
	if pt.p.Aim() != 330*ms {
		t.Errorf("aim %v after one frame that was 200 ms late", pt.p.Aim())
	}
	if got := pt.arrive(20, 0); got > 360*ms {
		t.Errorf("lead %v after one frame that was late", got)
	}
	pt.arrive(1, 200*ms)
	if aim := pt.p.Aim(); aim > 350*ms || aim < 310*ms {
		t.Errorf("aim %v after two", aim)
	}
	// Every tenth frame is as late: what it finds at the device is enough.
	for round := range 20 {
		pt.arrive(9, 0)
		end := pt.p.PlayoutEnd()
		pt.arrive(1, 200*ms)
		if left := end.Sub(pt.at(pt.now)); left < 100*ms {
			t.Fatalf("round %d: the late frame found %v", round, left)
		}
	}
	if pt.p.Underruns() != 0 {
		t.Errorf("%d underruns", pt.p.Underruns())
	}
	// Calm: back to 240 ms, without a gap in the sending longer than a frame and a bit.
	last := pt.now
	for range 400 {
		sent := pt.next(0)
		if sent-last > testFrame+10*ms {
			t.Fatalf("a pause of %v in the sending while the lead shrinks", sent-last)
		}
		last = sent
	}
	if pt.p.Aim() != 240*ms || pt.p.Lead(pt.at(pt.now)) != 270*ms {
		t.Errorf("aim %v, lead %v after calm", pt.p.Aim(), pt.p.Lead(pt.at(pt.now)))
	}
}

func TestPacerLeadHasABound(t *testing.T) {
	pt := newPacerTest(t, 4)
	pt.send(10)
	for range 30 { // an outbox that is stuck for seconds, again and again
		if got := pt.arrive(1, 5*time.Second); got > 600*ms {
			t.Fatalf("lead %v", got)
		}
		burst, stuck := 1, pt.now
		for pt.next(0) == stuck {
			burst++
		}
		if burst > 10 || pt.p.Lead(pt.at(pt.now)) > 600*ms {
			t.Fatalf("a burst of %d frames, lead %v", burst, pt.p.Lead(pt.at(pt.now)))
		}
	}
	aim := pt.p.Aim()
	if pt.p.Reset(); pt.p.Aim() != aim || aim < 500*ms || pt.p.Started() {
		t.Error("a new reply to the same device must know its jitter")
	}
	other := NewPacer(testFrame, 4)
	if other.Inherit(pt.p); other.Aim() != aim {
		t.Errorf("what was learned is not passed on: aim %v", other.Aim())
	}
}
