package external

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// TestHeaders go to the server with each request, and nowhere else; nothing of
// what is secret is logged.
func TestHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		p := newPipeNet()
		peer := streamable(t, tools(t))
		p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer sesame1" || r.URL.Query().Get("key") != "querykey" {
				http.Error(w, "who are you, querykey?", http.StatusUnauthorized)
				return
			}
			peer.ServeHTTP(w, r)
		}))
		e := Entry{Type: "http", URL: "http://tools.test/mcp?key=querykey", Headers: map[string]Text{"Authorization": "Bearer sesame1"}}
		s := dialled(config(t, e), p, ServerOptions{Log: log.logger()})
		running(t, s)
		says(t, s, "echo", "you said hi")
		e.Headers["Authorization"] = "Bearer other99"
		away := dialled(config(t, e), p, ServerOptions{Log: log.logger()})
		running(t, away)
		if away.IsReady() {
			t.Error("ready with a wrong token")
		}
		_ = p.Close()
		p.cut()
		later(time.Minute)
		log.has(t, "mcp server is away", "Unauthorized", "cannot be reached")
		for _, secret := range []string{"querykey", "sesame1", "other99"} {
			if strings.Contains(log.String(), secret) {
				t.Errorf("the log shows %s:\n%s", secret, log.String())
			}
		}
	})
}

// TestLostOnTheWeb: the tools of a server that went down go within two seconds,
// though nobody calls it, and come back with it.
func TestLostOnTheWeb(t *testing.T) {
	t.Run("modern", func(t *testing.T) { lostOnTheWeb(t, "auto", modern) })
	t.Run("legacy", func(t *testing.T) { lostOnTheWeb(t, "legacy", streamable) })
}

func lostOnTheWeb(t *testing.T, protocol string, serve func(*testing.T, *sdk.Server) http.Handler) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipeNet()
		var down atomic.Bool
		peer := serve(t, tools(t))
		p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				panic(http.ErrAbortHandler)
			}
			peer.ServeHTTP(w, r)
		}))
		s := dialled(config(t, Entry{URL: "http://tools.test/mcp", Protocol: protocol}), p, ServerOptions{})
		running(t, s)
		later(time.Minute)
		down.Store(true)
		p.cut()
		later(2 * time.Second)
		if s.IsReady() || s.HasTool("echo") {
			t.Error("it still has tools")
		}
		down.Store(false)
		later(10 * time.Second)
		says(t, s, "echo", "you said hi")
	})
}

// TestOnlyItsHost: a server can send us nowhere else, by redirect or endpoint.
func TestOnlyItsHost(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
		},
		"endpoint": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: endpoint\ndata: http://127.0.0.1:9/admin\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log record
			p := newPipeNet()
			asked := map[string]int{}
			p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked[r.Host]++
				handler(w, r)
			}))
			s := dialled(config(t, Entry{URL: "http://tools.test/sse"}), p, ServerOptions{Log: log.logger()})
			running(t, s)
			later(time.Second)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			log.has(t, errElsewhere.Error())
			if len(asked) != 1 || asked["tools.test"] == 0 {
				t.Errorf("%s: hosts asked: %v", name, asked)
			}
		})
	}
}

// TestGuessedTransport: what is not streamable HTTP is tried as SSE, and with the
// older handshake before that.
func TestGuessedTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		p := newPipeNet()
		events := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return tools(t) }, nil)
		p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.URL.RawQuery == "" {
				http.Error(w, "no", http.StatusMethodNotAllowed)
				return
			}
			events.ServeHTTP(w, r)
		}))
		s := dialled(config(t, Entry{URL: "http://tools.test/old"}), p, ServerOptions{Log: log.logger()})
		running(t, s)
		says(t, s, "echo", "you said hi")
		log.has(t, "transport=sse")
	})
}

// TestSilentOnTheWeb: a server that hangs at what it does not know is tried anew.
func TestSilentOnTheWeb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		p := newPipeNet()
		peer := streamable(t, tools(t))
		p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), "server/discover") {
				<-r.Context().Done()
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			peer.ServeHTTP(w, r)
		}))
		s := dialled(config(t, Entry{Type: "http", URL: "http://tools.test/mcp"}), p, ServerOptions{Log: log.logger()})
		running(t, s)
		if s.IsReady() {
			t.Fatal("ready too soon")
		}
		later(probeLimit)
		says(t, s, "echo", "you said hi")
		log.has(t, "protocol=2025-11-25")
	})
}

// noisy lets a handler's event streams begin with, and be full of, events that
// are no messages.
type noisy struct {
	http.ResponseWriter
	streams bool
}

const noise = "event: connected\ndata: {\"type\":\"connected\"}\n\ndata: {\"type\":\"ping\"}\n\nevent: ping\ndata\n\n: comment\n\nretry\n\ndata: hello\n\n"

func (n *noisy) WriteHeader(status int) {
	n.ResponseWriter.WriteHeader(status)
	if strings.Contains(n.Header().Get("Content-Type"), "event-stream") {
		n.streams = true
		fmt.Fprint(n.ResponseWriter, noise)
	}
}

func (n *noisy) Write(p []byte) (int, error) {
	if !n.streams && strings.Contains(n.Header().Get("Content-Type"), "event-stream") {
		n.WriteHeader(http.StatusOK)
	}
	size, err := n.ResponseWriter.Write(p)
	if n.streams && strings.HasSuffix(string(p), "\n\n") {
		fmt.Fprint(n.ResponseWriter, noise)
	}
	return size, err
}

func (n *noisy) Flush() { n.ResponseWriter.(http.Flusher).Flush() }

