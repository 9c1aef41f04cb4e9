// Command wirediff compares what two builds of the server say on the wire.
//
//	go run ./internal/wirediff [-run PATTERN] [-jobs 4] [-tries 3] [-v] OLD NEW
//
// It starts each binary, once for each of a fixed set of talks, with a data
// folder and a port of its own beside a scripted cloud that recognises, answers
// and speaks always the same. A simulated device, or another client, plays the
// talk; all messages and Opus frames of both directions are written down. Ids,
// times and the order of streams that do not depend on each other are evened
// out, and every other difference is printed. It exits with 1 if there is one.
//
// A talk takes place in real time: a machine that stands still for a moment
// changes what is heard. So a talk that differs is played again, and only a
// difference that all tries have is reported. Of a reply that is cut in the
// middle, the frames that both builds sent are compared, and their number within
// bounds.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// talkLimit is the longest time of one talk.
const talkLimit = 2 * time.Minute

func main() {
	run := flag.String("run", ".", "talks whose names match")
	jobs := flag.Int("jobs", 4, "talks at the same time")
	tries := flag.Int("tries", 3, "how often a talk that differs is played")
	verbose := flag.Bool("v", false, "print what was recorded of the first binary")
	flag.Parse()
	pattern, err := regexp.Compile(*run)
	if err != nil || flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: wirediff [flags] OLD NEW", err)
		flag.PrintDefaults()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := differ{old: flag.Arg(0), new: flag.Arg(1), tries: *tries, verbose: *verbose}
	if !d.all(ctx, pattern, *jobs) {
		os.Exit(1) //nolint:gocritic // stop only frees the signals
	}
}

// differ plays talks with both binaries and prints how they differ.
type differ struct {
	old, new string
	tries    int
	verbose  bool

	mu      sync.Mutex // of standard output and what follows
	played  int
	lines   int
	differs []string
}

// all plays every talk that matches, some at the same time. It reports whether none differs.
func (d *differ) all(ctx context.Context, pattern *regexp.Regexp, jobs int) bool {
	var work sync.WaitGroup
	slots := make(chan struct{}, max(1, jobs))
	for _, t := range talks() {
		if !pattern.MatchString(t.name) {
			continue
		}
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			d.one(ctx, t.name)
		})
	}
	work.Wait()
	fmt.Printf("%d talks, %d lines, %d talks differ %v\n", d.played, d.lines, len(d.differs), d.differs)
	return len(d.differs) == 0 && d.played > 0
}

// one plays a talk until both binaries say the same, or too often.
func (d *differ) one(ctx context.Context, name string) {
	var found []string
	lines := 0
	for range d.tries {
		old, err := record(ctx, d.old, named(name))
		if err != nil {
			found = []string{"old: " + err.Error()}
			continue
		}
		if d.verbose {
			d.mu.Lock()
			fmt.Printf("== %s\n%s", name, old)
			d.mu.Unlock()
		}
		fresh, err := record(ctx, d.new, named(name))
		if err != nil {
			found = []string{"new: " + err.Error()}
			continue
		}
		lines = old.lines()
		if found = old.compare(fresh); len(found) == 0 {
			break
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.played++
	d.lines += lines
	if len(found) == 0 {
		fmt.Printf("same    %s (%d lines)\n", name, lines)
		return
	}
	d.differs = append(d.differs, name)
	fmt.Printf("DIFFERS %s\n", name)
	for _, f := range found {
		fmt.Println("  " + f)
	}
}
