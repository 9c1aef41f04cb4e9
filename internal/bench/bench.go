// Package bench measures servers that xiaozhi-style speakers connect to: ours or another's. It brings stub providers
// whose delays can be set, simulated devices that speak packets encoded once and never decode what they hear, and the
// metrics M1 to M19, each next to a control: a timer that does nothing. A figure about time that was taken while the
// control was late is void.
//
// The parts that judge (m_playout.go, figure.go, report.go) look at no
// clock: they take times that were noted when a socket was read or written.
package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Options select the server and the measurements.
type Options struct {
	Target
	Timing
	Stubs   string   // address of the stub providers; empty: a free port
	Metrics []string // of Metrics(); empty: all
	Size    Size     // empty: Small
	Runs    int      // 0: one
	Retries int      // how often a scenario with void figures is measured again
	Dir     string   // for profiles of our own server; empty: none are taken
	NoPin   bool     // server and load are not bound to cores
	Command string   // command line, for the report
	Label   string   // name of the server in the report; empty: its URL

	Soak    time.Duration // 0: no soak
	Devices int           // of a soak, of M12, M13, M21 and M22; 0: 50, and as Size says

	Relative bool      // times are told as multiples of the bare encoding of a packet, on the server's core right after
	Garbage  string    // GOGC of our own server; empty: as it sets it itself
	Log      io.Writer // what goes on, line by line; nil: nothing
}

// Target names the server that is measured.
type Target struct {
	URL      string // OTA or WebSocket address; empty: our own is started
	Token    string // for devices; empty: as the OTA reply says
	PID      int    // of the server, for memory and processor time; 0: not known
	Profiles string // URL of its /debug/pprof/, for goroutines; empty: none
	Program  string // of our own server; needed without URL
}

// Timing tells how the server behaves by design, which figures leave out.
type Timing struct {
	Guard   time.Duration // pause between tts start and sound; 0: 105 ms; below 0: none
	Silence time.Duration // after which it takes an utterance for finished; 0: 700 ms, in M3 800
	// Sentence is the length of each sentence of an endless reply, for servers that
	// read the whole sound of a sentence before they speak; 0: one endless sentence.
	Sentence time.Duration
}

// OwnGuard is the pause that our own server keeps between tts start and sound.
const OwnGuard = 105 * time.Millisecond

// ownSilence is that after which our own server takes an utterance for finished.
const ownSilence = 700 * time.Millisecond

