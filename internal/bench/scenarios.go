package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scenario is one way of loading a server and what is learned from it.
type scenario struct {
	names []string // of the metrics
	about string
	needs settings // of a server that we start
	early bool     // it begins before the server's engines are loaded
	run   func(context.Context, *rig) ([]Figure, error)
}

func scenarios() []scenario {
	return []scenario{
		{names: []string{"m1"}, about: "added latency, push to talk", run: manual},
		{names: []string{"m2"}, about: "added latency, automatic", run: automatic},
		{names: []string{"m3"}, about: "work that overlaps the silence", needs: settings{commit: 800 * time.Millisecond}, run: overlap},
		{names: []string{"m4", "m5", "m6", "m7"}, about: "play-out, jitter, seams, end of a long reply", run: longReply},
		{names: []string{"m8", "m9"}, about: "abort, and requests to providers closed", run: aborts},
		{names: []string{"m10"}, about: "interruption by voice", run: bargeIn},
		{names: []string{"m11"}, about: "speakers on one core", run: density},
		{names: []string{"m11-open", "m11"}, about: "speakers with open microphones on one core", run: densityOpen},
		{names: []string{"m12"}, about: "memory of a device", run: footprint},
		{names: []string{"m13"}, about: "processor time of speech", run: work},
		{names: []string{"m14"}, about: "coming and going", run: churn},
		{names: []string{"m15"}, about: "hello", needs: settings{ears: "pocketsphinx"}, early: true, run: hello},
		{names: []string{"m16"}, about: "one that does not read", run: fairness},
		{names: []string{"m17"}, about: "first segment in Chinese", run: firstSegment},
	}
}

// Metrics are the names that Options.Metrics may hold, each with what it is about.
func Metrics() [][2]string {
	var out [][2]string
	for _, s := range scenarios() {
		out = append(out, [2]string{strings.Join(s.names, ","), s.about})
	}
	return out
}

// chosen are the scenarios of these metrics, in their usual order.
func chosen(names []string) ([]scenario, error) {
	all := scenarios()
	if len(names) == 0 {
		return all, nil
	}
	want := make(map[int]bool)
	for _, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		found := false
		for i, s := range all {
			if slices.Contains(s.names, name) {
				want[i], found = true, true
			}
		}
		if !found {
			return nil, fmt.Errorf("unknown metric %q", name)
		}
	}
	var out []scenario
	for i, s := range all {
		if want[i] {
			out = append(out, s)
		}
	}
	return out, nil
}

// CheckMetrics says whether Options.Metrics may hold these names.
func CheckMetrics(names []string) error {
	_, err := chosen(names)
	return err
}
