package router

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
)

// TestPeer: a tool of ours calls the device's tools, and no others, through the
// router: in their turn, checked, and never two at a time.
func TestPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device := source("device", "self.status", "self.slow", "self.hidden", "self.person")
		device.tools[3].Annotations.Audience = []string{"user"}
		running := 0
		device.call = func(ctx context.Context, name string, _ map[string]any) (any, error) {
			if running++; running > 1 {
				t.Error("two calls at a time")
			}
			defer func() { running-- }()
			time.Sleep(time.Second)
			return name + " done", nil
		}
		own := source("local", "shortcut", "exit")
		own.call = func(ctx context.Context, _ string, _ map[string]any) (any, error) {
			peer := mcp.PeerFrom(ctx)
			var names []string
			for _, tool := range peer.Tools() {
				names = append(names, tool.Name)
			}
			if got := strings.Join(names, " "); got != "self.status self.slow Lamp.on" {
				t.Errorf("the device's tools: %s", got)
			}
			for _, name := range []string{"exit", "self_status", "self.hidden", "self.person", ""} {
				if r := peer.Call(ctx, name, nil); r.Action != mcp.ActionTypeNotFound {
					t.Errorf("calling %q: %+v", name, r)
				}
			}
			if r := peer.Call(ctx, "self.status", map[string]any{"bad": func() {}}); r.Action != mcp.ActionTypeError {
				t.Errorf("arguments that are no JSON: %+v", r)
			}
			return peer.Call(ctx, "self.status", nil), nil
		}
		b := newRouter(t, Options{Rules: Rules{Deny: []string{"*.hidden"}}}, own, device, source("iot", "Lamp.on"), source("external:x", "search"))
		wait := b.Begin(t.Context(), prepare(t, b, "self_slow", ""))
		began := time.Now()
		r := b.Run(t.Context(), prepare(t, b, "shortcut", ""))
		if r.Action != mcp.ActionTypeReqLLM || r.Result != "self.status done" {
			t.Errorf("the shortcut: %+v", r)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("after %v, want 2s: the slow call was first", took)
		}
		wait()
	})
}

// A tool that uses a device's tool cannot get round the yes that it needs, and neither can
// who asked for it.
func TestPeerCallNeedsConsent(t *testing.T) {
	yes := true
	device, own := source("device", "self.door.open"), source("local", "open_up")
	opened := 0
	device.call = func(context.Context, string, map[string]any) (any, error) {
		opened++
		return "open", nil
	}
	own.call = func(ctx context.Context, _ string, _ map[string]any) (any, error) {
		return mcp.PeerFrom(ctx).Call(ctx, "self.door.open", nil), nil
	}
	destroys := source("device", "self.door.open")
	destroys.tools[0].Annotations.Destructive, destroys.call = &yes, device.call
	for what, b := range map[string]*Router{
		"confirm": newRouter(t, Options{Rules: Rules{Confirm: []string{"*DOOR*"}}}, own, device), "destructiveHint": newRouter(t, Options{}, own, destroys),
	} {
		for _, by := range []mcp.Asker{mcp.ByModel, mcp.ByOutside, mcp.ByTool, mcp.ByProgram} {
			p, bad := b.Prepare(mcp.Call{ID: "c", Name: "open_up", By: by})
			if bad != nil {
				t.Fatalf("%+v", bad)
			}
			if r := b.Run(t.Context(), p); r.Action != mcp.ActionTypeError || !strings.Contains(mcp.ResultText(r), "call it directly") {
				t.Errorf("%s, by %d: %+v", what, by, r)
			}
		}
	}
	if opened != 0 {
		t.Errorf("the door was opened %d times", opened)
	}
}

// What the gate has not let through is not run, by any of the ways to run a call, and
// after a yes it is run.
func TestRunNeedsConsent(t *testing.T) {
	ran := 0
	s := source("device", "wipe")
	s.call = func(context.Context, string, map[string]any) (any, error) {
		ran++
		return "wiped", nil
	}
	b := newRouter(t, Options{Rules: Rules{Confirm: []string{"WIPE"}}}, s)
	p, bad := b.Prepare(mcp.Call{ID: "c", Name: "wipe"})
	if bad != nil || !p.Asks() {
		t.Fatalf("%+v, asks %v", bad, p.Asks())
	}
	for what, r := range map[string]mcp.ActionResponse{"Run": b.Run(t.Context(), p), "Begin": b.Begin(t.Context(), p)(), "Detach": b.Detach(t.Context(), p)} {
		if r.Action != mcp.ActionTypeError {
			t.Errorf("%s: %+v", what, r)
		}
	}
	if err := b.Go(p, func(mcp.ActionResponse) { t.Error("done") }); err == nil {
		t.Error("Go took it")
	}
	if ran != 0 {
		t.Fatal("it was run without a yes")
	}
	for _, by := range []mcp.Asker{mcp.ByTool, mcp.ByProgram, 99} { // they cannot answer for the person
		q := p
		q.Call.By = by
		if r := b.Run(t.Context(), b.Consent(q, "")); r.Action != mcp.ActionTypeError || ran != 0 {
			t.Errorf("by %d: %+v", by, r)
		}
	}
	if r := b.Run(t.Context(), b.Consent(p, "")); r.Result != "wiped" || ran != 1 {
		t.Errorf("after a yes: %+v", r)
	}
}

// A yes of somebody else than those who may say it runs nothing, and it is said why.
func TestRunNeedsConsentOfCertainPeople(t *testing.T) {
	ran := 0
	s := source("device", "wipe")
	s.call = func(context.Context, string, map[string]any) (any, error) {
		ran++
		return "wiped", nil
	}
	b := newRouter(t, Options{Rules: Rules{ConfirmBy: map[string][]string{"wipe": {"Anna"}}}}, s)
	p, bad := b.Prepare(mcp.Call{ID: "c", Name: "wipe", Language: "en"})
	if bad != nil || !p.Asks() || len(p.By()) != 1 || p.By()[0] != "Anna" {
		t.Fatalf("%+v, asks %v", bad, p)
	}
	for _, person := range []string{"", "Ben"} {
		if r := b.Run(t.Context(), b.Consent(p, person)); !strings.Contains(mcp.ResultText(r), "only certain people") || ran != 0 {
			t.Errorf("%q: %+v", person, r)
		}
	}
	if r := b.Run(t.Context(), b.Consent(p, "Anna")); r.Result != "wiped" || ran != 1 {
		t.Errorf("after her yes: %+v", r)
	}
}

func TestNoPeer(t *testing.T) {
	peer := mcp.PeerFrom(t.Context())
	if len(peer.Tools()) != 0 || peer.Call(t.Context(), "x", nil).Action != mcp.ActionTypeNotFound {
		t.Error("a device where there is none")
	}
}

// TestWhen: a tool that is of no use beside the device's tools is not offered.
func TestWhen(t *testing.T) {
	device := source("device", "self.set_volume")
	own := source("local", "set_volume", "exit")
	own.tools[0].When = func(device []mcp.Tool) bool { return len(device) == 0 }
	b := newRouter(t, Options{}, own, device)
	offered := func() bool {
		return slices.ContainsFunc(b.Offers(), func(o Offer) bool { return o.LLMName == "set_volume" })
	}
	if offered() {
		t.Error("the same thing is offered twice")
	}
	device.tools = nil
	if !offered() || len(b.Offers()) != 2 {
		t.Error("the device has no tools now, but our tool did not come back")
	}
}
