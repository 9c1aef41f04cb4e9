package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

const (
	storyLength   = 10 * time.Minute           // of an endless reply for servers that cannot stream one
	apartFor      = 300 * time.Millisecond     // each device waits a part of it before it speaks, so that they are not in step
	closePatience = 5 * time.Second            // after which a request counts as never closed
	bargeLead     = 25 * 60 * time.Millisecond // of the reply before the user speaks over it
)

// endless lets a server speak for as long as it is listened to. One that reads
// the whole sound of a sentence before it speaks gets a story of sentences.
func (r *rig) endless() Plan {
	if r.sentences <= 0 {
		return Plan{Sound: -1}
	}
	return Plan{Sound: r.sentences, Replies: []string{story(int(storyLength/r.sentences) + 1)}}
}

// manual is M1: what the server adds in a push-to-talk turn, alone and while others are being spoken to.
func manual(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(r.endless())
	alone, starts, err := r.presses(ctx, r.press.turns)
	figures := []Figure{
		sampled("M1", "added latency, manual, 1 session", ms(alone), most(P50, 5), most(P99, 20)),
		sampled("M1", "listen stop to tts start, 1 session", ms(starts)),
	}
	if err != nil {
		return figures, err
	}
	whole, err := r.served(ctx)
	figures = append(figures, whole)
	if err != nil {
		return figures, err
	}
	r.stubs.Set(r.endless())
	speakers, err := r.speaking(ctx, r.press.crowd, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return figures, err
	}
	crowd, _, err := r.presses(ctx, r.press.turns)
	what := fmt.Sprintf("added latency, manual, %d speaking", len(speakers))
	return append(figures, sampled("M1", what, ms(crowd), most(P99, 40))), err
}

// presses makes turns of one device, without the first that warm it up: from listen stop being written to the first
// frame being read, less the guard, and to tts start.
func (r *rig) presses(ctx context.Context, turns int) (added, starts []time.Duration, err error) {
	c, err := r.dial(ctx, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return nil, nil, err
	}
	for i := range r.press.warm + turns {
		stop, err := c.pressed(ctx, r.said.packets[:10])
		if err != nil {
			return added, starts, err
		}
		start, err1 := c.told(ctx, "start")
		first, err2 := c.heard(ctx, stop)
		_, err3 := c.cut(ctx)
		if err := errors.Join(err1, err2, err3); err != nil {
			return added, starts, fmt.Errorf("turn %d: %w", i, err)
		}
		c.frames.forget()
		if i >= r.press.warm {
			added = append(added, first.Sub(stop)-r.guard)
			starts = append(starts, start.Sub(stop))
		}
	}
	return added, starts, nil
}

// Services that take as long as fast real ones, in the measure that subtracts no pause; and how many devices ask them.
const (
	servedASR     = 50 * time.Millisecond
	servedLLM     = 50 * time.Millisecond
	servedTTS     = 20 * time.Millisecond
	servedDevices = 10
)

// served is the measure of M1 without subtracting the pause after tts start, which may pass while the services are at
// work: from listen stop being written to the first frame being read, less what the services took.
func (r *rig) served(ctx context.Context) (Figure, error) {
	r.stubs.Set(Plan{ASR: servedASR, LLM: servedLLM, TTS: servedTTS})
	o := devicetest.Options{Mode: devicetest.Manual, NoMCP: true}
	took, err := repeated(ctx, r, servedDevices, max(r.press.turns/servedDevices, 3), o, func(c *client) (time.Duration, error) {
		if err := pause(ctx, rand.N(apartFor)); err != nil {
			return 0, err
		}
		stop, err := c.pressed(ctx, r.said.packets[:10])
		if err != nil {
			return 0, err
		}
		_, err1 := c.told(ctx, "start")
		first, err2 := c.heard(ctx, stop)
		_, err3 := c.cut(ctx)
		c.frames.forget()
		return first.Sub(stop) - servedASR - servedLLM - servedTTS, errors.Join(err1, err2, err3)
	})
	what := fmt.Sprintf("added latency with the pause, manual, stubs 50/50/20, %d sessions", servedDevices)
	return sampled("M1", what, ms(took), most(P50, 15), most(P99, 40)), err
}

// speaking connects n devices and lets the server speak to each without end. The stubs must be told so before.
func (r *rig) speaking(ctx context.Context, n int, o devicetest.Options) ([]*client, error) {
	return together(n, 4, func(int) (*client, error) {
		c, err := r.dial(ctx, o)
		if err != nil {
			return nil, err
		}
		return c, c.ask(ctx, aStory)
	})
}

// automatic is M2: what the server adds to the silence after which it takes an utterance for finished.
func automatic(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(Plan{})
	took, err := r.utterances(ctx)
	whole := slices.Clone(took)
	for i := range took {
		whole[i] -= r.quiet
		took[i] -= r.quiet + r.guard
	}
	return []Figure{
		sampled("M2", "added latency, auto", ms(took), most(P50, 55), most(P99, 100)),
		sampled("M2", "added latency with the pause, auto", ms(whole)),
	}, err
}

// overlap is M3: how much of the providers' time hides in the silence.
func overlap(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(Plan{ASR: 200 * time.Millisecond, LLM: 400 * time.Millisecond, TTS: 200 * time.Millisecond})
	took, err := r.utterances(ctx)
	what := fmt.Sprintf("speech end to first audio, stubs 200/400/200, silence %d", r.quiet.Milliseconds())
	return []Figure{sampled("M3", what, ms(took), most(P50, 1050), most(P99, 1100)).noted("serial: %d ms", 800+r.quiet.Milliseconds())}, err
}

