package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/devicetest"
)

// replyPatience is how much longer than its sound a reply may take until it counts as lost.
const replyPatience = 30 * time.Second

// crowding counts how the turns of many devices ended.
type crowding struct {
	mu      sync.Mutex
	added   []time.Duration // to each first frame, beside what the services took
	turns   int             // that were begun
	refused int             // devices that could not connect
	lost    int             // turns without a whole reply
	stalled int             // whole replies with a stall
	why     error           // the first of what went wrong
}

// crowded is M21: turns of many devices, whose starts are spread over seconds, with replies that are longer than that, so that
// all are spoken to at once.
func crowded(ctx context.Context, r *rig) ([]Figure, error) {
	o := devicetest.Options{Mode: devicetest.Manual, NoMCP: true}
	r.stubs.Set(Plan{ASR: servedASR, LLM: servedLLM, TTS: servedTTS, Sound: r.crowd.reply / 2, Replies: []string{story(2)}})
	var all crowding
	control := r.target.watch(ctx)
	_, err := together(r.crowd.devices, r.crowd.devices, func(i int) (struct{}, error) {
		if err := pause(ctx, time.Duration(i)*r.crowd.spread/time.Duration(r.crowd.devices)); err != nil {
			return struct{}{}, err
		}
		c, err := r.dial(ctx, o)
		if err != nil {
			all.note(func() { all.refused++ }, err)
			return struct{}{}, ctx.Err()
		}
		for range r.crowd.turns {
			if !all.turn(ctx, r, c) {
				break
			}
		}
		return struct{}{}, ctx.Err()
	})
	watched := control()
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d devices within %v, replies of %v", r.crowd.devices, r.crowd.spread, r.crowd.reply)
	added := sampled("M21", "added latency with the pause, stubs 50/50/20, "+what, ms(all.added), most(P99, 200))
	added.Control = watched
	lost := single("M21", "turns without a whole reply", "", all.turns, float64(all.lost), most(Value, 0)).untimed()
	if all.why != nil {
		lost = lost.noted("the first: %v", all.why)
	}
	return []Figure{
		added, lost,
		single("M21", "devices that could not connect", "", r.crowd.devices, float64(all.refused), most(Value, 0)).untimed(),
		single("M21", "replies with a stall", "", all.turns, float64(all.stalled), most(Value, 0)),
	}, nil
}

// turn has one turn with a device, and reports whether there can be another.
func (a *crowding) turn(ctx context.Context, r *rig, c *client) bool {
	a.note(func() { a.turns++ }, nil)
	stop, err := c.pressed(ctx, r.said.packets[:10])
	if err != nil {
		a.note(func() { a.lost++ }, err)
		return false
	}
	first, err1 := c.heard(ctx, stop)
	patient, cancel := context.WithTimeout(ctx, r.crowd.reply+replyPatience)
	defer cancel()
	reply, err2 := c.replied(patient, stop)
	if err := errors.Join(err1, err2); err != nil {
		a.note(func() { a.lost++ }, err)
		return false
	}
	c.frames.forget()
	heard := time.Duration(reply.Frames) * c.packet
	if !strings.Contains(reply.Text(), "sentence number 2") || heard < r.crowd.reply {
		a.note(func() { a.lost++ }, fmt.Errorf("%v of sound: %q", heard, reply.Text()))
		return true
	}
	a.note(func() {
		a.added = append(a.added, first.Sub(stop)-servedASR-servedLLM-servedTTS)
		if reply.Underruns > 0 {
			a.stalled++
		}
	}, nil)
	return true
}

// note calls f alone, and keeps the first error.
func (a *crowding) note(f func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	if a.why == nil {
		a.why = err
	}
}
