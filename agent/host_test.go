package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
)

// TestHandlerOfDeadTurn: a handler whose turn was taken away does not run, and
// one that runs is waited for, so that its result is in the history.
func TestHandlerOfDeadTurn(t *testing.T) {
	c := &Conversation{events: make(chan func(), 64), env: feature.Env{Log: debugLog(t.Output())}}
	c.state.Reply = turn.Reply{Turn: 1, Stage: turn.Speaking}
	runs := 0
	// ask has the handler run, then its turn ends.
	ask := func(f func() error) (ran bool, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			(<-c.events)()
			cancel()
		}()
		return c.ask(ctx, 1, f)
	}
	handler := func() error { runs++; return nil }

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran, err := c.ask(ctx, 1, handler)
	for len(c.events) > 0 {
		(<-c.events)()
	}
	if ran || runs != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("given up by its turn: ran %d times, %v", runs, err)
	}

	c.state.Reply.Stage = turn.Ending
	if ran, _ := ask(handler); ran || runs != 0 {
		t.Error("the handler of a turn without the floor ran")
	}

	c.state.Reply.Stage = turn.Speaking
	for range 50 { // the outcome and the end of the turn are there at the same time
		if ran, err := ask(handler); !ran || err != nil {
			t.Fatalf("it ran, but %v, %v", ran, err)
		}
	}
	if ran, err = ask(func() error { panic("broken handler") }); !ran || !errors.Is(err, turn.ErrFailed) {
		t.Errorf("a handler that panics: %v, %v", ran, err)
	}
}

// TestPanicIsOver: whoever waits for a conversation that breaks is told that it is
// over, and its turn has been joined before another may have the device's record.
func TestPanicIsOver(t *testing.T) {
	o := oddOptions(t, oddFeature{tick: func() { panic("broken feature") }})
	synctest.Test(t, func(t *testing.T) {
		llm := &patientLLM{}
		o.Devices, o.LLM = NewDevices(), llm
		tools := router.New(router.Options{})
		defer tools.Close()
		c := New(o, wire.Session{DeviceID: "d", Language: "en"}, newBox(), tools)
		broken := make(chan any, 1)
		go func() {
			defer func() { broken <- recover() }()
			c.Run(t.Context())
		}()
		if err := c.Post(wire.Detect{Text: "think"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if said, err := remote.New(c, "d", tools).Say(t.Context(), "Dinner is ready.", false); !errors.Is(err, feature.ErrOver) {
			t.Errorf("said %+v, %v", said, err)
		}
		if <-broken == nil || len(llm.closed) != 1 {
			t.Errorf("%d requests to the model are closed", len(llm.closed))
		}
		o.Devices.Close()
	})
}

// TestNoRecordIsOver: so is whoever waits for one that never gets the device's record.
func TestNoRecordIsOver(t *testing.T) {
	o := oddOptions(t, oddFeature{})
	synctest.Test(t, func(t *testing.T) {
		o.Devices = NewDevices()
		dev, err := o.Devices.acquire(t.Context(), "d")
		if err != nil {
			t.Fatal(err)
		}
		c := New(o, wire.Session{DeviceID: "d"}, newBox(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		go c.Run(ctx)
		if err := c.Do(t.Context(), func(feature.Host) error { return nil }); !errors.Is(err, feature.ErrOver) {
			t.Errorf("it has not begun: %v", err)
		}
		o.Devices.release(dev)
	})
}
