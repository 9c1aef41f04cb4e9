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
	both  bool                                          // it compares servers with an uploading and a streaming recogniser
	pair  func(context.Context, *rig) ([]Figure, error) // in place of run: what two servers, with the store and without, are compared by
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
		{names: []string{"m18"}, about: "the store, on and off", pair: keeping},
		{names: []string{"m19"}, about: "recognisers that upload and that stream", both: true},
		{names: []string{"m20"}, about: "the console, watched by browsers", needs: settings{last: "auth: {pairing: open}\n"}, run: watching},
		{names: []string{"m21"}, about: "more devices than fit", run: crowded},
		{names: []string{"m22"}, about: "beside the embedded engines", needs: settings{last: ownEngines}, run: embedded},
	}
}

// Metrics are the names that Options.Metrics may hold, each with what it is about.
func Metrics() [][2]string {
	return mapped(scenarios(), func(s scenario) [2]string { return [2]string{strings.Join(s.names, ","), s.about} })
}

// chosen are the scenarios of these metrics, in their usual order.
func chosen(names []string) ([]scenario, error) {
	all := scenarios()
	if len(names) == 0 {
		return all, nil
	}
	want := make(map[string]bool)
	for _, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.ContainsFunc(all, func(s scenario) bool { return slices.Contains(s.names, name) }) {
			return nil, fmt.Errorf("unknown metric %q", name)
		}
		want[name] = true
	}
	return slices.DeleteFunc(all, func(s scenario) bool {
		return !slices.ContainsFunc(s.names, func(name string) bool { return want[name] })
	}), nil
}

// CheckMetrics says whether Options.Metrics may hold these names.
func CheckMetrics(names []string) error {
	_, err := chosen(names)
	return err
}

// Size selects how much of everything is measured.
type Size string

// The sizes.
const (
	Quick Size = "quick" // seconds: shows that it works
	Small Size = "small" // four minutes
	Full  Size = "full"  // hours: all that the definitions ask for
)

type amounts struct {
	press   pressAmounts
	auto    autoAmounts
	long    replyAmounts
	abort   abortAmounts
	barge   bargeAmounts
	density densityAmounts
	memory  memoryAmounts
	watch   watchAmounts
	crowd   crowdAmounts

	speakers int           // M13
	cycles   int           // M14
	hellos   int           // M15
	healthy  int           // M16: devices beside the one that does not read
	segments int           // M17: replies
	window   time.Duration // M11, M13, M16: length of one observation
	profile  time.Duration // length of a processor profile
}

type (
	// pressAmounts are those of M1: turns dropped, turns counted, and devices that are spoken to meanwhile.
	pressAmounts struct{ warm, turns, crowd int }
	// autoAmounts are those of M2 and M3: devices and the turns of each.
	autoAmounts struct{ devices, turns int }
	// replyAmounts are those of M4 to M7: the length of the long reply and of each of its sentences, and short replies.
	replyAmounts struct {
		length, sentence time.Duration
		short            int
	}
	// abortAmounts are those of M8 and M9: devices, aborts of each, and aborts whose requests to providers are watched.
	abortAmounts struct{ devices, cuts, cancels int }
	// bargeAmounts are those of M10: devices and the interruptions of each.
	bargeAmounts struct{ devices, times int }
	// densityAmounts are those of M11: the bounds of the number of speakers, and the steps of the search.
	densityAmounts struct{ least, most, step, fine int }
	// memoryAmounts are those of M12: devices, and (also of M14) the pause before memory is read.
	memoryAmounts struct {
		idle, speaking int
		settle         time.Duration
	}
	// watchAmounts are those of M20: devices, those of them that are spoken to, browsers, and the length of each of four observations.
	watchAmounts struct {
		devices, speakers, browsers int
		window                      time.Duration
	}
	// crowdAmounts are those of M21: devices, the turns of each, the time in which they begin, and the length of a reply.
	crowdAmounts struct {
		devices, turns int
		spread, reply  time.Duration
	}
)

func (s Size) amounts() amounts {
	switch s {
	case Quick:
		return amounts{
			press: pressAmounts{warm: 1, turns: 4, crowd: 2}, auto: autoAmounts{devices: 1, turns: 1},
			long:  replyAmounts{length: 2 * time.Second, sentence: time.Second, short: 1},
			abort: abortAmounts{devices: 2, cuts: 2, cancels: 2}, barge: bargeAmounts{devices: 1, times: 1},
			density:  densityAmounts{least: 2, most: 2, step: 1, fine: 1},
			memory:   memoryAmounts{idle: 5, speaking: 2, settle: 100 * time.Millisecond},
			watch:    watchAmounts{devices: 4, speakers: 2, browsers: 2, window: time.Second},
			crowd:    crowdAmounts{devices: 4, turns: 1, spread: 200 * time.Millisecond, reply: time.Second},
			speakers: 2, cycles: 10, hellos: 5, healthy: 2, segments: 2, window: time.Second, profile: time.Second,
		}
	case Full:
		return amounts{
			press: pressAmounts{warm: 20, turns: 200, crowd: 50}, auto: autoAmounts{devices: 4, turns: 55},
			long:  replyAmounts{length: 10 * time.Minute, sentence: 10 * time.Second, short: 50},
			abort: abortAmounts{devices: 20, cuts: 500, cancels: 200}, barge: bargeAmounts{devices: 4, times: 25},
			density:  densityAmounts{least: 20, most: 300, step: 20, fine: 5},
			memory:   memoryAmounts{idle: 1000, speaking: 100, settle: 5 * time.Second},
			watch:    watchAmounts{devices: 200, speakers: 50, browsers: 20, window: 40 * time.Second},
			crowd:    crowdAmounts{devices: 200, turns: 3, spread: 6 * time.Second, reply: 11 * time.Second},
			speakers: 50, cycles: 10000, hellos: 500, healthy: 49, segments: 30, window: 2 * time.Minute, profile: 20 * time.Second,
		}
	default:
		return amounts{
			press: pressAmounts{warm: 3, turns: 30, crowd: 50}, auto: autoAmounts{devices: 4, turns: 3},
			long:  replyAmounts{length: time.Minute, sentence: 10 * time.Second, short: 5},
			abort: abortAmounts{devices: 10, cuts: 10, cancels: 15}, barge: bargeAmounts{devices: 4, times: 2},
			density:  densityAmounts{least: 20, most: 80, step: 20, fine: 20},
			memory:   memoryAmounts{idle: 500, speaking: 50, settle: time.Second},
			watch:    watchAmounts{devices: 200, speakers: 50, browsers: 20, window: 20 * time.Second},
			crowd:    crowdAmounts{devices: 200, turns: 3, spread: 6 * time.Second, reply: 11 * time.Second},
			speakers: 20, cycles: 200, hellos: 100, healthy: 49, segments: 10, window: 5 * time.Second, profile: 5 * time.Second,
		}
	}
}
