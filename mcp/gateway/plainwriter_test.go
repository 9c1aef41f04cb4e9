package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
		p := plainly(stuckWriter{httptest.NewRecorder()}, rpcMessage{})
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
		p = plainly(w, rpcMessage{})
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

// TestErrorOfStream: an error of the SDK in plain text is one of JSON-RPC, also
// where a stream was to last.
func TestErrorOfStream(t *testing.T) {
	w := httptest.NewRecorder()
	p := plainly(w, rpcMessage{ID: []byte("7")})
	p.lasts(func() { t.Error("hung up") })
	http.Error(p, "session not found", http.StatusNotFound)
	p.stop()
	if got := w.Body.String(); w.Code != 404 || !strings.Contains(got, `"id":7,"error":{"code":-32001,"message":"session not found"}`) {
		t.Errorf("%d %s", w.Code, got)
	}
}