// utterances lets devices speak in auto mode, in real time, and gives for each
// turn the time from the end of the last voiced sample to the first frame.
func (r *rig) utterances(ctx context.Context) ([]time.Duration, error) {
	packets := slices.Concat(r.said.packets, pauses(5*time.Second))
	o := devicetest.Options{OpenListen: true, NoMCP: true}
	return repeated(ctx, r, r.auto.devices, r.auto.turns, o, func(c *client) (time.Duration, error) {
		return c.utterance(ctx, packets, r.said.voiced)
	})
}

func (c *client) utterance(ctx context.Context, packets [][]byte, voiced time.Duration) (time.Duration, error) {
	if err := cmp.Or(c.listens(ctx), pause(ctx, rand.N(apartFor))); err != nil {
		return 0, err
	}
	c.frames.forget()
	from := time.Now()
	hush := c.speak(ctx, from, packets)
	first, err1 := c.heard(ctx, from)
	err2 := hush()
	_, err3 := c.repliedSoon(ctx, from)
	return first.Sub(from.Add(voiced)), errors.Join(err1, err2, err3)
}

// flowing is a reply of which nothing is complete for many seconds: neither
// the model's text nor the voice's sound, if the server streams that.
func (r *rig) flowing() Plan {
	p := Plan{Rate: 30, Sound: r.sentences, Replies: []string{"Well, " + story(60)}, Log: true}
	if p.Sound <= 0 {
		p.Sound, p.Rest = -1, 100*time.Millisecond
	}
	return p
}

// aborts is M8 and M9.
func aborts(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(r.endless())
	o := devicetest.Options{Mode: devicetest.Manual, NoMCP: true}
	cuts, err := repeated(ctx, r, r.abort.devices, r.abort.cuts, o, func(c *client) (cut, error) { return c.abortOnce(ctx) })
	after := 0
	for _, k := range cuts {
		after += k.after()
	}
	stop := mapped(cuts, func(k cut) time.Duration { return k.stopped.Sub(k.aborted) })
	figures := []Figure{
		sampled("M8", "abort to the last frame", ms(mapped(cuts, cut.last)), most(P50, 5), most(P99, 30)),
		sampled("M8", "abort to tts stop", ms(stop), most(P99, 50)),
		single("M8", "frames after tts stop", "", len(stop), float64(after), most(Value, 0)).untimed(),
	}
	if err != nil {
		return figures, err
	}
	upstream, err := r.cancelled(ctx)
	return append(figures, upstream...), err
}

// abortOnce asks, listens for a random while, presses the button, and counts what still comes behind the tts stop.
func (c *client) abortOnce(ctx context.Context) (k cut, err error) {
	c.frames.forget()
	if err = cmp.Or(c.ask(ctx, aStory), pause(ctx, rand.N(400*time.Millisecond))); err != nil {
		return k, err
	}
	if k, err = c.cut(ctx); err != nil {
		return k, err
	}
	err = pause(ctx, 70*time.Millisecond) // more than a frame
	k.frames = c.frames.all()
	return k, err
}

// cancelled is M9: from the abort until the model and the voice see their request closed.
func (r *rig) cancelled(ctx context.Context) ([]Figure, error) {
	c, err := r.dial(ctx, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return nil, err
	}
	var llm, tts []time.Duration
	for range r.abort.cancels {
		r.stubs.Set(r.flowing())
		k, err := c.abortOnce(ctx)
		if err != nil {
			return nil, err
		}
		llm = append(llm, closing(ctx, r.stubs.Requests(openaitest.Chat), k.aborted)...)
		tts = append(tts, closing(ctx, r.stubs.Requests(openaitest.Speak), k.aborted)...)
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
		select {
		case <-q.Ended():
			if at := q.EndedAt(); q.Gone() && at.After(aborted) {
				took = append(took, at.Sub(aborted))
			}
		case <-time.After(closePatience):
			took = append(took, closePatience)
		case <-ctx.Done():
		}
	}
	return took
}

// bargeIn is M10: in realtime mode, from the first voiced sample of the user to tts stop.
func bargeIn(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(r.endless())
	o := devicetest.Options{Mode: devicetest.Realtime, OpenListen: true, NoMCP: true}
	packets := slices.Concat(pauses(bargeLead), r.said.packets, pauses(5*time.Second))
	took, err := repeated(ctx, r, r.barge.devices, r.barge.times, o, func(c *client) (time.Duration, error) { return c.bargeOnce(ctx, packets) })
	return []Figure{sampled("M10", "voice to tts stop, realtime", ms(took), most(P95, 400))}, err
}

// bargeOnce speaks over a reply, and then cuts the answer to what was said.
func (c *client) bargeOnce(ctx context.Context, packets [][]byte) (time.Duration, error) {
	if err := cmp.Or(pause(ctx, rand.N(apartFor)), c.ask(ctx, aStory)); err != nil {
		return 0, err
	}
	from := time.Now()
	hush := c.speak(ctx, from, packets)
	stopped, err1 := c.told(ctx, "stop")
	_, err2 := c.told(ctx, "start") // the answer to what was said
	err3 := hush()
	_, err4 := c.cut(ctx)
	return stopped.Sub(from.Add(bargeLead)), cmp.Or(err1, err2, err3, err4, pause(ctx, 200*time.Millisecond))
}
