package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp/gateway/catalog"
)

// fakeWire is the other side of a talk. A stuck one takes nothing, until its
// writes run out of time.
type fakeWire struct {
	mu    sync.Mutex
	sent  []string
	ended bool
	stuck bool
}

func (w *fakeWire) send(data []byte) error {
	w.mu.Lock()
	stuck, ended := w.stuck, w.ended
	w.sent = append(w.sent, string(data))
	w.mu.Unlock()
	if ended {
		return errWireClosed
	}
	if stuck {
		time.Sleep(writeTime)
		return errWireClosed
	}
	return nil
}

func (w *fakeWire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// got are the messages that hold a text.
func (w *fakeWire) got(text string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.sent), func(m string) bool { return !strings.Contains(m, text) })
}

// talks runs a test in fake time, with a gateway that has the tool "waits".
func talks(t *testing.T, f func(t *testing.T, g *Gateway, dial func(catalog.Token) (*talk, *fakeWire, context.Context))) {
	synctest.Test(t, func(t *testing.T) {
		g := newOwned(Options{})
		defer g.Close()
		if err := g.Registry().Add(catalog.Tool{Name: "waits", Run: func(ctx context.Context, _ map[string]any) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}); err != nil {
			t.Fatal(err)
		}
		var all []*talk
		f(t, g, func(token catalog.Token) (*talk, *fakeWire, context.Context) {
			c := english()
			c.Token = &token
			v, ok := g.views.Of(c, "")
			if !ok {
				t.Fatal("no view")
			}
			w := &fakeWire{}
			k := newTalk(g.front, v, w, nil)
			k.metered = true
			all = append(all, k)
			return k, w, catalog.WithCaller(t.Context(), c)
		})
		for _, k := range all {
			k.close()
		}
	})
}

func (t *talk) mustReceive(tb testing.TB, ctx context.Context, message string) {
	tb.Helper()
	if err := t.receive(ctx, []byte(message)); err != nil {
		tb.Fatal(err)
	}
	synctest.Wait()
}

// english returns a caller in English.
func english() catalog.Caller {
	return catalog.CallerOf(&http.Request{Header: http.Header{"Accept-Language": {"en"}}})
}

// TestFloodOfRequests: no more requests of one connection are under way than there
// are places; further ones wait a moment and are refused with their id, and what
// is no request still gets through.
func TestFloodOfRequests(t *testing.T) {
	talks(t, func(t *testing.T, g *Gateway, dial func(catalog.Token) (*talk, *fakeWire, context.Context)) {
		k, w, ctx := dial(catalog.Token{Name: "a"})
		began := time.Now()
		for i := range maxCalls {
			k.mustReceive(t, ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"waits"}}`, i))
		}
		if len(w.got("")) > 0 || time.Since(began) > 0 {
			t.Fatalf("%d messages after %s", len(w.got("")), time.Since(began))
		}
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":"ping","method":"ping"}`)
		if got := w.got(`"id":"ping","result"`); len(got) != 1 {
			t.Errorf("a request that is no call: %s", got)
		}
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":"more","method":"tools/call","params":{"name":"util.uuid"}}`)
		if got := w.got(`"id":"more"`); len(got) != 1 || !strings.Contains(got[0], "too many requests at the same time") || time.Since(began) != placeTime {
			t.Errorf("%s after %s", got, time.Since(began))
		}
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		if got := w.got(`"id":7,`); len(got) != 0 {
			t.Errorf("what was taken back is answered: %s", got)
		}
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":"more","method":"tools/call","params":{"name":"util.uuid"}}`)
		if got := w.got(`"id":"more","result"`); len(got) != 1 {
			t.Errorf("when there is a place again: %s", w.got("more"))
		}
	})
}

// TestFloodOfLists: a client that asks for long lists and reads none of them has
// only a few of them written for it.
func TestFloodOfLists(t *testing.T) {
	talks(t, func(t *testing.T, g *Gateway, dial func(catalog.Token) (*talk, *fakeWire, context.Context)) {
		k, w, ctx := dial(catalog.Token{Name: "a"})
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":"first","method":"ping"}`)
		w.stuck = true
		for i := range maxAsks {
			k.mustReceive(t, ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i))
		}
		if lists := len(w.got(`"tools":[`)); lists != maxAsks || len(k.asks) != maxAsks {
			t.Fatalf("%d lists, %d places are taken", lists, len(k.asks))
		}
		if err := k.receive(ctx, []byte(`{"jsonrpc":"2.0","id":"more","method":"tools/list"}`)); err == nil {
			t.Error("one more was taken")
		}
		if lists := w.got(`"tools":[`); len(lists) != maxAsks {
			t.Errorf("%d lists", len(lists))
		}
	})
}

