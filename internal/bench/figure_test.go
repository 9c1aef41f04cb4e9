package bench

import (
	"context"
	"testing"
)

func TestVerdict(t *testing.T) {
	quiet, busy := Control{P99: 1}, Control{P99: 9, Void: true}
	sample := []float64{1, 2, 3}
	for _, c := range []struct {
		name string
		f    Figure
		want Verdict
	}{
		{"no goal", Figure{Numbers: describe(sample), Control: busy}, NoGoal},
		{"met", Figure{Numbers: describe(sample), Goals: []Goal{most(P50, 2), most(Max, 3)}, Control: quiet}, Pass},
		{"one of two missed", Figure{Numbers: describe(sample), Goals: []Goal{most(P50, 2), most(Max, 2.9)}, Control: quiet}, Miss},
		{"missed on a busy machine", Figure{Numbers: describe(sample), Goals: []Goal{most(P50, 1)}, Control: busy}, Void},
		{"met on a busy machine", Figure{Numbers: describe(sample), Goals: []Goal{most(P50, 2)}, Control: busy}, Void},
		{"memory on a busy machine", single("M12", "", "KiB", 1, 5, most(Value, 4)).untimed(), Miss},
		{"at least", single("M11", "", "", 1, 80, least(Value, 80)), Pass},
		{"too few", single("M11", "", "", 1, 79, least(Value, 80)), Miss},
		{"nothing measured", Figure{Goals: []Goal{most(P50, 1)}}, None},
		{"wrong kind of number", single("", "", "", 1, 0, most(P99, 5)), Miss},
	} {
		if got := c.f.judged().Verdict; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestControlJudges(t *testing.T) {
	for _, c := range []struct {
		name string
		c    Control
		void bool
	}{
		{"quiet", Control{P99: 5, Core: 5, Busy: 0.1}, false},
		{"the load was late", Control{P99: 5.1, Core: 1, Busy: 0.1}, true},
		{"somebody else was on the server's core", Control{P99: 1, Core: 6, Busy: 0.3}, true},
		{"the server itself was", Control{P99: 1, Core: 6, Busy: 0.9}, false},
		{"nobody knows who was", Control{P99: 1, Core: 6, Busy: -1}, false},
	} {
		if got := c.c.judge(); got != c.void {
			t.Errorf("%s: void %v", c.name, got)
		}
	}
}

func TestCombine(t *testing.T) {
	run := func(control float64, sample ...float64) Figure {
		f := sampled("M1", "x", sample, most(P50, 5))
		f.Control = Control{P99: control, Void: control > controlLimit}
		return f
	}
	one := combine([]Figure{run(1, 4)})
	if one.Spread != nil || one.Verdict != Pass {
		t.Errorf("one run: %+v", one)
	}
	// The void run would have been the median.
	three := combine([]Figure{run(1, 2, 2), run(9, 50, 50), run(2, 4, 4)})
	if three.Numbers.P50 != 3 || three.N != 4 || three.Verdict != Pass || three.Control.P99 != 2 {
		t.Errorf("three runs: %+v of %+v", three, *three.Numbers)
	}
	if s := three.Spread; s.Runs != 3 || s.Void != 1 || s.Low.P50 != 2 || s.High.P50 != 4 {
		t.Errorf("spread %+v", *s)
	}
	all := combine([]Figure{run(9, 1), run(8, 2)})
	if all.Verdict != Void || all.Numbers.P50 != 1.5 || all.Spread.Void != 2 {
		t.Errorf("all void: %+v", all)
	}
	values := combine([]Figure{single("M13", "x", "s", 1, 3), single("M13", "x", "s", 1, 1), single("M13", "x", "s", 1, 2)})
	if *values.Value != 2 || values.Spread.Low.P50 != 1 || values.Spread.High.P50 != 3 {
		t.Errorf("values: %v, %+v", *values.Value, *values.Spread)
	}
	half := combine([]Figure{unmeasured("M16", "x", "why"), single("M16", "x", "s", 1, 3, most(Value, 5))})
	if half.Value == nil || half.Verdict != Pass {
		t.Errorf("measured in one of two: %+v", half)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3: "3", 0.0312: "0.031", 0.5: "0.50", 1.239: "1.24", 12.34: "12.3", 123.4: "123", -2.5: "-2.50", 1e7: "10000000",
	} {
		if got := number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	for _, c := range []struct{ capacity, low, aim, high, step, fine, want, tries int }{
		{capacity: 133, low: 20, aim: 80, high: 300, step: 20, fine: 5, want: 130, tries: 6},  // 80 100 120 140, 130 135
		{capacity: 130, low: 20, aim: 80, high: 80, step: 20, fine: 20, want: 80, tries: 1},   // more were not asked for
		{capacity: 50, low: 20, aim: 80, high: 80, step: 20, fine: 20, want: 40, tries: 3},    // 80 60 40
		{capacity: 50, low: 20, aim: 80, high: 300, step: 20, fine: 5, want: 50, tries: 5},    // 80 60 40, 50 55
		{capacity: 10, low: 20, aim: 80, high: 300, step: 20, fine: 5, want: 0, tries: 4},     // not even 20
		{capacity: 999, low: 20, aim: 280, high: 300, step: 20, fine: 5, want: 300, tries: 2}, // up to the end
		{capacity: 5, low: 1, aim: 2, high: 2, step: 1, fine: 1, want: 2, tries: 1},           // the quick size
	} {
		asked := 0
		got, err := search(c.low, c.aim, c.high, c.step, c.fine, func(n int) (bool, error) {
			asked++
			return n <= c.capacity, nil
		})
		if err != nil || got != c.want || asked != c.tries {
			t.Errorf("%+v: %d after %d tries, %v", c, got, asked, err)
		}
	}
	if got, err := search(1, 5, 9, 2, 1, func(n int) (bool, error) { return true, context.Canceled }); err == nil || got != 0 {
		t.Errorf("a number that cannot be tried: %d, %v", got, err)
	}
}

// TestRelative: times become multiples of a packet's encoding, and other figures stay what they are.
func TestRelative(t *testing.T) {
	f := sampled("M1", "x", []float64{1, 2, 3}, most(P50, 1)).judged().relative(0.5)
	if f.Unit != "× encode" || f.Numbers.P50 != 4 || f.Numbers.Max != 6 || f.Sample[0] != 2 || f.Verdict != NoGoal {
		t.Errorf("%+v %+v", f, *f.Numbers)
	}
	if f := single("M13", "x", "s", 1, 3).relative(0.5); *f.Value != 6000 {
		t.Errorf("%v", *f.Value)
	}
	if f := single("M12", "x", "KiB", 1, 3, most(Value, 4)).judged().relative(0.5); *f.Value != 3 || f.Verdict != Pass {
		t.Errorf("%+v", f)
	}
}
