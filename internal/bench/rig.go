package bench

import (
	"cmp"
	"context"
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
	t.ws = p.URL
	t.protocol = cmp.Or(p.Protocol, t.protocol)
	t.token = cmp.Or(token, p.Token)
	return t, nil
}
