package home

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp/local/web"
)

// TestFollow: the things are read again and again, at once when somebody wants it, and after a failure soon.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		h := New(Options{Client: memory(t, &reads), Refresh: time.Minute})
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := h.Start(t.Context()); err != nil {
			t.Errorf("twice: %v", err)
		}
		for _, step := range []struct {
			after time.Duration
			reset bool
			want  int64
		}{{0, false, 1}, {59 * time.Second, false, 1}, {time.Second, false, 2}, {0, true, 3}, {time.Minute, false, 4}} {
			time.Sleep(step.after)
			if step.reset {
				if err := h.ResetConnection(); err != nil {
					t.Error(err)
				}
			}
			synctest.Wait()
			if reads.Load() != step.want {
				t.Errorf("%+v: read %d times", step, reads.Load())
			}
		}
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestFollowFailing: what cannot be read is tried again, less and less often, and was there stays.
func TestFollowFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c, err := web.NewClient(web.ClientOptions{Base: "http://house", Transport: transport(func(*http.Request) (*http.Response, error) {
			asked.Add(1)
			return nil, errors.New("no route")
		})})
		if err != nil {
			t.Fatal(err)
		}
		h := New(Options{Client: c, Refresh: time.Minute})
		h.take(newInventory([]entity{{ID: "light.a", Name: "A"}}, h.o))
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if n := asked.Load(); n < 9 || n > 14 || !h.HasTool(toolSwitch) {
			t.Errorf("asked %d times, ready %v", n, h.IsReady())
		}
		if err := h.Stop(); err != nil {
			t.Error(err)
		}
	})
}
