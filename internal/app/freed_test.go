package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// freedAfter is the time after which nothing of a session may be left.
const freedAfter = time.Second

// TestSessionEndFreesAll: however a session ends, and whatever its engines were
// doing, a second later no goroutine, detector, stream, request or tool of it is
// left.
func TestSessionEndFreesAll(t *testing.T) {
	hang := []providertest.Step{{{Hang: true}}}
	story := []providertest.Step{providertest.Say("Once upon a time there was a speaker. ", "It told stories all day long.")}
	tool := []providertest.Step{providertest.Call(providers.ToolCall{ID: "c1", Name: "self_lamp_wait", Arguments: "{}"})}
	drop := func(_ context.Context, _ *testing.T, d *devicetest.Device) { d.CloseTCP() }
	for name, c := range map[string]struct {
		script script
		act    func(ctx context.Context, t *testing.T, d *devicetest.Device)
		used   [3]int // utterances, requests of the model, sentences: at the end of act
		end    func(ctx context.Context, t *testing.T, d *devicetest.Device)
	}{
		"idle for 100 s":           {script{llm: story}, typed("done"), [3]int{0, 1, 2}, idleClosed},
		"dropped idle":             {script{llm: story}, typed("done"), [3]int{0, 1, 2}, drop},
		"dropped in a word":        {script{asr: []providertest.Hearing{{Hang: true}}}, speaks(time.Second), [3]int{1, 0, 0}, drop},
		"dropped while recognised": {script{asr: []providertest.Hearing{{Hang: true}}}, speaks(2 * time.Second), [3]int{1, 0, 0}, drop},
		"dropped while thinking":   {script{llm: hang}, typed("thinking"), [3]int{0, 1, 0}, drop},
		"dropped in a reply":       {script{llm: story}, typed("speaking"), [3]int{0, 1, 2}, drop},
		"dropped as a voice hangs": {script{llm: story, tts: []providertest.Speech{{Delay: time.Hour}}}, typed("thinking"), [3]int{0, 1, 2}, drop},
		"dropped in a tool":        {script{llm: tool}, typed("tool"), [3]int{0, 1, 0}, drop},
	} {
		t.Run(name, func(t *testing.T) {
			inMemory(t, c.script, func(ctx context.Context, t *testing.T, h *harness) {
				before := goroutines(t)
				d := h.dial(ctx, devicetest.Options{OpenListen: true, Tools: []devicetest.Tool{endlessTool}})
				c.act(ctx, t, d)
				if used := [3]int{len(h.asr.Utterances()), len(h.llm.Asked()), len(h.tts.Spoken())}; used != c.used {
					t.Fatalf("it was at %v, not at %v", used, c.used)
				}
				if n := len(goroutines(t)); n <= len(before) || h.app.devices.Connected() != 1 {
					t.Fatalf("%d goroutines before, %d with a device: nothing is counted", len(before), n)
				}
				c.end(ctx, t, d)
				ended := time.Now()
				d.Close()
				time.Sleep(time.Until(ended.Add(freedAfter)))
				h.nothingLeft(before)
			})
		})
	}
}

// endlessTool is a tool that ends with its device.
var endlessTool = devicetest.Tool{Name: "self.lamp.wait", Description: "Wait.", Call: func(ctx context.Context, _ devicetest.Call) (devicetest.Result, error) {
	<-ctx.Done()
	return devicetest.Result{}, ctx.Err()
}}

// typed asks something, and waits until the turn is there.
func typed(until string) func(context.Context, *testing.T, *devicetest.Device) {
	return func(ctx context.Context, t *testing.T, d *devicetest.Device) {
		t.Helper()
		if err := d.WaitMic(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // its tools are listed
		if err := d.Detect("tell me a story"); err != nil {
			t.Fatal(err)
		}
		var err error
		switch until {
		case "done":
			_, err = d.WaitReply(ctx)
		case "speaking":
			_, err = d.Wait(ctx, func(e devicetest.Event) bool { return e.Kind == devicetest.KindFrame })
		case "tool":
			_, err = d.Wait(ctx, func(e devicetest.Event) bool {
				return e.Kind == devicetest.KindReceived && strings.Contains(string(e.Raw), "tools/call")
			})
		default:
			time.Sleep(500 * time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// speaks speaks for a second, and is silent for what is left of the time.
func speaks(length time.Duration) func(context.Context, *testing.T, *devicetest.Device) {
	return func(ctx context.Context, t *testing.T, d *devicetest.Device) {
		t.Helper()
		if err := d.Say(ctx, speech(time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := d.Silence(ctx, length-time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// idleClosed waits until the server closes the connection, which it does
// between 100 and 110 s after the last word.
func idleClosed(ctx context.Context, t *testing.T, d *devicetest.Device) {
	t.Helper()
	began := time.Now()
	select {
	case <-d.Done():
	case <-ctx.Done():
		t.Fatal("the connection was not closed")
	}
	if idle := time.Since(began); idle < 100*time.Second || idle > 110*time.Second {
		t.Errorf("closed after %v", idle)
	}
}

// nothingLeft fails the test if anything of a session is there.
func (h *harness) nothingLeft(before []string) {
	h.t.Helper()
	if after := goroutines(h.t); len(after) > len(before) {
		h.t.Errorf("%d goroutines, %d before:\n%s", len(after), len(before), after)
	}
	if n, live := h.app.devices.Connected(), h.app.outside.List(); n != 0 || len(live) != 0 {
		h.t.Errorf("%d devices are connected, %v live", n, live)
	}
	if n := h.vad.Open(); n != 0 {
		h.t.Errorf("%d detectors are open", n)
	}
	for _, u := range h.asr.Utterances() {
		if !u.Final && !u.Cancelled {
			h.t.Errorf("a stream of the recogniser is open: %+v", u)
		}
	}
	for _, a := range h.llm.Asked() {
		if !a.Ended {
			h.t.Error("the model is still asked")
		}
	}
	for _, s := range h.tts.Spoken() {
		if !s.Ended {
			h.t.Errorf("the voice still speaks %q", s.Request.Text)
		}
	}
}
