package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/turn"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// brokenVAD makes no detectors for a while.
type brokenVAD struct {
	energyVAD
	broken *atomic.Int64 // how many fail
}

func (v brokenVAD) NewDetector() (providers.Detector, error) {
	if v.broken.Add(-1) >= 0 {
		return nil, errors.New("no detector")
	}
	return v.energyVAD.NewDetector()
}

// deafTalk is a conversation in realtime mode whose ears fail that often.
func deafTalk(t *testing.T, failures int64, then func(*Conversation, *box)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		set, err := prompts.Load("")
		if err != nil {
			t.Fatal(err)
		}
		var detectors sync.WaitGroup
		broken := new(atomic.Int64)
		broken.Store(failures)
		b := newBox()
		tools := router.New(router.Options{})
		c := New(Options{
			VAD: brokenVAD{energyVAD{&detectors}, broken}, ASR: &scriptASR{}, LLM: &scriptLLM{},
			TTS: &toneTTS{rate: 16000}, Prompts: set, Devices: NewDevices(),
		}, wire.Session{DeviceID: "d", Language: "en"}, b, tools)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); c.Run(ctx) }()
		if err := c.Post(wire.ListenStart{Mode: wire.Realtime}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		then(c, b)
		cancel()
		<-over
		tools.Close()
		detectors.Wait()
	})
}

// Ears that fail are heard of, and tried again after that, also where the
// device will not say listen start again.
func TestListenerComesBack(t *testing.T) {
	deafTalk(t, 1, func(c *Conversation, b *box) {
		if !strings.Contains(lines(b), "sentence Something went wrong") || b.hungUp != nil {
			t.Errorf("the device got %q", lines(b))
		}
		if c.mic.listener == nil || c.state.Phase() != turn.Listening {
			t.Errorf("the conversation stays deaf: state %s", c.state.Phase())
		}
	})
}

// Ears that fail again and again end the conversation, instead of a device
// that says for ever that something went wrong.
func TestListenerStaysBroken(t *testing.T) {
	deafTalk(t, 1000, func(c *Conversation, b *box) {
		if n := strings.Count(lines(b), "sentence Something went wrong"); n != 3 || b.hungUp == nil {
			t.Errorf("heard %d times, hung up: %v", n, b.hungUp)
		}
	})
}

// hastyASR breaks when it is to get ready.
type hastyASR struct{ scriptASR }

func (*hastyASR) Warm(context.Context) error { panic("broken while it gets ready") }

// An engine that breaks while it gets ready costs nothing but that.
func TestWarmPanics(t *testing.T) {
	o := oddOptions(t, oddFeature{})
	o.ASR, o.LLM = &hastyASR{scriptASR{lines: []string{"hello"}}}, &scriptLLM{lines: []string{"text Hi.", "end"}}
	loud, mute := stormPackets(t)
	synctest.Test(t, func(t *testing.T) {
		o.Devices = NewDevices()
		v := connect(t, o, router.Options{})
		v.listens(t, wire.Auto)
		for i := range 40 {
			time.Sleep(60 * time.Millisecond)
			packet := mute
			if i < 10 {
				packet = loud
			}
			v.c.Hear(wire.Packet{Data: packet})
		}
		time.Sleep(5 * time.Second)
		v.bye()
		if said := v.box.String(); !strings.Contains(said, "final Hi.") {
			t.Errorf("said\n%s", said)
		}
	})
}
