package bench

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files")

// example is a report with one figure of each kind.
func example() *Report {
	quiet := Control{P50: 0.2, P99: 1.25, Max: 2, N: 100, Core: 1.5, Busy: 0.25, Self: 0.1, Load: []float64{0.5, 0.25, 0.125}}
	busy := quiet
	busy.P99, busy.Void = 12.5, true
	with := func(f Figure, c Control) Figure {
		f.Control = c
		return f.judged()
	}
	a, b := with(sampled("M8", "abort to tts stop", []float64{1, 2, 3}, most(P99, 50)), quiet), with(sampled("M8", "abort to tts stop", []float64{2, 3, 4}, most(P99, 50)), quiet)
	return &Report{
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Took: 61.25, Command: "xiaozhi bench --runs 2", Server: "our own", Size: Small, Runs: 2,
		Machine:  Machine{CPU: "A processor", Cores: 2, OS: "linux/amd64", Go: "go1.26", Codec: "libopus (cgo)", Pinned: "server on [0], load on [1]"},
		Settings: Settings{Guard: 105, Silence: 700}, Load: []float64{0.5, 0.25, 0.125},
		Figures: []Figure{
			with(sampled("M1", "added latency, manual, 1 session", []float64{3.25, 4.5, 30}, most(P50, 5), most(P99, 20)), quiet),
			with(sampled("M2", "added latency, auto", []float64{40, 50}, most(P50, 55)).asJitter(), busy),
			combine([]Figure{a, b}),
			with(single("M11", "speakers at once", "", 3, 80, least(Value, 80)).noted("more were not tried"), quiet),
			with(unmeasured("M12", "memory per device", "no process id (--pid)"), quiet),
		},
		Broken: map[string]int{"stop_late": 2, "lead_high": 1}, Excused: map[string]int{"stop_late": 7},
		Errors: []string{"M3: no sound came"},
	}
}

func TestReport(t *testing.T) {
	var table, document bytes.Buffer
	if err := example().Table(&table); err != nil {
		t.Fatal(err)
	}
	if err := example().JSON(&document); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"report.txt": table.Bytes(), "report.json": document.Bytes()} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is\n%s\nwant (go test -update writes it)\n%s", name, got, want)
		}
	}
}