func (o Options) withDefaults() Options {
	o.Size, o.Runs = cmp.Or(o.Size, Small), max(o.Runs, 1)
	o.Guard = max(cmp.Or(o.Guard, OwnGuard), 0)
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// bench is one bench at work.
type bench struct {
	o       Options
	stubs   *Stubs
	said    clip
	core    int // of our own server; below 0: none
	machine Machine
	broken  map[string]int // rules of the device protocol, by name
	excused map[string]int // the same of rules about time, while the machine was busy
	errs    []string
}

// newBench starts the stubs and binds this process to cores.
func newBench(o Options) (*bench, error) {
	stubs, err := StartStubs(o.Stubs)
	if err != nil {
		return nil, err
	}
	b := &bench{o: o, stubs: stubs, said: speech(), core: -1, machine: machine()}
	b.broken, b.excused = make(map[string]int), make(map[string]int)
	b.pin()
	return b, nil
}

// pin leaves the first core to our own server, or the cores of another server to that, and takes the others.
func (b *bench) pin() {
	cores := coresOf(0)
	theirs := cores[:min(1, len(cores))]
	if b.o.URL != "" {
		theirs = nil
		if b.o.PID != 0 {
			theirs = coresOf(process(b.o.PID))
		}
	}
	ours := slices.DeleteFunc(slices.Clone(cores), func(c int) bool { return slices.Contains(theirs, c) })
	switch {
	case b.o.NoPin:
		b.machine.Pinned = "not pinned, as asked"
	case len(cores) < 2:
		b.machine.Pinned = "not pinned: one core, or a system that cannot"
	case len(theirs) == 0:
		b.machine.Pinned = "server not known to be pinned"
	case len(ours) == 0:
		b.machine.Pinned = fmt.Sprintf("the server may run on all cores (%v), so the load does too", theirs)
	default:
		if err := pinProcess(ours); err != nil {
			b.machine.Pinned = "not pinned: " + err.Error()
			return
		}
		runtime.GOMAXPROCS(max(2, len(ours))) // so that the controls always find a place
		b.machine.Pinned = fmt.Sprintf("server on %v, load on %v", theirs, ours)
		if len(theirs) == 1 {
			b.core = theirs[0]
		}
	}
}

// Run measures what Options ask for. What went wrong in a single metric stands
// in the report; an error is for what kept all of them from being measured.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	list, err := chosen(o.Metrics)
	if err != nil {
		return nil, err
	}
	if o.URL == "" && o.Program == "" {
		return nil, errors.New("neither a server's address nor a program to start one")
	}
	b, err := newBench(o)
	if err != nil {
		return nil, err
	}
	defer b.stubs.Close()
	started := time.Now()
	var order []string
	runs := make(map[string][]Figure)
	for i := range o.Runs {
		for _, s := range list {
			fmt.Fprintf(o.Log, "run %d of %d: %s, %s\n", i+1, o.Runs, strings.Join(s.names, " "), s.about)
			for _, f := range b.patiently(ctx, s, i) {
				key := f.Metric + " " + f.What
				if runs[key] == nil {
					order = append(order, key)
				}
				runs[key] = append(runs[key], f)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	report := &Report{
		Started: started, Took: time.Since(started).Seconds(), Command: o.Command, Server: cmp.Or(o.Label, o.URL, "our own"),
		Size: o.Size, Runs: o.Runs, Machine: b.machine, Load: loadAverage(), Broken: b.broken, Excused: b.excused, Errors: b.errs,
		Settings: Settings{Guard: milliseconds(o.Guard), Silence: milliseconds(cmp.Or(o.Silence, ownSilence))},
	}
	for _, key := range order {
		report.Figures = append(report.Figures, combine(runs[key]))
	}
	return report, nil
}

// patiently measures one scenario of one run, again if the machine was busy.
func (b *bench) patiently(ctx context.Context, s scenario, run int) []Figure {
	for try := 0; ; try++ {
		from := time.Now()
		figures := b.one(ctx, s, run)
		void := 0
		for _, f := range figures {
			if f.Verdict == Void {
				void++
			}
		}
		fmt.Fprintf(b.o.Log, "  in %v, %d figures void\n", time.Since(from).Round(time.Second/10), void)
		if void == 0 || try >= b.o.Retries || ctx.Err() != nil {
			return figures
		}
	}
}

// one measures one scenario of one run, with its controls.
func (b *bench) one(ctx context.Context, s scenario, run int) []Figure {
	if s.both {
		return b.listened(ctx, s, run)
	}
	if s.pair != nil {
		return b.paired(ctx, s, run)
	}
	name := strings.ToUpper(s.names[0])
	r, err := b.rig(ctx, s)
	if err != nil {
		b.failed(name, err)
		return nil
	}
	defer func() { b.failed(name, r.end()) }()
	profiled := make(chan error, 1)
	go func() { profiled <- r.target.prof.take(ctx, fmt.Sprintf("%s-%d", name, run+1), r.profile) }()
	watched := r.target.watch(ctx)
	figures, runErr := s.run(ctx, r)
	control := watched()
	b.failed(name, errors.Join(runErr, <-profiled))
	for rule, n := range r.release() {
		if control.Void && rule.Timed() {
			b.excused[string(rule)] += n
		} else {
			b.broken[string(rule)] += n
		}
	}
	for i := range figures {
		if figures[i].Control.N == 0 { // else it had controls of its own
			figures[i].Control = control
		}
		figures[i] = figures[i].judged()
	}
	if b.o.Relative {
		encode, err := r.bareEncode(bareFor, 1)
		b.failed(name, err)
		for i := range figures {
			figures[i] = figures[i].relative(1000 * encode / packetsOfMinute)
		}
	}
	return figures
}

// bareFor is how much sound is encoded for a relative report.
const bareFor = 10 * time.Second

func (b *bench) failed(name string, err error) {
	if err == nil {
		return
	}
	b.errs = append(b.errs, fmt.Sprintf("%s: %v", name, err))
	fmt.Fprintf(b.o.Log, "%s: %v\n", name, err)
}

// rig finds the server, or starts our own.
func (b *bench) rig(ctx context.Context, s scenario) (r *rig, err error) {
	r = &rig{
		amounts: b.o.Size.amounts(), stubs: b.stubs, said: b.said, tolerance: forgiven, guard: b.o.Guard, sentences: b.o.Sentence,
		quiet: cmp.Or(b.o.Silence, s.needs.commit, ownSilence),
	}
	if n := b.o.Devices; n > 0 {
		r.speakers, r.memory.idle, r.memory.speaking, r.crowd.devices = n, n, n, n
	}
	s.needs.garbage = b.o.Garbage
	r.stubs.Set(Plan{})
	if b.o.URL != "" {
		r.target, err = find(ctx, b.o.URL, b.o.Token)
		r.target.pid, r.target.core = process(b.o.PID), b.core
		if b.o.Profiles != "" {
			r.target.prof = profiles{url: b.o.Profiles, dir: b.o.Dir}
		}
		return r, err
	}
	s.needs.commit = r.quiet
	r.stubs.Set(Plan{Sound: phraseSound, Log: true}) // of the phrases that the server renders at its start
	if r.own, err = startOwn(ctx, b.o.Program, b.stubs.URL(), b.core, s.needs); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.own.stop())
		}
	}()
	if !s.early {
		if err = r.own.await(ctx, readyLimit, "is not ready", r.own.ready); err == nil {
			err = r.stubs.settle(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	r.stubs.Set(Plan{})
	r.target, err = find(ctx, r.own.base+"/xiaozhi/ota/", "")
	r.target.pid, r.target.core, r.target.prof = process(r.own.cmd.Process.Pid), b.core, profiles{url: r.own.prof, dir: b.o.Dir}
	return r, err
}
