package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// odd is a source whose tools answer in every way that they should not.
type odd struct {
	mcp.Source
	mu    sync.Mutex
	calls []string // the arguments of echo
}

func (o *odd) GetAvailableTools() []mcp.Tool {
	var tools []mcp.Tool
	for _, name := range []string{"echo", "nan", "panic", "wait", "empty"} {
		tools = append(tools, mcp.Tool{Name: name, Schema: json.RawMessage(`{"type":"object"}`), Source: "external:x", Trusted: true})
	}
	return tools
}

func (o *odd) CallTool(ctx context.Context, name string, args map[string]any) (any, error) {
	switch name {
	case "nan":
		return math.NaN(), nil
	case "panic":
		panic("a broken tool")
	case "wait":
		<-ctx.Done()
		return nil, ctx.Err()
	case "empty":
		return nil, nil
	}
	data, err := json.Marshal(args)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, string(data))
	return string(data), err
}

const kitchen = "/api/devices/24:6f:28:aa:10:02/tools/call"

func oddHouse(t *testing.T) (*odd, *router.Router, http.Handler) {
	t.Helper()
	source := &odd{}
	box := router.New(router.Options{}, source)
	t.Cleanup(box.Close)
	return source, box, openAPI(house{box})
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, kitchen, strings.NewReader(body)))
	return w
}

// TestMisuse: a body that is not what is asked for is refused with a reason, and
// nothing is called with less than was sent.
func TestMisuse(t *testing.T) {
	source, _, h := oddHouse(t)
	for body, want := range map[string]string{
		`{"name":"echo"}{"name":"echo"}`:       "something follows",
		`{"name":"echo"} x`:                    "something follows",
		`{"name":"echo","args":{"a":1}}`:       `unknown field \"args\"`,
		`{"tool":"echo"}`:                      `unknown field \"tool\"`,
		`{"arguments":{}}`:                     `no \"name\"`,
		`{"name":["echo"]}`:                    "name",
		`null`:                                 `no \"name\"`,
		`"echo"`:                               "cannot unmarshal",
		`{"name":"echo"`:                       "unexpected EOF",
		`name=echo`:                            "invalid character",
		strings.Repeat(`{"arguments":`, 20000): "",
		`{"name":"echo","arguments":` + "\xff" + `}`:          "invalid character",
		"\ufeff" + `{"name":"echo"}`:                          "invalid character",
		`{"name":"echo"}` + strings.Repeat(" ", maxBody):      "1048576 bytes",
		`{"name":"echo","arguments":{"a":1}}` + "\n\n \t{}\n": "something follows",
	} {
		w := post(h, body)
		if w.Code < 400 || w.Code > 499 || !json.Valid(w.Body.Bytes()) || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%.60q: status %d: %.300s, want %s", body, w.Code, w.Body, want)
		}
	}
	// What is JSON, but no object, is told to be wrong by the router.
	for _, arguments := range []string{`[]`, `"{"`, `7`, `true`, strings.Repeat("[", 5000) + strings.Repeat("]", 5000)} {
		w := post(h, `{"name":"echo","arguments":`+arguments+`}`)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"isError":true`) {
			t.Errorf("arguments %.20s: status %d: %.300s", arguments, w.Code, w.Body)
		}
	}
	if len(source.calls) != 0 {
		t.Errorf("called with %q", source.calls)
	}
	for _, arguments := range []string{``, `,"arguments":null`, `,"arguments":{}`} {
		if w := post(h, `{"name":"echo"`+arguments+`}`); !strings.Contains(w.Body.String(), `"result":"{}"`) {
			t.Errorf("no arguments as %q: %s", arguments, w.Body)
		}
	}
}

// TestBrokenTools: a tool that panics, answers what JSON cannot hold, or
// nothing, gives its caller an answer and leaves the next call alone.
func TestBrokenTools(t *testing.T) {
	_, box, h := oddHouse(t)
	for name, want := range map[string]string{"panic": `"isError":true`, "nan": "error", "empty": `"isError":false`, "echo": `"isError":false`} {
		w := post(h, fmt.Sprintf(`{"name":%q}`, name))
		if !json.Valid(w.Body.Bytes()) || !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "goroutine") {
			t.Errorf("%s: %d %s, want %s", name, w.Code, w.Body, want)
		}
	}
	box.Close() // the device has gone between the look-up and the call
	if w := post(h, `{"name":"echo"}`); !json.Valid(w.Body.Bytes()) || strings.Contains(w.Body.String(), `"isError":false`) {
		t.Errorf("after the device left: %d %s", w.Code, w.Body)
	}
}

// TestCallerLeaves: a caller that goes away takes its waiting call with it.
func TestCallerLeaves(t *testing.T) {
	_, _, h := oddHouse(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r := httptest.NewRequest(http.MethodPost, kitchen, strings.NewReader(`{"name":"wait"}`)).WithContext(ctx)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}()
	cancel()
	<-done
}

// TestManyCallers: each gets its own answer.
func TestManyCallers(t *testing.T) {
	_, _, h := oddHouse(t)
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			w := post(h, fmt.Sprintf(`{"name":"echo","arguments":{"n":%d}}`, i))
			if want := fmt.Sprintf(`{\"n\":%d}`, i); !strings.Contains(w.Body.String(), want) {
				t.Errorf("call %d: %s", i, w.Body)
			}
		})
	}
	callers.Wait()
}

