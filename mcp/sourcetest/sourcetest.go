// Package sourcetest is the one suite that every mcp.Source must pass.
package sourcetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
)

// Case is a source to try.
type Case struct {
	// New makes a fresh source that is not started. Whatever its peer needs is ended by t.Cleanup.
	New func(t *testing.T) mcp.Source
	// Tool is one that answers at once; Arguments are valid for it.
	Tool      string
	Arguments map[string]any
	// Slow is a tool that answers only when its context ends, or never.
	Slow string
}

// Run runs the suite, each part in a synctest bubble of its own, so that a
// goroutine that outlives Stop fails it.
func Run(t *testing.T, c Case) {
	parts := map[string]func(*testing.T, Case, mcp.Source){
		"not ready before Start":     notReadyBeforeStart,
		"ready after Start":          readyAfterStart,
		"an unknown tool":            unknownTool,
		"a tool answers":             toolAnswers,
		"a call heeds its context":   callHeedsContext,
		"Stop is idempotent":         stopTwice,
		"Stop fails a pending call":  stopFailsPending,
		"ResetConnection lists anew": resetLists,
		"the list is the caller's":   listIsOwned,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := c.New(t)
				t.Cleanup(func() { _ = s.Stop() })
				part(t, c, s)
			})
		})
	}
}

// start starts s and waits until all that follows has settled.
func start(t *testing.T, s mcp.Source) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatalf("Start: %v", err)
	}
	synctest.Wait()
	if !s.IsReady() {
		t.Fatal("not ready after Start")
	}
}

func notReadyBeforeStart(t *testing.T, c Case, s mcp.Source) {
	if s.IsReady() || s.HasTool(c.Tool) || len(s.GetAvailableTools()) != 0 {
		t.Error("a source that was not started is ready or has tools")
	}
	if _, err := s.CallTool(t.Context(), c.Tool, c.Arguments); err == nil {
		t.Error("CallTool before Start: no error")
	}
}

func readyAfterStart(t *testing.T, c Case, s mcp.Source) {
	start(t, s)
	if !s.HasTool(c.Tool) {
		t.Errorf("HasTool(%q) = false", c.Tool)
	}
	tools := s.GetAvailableTools()
	if !slices.ContainsFunc(tools, func(t mcp.Tool) bool { return t.Name == c.Tool }) {
		t.Errorf("%q is not listed", c.Tool)
	}
	for _, tool := range tools {
		if tool.Name == "" || len(tool.Schema) == 0 || tool.Origin == "" || tool.Source == "" {
			t.Errorf("tool %q is incomplete: %+v", tool.Name, tool)
		}
	}
	again := s.GetAvailableTools()
	if !slices.EqualFunc(tools, again, func(a, b mcp.Tool) bool { return a.Name == b.Name }) {
		t.Error("the order of the tools is not stable")
	}
}

func unknownTool(t *testing.T, _ Case, s mcp.Source) {
	start(t, s)
	if s.HasTool("no.such.tool") {
		t.Error("HasTool of an unknown tool is true")
	}
	if _, err := s.CallTool(t.Context(), "no.such.tool", nil); !errors.Is(err, mcp.ErrNoTool) {
		t.Errorf("CallTool of an unknown tool: %v, want ErrNoTool", err)
	}
}

func toolAnswers(t *testing.T, c Case, s mcp.Source) {
	start(t, s)
	result, err := s.CallTool(t.Context(), c.Tool, c.Arguments)
	if err != nil || result == nil {
		t.Errorf("CallTool(%q) = %v, %v", c.Tool, result, err)
	}
}

func callHeedsContext(t *testing.T, c Case, s mcp.Source) {
	start(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	_, err := s.CallTool(ctx, c.Slow, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("CallTool past its deadline: %v, want DeadlineExceeded", err)
	}
	if took := time.Since(began); took != time.Minute {
		t.Errorf("CallTool returned after %v, want 1m", took)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.CallTool(over, c.Tool, c.Arguments); !errors.Is(err, context.Canceled) {
		t.Errorf("CallTool with an ended context: %v, want Canceled", err)
	}
}

func stopTwice(t *testing.T, c Case, s mcp.Source) {
	start(t, s)
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	}
	if s.IsReady() || s.HasTool(c.Tool) || len(s.GetAvailableTools()) != 0 {
		t.Error("a source that was stopped is ready or has tools")
	}
	if _, err := s.CallTool(t.Context(), c.Tool, c.Arguments); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("CallTool after Stop: %v, want ErrClosed", err)
	}
	if err := s.ResetConnection(); err == nil {
		t.Error("ResetConnection after Stop: no error")
	}
	if err := s.Start(t.Context()); err == nil {
		t.Error("Start after Stop: no error")
	}
}

func stopFailsPending(t *testing.T, c Case, s mcp.Source) {
	start(t, s)
	failed := make(chan error, 1)
	go func() {
		_, err := s.CallTool(t.Context(), c.Slow, nil)
		failed <- err
	}()
	synctest.Wait()
	began := time.Now()
	if err := s.Stop(); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := <-failed; !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("the pending call ended with %v, want ErrClosed", err)
	}
	if took := time.Since(began); took != 0 {
		t.Errorf("the pending call ended %v after Stop", took)
	}
}

func resetLists(t *testing.T, c Case, s mcp.Source) {
	start(t, s)
	if err := s.ResetConnection(); err != nil {
		t.Fatalf("ResetConnection: %v", err)
	}
	<-time.After(time.Minute) // of the bubble's time
	synctest.Wait()
	if !s.IsReady() || !s.HasTool(c.Tool) {
		t.Error("the tools did not come back after ResetConnection")
	}
}

func listIsOwned(t *testing.T, c Case, s mcp.Source) {
	start(t, s)
	tools := s.GetAvailableTools()
	for i := range tools {
		tools[i].Name = "changed"
	}
	if !s.HasTool(c.Tool) || s.GetAvailableTools()[0].Name == "changed" {
		t.Error("a caller's change of its list reached the source")
	}
}
