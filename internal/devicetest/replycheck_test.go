package devicetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scriptedTurn plays a line of steps on the wire's turn rules. A step is a name and
// the millisecond at which it happens: "start@0 frame@100 stop@160". A frame is
// 60 ms long and plays at once or behind the one before; "quiet" is a silent one.
func scriptedTurn(t *testing.T, tr *replyCheck, mode Mode, steps string) []string {
	t.Helper()
	base := time.Unix(1000, 0)
	var broken []string
	tr.violate = func(_ time.Time, rule Rule, _ string, _ ...any) { broken = append(broken, string(rule)) }
	if tr.limits.MaxLead == 0 {
		tr.limits.MaxLead = 360 * ms
	}
	p := player{limit: 40}
	var last time.Time
	for step := range strings.FieldsSeq(steps) {
		name, at, _ := strings.Cut(step, "@")
		n, err := strconv.Atoi(at)
		if err != nil {
			t.Fatalf("step %s: %v", step, err)
		}
		now := base.Add(time.Duration(n) * ms)
		last = now
		switch name {
		case "start":
			tr.start(now, 24000)
		case "stop":
			tr.stop(now, mode)
		case "sentence":
			tr.sentenceStart(now, "a")
		case "stt":
			tr.stt(now, "a")
		case "llm":
			tr.emotion(now, "happy", "")
		case "neutral":
			tr.emotion(now, "neutral", "")
		case "abort":
			tr.abort(now)
		case "cut":
			tr.cut(now)
		case "frame", "quiet":
			r := tr.frame(now)
			ends := p.ends
			from, _ := p.accept(now, 60*ms, nil, r)
			tr.placed(now, from, ends, 60*ms, name == "quiet")
		case "end":
		default:
			t.Fatalf("no step %s", name)
		}
	}
	for _, v := range tr.overdue(last) {
		broken = append(broken, string(v.Rule))
	}
	return slices.Compact(broken)
}

// Each rule at its very edge: the last moment that is right, and the first that is not.
func TestReplyCheckEdges(t *testing.T) {
	tests := []struct {
		steps string
		want  string
	}{
		{"stt@0 start@0 llm@0 sentence@0 frame@100 stop@160", ""},
		{"start@0 frame@99 stop@160", "early_frame"},
		{"start@0 frame@100 stop@159", "stop_early"},
		{"start@0 frame@100 stop@280", ""},
		{"start@0 frame@100 stop@281", "stop_late"},
		{"start@0 stop@5000", ""},
		{"start@0 start@1 stop@2", "start_twice"},
		{"stop@0", "stop_unpaired"},
		{"start@0 stop@1 stop@2", "stop_unpaired"},
		{"frame@0", "frame_outside"},
		{"start@0 frame@100 stop@160 frame@161", "frame_outside"},
		{"sentence@0", "outside_reply"},
		{"llm@0", "outside_reply"},
		{"neutral@0", ""},
		{"start@0 stt@1 stop@2", "stt_in_reply"},
		{"start@0 sentence@0 frame@360 stop@420", ""},
		{"start@0 sentence@0 frame@361 stop@421", "sentence_early"},
		{"start@0 sentence@0 sentence@300 frame@400 stop@460", ""},
		{"start@0 frame@100 frame@100 frame@100 frame@100 frame@100 frame@100 stop@460", ""},
		{"start@0 frame@100 frame@100 frame@100 frame@100 frame@100 frame@100 frame@100 stop@520", "lead_high"},
		{ // two frames were late: more may be ahead
			"start@0 frame@100 frame@100 frame@100 frame@100 frame@330 frame@330 frame@440 frame@500 " +
				strings.Repeat("frame@510 ", 8) + "stop@1060", "",
		},
		{ // but not more than 600 ms
			"start@0 frame@100 frame@100 frame@100 frame@100 frame@330 frame@330 frame@440 frame@500 " +
				strings.Repeat("frame@510 ", 9) + "stop@1120", "lead_high",
		},
		{ // one was late
			"start@0 frame@100 frame@100 frame@100 frame@100 frame@330 frame@330 frame@330 frame@330 frame@500 " +
				strings.Repeat("frame@510 ", 5) + "stop@940", "lead_high",
		},
		{"abort@0 stop@50", ""},
		{"abort@0 stop@51", "abort_slow"},
		{"abort@0 abort@10 stop@20 stop@30", ""},
		{"abort@0 abort@10 stop@20 end@1011", "stop_missing"},
		{"abort@0 end@1000", ""},
		{"abort@0 end@1001", "stop_missing"},
		{"abort@0 stop@10 stop@20", "stop_unpaired"},
		{"abort@0 start@30 quiet@131 stop@140", "abort_slow"},
		{"abort@0 start@31 stop@40", "start_after_abort"},
		{"start@0 frame@100 frame@100 abort@120 quiet@125 stop@125", ""},
		{"start@0 frame@100 frame@100 abort@120 frame@125 stop@125", "abort_loud"},
		{"start@0 frame@100 frame@100 abort@120 stop@125", "abort_loud"},
		{"start@0 frame@100 frame@100 abort@120 quiet@151 stop@151", ""},
		{"start@0 frame@100 frame@100 abort@120 quiet@151 quiet@151 stop@151", "abort_frames"},
		{"start@0 frame@100 frame@100 cut@120 quiet@125 stop@125", ""},
		{"start@0 frame@100 frame@100 cut@120 end@1121", "stop_missing"},
		{"start@0 abort@10 stop@20", ""},
		{"start@0 frame@100 abort@165 stop@170 stop@175", ""},                     // the stop crossed the abort
		{"start@0 frame@100 abort@165 stop@170 stop@1171", "stop_unpaired"},       // too late for that
		{"start@0 frame@100 abort@165 quiet@168 stop@170 start@200 stop@210", ""}, // and on it goes
	}
	for _, tt := range tests {
		got := strings.Join(scriptedTurn(t, &replyCheck{}, Auto, tt.steps), " ")
		if got != tt.want {
			t.Errorf("%s: broke %q, want %q", tt.steps, got, tt.want)
		}
	}
}

