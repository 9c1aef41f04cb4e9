package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// TestBargeInTellsTheDevice: the user interrupts a query. The device hears of it
// at once and once only; it stays busy until it answers; the late answer is
// logged and reaches no other call.
func TestBargeInTellsTheDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := NewFakeDevice(t)
		c := connected(t, d, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		b := router.New(router.Options{}, c)
		defer b.Close()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if r := b.Run(ctx, preparedCall(t, b, "self_slow", "")); r.Action != mcp.ActionTypeError || time.Since(began) != 2*time.Second {
			t.Errorf("the interrupted query: %+v after %v", r, time.Since(began))
		}
		synctest.Wait()
		call := d.Requests("tools/call")[0]
		told := d.Requests(methodCancelled)
		if len(told) != 1 || string(told[0].Params) != fmt.Sprintf(`{"requestId":%d,"reason":"the user interrupted"}`, call.ID) {
			t.Errorf("the device was told %+v, want once of id %d", told, call.ID)
		}
		next := make(chan mcp.ActionResponse, 1)
		p := preparedCall(t, b, "self_echo", `{"text":"b"}`)
		go func() { next <- b.Run(t.Context(), p) }()
		pass(time.Second)
		if n := len(d.Requests("tools/call")); n != 1 {
			t.Errorf("%d calls were sent to a busy device", n)
		}
		d.Say(ReplyTo(call, `{"content":[{"type":"text","text":"too late"}]}`))
		if r := <-next; r.Result != `{"text":"b"}` || time.Since(began) != 3*time.Second {
			t.Errorf("the next call: %+v after %v", r, time.Since(began))
		}
		if n := strings.Count(log.String(), "came too late"); n != 1 {
			t.Errorf("%d late replies", n)
		}
		for _, want := range []string{"too late", "tool=self.slow", "took=3s", "late=1s"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %s: %s", want, log.String())
			}
		}
	})
}

// TestBargeInThenSilence: a device that stops as it is told, and so never
// answers, is free again when the call's time is over; it is told once.
func TestBargeInThenSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		b := router.New(router.Options{}, c)
		defer b.Close()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.Run(ctx, preparedCall(t, b, "self_slow", ""))
		if r := b.Run(t.Context(), preparedCall(t, b, "self_echo", `{"text":"b"}`)); r.Result != `{"text":"b"}` || time.Since(began) != 15*time.Second {
			t.Errorf("the next call: %+v after %v", r, time.Since(began))
		}
		synctest.Wait()
		if n := len(d.Requests(methodCancelled)); n != 1 {
			t.Errorf("the device was told %d times", n)
		}
		d.Say(ReplyTo(d.Requests("tools/call")[0], `{"content":[]}`))
		synctest.Wait()
		if late, stray := d.Logged("device reply came too late"), d.Logged("device reply to no request of ours"); late != 1 || stray != 0 {
			t.Errorf("%d late replies, %d to no request", late, stray)
		}
	})
}

// TestControlsAreNotTakenBack: who leaves does not undo what was ordered.
func TestControlsAreNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		b := router.New(router.Options{Kinds: map[string]mcp.Kind{"self.slow": mcp.Control}}, c)
		defer b.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.Run(ctx, preparedCall(t, b, "self_slow", ""))
		pass(time.Second)
		if n := len(d.Requests(methodCancelled)); n != 0 {
			t.Errorf("a control was cancelled %d times", n)
		}
	})
}

// TestAbandonedBeforeSending: a call whose caller is gone is never sent.
func TestAbandonedBeforeSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		gone := &sentCall{}
		c.live.link.abandon(gone)
		_, err := c.live.CallTool(context.WithValue(t.Context(), sentKey{}, gone), nil)
		if err == nil || len(d.Requests("tools/call")) != 0 || len(d.Requests(methodCancelled)) != 0 {
			t.Errorf("error %v, the device got %+v", err, d.Requests(""))
		}
		if n := len(c.live.link.pending); n != 0 {
			t.Errorf("%d requests are pending", n)
		}
	})
}

func TestAfterCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mcp.AfterCaller(t.Context(), func() { t.Error("called without a caller") })()
		caller, leave := context.WithCancel(t.Context())
		stop := mcp.AfterCaller(mcp.WithCaller(t.Context(), caller), func() { t.Error("called after stop") })
		stop()
		running, release := false, make(chan struct{})
		stop = mcp.AfterCaller(mcp.WithCaller(t.Context(), caller), func() { running = true; <-release; running = false })
		leave()
		synctest.Wait()
		if !running {
			t.Error("not called when the caller left")
		}
		time.AfterFunc(time.Second, func() { close(release) })
		stop()
		if running {
			t.Error("stop returned while the function was running")
		}
	})
}

// TestAbandonedSendFails: a connection that takes nothing any more is no harm.
func TestAbandonedSendFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		b := router.New(router.Options{}, c)
		defer b.Close()
		ctx, cancel := context.WithCancel(t.Context())
		wait := b.Begin(ctx, preparedCall(t, b, "self_slow", ""))
		synctest.Wait()
		d.Refuse = errors.New("queue is full")
		cancel()
		if r := wait(); !strings.Contains(mcp.ResultText(r), "given up") {
			t.Errorf("got %+v", r)
		}
		synctest.Wait()
		d.Refuse = nil
		if r := b.Run(t.Context(), preparedCall(t, b, "self_echo", "")); r.Result != "{}" {
			t.Errorf("the next call: %+v", r)
		}
	})
}

func preparedCall(t *testing.T, b *router.Router, name, arguments string) router.Prepared {
	t.Helper()
	p, refused := b.Prepare(mcp.Call{ID: "c1", Name: name, Arguments: arguments})
	if refused != nil {
		t.Fatalf("Prepare(%s): %+v", name, *refused)
	}
	return p
}
