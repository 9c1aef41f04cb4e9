package gateway

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"xiaozhi/mcp/gateway/catalog"
)

// waiting registers slow.waits, which waits until its call ends, and returns what
// tells of each call that runs and that has ended.
func (r *rig) waiting() (running, ended chan struct{}) {
	r.t.Helper()
	running, ended = make(chan struct{}, 10), make(chan struct{}, 10)
	if err := r.Registry().Add(catalog.Tool{Stream: "slow", Name: "waits", Run: func(ctx context.Context, _ map[string]any) (any, error) {
		running <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return nil, ctx.Err()
	}}); err != nil {
		r.t.Fatal(err)
	}
	return running, ended
}

// TestSessionEnd: it ends the calls of the session, and no others, and does not
// wait until they are over by themselves; afterwards there is no such session.
func TestSessionEnd(t *testing.T) {
	r := newRig(t, nil)
	running, ended := r.waiting()
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mine, other := r.initialize("/api/mcp/jsonrpc"), r.initialize("/api/mcp/jsonrpc")
	for _, id := range []string{mine, other} {
		all.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.server.URL+"/api/mcp/jsonrpc", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow.waits"}}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Mcp-Session-Id", id)
			if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
				resp.Body.Close()
			}
		})
		<-running
	}
	if a := r.do("DELETE", "/api/mcp/jsonrpc/time", "", "Mcp-Session-Id: "+mine); a.status != 404 {
		t.Errorf("by another view: %d %s", a.status, a.body)
	}
	if a := r.do("DELETE", "/api/mcp/jsonrpc", "", "Mcp-Session-Id: "+mine); a.status != 204 {
		t.Errorf("%d %s", a.status, a.body)
	}
	<-ended
	if len(ended) > 0 {
		t.Error("the call of another session has ended too")
	}
	if a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id: "+mine); a.status != 404 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
	if a := r.do("DELETE", "/api/mcp/jsonrpc", "", "Mcp-Session-Id: "+mine); a.status != 404 {
		t.Errorf("again: %d %s", a.status, a.body)
	}
	if a := r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id: "+other); a.status != 200 {
		t.Errorf("another session: %d %s", a.status, a.body)
	}
	r.sessions.mu.Lock()
	defer r.sessions.mu.Unlock()
	if n := len(r.sessions.byID); n != 1 || r.sessions.owned[catalog.Holder{}] != 1 {
		t.Errorf("%d sessions, %v", n, r.sessions.owned)
	}
}

// TestStreamGoesDuringCall: a call that is under way when its stream goes keeps
// no client from hearing of what comes after.
func TestStreamGoesDuringCall(t *testing.T) {
	r := newRig(t, nil)
	running, _ := r.waiting()
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all.Go(func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.server.URL+"/api/mcp/jsonrpc/slow", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow.waits"}}`))
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	})
	<-running
	r.Registry().Remove("slow.waits")
	until(t, "the view to be forgotten", func() bool {
		_, kept := r.views.Kept(catalog.Caller{Owner: true}, "slow")
		return !kept
	})
	r.home.connect(bedroomID, "bedroom", nil)
	r.DeviceChanged(bedroomID)
	until(t, "the device", func() bool {
		return strings.Contains(r.do("GET", "/api/mcp/tools/streams", "").body, "device-246f28aa1003")
	})
}

// TestOpenWhileClosing: a stream or a socket that comes while the gateway closes is
// refused or ended, wherever the end meets it.
func TestOpenWhileClosing(t *testing.T) {
	for range 200 {
		s := newSessions()
		var opened, ended atomic.Int64
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for {
					if _, ok := s.open(catalog.Caller{Token: &catalog.Token{Name: fmt.Sprint(i)}}, func() { ended.Add(1) }); !ok {
						return
					}
					opened.Add(1)
				}
			})
		}
		for opened.Load() < 100 {
			runtime.Gosched()
		}
		s.closeAll()
		if all.Wait(); opened.Load() != ended.Load() {
			t.Fatalf("%d were opened, %d of them ended", opened.Load(), ended.Load())
		}
	}
	s := &socket{}
	s.end() // before it has its connection
	conn := newRig(t, nil).dialSocket("", nil)
	if s.begin(conn) {
		t.Error("a socket that was ended begins")
	}
	if _, _, err := conn.ReadMessage(); err == nil {
		t.Error("its connection is open")
	}
}
