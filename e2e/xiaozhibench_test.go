package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"xiaozhi/internal/bench"
)

// TestBenchMeasures runs the bench as users do, on the smallest scale: that
// every figure is there and what it was taken with, not how large it is.
func TestBenchMeasures(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cmd := exec.CommandContext(ctx, binary, "bench", "--quick", "--no-pin", "--scenario", "m1,m8,m12", "--json", "-")
	cmd.Env = cleanEnv()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var report bench.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if report.Machine.Cores == 0 || report.Machine.CPU == "" || report.Command == "" || report.Took <= 0 || len(report.Errors) > 0 {
		t.Errorf("%+v", report)
	}
	seen := make(map[string]int)
	for _, f := range report.Figures {
		seen[f.Metric]++
		if f.N == 0 || (f.Numbers == nil) == (f.Value == nil) || f.Control.N == 0 {
			t.Errorf("%s %s: %+v", f.Metric, f.What, f)
		}
		if len(f.Goals) > 0 && f.Verdict == bench.NoGoal {
			t.Errorf("%s %s has goals and no verdict", f.Metric, f.What)
		}
	}
	for metric, n := range map[string]int{"M1": 4, "M8": 3, "M9": 2, "M12": 4} {
		if seen[metric] != n {
			t.Errorf("%d figures of %s, want %d", seen[metric], metric, n)
		}
	}
}

// TestBenchSoaks lets a few devices live for some seconds: none gets stuck,
// and no rule of the device protocol is broken.
func TestBenchSoaks(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(limit(t), binary, "bench", "--no-pin", "--soak", "4s", "--devices", "4")
	cmd.Env = cleanEnv()
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "in all: ") || !strings.Contains(string(out), "goroutines ") {
		t.Errorf("%v\n%s", err, out)
	}
}
