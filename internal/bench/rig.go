package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"xiaozhi/internal/devicetest"
)

// forgiven is the tolerance of the devices: what their rules about time measure
// has figures of its own, and a busy machine is no breach.
const forgiven = 150 * time.Millisecond

// target is the server that is measured.
type target struct {
	ws       string // WebSocket URL
	token    string
	protocol int     // binary framing
	pid      process // 0: not known
	prof     profiles
	core     int // that it runs on alone; below 0: not known
}

// rig gives a scenario its server, its stubs and its devices. The clients that it dials live until release.
type rig struct {
	amounts
	target    target
	own       *own // nil: the server is not ours to start and to end
	stubs     *Stubs
	said      clip
	guard     time.Duration // that the server keeps between tts start and the first frame
	sentences time.Duration // see Options.Sentence
	quiet     time.Duration // silence after which the server takes an utterance for finished

	tolerance time.Duration // forgiven in the rules about time that devices keep

	dialled atomic.Int64
	mu      sync.Mutex
	clients []*client
}

// dial connects one more device. What o leaves open is filled in.
func (r *rig) dial(ctx context.Context, o devicetest.Options) (*client, error) {
	i := int(r.dialled.Add(1)) - 1
	o.DeviceID = cmp.Or(o.DeviceID, deviceID(i))
	f := &frames{came: make(chan struct{}, 1)}
	o.URL, o.Token, o.Protocol = r.target.ws, r.target.token, r.target.protocol
	o.Sound.NoDecode, o.Sound.OnFrame, o.Limits.Tolerance = true, f.add, r.tolerance
	d, err := until(ctx, func(ctx context.Context) (*devicetest.Device, error) { return devicetest.Dial(ctx, o) })
	if err != nil {
		return nil, fmt.Errorf("device %d: %w", i, err)
	}
	c := &client{Device: d, frames: f, packet: d.PacketLength()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients = append(r.clients, c)
	return c, nil
}

func deviceID(i int) string {
	return fmt.Sprintf("24:6f:28:%02x:%02x:%02x", 0xb0+i>>16&15, i>>8&255, i&255)
}

// fleet connects n devices, a few at a time.
func (r *rig) fleet(ctx context.Context, n int, o devicetest.Options) ([]*client, error) {
	return together(n, 8, func(int) (*client, error) { return r.dial(ctx, o) })
}

func (r *rig) drop(c *client) {
	c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients = slices.DeleteFunc(r.clients, func(other *client) bool { return other == c })
}

func (r *rig) end() error {
	if r.own == nil {
		return nil
	}
	return r.own.stop()
}

// together calls f n times, at most so many at once, and gives all that it gave, and the first error.
func together[T any](n, atOnce int, f func(i int) (T, error)) ([]T, error) {
	out := make([]T, n)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() (err error) {
			out[i], err = f(i)
			return err
		})
	}
	return out, group.Wait()
}

// times calls f n times and gives what it gave until its first error.
func times[T any](n int, f func() (T, error)) ([]T, error) {
	var out []T
	for i := range n {
		v, err := f()
		if err != nil {
			return out, fmt.Errorf("round %d: %w", i+1, err)
		}
		out = append(out, v)
	}
	return out, nil
}

// repeated connects devices and lets each of them do something n times.
func repeated[T any](ctx context.Context, r *rig, devices, n int, o devicetest.Options, f func(*client) (T, error)) ([]T, error) {
	clients, err := r.fleet(ctx, devices, o)
	if err != nil {
		return nil, err
	}
	parts, err := together(devices, max(devices, 1), func(i int) ([]T, error) {
		return times(n, func() (T, error) { return f(clients[i]) })
	})
	return slices.Concat(parts...), err
}

// release hangs up on all devices, and counts the rules that the server broke.
func (r *rig) release() map[devicetest.Rule]int {
	r.mu.Lock()
	clients := r.clients
	r.clients = nil
	r.mu.Unlock()
	broken := make(map[devicetest.Rule]int)
	for _, c := range clients {
		c.Close()
		for _, v := range c.Violations() {
			broken[v.Rule]++
		}
	}
	return broken
}

// find resolves an OTA or WebSocket URL to where devices connect.
func find(ctx context.Context, url, token string) (target, error) {
	t := target{ws: url, token: token, protocol: 1, core: -1}
	if strings.HasPrefix(url, "ws://") || strings.HasPrefix(url, "wss://") {
		return t, devicetest.CheckURL(url)
	}
	p, err := devicetest.Provision(ctx, url, devicetest.Options{DeviceID: deviceID(0)})
	if err != nil {
		return t, err
	}
	t.ws, t.token, t.protocol = p.URL, cmp.Or(token, p.Token), cmp.Or(p.Protocol, t.protocol)
	return t, nil
}

const (
	aStory      = "tell me a story" // what most devices ask for
	answerLimit = 15 * time.Second  // longest wait of a device for anything; then it counts as stuck
)

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
func (c *client) ask(ctx context.Context, question string) error {
	now := time.Now()
	if err := c.Detect(question); err != nil {
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

// pressed holds the button, says something, lets the button go, and gives the moment at which listen stop was written.
func (c *client) pressed(ctx context.Context, said [][]byte) (time.Time, error) {
	err := cmp.Or(c.ListenStart(devicetest.Manual), c.SendFrames(said...),
		pause(ctx, 50*time.Millisecond), c.ListenStop()) // the button is let go within the next frame
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
