package app

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// Tune sets Go's runtime for a server of many devices, where the environment
// (GOGC, GOMAXPROCS) does not. The figures are from xiaozhi bench.
func Tune() {
	if os.Getenv("GOGC") == "" {
		// A device is mostly stacks and small objects that live long. A fifth of
		// the usual headroom saves a third of its memory (M12), and nothing is
		// allocated per frame that would make it cost much.
		debug.SetGCPercent(20)
	}
	if runtime.GOMAXPROCS(0) == 1 && os.Getenv("GOMAXPROCS") == "" {
		// The codec is C. On a single processor the scheduler takes it away from
		// every call that lasts more than 20 µs and fetches it back afterwards; on
		// two there are a third of the thread switches and a tenth less work, and
		// sixty open microphones stutter a third as much (M11).
		runtime.GOMAXPROCS(2)
	}
}

// tidyAfter is the time without a device after which memory is given back.
const tidyAfter = time.Second

// tidy runs free whenever devices have been connected and none has been for
// tidyAfter, until ctx ends.
func tidy(ctx context.Context, connected func() int, free func()) {
	tick := time.NewTicker(tidyAfter)
	defer tick.Stop()
	for used, quiet := false, false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch {
		case connected() > 0:
			used, quiet = true, false
		case used && quiet:
			used = false
			free()
		default:
			quiet = true
		}
	}
}
