package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	controlEvery = 60 * time.Millisecond // period of the control timers, that of a paced reply
	controlLimit = 5.0                   // ms: the p99 of the control above which a figure about time is void
)

// Control is the lateness, in milliseconds, of timers that do nothing else while a figure is measured: one beside the
// load, one on the server's core. It tells how late the machine makes everything.
type Control struct {
	P50  float64 `json:"p50_ms"` // of the load's timer
	P99  float64 `json:"p99_ms"`
	Max  float64 `json:"max_ms"`
	N    int     `json:"n"`
	Core float64 `json:"server_core_p99_ms"` // p99 of the timer on the server's core; 0: there is none
	// Busy is the share of the server's core that the server used; -1: not known.
	Busy float64 `json:"server_core_busy"`
	// Self is the share of one core that the load and the stubs used; -1: not known.
	Self float64   `json:"load_busy"`
	Load []float64 `json:"load_average"` // of 1, 5 and 15 minutes
	Void bool      `json:"void"`
}

// judge says whether figures about time are void: the load's own timer was late, or the one on the server's core was
// although the server used less than half of it.
func (c Control) judge() bool {
	return c.P99 > controlLimit || (c.Core > controlLimit && c.Busy >= 0 && c.Busy < 0.5)
}

// controls are the timers of a scenario. Stop ends them.
type controls struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
	load   []lateness
	core   []lateness
}

type lateness struct {
	at time.Time
	by time.Duration
}

// startControls starts a timer beside the load, and one on a core if that is not below 0.
func startControls(ctx context.Context, core int) *controls {
	ctx, cancel := context.WithCancel(ctx)
	c := &controls{cancel: cancel}
	c.ended.Go(func() { c.load = wake(ctx) })
	if core >= 0 {
		c.ended.Go(func() {
			_ = onCore(core, func() error { c.core = wake(ctx); return nil }) // no timer where it cannot be
		})
	}
	return c
}

// watch begins to watch the machine and the server; the function that it gives ends that.
func (t target) watch(ctx context.Context) func() Control {
	server, self := usage(t.pid), usage(process(os.Getpid()))
	timers := startControls(ctx, t.core)
	return func() Control {
		c := timers.stop()
		c.Busy, c.Self = server(), self()
		c.Void = c.judge()
		return c
	}
}

// stop ends the timers and gives what they saw.
func (c *controls) stop() Control {
	c.cancel()
	c.ended.Wait()
	out := Control{N: len(c.load), Load: loadAverage(), Busy: -1, Self: -1}
	of := func(l lateness) float64 { return milliseconds(l.by) }
	if n := describe(mapped(c.load, of)); n != nil {
		out.P50, out.P99, out.Max = n.P50, n.P99, n.Max
	}
	if n := describe(mapped(c.core, of)); n != nil {
		out.Core = n.P99
	}
	return out
}

// wake wakes at each multiple of controlEvery and notes how late it was.
func wake(ctx context.Context) []lateness {
	var late []lateness
	next := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next = next.Add(controlEvery)
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
			now := time.Now()
			late = append(late, lateness{at: now, by: now.Sub(next)})
		case <-ctx.Done():
			return late
		}
	}
}

// usage begins to look at a process; what it returns gives the share of a core that it has used since, -1 if that is not known.
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

// Machine describes the computer that a figure was taken on.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	OS     string `json:"os"`
	Go     string `json:"go"`     // of the load
	Codec  string `json:"codec"`  // that the bare encoding of M13 used
	Pinned string `json:"pinned"` // which cores server and load ran on
}

func machine() Machine {
	info, _ := os.ReadFile("/proc/cpuinfo") // where Linux tells
	return Machine{
		CPU: cmp.Or(field(string(info), "model name"), runtime.GOARCH), Cores: runtime.NumCPU(),
		OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Codec: "libopus (cgo)",
	}
}

// field returns the text behind a name and a colon in a file of /proc; "" if there is none.
func field(file, name string) string {
	for line := range strings.Lines(file) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage is that of 1, 5 and 15 minutes; nil where there is none.
func loadAverage() []float64 {
	raw, _ := os.ReadFile("/proc/loadavg")
	out := make([]float64, 3)
	if _, err := fmt.Sscan(string(raw), &out[0], &out[1], &out[2]); err != nil {
		return nil
	}
	return out
}

// process is a running program as Linux tells of it. 0 is none.
type process int

func (p process) memory() (int, error) { return tell(p, "status", residentOf) }

func (p process) cpu() (time.Duration, error) {
	t, err := p.times()
	return t.user + t.kernel, err
}

func (p process) times() (processTimes, error) { return tell(p, "stat", timesOf) }

// switches counts how often threads of the process were taken from a processor, by themselves or by others. Threads that
// have ended are not counted.
func (p process) switches() (sum int, err error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p))
	if err != nil {
		return 0, fmt.Errorf("threads of process %d: %w", p, err)
	}
	for _, t := range tasks {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", p, t.Name()))
		if err != nil {
			continue // it has ended meanwhile
		}
		n, err := switchesOf(string(status))
		if err != nil {
			return 0, fmt.Errorf("thread %s of process %d: %w", t.Name(), p, err)
		}
		sum += n
	}
	return sum, nil
}

// tell reads a number from a file of /proc about a process.
func tell[T any](p process, file string, read func(string) (T, error)) (v T, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p, file))
	if err == nil {
		v, err = read(string(raw))
	}
	if err != nil {
		return v, fmt.Errorf("%s of process %d: %w", file, p, err)
	}
	return v, nil
}

// residentOf reads VmRSS, in KiB, of a status file.
func residentOf(status string) (int, error) {
	return strconv.Atoi(strings.TrimSuffix(field(status, "VmRSS"), " kB"))
}

// consumption holds what a process has used during a time.
type consumption struct {
	processTimes
	switches int
	during   time.Duration
}

// used measures what the process uses while f runs.
func (p process) used(f func() error) (consumption, error) {
	from := time.Now()
	before, err1 := p.times()
	switched, err2 := p.switches()
	if err := cmp.Or(err1, err2, f()); err != nil {
		return consumption{}, err
	}
	after, err1 := p.times()
	switches, err2 := p.switches()
	return consumption{
		processTimes{after.user - before.user, after.kernel - before.kernel}, switches - switched, time.Since(from),
	}, cmp.Or(err1, err2)
}

// switchesOf adds the switches in the status file of a thread.
func switchesOf(status string) (int, error) {
	own, err1 := strconv.Atoi(field(status, "voluntary_ctxt_switches"))
	forced, err2 := strconv.Atoi(field(status, "nonvoluntary_ctxt_switches"))
	return own + forced, errors.Join(err1, err2)
}

// processTimes hold the processor time of a process, outside of the kernel and within.
type processTimes struct{ user, kernel time.Duration }

// timesOf reads a stat file. Linux counts in hundredths of a second. The name of the program, in brackets, may hold anything.
func timesOf(stat string) (processTimes, error) {
	end := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[end+1:])
	if end < 0 || len(fields) < 13 {
		return processTimes{}, fmt.Errorf("stat has %d fields", len(fields))
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond
	return processTimes{time.Duration(user) * tick, time.Duration(system) * tick}, errors.Join(err1, err2)
}
