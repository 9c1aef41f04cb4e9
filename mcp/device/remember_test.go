package device

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// TestClientRemembersTools: what the device had is offered before
// it says anything, can be called, and gives way to the list that comes.
func TestClientRemembersTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := NewListCache("")
		told := 0
		o := Options{Lists: cache, Device: "aa:bb", OnTools: func() { told++ }}
		first := connected(t, NewFakeDevice(t), o)
		want := toolNames(first.GetAvailableTools())
		_ = first.Stop()
		if first.HasTool("self.echo") {
			t.Error("a device that is gone still has tools")
		}
		if told != 1 {
			t.Errorf("OnTools was called %d times by the first connection", told)
		}
		told = 0

		d, release := NewFakeDevice(t), make(chan struct{})
		d.Pages[1] = `[{"name":"self.new"}]`
		d.Answer = func(r FakeRequest) ([]string, bool) {
			if r.Method == methodInitialize {
				<-release // initialize is answered only after the user has spoken
			}
			return nil, false
		}
		c := d.Client(o)
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer c.Stop()
		if got := toolNames(c.GetAvailableTools()); got != want || !c.HasTool("self.hidden") || c.IsReady() {
			t.Errorf("at once: %q, want %q; ready %v", got, want, c.IsReady())
		}
		answers := make(chan any, 1)
		go func() {
			got, err := c.CallTool(t.Context(), "self.echo", map[string]any{"text": "a"})
			answers <- fmt.Sprint(got, err)
		}()
		synctest.Wait()
		if n := len(d.Requests("tools/call")); n != 0 || len(answers) != 0 {
			t.Errorf("%d calls were sent before the session was there", n)
		}
		close(release)
		synctest.Wait()
		if got := <-answers; got != `{"text":"a"}<nil>` {
			t.Errorf("the call gave %v", got)
		}
		if got := toolNames(c.GetAvailableTools()); got != "self.echo self.slow self.new" || !c.IsReady() {
			t.Errorf("afterwards: %q, ready %v", got, c.IsReady())
		}
		if told != 2 { // of the remembered ones, and of the new ones
			t.Errorf("OnTools was called %d times", told)
		}
	})
}

// TestClientSameListAgain: a device that comes back as it was changes nothing.
func TestClientSameListAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		o := Options{Lists: NewListCache(""), Device: "aa:bb", OnTools: func() { told++ }}
		for range 3 {
			c := connected(t, NewFakeDevice(t), o)
			if !c.IsReady() {
				t.Error("not ready")
			}
			_ = c.Stop()
		}
		if told != 3 { // once for each coming
			t.Errorf("OnTools was called %d times, want 3", told)
		}
	})
}

// TestClientRememberedListStale: a device that cannot list its tools now keeps
// those it had, and each new try asks again.
func TestClientRememberedListStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Lists: NewListCache(""), Device: "aa:bb"}
		first := connected(t, NewFakeDevice(t), o)
		want := toolNames(first.GetAvailableTools())
		_ = first.Stop()
		d, broken := NewFakeDevice(t), `{"error":{"message":"no memory"}}`
		d.Answer = func(r FakeRequest) ([]string, bool) {
			if r.Method != methodListTools || broken == "" || broken == "page 2" && !strings.Contains(string(r.Params), "p1") {
				return nil, false
			}
			return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"message":"no memory"}}`, r.ID)}, true
		}
		c := connected(t, d, o)
		pass(time.Minute)
		if got, n := toolNames(c.GetAvailableTools()), len(d.Requests(methodListTools)); got != want || c.IsReady() || n != 4 {
			t.Errorf("%q, want %q; ready %v; asked %d times", got, want, c.IsReady(), n)
		}
		broken = "page 2" // half a list is no better than the whole old one
		c.Refresh()
		pass(time.Minute)
		if got := toolNames(c.GetAvailableTools()); got != want || !c.IsReady() {
			t.Errorf("with half a list: %q, ready %v", got, c.IsReady())
		}
		broken = ""
		d.Pages = []string{`[{"name":"self.new"}]`}
		c.Refresh()
		synctest.Wait()
		if got := toolNames(c.GetAvailableTools()); got != "self.new" {
			t.Errorf("with a new list: %q", got)
		}
	})
}

// TestClientOtherFirmware: after an update the old tools are not offered.
func TestClientOtherFirmware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Lists: NewListCache(""), Device: "aa:bb"}
		_ = connected(t, NewFakeDevice(t), o).Stop()
		d := NewFakeDevice(t)
		d.Answer = func(r FakeRequest) ([]string, bool) {
			if r.Method == methodListTools {
				return nil, true
			}
			return []string{ReplyTo(r, `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"fake-board","version":"2.5.0"}}`)}, r.Method == methodInitialize
		}
		c := connected(t, d, o)
		if c.HasTool("self.echo") {
			t.Error("the tools of another firmware are offered")
		}
		if _, err := c.CallTool(t.Context(), "self.echo", nil); !errors.Is(err, mcp.ErrNoTool) {
			t.Errorf("CallTool: %v", err)
		}
	})
}

// TestClientRememberedCallEnds: a call of a remembered tool does not wait for ever.
func TestClientRememberedCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Options{Lists: NewListCache(""), Device: "aa:bb"}
		_ = connected(t, NewFakeDevice(t), o).Stop()
		d := NewFakeDevice(t)
		d.Answer = func(FakeRequest) ([]string, bool) { return nil, true }
		c := connected(t, d, o)
		b := router.New(router.Options{}, c)
		defer b.Close()
		began := time.Now()
		if r := b.Run(t.Context(), preparedCall(t, b, "self_echo", "")); r.Action != mcp.ActionTypeError || time.Since(began) != 15*time.Second {
			t.Errorf("%+v after %v", r, time.Since(began))
		}
		time.AfterFunc(time.Second, func() { _ = c.Stop() })
		if r := b.Run(t.Context(), preparedCall(t, b, "self_echo", "")); mcp.ResultText(r) != "tool call failed: self.echo: tool source closed" {
			t.Errorf("as the device leaves: %+v", r)
		}
	})
}

func TestListCacheLimits(t *testing.T) {
	list := func(size int) *[]mcp.Tool { return &[]mcp.Tool{{Name: "a", Description: strings.Repeat("x", size)}} }
	has := func(s *ListCache, id string) bool { _, ok := s.last.Get(id); return ok }

	s := NewListCache("")
	for i := range maxRemembered + 10 {
		s.remember(fmt.Sprint(i), ServerInfo{}, list(1))
		if i == 20 && !has(s, "0") { // used again, so not the oldest any more
			t.Error("0 is forgotten already")
		}
	}
	if n := s.last.Len(); n != maxRemembered || has(s, "5") || has(s, "10") || !has(s, "11") || !has(s, "0") {
		t.Errorf("%d devices remembered; 0 %v 5 %v 10 %v 11 %v", n, has(s, "0"), has(s, "5"), has(s, "10"), has(s, "11"))
	}

	s = NewListCache("")
	for i := range 5 {
		s.remember(fmt.Sprint(i), ServerInfo{}, list(10<<20))
	}
	s.remember("huge", ServerInfo{}, list(maxRememberedBytes))
	if has(s, "huge") || has(s, "1") || !has(s, "2") || !has(s, "4") {
		t.Errorf("huge %v, 1 %v, 2 %v, 4 %v", has(s, "huge"), has(s, "1"), has(s, "2"), has(s, "4"))
	}

	s.remember("", ServerInfo{}, list(1))
	if has(s, "") {
		t.Error("something is remembered of nobody")
	}
}
