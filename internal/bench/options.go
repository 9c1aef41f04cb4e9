package bench

import (
	"cmp"
	"io"
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
	Devices int           // of a soak; 0: 50
	Log     io.Writer     // what goes on, line by line; nil: nothing
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
	o.Devices = cmp.Or(o.Devices, 50)
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}
