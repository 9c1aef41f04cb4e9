package main

import (
	"flag"
	"testing"
	"time"
)

var (
	oldBinary = flag.String("old", "", "the binary to compare with")
	newBinary = flag.String("new", "", "the binary to compare")
	tries     = flag.Int("tries", 3, "how often a talk that differs is played")
)

// talkLimit is the longest time of one talk.
const talkLimit = 4 * time.Minute

// TestWire plays a fixed set of talks with two binaries and reports how they differ.
//
// It starts each binary, once for each talk, with a data folder and a port of its
// own beside a scripted cloud that recognises, answers and speaks always the
// same. A simulated device, or another client, plays the talk; all messages of
// both directions and the Opus frames of the server are written down. Ids, times
// and the order of streams that do not depend on each other are evened out, and
// every other difference is an error; so is a kind of log line (its message and
// keys) that only one of them writes. With -v it prints what was recorded.
//
// A talk takes place in real time: a machine that stands still for a moment
// changes what is heard. So a talk that differs is played again, and only a
// difference that all tries have counts. Of a reply that is cut in the middle,
// the frames that both builds sent are compared, and their number within bounds.
func TestWire(t *testing.T) {
	if *oldBinary == "" || *newBinary == "" {
		t.Skip("the flags -old and -new name two binaries of the server")
	}
	for _, k := range talks() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			var found []string
			for range *tries {
				if found = playBoth(t, k.name); len(found) == 0 {
					return
				}
			}
			for _, f := range found {
				t.Error(f)
			}
		})
	}
}

// playBoth plays a talk with both binaries and lists how they differ.
func playBoth(t *testing.T, name string) []string {
	t.Helper()
	old, err := record(t.Context(), *oldBinary, named(name))
	if err != nil {
		return []string{"old: " + err.Error()}
	}
	if testing.Verbose() {
		t.Logf("%d lines\n%s", old.lines(), old)
	}
	fresh, err := record(t.Context(), *newBinary, named(name))
	if err != nil {
		return []string{"new: " + err.Error()}
	}
	return old.compare(fresh)
}
