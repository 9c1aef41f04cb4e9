package external

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/nearby"
)

// plainServer is an MCP server over HTTP that answers each method with a result.
func plainServer(t *testing.T, answers map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || json.Unmarshal(body, &asked) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answer, known := answers[asked.Method]
		switch {
		case asked.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case !known:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"what?"}}`, asked.ID)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, answer)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestTry: a server that is not kept yet is asked once; what it may send is bounded, and link-local addresses are not asked.
func TestTry(t *testing.T) {
	try := func(url string) (Status, error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c, err := Entry{URL: url, Type: "http", Headers: map[string]Text{"Authorization": "Bearer secret-word"}}.Config()
		if err != nil {
			t.Fatal(err)
		}
		now, _, err := Try(ctx, "x", c, ServerOptions{})
		if err != nil && strings.Contains(err.Error(), "secret-word") {
			t.Errorf("the error tells a secret: %v", err)
		}
		return now, err
	}
	good := plainServer(t, map[string]string{"initialize": greeting, "tools/list": `{"tools":[{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}`})
	if now, err := try(good); err != nil || now.Listed != 2 || now.About == "" {
		t.Errorf("%+v, %v", now, err)
	}
	empty := plainServer(t, map[string]string{"initialize": greeting, "tools/list": `{"tools":[]}`})
	if now, err := try(empty); err != nil || now.Listed != 0 || now.Phase != Connected {
		t.Errorf("%+v, %v", now, err)
	}
	huge := plainServer(t, map[string]string{"initialize": greeting, "tools/list": `{"tools":[{"name":"a","description":"` + strings.Repeat("x", 2<<20) + `","inputSchema":{"type":"object"}}]}`})
	if now, err := try(huge); err == nil {
		t.Errorf("2 MiB were taken: %+v", now)
	}
	if now, err := try("http://169.254.1.1:9/mcp"); err == nil || !strings.Contains(err.Error(), "link-local") {
		t.Errorf("%+v, %v", now, err)
	}
	if now, err := try("http://[fe80::1]:9/mcp"); err == nil || !strings.Contains(err.Error(), "link-local") {
		t.Errorf("%+v, %v", now, err)
	}
	if now, err := try("http://127.0.0.1:1/mcp"); err == nil || now.Trouble != Unreachable {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestCarefulServer: a server whose address people typed is not asked where machines find their own settings, also after it
// is kept.
func TestCarefulServer(t *testing.T) {
	s := NewServer("door", Config{Transport: HTTP, URL: "http://169.254.169.254:9/mcp", Careful: true, Timeout: time.Second}, ServerOptions{})
	ended := s.condition.next()
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Stop() }()
	<-ended
	if got := s.Status().Error; !strings.Contains(got, nearby.ErrDoor.Error()) {
		t.Errorf("%q", got)
	}
}
