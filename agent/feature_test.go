package agent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// oddFeature is a feature that does as its fields say.
type oddFeature struct {
	attach func(h feature.Host, state feature.State)
	tick   func() // after 10 s
	state  feature.State
}

func (oddFeature) Name() string { return "odd" }

func (f oddFeature) Attach(h feature.Host, state feature.State) feature.Instance {
	if f.attach != nil {
		f.attach(h, state)
	}
	o := &odd{oddFeature: f}
	if f.tick != nil {
		o.due = time.Now().Add(10 * time.Second)
	}
	return o
}

type odd struct {
	oddFeature
	due time.Time
}

func (o *odd) Expects(time.Time) bool { return false }
func (o *odd) Detach() feature.State  { return o.state }
func (o *odd) Deadline() time.Time    { return o.due }
func (o *odd) Tick(time.Time)         { o.due = time.Time{}; o.tick() }

// oddOptions are those of a conversation with the program's features and one more.
func oddOptions(t *testing.T, f oddFeature) Options {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		VAD: energyVAD{new(sync.WaitGroup)}, ASR: &scriptASR{}, TTS: &toneTTS{rate: 16000}, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
		LLM: &scriptLLM{lines: []string{"call set {}", "end"}}, Features: append(allFeatures(nil), f),
	}
}

// TestPanicKeepsStates: a conversation that breaks leaves behind what its features
// keep of the device.
func TestPanicKeepsStates(t *testing.T) {
	o := oddOptions(t, oddFeature{tick: func() { panic("broken feature") }})
	synctest.Test(t, func(t *testing.T) {
		o.Devices = NewDevices()
		source := newScriptSource("local", []string{`set query 0s !handler mcp_handler_timer {"action":"set","due":"60s","text":"Bread"}`})
		tools := router.New(router.Options{}, source)
		c := New(o, wire.Session{DeviceID: "d", Language: "en"}, newBox(), tools)
		ctx, cancel := context.WithCancel(t.Context())
		broken := make(chan any)
		go func() {
			defer func() { broken <- recover() }()
			c.Run(ctx)
		}()
		synctest.Wait()
		if err := c.Post(wire.Detect{Text: "bread"}); err != nil {
			t.Fatal(err)
		}
		if <-broken == nil {
			t.Fatal("it is not broken")
		}
		cancel()
		tools.Close()
		o.Features = o.Features[:len(o.Features)-1] // without the broken one
		v := connect(t, o, router.Options{}, source)
		time.Sleep(time.Minute)
		v.bye()
		if said := v.box.String(); !strings.Contains(said, "This is a reminder: Bread.") {
			t.Errorf("the timer is lost:\n%s", said)
		}
		o.Devices.Close()
	})
}

// TestAttachAnnouncesNow: a feature may have something told as soon as it is attached.
func TestAttachAnnouncesNow(t *testing.T) {
	o := oddOptions(t, oddFeature{attach: func(h feature.Host, _ feature.State) {
		if _, err := h.Announce(feature.Announcement{Lang: text.English, Text: "Welcome back.", Now: true}); err != nil {
			t.Error(err)
		}
	}})
	synctest.Test(t, func(t *testing.T) {
		o.Devices = NewDevices()
		v := connect(t, o, router.Options{})
		time.Sleep(5 * time.Second)
		v.bye()
		if said := v.box.String(); !strings.Contains(said, "final Welcome back.") {
			t.Errorf("said\n%s", said)
		}
	})
}

type oddState struct{ closed *int }

func (oddState) Keep(time.Time) time.Duration { return time.Hour }
func (s oddState) Close()                     { *s.closed++ }

// TestDetachGivesNothing: a state that a feature does not give back is gone.
func TestDetachGivesNothing(t *testing.T) {
	var got []feature.State
	f := oddFeature{state: oddState{new(int)}, attach: func(_ feature.Host, s feature.State) { got = append(got, s) }}
	o := oddOptions(t, f)
	synctest.Test(t, func(t *testing.T) {
		o.Devices = NewDevices()
		connect(t, o, router.Options{}).bye()
		f.state = nil
		o.Features = append(allFeatures(nil), f)
		connect(t, o, router.Options{}).bye()
		connect(t, o, router.Options{}).bye()
		if len(got) != 3 || got[0] != nil || got[1] == nil || got[2] != nil {
			t.Errorf("given %v", got)
		}
	})
}

// TestForgottenRecordCloses: a record that is forgotten closes its states, once.
func TestForgottenRecordCloses(t *testing.T) {
	var closed int
	o := oddOptions(t, oddFeature{state: oddState{&closed}})
	synctest.Test(t, func(t *testing.T) {
		o.Devices = NewDevices()
		connect(t, o, router.Options{}).bye()
		for i, want := range []int{0, 0, 1} {
			time.Sleep(time.Duration(40*i) * time.Minute)
			if dev, err := o.Devices.acquire(t.Context(), "other"); err != nil {
				t.Fatal(err)
			} else if o.Devices.release(dev); closed != want {
				t.Errorf("closed %d times, want %d", closed, want)
			}
		}
		o.Devices.Close()
		if closed != 1 {
			t.Errorf("closed %d times", closed)
		}
	})
}
