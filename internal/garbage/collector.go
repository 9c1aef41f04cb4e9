// Package garbage says how often garbage is collected, and gives memory back.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// How much may be allocated between two collections of garbage, in per cent of what lives. The figures are from
// xiaozhi bench, on one processor.
const (
	// A device is mostly stacks and small objects that live long. A fifth of the usual headroom saves a third of its memory
	// (M12), and nothing is allocated per frame that would make it cost much.
	usualGarbage = 20
	// Pages are made of garbage, and each collection holds the processor for up to 18 ms. With 20 browsers at live pages the
	// jitter of 50 devices that are spoken to is 3.1 ms at the 99th percentile, against 9 to 13 ms with the usual share
	// and 2.4 to 2.6 ms with a headroom of 100, which costs up to 8 MiB more (M20).
	watchedGarbage = 60
)

// Collector sets how often garbage is collected, and gives memory back. Its methods may be called at the same time; a nil one does nothing.
type Collector struct {
	mu       sync.Mutex
	watchers int // pages that are followed
}

// Tune sets Go's runtime for a server of many devices, where the environment (GOGC, GOMAXPROCS) does not. It returns what
// sets the runtime later; nil where the environment does.
func Tune() *Collector {
	if runtime.GOMAXPROCS(0) == 1 && os.Getenv("GOMAXPROCS") == "" {
		// The codec is C. On a single processor the scheduler takes it away from
		// every call that lasts more than 20 µs and fetches it back afterwards; on
		// two there are a third of the thread switches and a tenth less work, and
		// sixty open microphones stutter a third as much (M11).
		runtime.GOMAXPROCS(2)
	}
	if os.Getenv("GOGC") != "" {
		return nil
	}
	debug.SetGCPercent(usualGarbage)
	return &Collector{}
}

// Settle gives back the memory that the start has used up: loading throws away as much as it keeps. A nil one leaves out
// the program's file.
func (c *Collector) Settle() error {
	debug.FreeOSMemory()
	if c == nil {
		return nil
	}
	return releaseProgram()
}

// Watch has garbage collected less often until done is called, which may be called once.
func (c *Collector) Watch() (done func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers++; c.watchers == 1 {
		debug.SetGCPercent(watchedGarbage)
	}
	return c.leave
}

func (c *Collector) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers--; c.watchers == 0 {
		debug.SetGCPercent(usualGarbage)
	}
}
