package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"xiaozhi/internal/devicetest"
)

// answerLimit is the longest wait of a device for anything; then it counts as stuck.
const answerLimit = 15 * time.Second

// frames are the arrivals of a device's Opus packets. The device's reader adds, the scenario takes.
type frames struct {
	mu   sync.Mutex
	at   []time.Time
	came chan struct{} // holds one token when there are new ones
}

func (f *frames) add(at time.Time, _ []byte) {
	f.mu.Lock()
	f.at = append(f.at, at)
	f.mu.Unlock()
	select {
	case f.came <- struct{}{}:
	default:
	}
}

func (f *frames) all() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.at)
}

func (f *frames) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = f.at[:0]
}

// client is one device of the load. Its methods are for one goroutine.
type client struct {
	*devicetest.Device
	frames *frames
	packet time.Duration // length of a downlink packet
	hush   func() error  // ends what it says all the time; nil: nothing
}

// until gives f a context that ends when an answer has taken too long.
func until[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return f(ctx)
}

// told waits for the moment at which a tts message of a state was read.
func (c *client) told(ctx context.Context, state string) (time.Time, error) {
	return c.await(ctx, devicetest.KindReceived, "tts", state)
}

// await waits for the moment at which a text message was read or written.
func (c *client) await(ctx context.Context, way devicetest.Kind, kind, state string) (time.Time, error) {
	return until(ctx, func(ctx context.Context) (time.Time, error) {
		e, err := c.Wait(ctx, func(e devicetest.Event) bool { return e.Kind == way && e.Type == kind && e.State == state })
		if err != nil {
			return time.Time{}, fmt.Errorf("wait for %s %s %s: %w", way, kind, state, err)
		}
		return e.At, nil
	})
}

func (c *client) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := c.WaitMic(ctx); err != nil {
		return fmt.Errorf("wait for the microphone: %w", err)
	}
	return nil
}

// heard waits for the first sound after a moment.
func (c *client) heard(ctx context.Context, after time.Time) (time.Time, error) {
	return until(ctx, func(ctx context.Context) (time.Time, error) {
		for {
			all := c.frames.all()
			if i := slices.IndexFunc(all, after.Before); i >= 0 {
				return all[i], nil
			}
			select {
			case <-c.frames.came:
			case <-ctx.Done():
				return time.Time{}, fmt.Errorf("wait for sound: %w", ctx.Err())
			}
		}
	})
}

// ask types a question and waits for the first sound of the answer.
func (c *client) ask(ctx context.Context) error {
	now := time.Now()
	if err := c.Detect("tell me a story"); err != nil {
		return err
	}
	_, err := c.heard(ctx, now)
	return err
}

// replied waits for the end of the reply that began after a moment, however long that takes.
func (c *client) replied(ctx context.Context, after time.Time) (*devicetest.Reply, error) {
	for {
		r, err := c.WaitReply(ctx)
		if err != nil {
			return nil, fmt.Errorf("wait for the reply's end: %w", err)
		}
		if r.Started.After(after) { // those before it were cut, and nobody waited for them
			return r, nil
		}
	}
}

// repliedSoon is replied for a short reply.
func (c *client) repliedSoon(ctx context.Context, after time.Time) (*devicetest.Reply, error) {
	return until(ctx, func(ctx context.Context) (*devicetest.Reply, error) { return c.replied(ctx, after) })
}

// cut aborts what is being said and waits for the tts stop.
func (c *client) cut(ctx context.Context) (cut, error) {
	if err := c.Abort(""); err != nil {
		return cut{}, err
	}
	aborted, err1 := c.await(ctx, devicetest.KindSent, "abort", "")
	stopped, err2 := c.told(ctx, "stop")
	return cut{aborted: aborted, stopped: stopped}, errors.Join(err1, err2)
}

// pressed holds the button, says a clip, lets the button go, and gives the moment at which listen stop was written.
func (c *client) pressed(ctx context.Context, said clip) (time.Time, error) {
	err := errors.Join(c.ListenStart(devicetest.Manual), c.SendFrames(said.packets...))
	if err != nil {
		return time.Time{}, err
	}
	err = cmp.Or(pause(ctx, 50*time.Millisecond), c.ListenStop()) // the button is let go within the next frame
	if err != nil {
		return time.Time{}, err
	}
	return c.await(ctx, devicetest.KindSent, "listen", "stop")
}

// pause waits, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// speak lets a device say packets in real time, beside what else happens. The
// function that is returned ends and awaits it.
func (c *client) speak(ctx context.Context, from time.Time, packets [][]byte) func() error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- c.SayPackets(ctx, from, packets...) }()
	return func() error {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}