// TestForeignEvents: pings and greetings that are events do not end a session.
func TestForeignEvents(t *testing.T) {
	for _, e := range []Entry{{URL: "http://tools.test/sse"}, {URL: "http://tools.test/mcp"}, {URL: "http://tools.test/mcp", Protocol: "legacy"}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPipeNet()
			var peer http.Handler = sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return tools(t) }, nil)
			if strings.HasSuffix(e.URL, "/mcp") {
				peer = streamable(t, tools(t))
			}
			p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { peer.ServeHTTP(&noisy{ResponseWriter: w}, r) }))
			s := dialled(config(t, e), p, ServerOptions{})
			running(t, s)
			for range 3 {
				says(t, s, "echo", "you said hi")
			}
			later(5 * time.Minute)
			says(t, s, "echo", "you said hi")
		})
	}
}

func TestEvents(t *testing.T) {
	const message = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for in, want := range map[string]string{
		"event: message\r\ndata: " + message + "\r\n\r\n":                    "event: message\ndata: " + message + "\n\n",
		"data:" + message + "\n\n" + "data: x\n\n":                           "data: " + message + "\n\n",
		"data: {\"jsonrpc\":\"2.0\",\ndata:  \"method\":\"a\"}\n\n":          "data: {\"jsonrpc\":\"2.0\",\ndata:  \"method\":\"a\"}\n\n",
		"id: 7\nretry: 100\n\n":                                              "id: 7\nretry: 100\n\n",
		"id: 7\ndata\n\n":                                                    "id: 7\ndata: \n\n", // a stream is primed so (MCP 2025-11-25)
		"id: 8\nretry: 500\ndata: \n\n":                                      "id: 8\nretry: 500\ndata: \n\n",
		"data\n\n":                                                           "",
		"data: " + strings.Repeat("[", 5000) + "\n\ndata: " + message + "\n": "data: " + message + "\n\n",
		"": "",
	} {
		for _, r := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in))} {
			got, err := io.ReadAll(newEvents(io.NopCloser(r), false))
			if err != nil || string(got) != want {
				t.Errorf("%.60q: %.80q, %v; want %.80q", in, got, err, want)
			}
		}
	}
	got, err := io.ReadAll(newEvents(io.NopCloser(strings.NewReader("data: "+message+"\n\nevent: endpoint\n\nevent: endpoint\ndata: /m\n\nevent: endpoint\ndata: /n\n\nid: 7\ndata\n\n")), true))
	if err != nil || string(got) != "event: endpoint\ndata: /m\n\n" {
		t.Errorf("%q, %v", got, err)
	}
	_, err = io.ReadAll(newEvents(io.NopCloser(io.MultiReader(strings.NewReader("data: "), forever{})), false))
	if !errors.Is(err, errLongEvent) {
		t.Errorf("an endless event: %v", err)
	}
}

// forever is a line without an end.
type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestHugeAnswer: an answer that is too long, or too deep, ends the session, not us.
func TestHugeAnswer(t *testing.T) {
	for _, body := range []string{strings.Repeat("x", maxFrame+1), strings.Repeat("[", 1<<20)} {
		synctest.Test(t, func(t *testing.T) {
			p := newPipeNet()
			var armed atomic.Bool
			peer := streamable(t, tools(t))
			p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if armed.Load() && r.Method == http.MethodPost {
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, body)
					return
				}
				peer.ServeHTTP(w, r)
			}))
			s := dialled(config(t, Entry{URL: "http://tools.test/mcp", Type: "http"}), p, ServerOptions{})
			running(t, s)
			armed.Store(true)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := s.CallTool(ctx, "echo", nil); err == nil || errors.Is(err, mcp.ErrNoTool) {
				t.Errorf("the call: %v", err)
			}
		})
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(noise), true)
	f.Add([]byte("event: endpoint\ndata: /m\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"), true)
	f.Add([]byte("data: {\"jsonrpc\":\"2.0\",\rdata\n\n"), false)
	f.Fuzz(func(t *testing.T, data []byte, endpoint bool) {
		out, err := io.ReadAll(newEvents(io.NopCloser(strings.NewReader(string(data))), endpoint))
		if err != nil && !errors.Is(err, errLongEvent) {
			t.Fatal(err)
		}
		again, err := io.ReadAll(newEvents(io.NopCloser(strings.NewReader(string(out))), endpoint))
		if err != nil || string(again) != string(out) {
			t.Fatalf("%q is %q when it is filtered again, %v", out, again, err)
		}
	})
}

// TestReservedCodes: the SDK takes an error with its own codes for the end.
func TestReservedCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, peer := newPipeNet(), tools(t)
		addTool(peer, "closing", func(context.Context, string) (*sdk.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: codeClientClosing, Message: "the shop is closed"}
		})
		p.serve(t, streamable(t, peer))
		s := dialled(config(t, Entry{URL: "http://tools.test/mcp"}), p, ServerOptions{})
		running(t, s)
		if _, err := s.CallTool(t.Context(), "closing", nil); !reported(err, "the shop is closed") {
			t.Errorf("%v", err)
		}
		says(t, s, "echo", "you said hi")
	})
}

// TestTiredStream: a server, or a proxy before it, that ends the stream of
// changes after a while costs nothing but a new connection.
func TestTiredStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streams atomic.Int32
		p, peer := newPipeNet(), modern(t, tools(t))
		p.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Mcp-Method") == "subscriptions/listen" {
				streams.Add(1)
				ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
				defer cancel()
				r = r.WithContext(ctx)
			}
			peer.ServeHTTP(w, r)
		}))
		s := dialled(config(t, Entry{URL: "http://tools.test/mcp"}), p, ServerOptions{})
		running(t, s)
		for range 10 {
			says(t, s, "echo", "you said hi")
			later(30 * time.Second)
		}
		if n := streams.Load(); n < 3 || n > 7 {
			t.Errorf("%d streams in 5 minutes", n)
		}
	})
}
