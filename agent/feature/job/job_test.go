package job

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
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
	id      string
	unknown bool
	over    bool
	told    []feature.Announcement
	results map[string]string
}

func (h *host) Env() feature.Env {
	return feature.Env{Texts: h.texts, Log: slog.New(slog.DiscardHandler), Session: wire.Session{DeviceID: h.id, Unknown: h.unknown}}
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

// keeper is an outbox that a test looks into.
type keeper struct {
	broken   bool
	told     []Notice
	promised map[string]Notice
}

func (k *keeper) Tell(n Notice) error {
	if k.broken {
		return errors.New("full")
	}
	k.told = append(k.told, n)
	return nil
}

func (k *keeper) Promise(n Notice) (string, error) {
	if k.broken {
		return "", errors.New("full")
	}
	id := strconv.Itoa(len(k.promised))
	k.promised[id] = n
	return id, nil
}

func (k *keeper) Keep(id string, n Notice) error {
	if _, ok := k.promised[id]; !ok {
		return errors.New("over")
	}
	delete(k.promised, id)
	return k.Tell(n)
}

func failed(id, response string) (router.Prepared, mcp.ActionResponse) {
	p := router.Prepared{Offer: router.Offer{Tool: mcp.Tool{Name: "self.lamp.turn_on"}}, Call: mcp.Call{ID: id}}
	p.Info.Language = "en"
	return p, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "It broke.", Response: response}
}

func attached(t *testing.T, f Feature, h *host, state feature.State) *calls {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	h.texts, h.results = set, map[string]string{}
	c, ok := f.Attach(h, state).(*calls)
	if !ok {
		t.Fatal("another instance")
	}
	return c
}

// TestLate: a control that fails is told, also when the connection had ended before; where nobody knows whether it was done, that is
// said.
func TestLate(t *testing.T) {
	h := &host{}
	c := attached(t, Feature{}, h, nil)
	c.Late(failed("a", ""))
	c.Late(router.Prepared{}, mcp.ActionResponse{Action: mcp.ActionTypeNone})
	if len(h.told) != 1 || !h.told[0].Owed || !h.told[0].Asked || !strings.Contains(h.told[0].Text, "could not turn on the lamp") || h.results["a"] == "" {
		t.Errorf("told %+v, results %q", h.told, h.results)
	}
	h.over = true
	c.Late(failed("b", "the bulb is broken"))
	c.Late(failed("c", "the server is ending the connection"))
	state := c.Detach()
	if len(h.told) != 1 || state.Keep(time.Now()) == 0 {
		t.Errorf("told %+v, and what came late is lost", h.told)
	}
	next := &host{}
	if in := attached(t, Feature{}, next, state); in.Expects(time.Now()) {
		t.Error("it was not taken in")
	}
	if len(next.told) != 2 || !strings.Contains(next.told[0].Text, "the bulb is broken") || !strings.Contains(next.told[1].Text, "I do not know") || next.results["b"] == "" {
		t.Errorf("told %+v, results %q", next.told, next.results)
	}
}

// TestOutbox: what has become of calls is kept in the outbox when it is known, connected or not, and corrects the history later. What
// the outbox does not take is told by the conversation.
func TestOutbox(t *testing.T) {
	out, h := &keeper{promised: map[string]Notice{}}, &host{id: "d"}
	c := attached(t, Feature{Outbox: out}, h, nil)
	c.Late(failed("a", ""))
	h.over = true
	c.Late(failed("b", "the bulb is broken"))
	if len(out.told) != 2 || out.told[1].Device != "d" || !out.told[1].Asked || len(h.told) != 0 {
		t.Errorf("%+v, and %+v", out.told, h.told)
	}
	out.broken = true
	c.Late(failed("c", ""))
	next := &host{id: "d"}
	attached(t, Feature{Outbox: out}, next, c.Detach())
	if len(next.told) != 1 || len(next.results) != 2 {
		t.Errorf("told %+v, results %q", next.told, next.results)
	}
	stranger := &host{id: "d", unknown: true}
	out.broken = false
	attached(t, Feature{Outbox: out}, stranger, nil).Late(failed("d", ""))
	if len(stranger.told) != 1 || len(out.told) != 2 {
		t.Errorf("%+v, and %+v", stranger.told, out.told)
	}
}

// TestPromise: while a job runs the outbox holds what is told if the program ends, and then what became of it.
func TestPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, h := &keeper{promised: map[string]Notice{}}, &host{id: "d"}
		c := attached(t, Feature{Outbox: out}, h, nil)
		p, _ := failed("a", "")
		p.Offer.Tool.Name = "dig_hole"
		done := make(chan struct{})
		if refused := c.mail.start(t.Context(), p, func(context.Context, router.Prepared) mcp.ActionResponse {
			<-done
			return mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: "gold"}
		}); refused != "" {
			t.Fatal(refused)
		}
		synctest.Wait()
		if n := out.promised["0"]; n.Device != "d" || !strings.Contains(n.Text, "restarted") || len(out.told) != 0 {
			t.Errorf("%+v, told %+v", out.promised, out.told)
		}
		close(done)
		c.mail.Close()
		if len(out.promised) != 0 || len(out.told) != 1 || !strings.Contains(out.told[0].Text, "finished") || !strings.Contains(out.told[0].Instruction, "gold") || h.results["a"] != "gold" {
			t.Errorf("%+v, told %+v, results %q", out.promised, out.told, h.results)
		}
	})
}
