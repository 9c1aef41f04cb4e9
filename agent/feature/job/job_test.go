package job

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// TestInbox: so many jobs and no more, none twice at the same time, and the server's
// end cancels them all and waits.
func TestInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mail := newInbox()
		prepared := func(n int) router.Prepared {
			return router.Prepared{Offer: router.Offer{Tool: mcp.Tool{Name: "dig"}}, Arguments: map[string]any{"n": n}}
		}
		running := 0
		var mu sync.Mutex
		run := func(ctx context.Context, _ router.Prepared) mcp.ActionResponse {
			mu.Lock()
			running++
			mu.Unlock()
			<-ctx.Done()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			running--
			return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: context.Cause(ctx).Error()}
		}
		begun, cancel := context.WithCancel(t.Context())
		for n := range maxJobs {
			if refused := mail.start(begun, prepared(n), run); refused != "" {
				t.Fatal(refused)
			}
			if refused := mail.start(begun, prepared(n), run); refused != "agent/job-same" {
				t.Errorf("the same job again: %q", refused)
			}
		}
		if refused := mail.start(begun, prepared(99), run); refused != "agent/job-many" {
			t.Errorf("one too many: %q", refused)
		}
		cancel() // the turn and the connection end, the jobs do not
		synctest.Wait()
		if running != maxJobs || mail.Keep(time.Now()) == 0 {
			t.Errorf("%d jobs run", running)
		}
		mail.Close()
		if running != 0 || len(mail.take()) != maxJobs {
			t.Errorf("%d jobs run after the end", running)
		}
		if refused := mail.start(t.Context(), prepared(1), run); refused != "agent/job-stopping" {
			t.Errorf("a job after the end: %q", refused)
		}
	})
}

// host is a conversation that may be over.
type host struct {
	feature.Host
	texts   *prompts.Set
	over    bool
	told    []feature.Announcement
	results map[string]string
}

func (h *host) Env() feature.Env {
	return feature.Env{Texts: h.texts, Log: slog.New(slog.DiscardHandler)}
}
func (h *host) Lang() text.Lang { return text.English }
func (h *host) Ended() bool     { return h.over }
func (h *host) Post(f func()) {
	if !h.over {
		f()
	}
}
func (h *host) SetResult(id, result string) { h.results[id] = result }
func (h *host) Announce(a feature.Announcement) (uint64, error) {
	h.told = append(h.told, a)
	return 1, nil
}

// TestLate: a control that fails is told, unless the connection had ended before.
func TestLate(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	failed := func(id string) (router.Prepared, mcp.ActionResponse) {
		p := router.Prepared{Offer: router.Offer{Tool: mcp.Tool{Name: "self.lamp.turn_on"}}, Call: mcp.Call{ID: id}}
		p.Info.Language = "en"
		return p, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "It broke."}
	}
	h := &host{texts: set, results: map[string]string{}}
	c, ok := Feature{}.Attach(h, nil).(*calls)
	if !ok {
		t.Fatal("another instance")
	}
	c.Late(failed("a"))
	if len(h.told) != 1 || !h.told[0].Owed || !strings.Contains(h.told[0].Text, "turn on the lamp") || h.results["a"] == "" {
		t.Errorf("told %+v, results %q", h.told, h.results)
	}
	h.over = true
	c.Late(failed("b"))
	state := c.Detach()
	if len(h.told) != 1 || state.Keep(time.Now()) == 0 {
		t.Errorf("told %+v, and what came late is lost", h.told)
	}
	next := &host{texts: set, results: map[string]string{}}
	if in := (Feature{}).Attach(next, state); in.Expects(time.Now()) {
		t.Error("it was not taken in")
	}
	if len(next.told) != 0 || next.results["b"] == "" {
		t.Errorf("told %+v, results %q", next.told, next.results)
	}
}