// TestOddPaths: ids that are no ids are answered with 404 and reach nothing.
func TestOddPaths(t *testing.T) {
	_, _, h := oddHouse(t)
	for _, path := range []string{
		"/api/devices/%2e%2e%2f/tools", "/api/devices/%00/tools", "/api/devices/" + strings.Repeat("x", 5000) + "/tools", "/api/devices/24:6f:28:aa:10:02%20/tools", "/api/devices/a%2Fb/tools", "/api/devices/24:6f:28:aa:10:02/tools/", "/api/devices/",
	} {
		w := httptest.NewRecorder()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.ServeHTTP(w, r)
		if w.Code != http.StatusNotFound || !json.Valid(w.Body.Bytes()) || w.Body.Len() > 1000 {
			t.Errorf("%.40s: %d, %d bytes: %.200s", path, w.Code, w.Body.Len(), w.Body)
		}
	}
}

// TestAccessTricks: what is not plainly this machine, or shows two tokens, is
// not let in, and a refused body is not read.
func TestAccessTricks(t *testing.T) {
	for name, header := range map[string]http.Header{
		"a suffix":          {"Origin": {"http://localhost.evil.example"}},
		"a user":            {"Origin": {"http://localhost@evil.example"}},
		"no URL":            {"Origin": {"://"}},
		"a decimal address": {"Origin": {"http://2130706433"}},
	} {
		r := httptest.NewRequest(http.MethodPost, kitchen, unread{t})
		header.Set("Authorization", "Bearer "+ownerToken)
		header.Set("Content-Type", "application/json")
		r.RemoteAddr, r.Host, r.Header = "127.0.0.1:5000", "127.0.0.1:8000", header
		w := httptest.NewRecorder()
		guard := newGuard(Access{}, slog.New(slog.DiscardHandler))
		guard.owner = ownerToken
		guard.before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: let in", name) }), new(deviceAPI).fail).ServeHTTP(w, r)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	tokens := []catalog.Token{{Name: "a", Token: "right"}}
	for _, shown := range []string{"Bearer", "Bearer right right", "Bearer  ", "right", "Bearer RIGHT", "Bearer right,Bearer wrong", "Basic cmlnaHQ="} {
		r := httptest.NewRequest(http.MethodGet, "/api/devices?token=right", unread{t})
		r.Header.Set("Authorization", shown)
		w := httptest.NewRecorder()
		newGuard(Access{Tokens: tokens}, slog.New(slog.DiscardHandler)).before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%q: let in", shown) }), new(deviceAPI).fail).ServeHTTP(w, r)
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", shown, w.Code)
		}
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a refused request was read")
	return 0, io.EOF
}
