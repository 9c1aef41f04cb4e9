package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// flowing is a reply of which nothing is complete for many seconds: neither
// the model's text nor the voice's sound, if the server streams that.
func (r *rig) flowing() Plan {
	if r.sentences > 0 {
		return Plan{Rate: 30, Sound: r.sentences, Replies: []string{"Well, " + story(60)}, Log: true}
	}
	return Plan{Rate: 30, Sound: -1, Rest: 100 * time.Millisecond, Replies: []string{"Well, " + story(60)}, Log: true}
}

// aborts is M8 and M9.
func aborts(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(r.endless())
	clients, err := r.fleet(ctx, r.abort.devices, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return nil, err
	}
	late := make([]int, len(clients))
	cuts, err := together(len(clients), len(clients), func(i int) ([]cut, error) {
		var cuts []cut
		for range r.abort.cuts {
			k, after, err := clients[i].abortOnce(ctx)
			if err != nil {
				return cuts, err
			}
			cuts = append(cuts, k)
			late[i] += after
		}
		return cuts, nil
	})
	var last, stop []time.Duration
	after := 0
	for i := range cuts {
		for _, k := range cuts[i] {
			last, stop = append(last, k.last()), append(stop, k.stopped.Sub(k.aborted))
		}
		after += late[i]
	}
	figures := []Figure{
		sampled("M8", "abort to the last frame", ms(last), most(P50, 5), most(P99, 30)),
		sampled("M8", "abort to tts stop", ms(stop), most(P99, 50)),
		single("M8", "frames after tts stop", "", len(stop), float64(after), most(Value, 0)).untimed(),
	}
	if err != nil {
		return figures, err
	}
	upstream, err := r.cancelled(ctx)
	return append(figures, upstream...), err
}

// abortOnce asks, listens for a random while, presses the button, and counts
// what still comes behind the tts stop.
func (c *client) abortOnce(ctx context.Context) (k cut, after int, err error) {
	c.frames.forget()
	if err = c.ask(ctx); err != nil {
		return k, 0, err
	}
	if err = pause(ctx, rand.N(400*time.Millisecond)); err != nil {
		return k, 0, err
	}
	if k, err = c.cut(ctx); err != nil {
		return k, 0, err
	}
	if err = pause(ctx, 70*time.Millisecond); err != nil { // more than a frame
		return k, 0, err
	}
	k.frames = c.frames.all()
	return k, k.after(time.Now()), nil
}

// closePatience is the time after which a request counts as never closed.
const closePatience = 5 * time.Second

// cancelled is M9: from the abort until the model and the voice see their
// request closed.
func (r *rig) cancelled(ctx context.Context) ([]Figure, error) {
	c, err := r.dial(ctx, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return nil, err
	}
	var llm, tts []time.Duration
	for range r.abort.cancels {
		r.stubs.Set(r.flowing())
		k, _, err := c.abortOnce(ctx)
		if err != nil {
			return nil, err
		}
		llm = append(llm, closing(ctx, r.stubs.Chats(), k.aborted)...)
		tts = append(tts, closing(ctx, r.stubs.Speeches(), k.aborted)...)
	}
	r.stubs.Set(Plan{})
	return []Figure{
		sampled("M9", "abort to the model's request closed", ms(llm), most(P99, 100)),
		sampled("M9", "abort to the voice's request closed", ms(tts), most(P99, 100)),
	}, nil
}

// closing returns the times from the abort to the end of the requests that were open then.
func closing(ctx context.Context, requests []*openaitest.Request, aborted time.Time) []time.Duration {
	var took []time.Duration
	for _, q := range requests {
		if q.Arrived.After(aborted) {
			continue
		}
		timer := time.NewTimer(closePatience)
		select {
		case <-q.Ended():
			if at := q.EndedAt(); q.Gone() && at.After(aborted) {
				took = append(took, at.Sub(aborted))
			}
		case <-timer.C:
			took = append(took, closePatience)
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return took
}

// bargeLead is the length of the reply before the user speaks over it.
const bargeLead = 25 * 60 * time.Millisecond

// bargeIn is M10: in realtime mode, from the first voiced sample of the user to
// tts stop.
func bargeIn(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(r.endless())
	clients, err := r.fleet(ctx, r.barge.devices, devicetest.Options{Mode: devicetest.Realtime, OpenListen: true, NoMCP: true})
	if err != nil {
		return nil, err
	}
	packets := append(pauses(int(bargeLead/uplink.Frame)), r.said.packets...)
	packets = append(packets, pauses(int(5*time.Second/uplink.Frame))...)
	took, err := each(clients, func(c *client) ([]time.Duration, error) {
		var took []time.Duration
		for i := range r.barge.times {
			d, err := c.bargeOnce(ctx, packets)
			if err != nil {
				return took, fmt.Errorf("interruption %d: %w", i, err)
			}
			took = append(took, d)
		}
		return took, nil
	})
	return []Figure{sampled("M10", "voice to tts stop, realtime", ms(took), most(P95, 400))}, err
}

// bargeOnce speaks over a reply, and then cuts the answer to what was said.
func (c *client) bargeOnce(ctx context.Context, packets [][]byte) (time.Duration, error) {
	if err := pause(ctx, rand.N(apartFor)); err != nil {
		return 0, err
	}
	if err := c.ask(ctx); err != nil {
		return 0, err
	}
	from := time.Now()
	hush := c.speak(ctx, from, packets)
	stopped, err := c.told(ctx, "stop")
	if err == nil {
		_, err = c.told(ctx, "start") // the answer to what was said
	}
	if err := errors.Join(err, hush()); err != nil {
		return 0, err
	}
	if _, err := c.cut(ctx); err != nil {
		return 0, err
	}
	return stopped.Sub(from.Add(bargeLead)), pause(ctx, 200*time.Millisecond)
}