// Realtime mode may be cut by voice at any time, if a silent frame ends it.
func TestReplyCheckRealtime(t *testing.T) {
	for steps, want := range map[string]string{
		"start@0 frame@100 frame@100 frame@100 quiet@120 stop@120": "",
		"start@0 frame@100 frame@100 frame@100 frame@120 stop@120": "abort_loud",
		"start@0 frame@100 stop@281":                               "stop_late",
	} {
		if got := strings.Join(scriptedTurn(t, &replyCheck{}, Realtime, steps), " "); got != want {
			t.Errorf("%s: broke %q, want %q", steps, got, want)
		}
	}
}

// With sound known to be at hand, a thin or broken lead is a violation.
func TestReplyCheckStrictLead(t *testing.T) {
	var steady, thin strings.Builder
	for i := range 20 {
		fmt.Fprintf(&steady, " frame@%d", 100+60*max(0, i-3))
		fmt.Fprintf(&thin, " frame@%d", 100+60*max(0, i-1))
	}
	tests := []struct {
		name, steps, want string
		strict            bool
		tolerance         time.Duration
	}{
		{"steady", "start@0" + steady.String() + " stop@1320", "", true, 0},
		{"thin", "start@0" + thin.String() + " stop@1320", "lead_low", true, 0},
		{"thin, forgiven", "start@0" + thin.String() + " stop@1320", "", true, 60 * ms},
		{"thin, not strict", "start@0" + thin.String() + " stop@1320", "", false, 0},
		{"torn", "start@0 frame@100 frame@200 stop@260", "underrun", true, 0},
		{"torn, not strict", "start@0 frame@100 frame@200 stop@260", "", false, 0},
	}
	for _, tt := range tests {
		tr := &replyCheck{limits: Limits{StrictLead: tt.strict, Tolerance: tt.tolerance}}
		if got := strings.Join(scriptedTurn(t, tr, Auto, tt.steps), " "); got != tt.want {
			t.Errorf("%s: broke %q, want %q", tt.name, got, tt.want)
		}
	}
}
