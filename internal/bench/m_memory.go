package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"xiaozhi/internal/devicetest"
)

// footprint is M12: what devices add to the server's resident memory.
func footprint(ctx context.Context, r *rig) ([]Figure, error) {
	if r.target.pid == 0 {
		return []Figure{unmeasured("M12", "memory per device", "no process id (--pid)")}, nil
	}
	base, err := r.resident(ctx)
	if err != nil {
		return nil, err
	}
	figures := []Figure{single("M12", "base process", "MiB", 1, float64(base)/1024, most(Value, 60)).untimed()}
	steps := []struct {
		what string
		n    int
		goal float64
		come func(n int) error
	}{
		{"idle after hello", r.memory.idle, 60, func(n int) error {
			_, err := r.fleet(ctx, n, devicetest.Options{NoMCP: true})
			return err
		}},
		{"idle, its tools listed", r.memory.idle, 60, func(n int) error {
			_, err := together(n, 8, func(int) (*client, error) { return r.withTools(ctx) })
			return err
		}},
		{"speaking", r.memory.speaking, 400, func(n int) error {
			r.stubs.Set(r.endless())
			_, err := r.speaking(ctx, n, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
			return err
		}},
	}
	for _, s := range steps {
		if err := s.come(s.n); err != nil {
			return figures, fmt.Errorf("%s: %w", s.what, err)
		}
		now, err := r.resident(ctx)
		if err != nil {
			return figures, err
		}
		per := float64(now-base) / float64(s.n)
		figures = append(figures, single("M12", "per device, "+s.what, "KiB", s.n, per, most(Value, s.goal)).untimed())
		base = now
	}
	return figures, nil
}

// withTools connects a device as they are sold, and waits until its tools are known.
func (r *rig) withTools(ctx context.Context) (*client, error) {
	c, err := r.dial(ctx, devicetest.Options{Tools: devicetest.NewBoard().Tools()})
	if err != nil {
		return nil, err
	}
	return until(ctx, func(ctx context.Context) (*client, error) {
		_, err := c.Wait(ctx, devicetest.Event.EndsTools)
		if errors.Is(err, context.DeadlineExceeded) {
			return c, errors.New("the server does not ask for the device's tools")
		}
		return c, err
	})
}

// resident is the server's memory in KiB once it has had time to settle.
func (r *rig) resident(ctx context.Context) (int, error) {
	if err := pause(ctx, r.memory.settle); err != nil {
		return 0, err
	}
	return r.target.pid.memory()
}

// churn is M14: devices that connect, talk, and drop.
func churn(ctx context.Context, r *rig) ([]Figure, error) {
	if r.target.pid == 0 {
		return []Figure{unmeasured("M14", "churn", "no process id (--pid)")}, nil
	}
	r.stubs.Set(Plan{Sound: 5 * time.Second})
	const ids = 50 // the server remembers devices for a while: that is no leak
	cycle := func(i int) (struct{}, error) { return struct{}{}, r.cycle(ctx, deviceID(i%ids)) }
	_, warm := together(max(ids, r.cycles/10), 10, cycle)
	memory, routines, err := r.afterwards(ctx, -1)
	if err = cmp.Or(warm, err); err != nil {
		return nil, err
	}
	_, failed := together(r.cycles, 10, cycle)
	memoryNow, routinesNow, err := r.afterwards(ctx, routines+2)
	if err = cmp.Or(failed, err); err != nil {
		return nil, err
	}
	growth := 100 * float64(memoryNow-memory) / float64(memory)
	grown := single("M14", "memory growth after connect, talk, drop", "%", r.cycles, growth, most(Value, 5)).
		noted("%.1f to %.1f MiB", float64(memory)/1024, float64(memoryNow)/1024).untimed()
	if r.target.prof.url == "" {
		return []Figure{grown, unmeasured("M14", "goroutines", "no profiles of this server (--pprof-url)")}, nil
	}
	leaked := single("M14", "goroutines more than before", "", r.cycles, float64(routinesNow-routines), least(Value, -2), most(Value, 2)).
		noted("%d to %d", routines, routinesNow).untimed()
	return []Figure{grown, leaked}, nil
}

func (r *rig) cycle(ctx context.Context, id string) error {
	c, err := r.dial(ctx, devicetest.Options{DeviceID: id, Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return err
	}
	stop, err := c.pressed(ctx, clip{packets: r.said.packets[:10]})
	if err == nil {
		_, err = c.heard(ctx, stop)
	}
	r.drop(c)
	return err
}

// leavePatience is the time a server has to free devices that are gone.
const leavePatience = 15 * time.Second

// afterwards is the server's memory and number of goroutines once all devices
// have gone, at the latest when no more than enough are left.
func (r *rig) afterwards(ctx context.Context, enough int) (memory, routines int, err error) {
	end := time.Now().Add(leavePatience)
	last := -1
	for {
		if memory, err = r.resident(ctx); err != nil || r.target.prof.url == "" {
			return memory, 0, err
		}
		if routines, err = r.target.prof.goroutines(ctx); err != nil {
			return memory, routines, err
		}
		settled := routines == last || (enough >= 0 && routines <= enough)
		if settled && (enough < 0 || routines <= enough) || time.Now().After(end) {
			return memory, routines, nil
		}
		last = routines
	}
}
