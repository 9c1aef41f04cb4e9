package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

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
	b := &bench{o: o, said: speech(), core: -1, machine: machine(), broken: make(map[string]int), excused: make(map[string]int)}
	var err error
	if b.stubs, err = StartStubs(o.Stubs); err != nil {
		return nil, err
	}
	b.pin()
	return b, nil
}

// pin leaves the first core to our own server, or the cores of another server
// to that, and takes the others.
func (b *bench) pin() {
	cores := allowed()
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
	report := b.report(started)
	for _, key := range order {
		report.Figures = append(report.Figures, combine(runs[key]))
	}
	return report, nil
}

// report is one without figures.
func (b *bench) report(started time.Time) *Report {
	r := &Report{
		Started: started, Took: time.Since(started).Seconds(), Command: b.o.Command, Server: cmp.Or(b.o.Label, cmp.Or(b.o.URL, "our own")), Size: b.o.Size, Runs: b.o.Runs,
		Machine: b.machine, Load: loadAverage(), Broken: maps.Clone(b.broken), Excused: maps.Clone(b.excused), Errors: b.errs,
		Settings: Settings{Guard: milliseconds(b.o.Guard), Silence: milliseconds(cmp.Or(b.o.Silence, ownSilence))},
	}
	return r
}

// patiently measures one scenario of one run, again if the machine was busy.
func (b *bench) patiently(ctx context.Context, s scenario, run int) []Figure {
	for try := 0; ; try++ {
		from := time.Now()
		figures := b.one(ctx, s, run)
		fmt.Fprintf(b.o.Log, "  in %v, %d figures void\n", time.Since(from).Round(time.Second/10), voided(figures))
		if voided(figures) == 0 || try >= b.o.Retries || ctx.Err() != nil {
			return figures
		}
	}
}

// voided counts figures that the machine was too busy for.
func voided(figures []Figure) int {
	n := 0
	for _, f := range figures {
		if f.Verdict == Void {
			n++
		}
	}
	return n
}

// one measures one scenario of one run, with its controls.
func (b *bench) one(ctx context.Context, s scenario, run int) []Figure {
	name := strings.ToUpper(s.names[0])
	r, err := b.rig(ctx, s)
	if err != nil {
		b.failed(name, err)
		return nil
	}
	defer func() {
		if r.own != nil {
			if err := r.own.stop(); err != nil {
				b.failed(name, err)
			}
		}
	}()
	profiled := make(chan error, 1)
	if r.target.prof.dir != "" {
		go func() { profiled <- r.target.prof.take(ctx, fmt.Sprintf("%s-%d", name, run+1), r.profile) }()
	} else {
		profiled <- nil
	}
	server, self := usage(r.target.pid), usage(process(os.Getpid()))
	timers := startControls(ctx, r.target.core)
	figures, runErr := s.run(ctx, r)
	control := timers.stop()
	control.Busy, control.Self = server(), self()
	b.failed(name, errors.Join(runErr, <-profiled))
	control.Void = control.judge()
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
	return figures
}

// usage begins to look at a process; what it returns gives the share of a core
// that it has used since, -1 if that is not known.
func usage(p process) func() float64 {
	from := time.Now()
	before, err := p.cpu()
	return func() float64 {
		after, err2 := p.cpu()
		if p == 0 || err != nil || err2 != nil {
			return -1
		}
		return (after - before).Seconds() / time.Since(from).Seconds()
	}
}

// failed notes that something could not be measured.
func (b *bench) failed(name string, err error) {
	if err == nil {
		return
	}
	b.errs = append(b.errs, fmt.Sprintf("%s: %v", name, err))
	fmt.Fprintf(b.o.Log, "%s: %v\n", name, err)
}

// rig finds the server, or starts our own.
func (b *bench) rig(ctx context.Context, s scenario) (*rig, error) {
	r := &rig{amounts: b.o.Size.amounts(), stubs: b.stubs, said: b.said, tolerance: forgiven, guard: b.o.Guard, sentences: b.o.Sentence, quiet: cmp.Or(b.o.Silence, cmp.Or(s.needs.commit, ownSilence))}
	r.stubs.Set(Plan{})
	if b.o.URL != "" {
		t, err := find(ctx, b.o.URL, b.o.Token)
		t.pid, t.core, t.prof = process(b.o.PID), b.core, profiles{url: b.o.Profiles, dir: b.o.Dir}
		if t.prof.url == "" {
			t.prof.dir = ""
		}
		r.target = t
		return r, err
	}
	s.needs.commit = r.quiet
	r.stubs.Set(Plan{Sound: phraseSound, Log: true}) // of the phrases that the server renders at its start
	server, err := startOwn(ctx, b.o.Program, b.stubs.URL(), b.core, s.needs)
	if err != nil {
		return nil, err
	}
	if !s.early {
		if err := server.awaitReady(ctx); err != nil {
			return nil, errors.Join(err, server.stop())
		}
		if err := r.stubs.settle(ctx); err != nil {
			return nil, errors.Join(err, server.stop())
		}
	}
	r.stubs.Set(Plan{})
	t, err := find(ctx, server.base+"/xiaozhi/ota/", "")
	if err != nil {
		return nil, errors.Join(err, server.stop())
	}
	t.pid, t.core, t.prof = process(server.cmd.Process.Pid), b.core, profiles{url: server.prof, dir: b.o.Dir}
	r.target, r.own = t, server
	return r, nil
}
