package bench

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/devicetest"
)

// The noise of a room is a stream of whole frames, none of which is a pause.
func TestRoom(t *testing.T) {
	packets, err := room(time.Second)
	if err != nil || len(packets) != 16 {
		t.Fatalf("%d packets, %v", len(packets), err)
	}
	for i, p := range packets {
		if length, err := audio.PacketDuration(p); err != nil || length != uplink.Frame || len(p) < 10 {
			t.Errorf("packet %d: %d bytes of %v, %v", i, len(p), length, err)
		}
	}
}

func TestProcessFiles(t *testing.T) {
	if kib, err := residentOf("Name:\tx\nVmHWM:\t   99 kB\nVmRSS:\t   31234 kB\nThreads:\t7\n"); err != nil || kib != 31234 {
		t.Errorf("%d KiB, %v", kib, err)
	}
	if _, err := residentOf("Name:\tx\n"); err == nil {
		t.Error("no VmRSS, no error")
	}
	// A program may be called anything.
	used, err := timesOf("42 (odd) name (x) S 1 1 1 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1")
	if err != nil || used != (processTimes{2500 * time.Millisecond, 500 * time.Millisecond}) {
		t.Errorf("%v, %v", used, err)
	}
	for _, bad := range []string{"", "42 (x) S 1", "42 (x) S 1 1 1 0 -1 4194560 100 0 0 0 a 50 0 0"} {
		if _, err := timesOf(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	if n, err := switchesOf("voluntary_ctxt_switches:\t120\nnonvoluntary_ctxt_switches:\t3\n"); err != nil || n != 123 {
		t.Errorf("%d switches, %v", n, err)
	}
	if _, err := switchesOf("voluntary_ctxt_switches:\t120\n"); err == nil {
		t.Error("half of the switches, no error")
	}
}

func TestCountGoroutines(t *testing.T) {
	dump := "goroutine 1 [running]:\nmain.main()\n\ngoroutine 5 [select]:\nnet/http.(*persistConn).readLoop(0x1)\n\ngoroutine 7 [IO wait]:\nx.read()\n"
	if got := countGoroutines(dump); got != 2 {
		t.Errorf("%d goroutines, want 2: one only keeps a connection to a provider", got)
	}
}

// The control wakes each 60 ms and in a bubble is never late.
func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 610*time.Millisecond)
		defer cancel()
		seen := wake(ctx)
		if len(seen) != 10 || slices.ContainsFunc(seen, func(l lateness) bool { return l.by != 0 }) {
			t.Errorf("%v", seen)
		}
	})
}

func TestEnvironment(t *testing.T) {
	from := []string{"PATH=/bin", "XIAOZHI_LLM=x", "OPENAI_BASE_URL=x", "DEEPSEEK_API_KEY=x", "GOMAXPROCS=8", "GOGC=off", "HOME=/h"}
	if got := (settings{}).environment(slices.Clone(from)); !slices.Equal(got, []string{"PATH=/bin", "HOME=/h"}) {
		t.Errorf("%v", got)
	}
	if got := (settings{garbage: "40"}).environment(from); !slices.Equal(got, []string{"PATH=/bin", "HOME=/h", "GOGC=40"}) {
		t.Errorf("%v", got)
	}
}

func TestConfig(t *testing.T) {
	text := settings{}.config("http://127.0.0.1:1/v1")
	for _, part := range []string{`base_url: "http://127.0.0.1:1/v1"`, "asr: [stub]", "trigger: 200ms, commit: 700ms"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %s in\n%s", part, text)
		}
	}
	text = settings{commit: 800 * time.Millisecond, ears: "pocketsphinx"}.config("u")
	if !strings.Contains(text, "asr: [pocketsphinx]") || !strings.Contains(text, "commit: 800ms") {
		t.Errorf("%s", text)
	}
}

func TestChosen(t *testing.T) {
	names := func(of ...string) string {
		list, err := chosen(of)
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, s := range list {
			all = append(all, s.names[0])
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct{ ask, want string }{
		{"m1", "m1"}, {"M5,m7", "m4"}, {"m17,m1", "m1 m17"}, {"m11", "m11 m11-open"}, {"m11-open", "m11-open"}, {"m18", "m18"}, {"m99", `unknown metric "m99"`},
	} {
		if got := names(strings.Split(c.ask, ",")...); got != c.want {
			t.Errorf("%s: %s, want %s", c.ask, got, c.want)
		}
	}
	if all := names(); len(strings.Fields(all)) != len(Metrics()) {
		t.Errorf("all: %s", all)
	}
}

// The first that fails is told of; the others are finished.
func TestTogether(t *testing.T) {
	got, err := together(5, 2, func(i int) (int, error) {
		if i == 3 {
			return 0, context.Canceled
		}
		return i * i, nil
	})
	if err == nil || !slices.Equal(got, []int{0, 1, 4, 0, 16}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestTooLong(t *testing.T) {
	for _, c := range []struct {
		reply, said string
		long        bool
	}{
		{"好的，我来给你讲一个关于小狐狸的故事。", "好的，", false},
		{"好的，我来给你讲一个关于小狐狸的故事。", "好的，我来给你讲一个关于小狐狸的故事。", true},
		{"人工智能是研究怎样让计算机完成任务的学科。", "人工智能是研究怎样让计算机完成任务的学科。", false}, // it has no pause to cut at
		{"Hello, this is quite a long sentence.", "Hello, this is quite a long sentence.", false},
	} {
		if got := tooLong(c.reply, c.said); got != c.long {
			t.Errorf("%s: %v", c.said, got)
		}
	}
}

func TestExcused(t *testing.T) {
	late := []lateness{{at: at(10000)[0], by: 200 * time.Millisecond}}
	for _, c := range []struct {
		rule devicetest.Rule
		at   int
		want bool
	}{
		{devicetest.RuleStopLate, 8700, false},
		{devicetest.RuleStopLate, 8900, true},
		{devicetest.RuleStopLate, 14900, true},
		{devicetest.RuleStopLate, 15100, false},
		{devicetest.RuleSessionID, 10000, false},
	} {
		if got := excused(devicetest.Violation{At: at(c.at)[0], Rule: c.rule}, late); got != c.want {
			t.Errorf("%s at %d: excused %v", c.rule, c.at, got)
		}
	}
}

// A soak fails when a device got stuck or a rule was broken, not for what a
// busy machine did, and not without any turn.
func TestSoakVerdict(t *testing.T) {
	seen := func(rule devicetest.Rule, ms int) breach {
		return breach{device: "d", Violation: devicetest.Violation{At: at(ms)[0], Rule: rule}}
	}
	busy := []lateness{{at: at(0)[0], by: time.Second}, {at: at(60000)[0], by: time.Millisecond}}
	for _, c := range []struct {
		name  string
		turns int
		stuck int
		seen  breach
		want  string
	}{
		{"well", 5, 0, seen(devicetest.RuleStopLate, 10), ""},
		{"nothing happened", 0, 0, seen(devicetest.RuleStopLate, 10), "no turn"},
		{"stuck", 5, 1, seen(devicetest.RuleStopLate, 10), "1 stuck"},
		{"late on a quiet machine", 5, 0, seen(devicetest.RuleStopLate, 60000), "1 broken rules (stop_late)"},
		{"wrong on a busy machine", 5, 0, seen(devicetest.RuleJSON, 10), "1 broken rules (json)"},
	} {
		var out strings.Builder
		s := &soak{out: &out}
		s.count(func(t *tally) { t.turns, t.stuck = c.turns, c.stuck })
		s.pending = append(s.pending, c.seen)
		s.judge(busy)
		err := s.verdict()
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
