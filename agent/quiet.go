package agent

import "xiaozhi/agent/feature"

// quiet keeps a conversation to quiet mode.
type quiet struct{ c *Conversation }

// on reports whether only what somebody has asked for is told now. It may be called at any time.
func (q quiet) on() bool {
	mode := q.c.whom.o.Load().Quiet
	return mode != nil && mode.On()
}

// heed begins or ends quiet mode for what waits to be told.
func (q quiet) heed() {
	c, on := q.c, q.on()
	if on == c.dev.queue.quiet {
		return
	}
	c.env.Log.Debug("quiet mode", "on", on)
	for _, n := range c.dev.queue.setQuiet(on) {
		n.Done(feature.Told{Err: feature.ErrQuiet})
	}
	for in := range each[feature.QuietFollower](c.features) {
		in.QuietChanged(on)
	}
}

// follow heeds each change until stop is called.
func (q quiet) follow() (stop func()) {
	if q.c.o.Quiet == nil {
		return func() {}
	}
	return q.c.o.Quiet.Follow(func() {
		select {
		case q.c.events <- func() {}: // after each event it is heeded
		default: // it is, soon: there is enough to do
		}
	})
}
