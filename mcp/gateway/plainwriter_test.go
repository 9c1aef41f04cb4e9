package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// stuckWriter is an answer whose client reads nothing: a write ends when its time is up.
type stuckWriter struct{ http.ResponseWriter }

func (stuckWriter) Write([]byte) (int, error) {
	time.Sleep(writeTime)
	return 0, errors.New("timeout")
}

// TestStuckStream: writes to a stream that lasts never wait, and a client that
// reads none of them is hung up on; one that reads gets all of them, in order.
func TestStuckStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var hungUp atomic.Int32
		p := plainly(stuckWriter{httptest.NewRecorder()}, catalog.Caller{Owner: true}, rpcMessage{})
		p.lasts(func() { hungUp.Add(1) })
		p.WriteHeader(http.StatusOK)
		for range maxNews {
			_, _ = p.Write([]byte("x"))
		}
		if time.Since(began) > 0 || hungUp.Load() > 0 {
			t.Errorf("%s, hung up %d times", time.Since(began), hungUp.Load())
		}
		time.Sleep(writeTime + time.Second)
		synctest.Wait()
		if hungUp.Load() != 1 {
			t.Errorf("hung up %d times", hungUp.Load())
		}
		p.stop()
		if took := time.Since(began); took > writeTime+time.Second {
			t.Errorf("the end took %s", took)
		}

		w := httptest.NewRecorder()
		p = plainly(w, catalog.Caller{Owner: true}, rpcMessage{})
		p.lasts(func() { t.Error("hung up on one that reads") })
		p.WriteHeader(http.StatusOK)
		p.Flush()
		synctest.Wait()
		if !w.Flushed {
			t.Error("the head waits")
		}
		for _, text := range []string{"a", "b", "c"} {
			_, _ = p.Write([]byte(text))
			p.Flush()
		}
		p.stop()
		if got := w.Body.String(); got != "abc" {
			t.Errorf("%q", got)
		}
	})
}

// TestSessionsWithoutEvents: a client that does not say that it reads events gets
// JSON from a session too, as a Python script reads it; one that does gets events.
func TestSessionsWithoutEvents(t *testing.T) {
	r := newRig(t, nil)
	if err := r.Registry().Add(catalog.Tool{Name: "tells", Handle: func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1, Total: 2})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "told"}}}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	const begin = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	const call = `{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"tells","_meta":{"progressToken":1}}}`
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}`
	for _, accept := range []string{"", "*/*", "application/json", "application/json, text/event-stream"} {
		a := r.rpc("/api/mcp/jsonrpc", begin, "Accept: "+accept)
		session := []string{"Mcp-Session-Id: " + a.header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version: 2025-03-26", "Accept: " + accept}
		answers := []answer{
			a, r.rpc("/api/mcp/jsonrpc", call, session...),
			r.rpc("/api/mcp/jsonrpc", `[`+call+`,{"jsonrpc":"2.0","id":2,"method":"ping"}]`, session...),
			r.rpc("/api/mcp/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list", "Accept: "+accept),
		}
		events := strings.Contains(accept, "event-stream")
		for i, a := range answers {
			kind := a.header.Get("Content-Type")
			if a.status != 200 || events != (kind == "text/event-stream") || events == json.Valid([]byte(a.body)) {
				t.Errorf("%q, %d: %d %s %.100s", accept, i, a.status, kind, a.body)
			}
		}
		if told := strings.Contains(answers[1].body, "notifications/progress"); told != events || !strings.Contains(answers[1].body, `"told"`) {
			t.Errorf("%q: %s", accept, answers[1].body)
		}
		if !events {
			if id := field(t, answers[1].body, "id"); id != "c" {
				t.Errorf("id %v", id)
			}
			if got := strings.Count(answers[2].body, `"jsonrpc"`); got != 2 || !strings.HasPrefix(answers[2].body, "[") {
				t.Errorf("batch: %s", answers[2].body)
			}
		}
	}
}

// TestErrorOfStream: an error of the SDK in plain text is one of JSON-RPC, also
// where a stream was to last.
func TestErrorOfStream(t *testing.T) {
	w := httptest.NewRecorder()
	p := plainly(w, catalog.Caller{Owner: true}, rpcMessage{ID: []byte("7")})
	p.lasts(func() { t.Error("hung up") })
	http.Error(p, "session not found", http.StatusNotFound)
	p.stop()
	if got := w.Body.String(); w.Code != 404 || !strings.Contains(got, `"id":7,"error":{"code":-32001,"message":"session not found"}`) {
		t.Errorf("%d %s", w.Code, got)
	}
}