// TestSameID: a request with the id of one that is under way is refused, and not
// with that id, which would answer the other one.
func TestSameID(t *testing.T) {
	talks(t, func(t *testing.T, g *Gateway, dial func(catalog.Token) (*talk, *fakeWire, context.Context)) {
		k, w, ctx := dial(catalog.Token{Name: "a"})
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits"}}`)
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`)
		if got := w.got(""); len(got) != 1 || !strings.Contains(got[0], `"id":null,"error":{"code":-32600,"message":"a request of this id is under way: 1`) {
			t.Errorf("%s", got)
		}
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if got := w.got(`"id":1,"result":{}`); len(got) != 1 {
			t.Errorf("when it is over: %s", w.got(""))
		}
	})
}

// TestLateHandshake: the requests of a session that began without a handshake do
// not keep their places when one is made.
func TestLateHandshake(t *testing.T) {
	talks(t, func(t *testing.T, g *Gateway, dial func(catalog.Token) (*talk, *fakeWire, context.Context)) {
		k, w, ctx := dial(catalog.Token{Name: "a"})
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"waits"}}`)
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		if got := w.got(`"protocolVersion":"2025-06-18"`); len(got) != 1 {
			t.Errorf("%s", w.got(""))
		}
		time.Sleep(2 * catalog.CallTimeout)
		synctest.Wait()
		if n := len(k.calls); n != 0 {
			t.Errorf("%d places are taken", n)
		}
	})
}

// TestPostAtTheEnd: what is posted to a stream that has just ended begins nothing.
func TestPostAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newOwned(Options{})
		defer g.Close()
		v, _ := g.views.Of(catalog.Caller{Owner: true}, "")
		k := newTalk(g.front, v, &fakeWire{}, nil)
		k.close()
		if err := k.receive(catalog.WithCaller(t.Context(), catalog.Caller{Owner: true}), []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err == nil {
			t.Error("it was taken")
		}
		if k.session != nil {
			t.Error("a session was begun")
		}
	})
}

// TestStuckClient: one that reads nothing keeps no other from hearing of a
// change, and is hung up on.
func TestStuckClient(t *testing.T) {
	talks(t, func(t *testing.T, g *Gateway, dial func(catalog.Token) (*talk, *fakeWire, context.Context)) {
		var wires []*fakeWire
		for range 3 {
			k, w, ctx := dial(catalog.Token{Name: "a"})
			k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			wires = append(wires, w)
		}
		wires[0].stuck, wires[1].stuck = true, true
		if err := g.Registry().Add(catalog.Tool{Name: "fresh", Run: sum}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := wires[2].got("notifications/tools/list_changed"); len(got) != 1 {
			t.Errorf("after 0.1 s: %s", got)
		}
		time.Sleep(writeTime)
		synctest.Wait()
		for i, want := range []bool{true, true, false} {
			if wires[i].ended != want {
				t.Errorf("client %d: hung up on: %t", i, wires[i].ended)
			}
		}
	})
}

// TestRateOfFrames: each request on a socket counts against the rate of its token,
// and so does each message of a batch.
func TestRateOfFrames(t *testing.T) {
	talks(t, func(t *testing.T, g *Gateway, dial func(catalog.Token) (*talk, *fakeWire, context.Context)) {
		k, w, ctx := dial(catalog.Token{Name: "slow", Rate: 5})
		for i := range 30 {
			k.mustReceive(t, ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		if done, refused := len(w.got(`"result"`)), len(w.got(`"message":"too many requests"`)); done != 10 || refused != 20 {
			t.Errorf("%d done, %d refused", done, refused)
		}
		time.Sleep(time.Second)
		k.mustReceive(t, ctx, `{"jsonrpc":"2.0","id":"later","method":"ping"}`)
		if got := w.got(`"id":"later","result"`); len(got) != 1 {
			t.Errorf("a second later: %s", w.got("later"))
		}
	})
}

// FuzzFrames: no frame brings a connection down, or gets an answer that is no JSON.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"util.hash","arguments":{"data":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":null,"argument":{}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1e0,"method":"ping","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
	} {
		f.Add([]byte(seed))
	}
	g := newOwned(Options{})
	f.Cleanup(g.Close)
	v, _ := g.views.Of(catalog.Caller{Owner: true}, "")
	f.Fuzz(func(t *testing.T, frame []byte) {
		w := &fakeWire{}
		k := newTalk(g.front, v, w, nil)
		ctx, cancel := context.WithCancel(catalog.WithCaller(t.Context(), english()))
		for range 2 { // the second time its id may be in use
			_ = k.receive(ctx, frame)
		}
		cancel()
		k.close()
		for _, answer := range w.got("") {
			if !json.Valid([]byte(answer)) {
				t.Errorf("%q: %q", frame, answer)
			}
		}
	})
}
