package device

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/rawjson"
)

// connected starts a client of d and waits until its tools are listed.
func connected(t *testing.T, d *FakeDevice, o Options) *Client {
	t.Helper()
	c := d.Client(o)
	if err := c.Start(t.Context()); err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	synctest.Wait()
	return c
}

func toolNames(tools []mcp.Tool) string {
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	return strings.Join(names, " ")
}

// pass lets d of the bubble's time go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestClientInitialize(t *testing.T) {
	tests := map[string]struct {
		vision *Vision
		want   string
	}{
		"vision":       {&Vision{URL: "http://192.168.1.10:8003/mcp/vision/explain", Token: "vis_19ab"}, `{"vision":{"token":"vis_19ab","url":"http://192.168.1.10:8003/mcp/vision/explain"}}`},
		"no token":     {&Vision{URL: "http://192.168.1.10/v"}, `{"vision":{"url":"http://192.168.1.10/v"}}`},
		"no vision":    {nil, `{}`},
		"empty vision": {&Vision{}, `{}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewFakeDevice(t)
				c := connected(t, d, Options{Vision: test.vision, Lists: NewListCache("0.1.0")})
				all := d.Requests("")
				if len(all) != 4 || all[0].Method != methodInitialize || all[1].Method != "notifications/initialized" ||
					all[2].Method != methodListTools || all[3].Method != methodListTools {
					t.Fatalf("the device got %+v", all)
				}
				var params struct {
					ProtocolVersion string
					Capabilities    any
					ClientInfo      struct{ Name, Version string }
				}
				if err := json.Unmarshal(all[0].Params, &params); err != nil {
					t.Fatal(err)
				}
				caps, _ := json.Marshal(params.Capabilities)
				if params.ProtocolVersion != "2024-11-05" || string(caps) != test.want ||
					params.ClientInfo.Name != "xiaozhi" || params.ClientInfo.Version != "0.1.0" {
					t.Errorf("initialize params: %s", all[0].Params)
				}
				if got := string(all[2].Params); got != `{"withUserTools":true}` {
					t.Errorf("first tools/list params: %s", got)
				}
				if got := string(all[3].Params); got != `{"cursor":"p1","withUserTools":true}` {
					t.Errorf("second tools/list params: %s", got)
				}
				if got, want := c.ServerInfo(), (ServerInfo{"fake-board", "2.4.2", "2024-11-05"}); got != want {
					t.Errorf("ServerInfo = %+v, want %+v", got, want)
				}
			})
		})
	}
}

func TestClientAnswersDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		connected(t, d, Options{})
		d.Say(`{"jsonrpc":"2.0","id":"x7","method":"sampling/createMessage","params":{}}`)
		d.Say(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)
		d.Say(`{"jsonrpc":"2.0","method":"notifications/state","params":{"a":1}}`)
		synctest.Wait()
		var got []string
		for _, r := range d.Requests("reply") {
			got = append(got, string(r.Params))
		}
		want := `{"jsonrpc":"2.0","id":"x7","error":{"code":-32601,"message":"Method not found"}}|{"jsonrpc":"2.0","id":8,"result":{}}`
		if strings.Join(got, "|") != want {
			t.Errorf("replies: %s", got)
		}
		if n := d.Logged("device notification ignored"); n != 1 {
			t.Errorf("%d notifications ignored, want 1", n)
		}
	})
}

// TestClientDeliverNeverWaits: with nobody reading, the queue takes what it
// says and counts the rest.
func TestClientDeliverNeverWaits(t *testing.T) {
	c := New(Options{})
	for range maxQueue + 10 {
		c.Deliver(json.RawMessage(`{}`))
	}
	if n := c.dropped.Load(); n != 10 {
		t.Errorf("%d dropped by number, want 10", n)
	}
	c = New(Options{})
	big := bytes.Repeat([]byte(" "), rawjson.MaxSize)
	for range 6 {
		c.Deliver(big)
	}
	c.Deliver(append(big, ' '))
	if n := c.dropped.Load(); n != 3 || c.inbox.bytes.Load() > maxQueued {
		t.Errorf("%d dropped by size, want 3; %d bytes queued", n, c.inbox.bytes.Load())
	}
}

func TestClientOwnsPayload(t *testing.T) {
	c := New(Options{})
	payload := []byte(`{"id":1}`)
	c.Deliver(payload)
	copy(payload, "XXXXXXXX")
	if got := <-c.inbox.payloads; string(*got) != `{"id":1}` {
		t.Errorf("the queue holds %s", got)
	}
}

// TestClientLateReply: what comes after its time-out is logged, harms nobody,
// and the device was told under the id that it knows.
func TestClientLateReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := NewFakeDevice(t)
		c := connected(t, d, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.CallTool(ctx, "self.slow", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("CallTool: %v", err)
		}
		synctest.Wait()
		call := d.Requests("tools/call")[0]
		cancelled := d.Requests(methodCancelled)
		if len(cancelled) != 1 || !strings.Contains(string(cancelled[0].Params), fmt.Sprintf(`"requestId":%d`, call.ID)) {
			t.Errorf("cancelled: %+v, want id %d", cancelled, call.ID)
		}
		pass(3 * time.Second)
		d.Say(ReplyTo(call, `{"content":[]}`))
		d.Say(ReplyTo(call, `{"content":[]}`))
		synctest.Wait()
		if n := strings.Count(log.String(), "too late"); n != 1 || !strings.Contains(log.String(), "took=4s") {
			t.Errorf("log: %s", log.String())
		}
		if got, err := c.CallTool(t.Context(), "self.echo", map[string]any{"text": "a"}); err != nil || got != `{"text":"a"}` {
			t.Errorf("the next call: %v, %v", got, err)
		}
	})
}

// TestClientForgetsGivenUp: requests that are never answered do not pile up.
func TestClientForgetsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, NewFakeDevice(t), Options{})
		for range 3 * maxLate {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := c.CallTool(ctx, "self.slow", nil)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		l := c.live.link
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.pending) != maxLate || len(l.late) != maxLate {
			t.Errorf("%d pending, %d late, want %d", len(l.pending), len(l.late), maxLate)
		}
	})
}

func TestClientSendFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := connected(t, d, Options{})
		d.Refuse = errors.New("queue is full")
		if _, err := c.CallTool(t.Context(), "self.echo", nil); !errors.Is(err, d.Refuse) {
			t.Errorf("CallTool: %v, want the error of Send", err)
		}
		d.Refuse = nil
		if got, err := c.CallTool(t.Context(), "self.echo", nil); err != nil || got != "{}" {
			t.Errorf("the session did not survive: %v, %v", got, err)
		}
		_, err := c.CallTool(t.Context(), "self.echo", map[string]any{"text": strings.Repeat("x", mcp.MaxSend)})
		if err == nil || !strings.Contains(err.Error(), "over the 7168") {
			t.Errorf("an oversized call: %v", err)
		}
		if n := len(c.live.link.pending); n != 0 {
			t.Errorf("%d requests pending after they were not sent", n)
		}
	})
}

func TestClientConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connected(t, NewFakeDevice(t), Options{})
		const calls = 100 // ids come back in any order
		errs := make(chan error, calls)
		places := make(chan struct{}, maxQueue) // this device answers at once, and no more than that may wait
		for i := range calls {
			places <- struct{}{}
			go func() {
				got, err := c.CallTool(t.Context(), "self.echo", map[string]any{"text": fmt.Sprint(i)})
				if want := fmt.Sprintf(`{"text":"%d"}`, i); err == nil && got != want {
					err = fmt.Errorf("got %v, want %s", got, want)
				}
				errs <- err
				<-places
			}()
		}
		for range calls {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestClientContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		c := d.Client(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if c.IsReady() || c.HasTool("self.echo") {
			t.Error("still ready after its context ended")
		}
		if _, err := c.CallTool(t.Context(), "self.echo", nil); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("CallTool: %v", err)
		}
		d.Say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	})
}

func TestClientStopDuringInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewFakeDevice(t)
		d.Answer = func(FakeRequest) ([]string, bool) { return nil, true }
		c := connected(t, d, Options{})
		began := time.Now()
		if err := c.Stop(); err != nil || time.Since(began) != 0 {
			t.Errorf("Stop: %v after %v", err, time.Since(began))
		}
	})
}

func TestClientStartErrors(t *testing.T) {
	if err := New(Options{}).Start(t.Context()); err == nil {
		t.Error("Start without Send: no error")
	}
	c := NewFakeDevice(t).Client(Options{})
	if err := c.Stop(); err != nil {
		t.Errorf("Stop before Start: %v", err)
	}
	if err := c.Start(t.Context()); !errors.Is(err, mcp.ErrClosed) {
		t.Errorf("Start after Stop: %v", err)
	}
}

func TestNextIDStaysInRange(t *testing.T) {
	c := New(Options{})
	c.ids.Store(maxID - 1)
	if a, b := c.nextID(), c.nextID(); a != maxID || b != 1 {
		t.Errorf("ids %d, %d, want %d, 1", a, b, maxID)
	}
}

func TestVisionHidesItsToken(t *testing.T) {
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "vision", Vision{URL: "http://h/v", Token: "secret"})
	if got := log.String(); strings.Contains(got, "secret") || !strings.Contains(got, "http://h/v") {
		t.Errorf("log: %s", got)
	}
}
