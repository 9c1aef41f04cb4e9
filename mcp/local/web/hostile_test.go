package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// TestEndless: a page without an end, as it is or packed, is given up at its
// limit and costs no memory of its own size.
func TestEndless(t *testing.T) {
	var bomb bytes.Buffer
	packed, err := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	for range 24 {
		if _, err := packed.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat("news ", 1000)); err != nil {
					return
				}
			}
		},
		"a gzip bomb": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb.Bytes())
		},
	} {
		p := page(t, Options{URL: "/"}, answer)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := p.Fetch(t.Context(), nil)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %d bytes, %v, want too large", name, len(got), err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("%s cost %d MiB", name, used>>20)
		}
	}
}

// TestNeverReady: neither headers nor a body that do not come hold a call longer
// than its time, and the error does not tell the key in the URL.
func TestNeverReady(t *testing.T) {
	gone := make(chan struct{}, 2)
	for name, head := range map[string]string{
		"no headers":   "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n",
		"half a body":  "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
		"half a chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf",
	} {
		p := page(t, Options{URL: "/?key=secret", Timeout: 50 * time.Millisecond}, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(head)); err == nil {
				_, _ = conn.Read(make([]byte, 1)) // until the other side gives up
			}
			gone <- struct{}{}
		})
		got, err := p.Fetch(t.Context(), nil)
		<-gone
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestBrokenAnswers: what is no HTTP, lies about its packing or has endless
// headers is an error.
func TestBrokenAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"no HTTP":        "SSH-2.0-OpenSSH_9.6\r\n",
		"nothing":        "",
		"no gzip":        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\nplain",
		"cut off":        "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"a\":1}",
		"endless header": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\nok",
		"a bad chunk":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"a picture":      "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 16\r\n\r\n\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"part of it":     "HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nok",
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte(answer))
			_ = conn.Close()
		}()
		p, err := New(Options{URL: "http://" + listener.Addr().String() + "/"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.Fetch(t.Context(), nil); err == nil {
			t.Errorf("%s: %q", name, got)
		}
		_ = listener.Close()
		<-done
	}
}

// TestRedirectInside: no redirect leads to the server's own network, to a file
// or to another port, however it is written.
func TestRedirectInside(t *testing.T) {
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("an inner service was asked")
		fmt.Fprint(w, "secret")
	}))
	defer secret.Close()
	port := secret.URL[strings.LastIndex(secret.URL, ":"):]
	for _, to := range []string{
		"http://169.254.169.254/latest/meta-data/", "http://[::1]" + port + "/", "http://[::ffff:127.0.0.1]" + port + "/", "http://localhost" + port + "/", "http://127.1" + port + "/", "http://2130706433" + port + "/", "http://0" + port + "/",
		"http://127.0.0.1" + port + "/", "//127.0.0.1" + port + "/", "http://user@127.0.0.1" + port + "/", "file:///etc/passwd", "gopher://127.0.0.1" + port + "/", "data:text/plain,hi", "http:///etc/passwd", "http://127.0.0.1@evil.example/",
	} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			p := page(t, Options{URL: "/"}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to)
				w.WriteHeader(code)
			})
			if got, err := p.Fetch(t.Context(), nil); err == nil {
				t.Errorf("%d to %s: %q", code, to, got)
			}
		}
	}
}

// TestNameThatLeadsInside: the address is looked at after its name was resolved,
// for every address of it and for every name that only looks like an address.
func TestNameThatLeadsInside(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("an inner service was asked") }))
	defer server.Close()
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	p, err := New(Options{URL: "http://weather.example.org" + port + "/", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	transport, ok := p.client.http.Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	dial := transport.DialContext
	for _, resolved := range []string{"localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]", "[::ffff:10.0.0.1]"} {
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, resolved+port) // what the name server says
		}
		if got, err := p.Fetch(t.Context(), nil); !errors.Is(err, ErrInternal) {
			t.Errorf("%s: %q, %v, want ErrInternal", resolved, got, err)
		}
	}
}

// TestCharsets: Chinese pages in the older encodings are read; what is in
// another one is an error, not a row of question marks.
func TestCharsets(t *testing.T) {
	gbk := func(text string) string {
		out, err := simplifiedchinese.GBK.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, test := range map[string]struct{ contentType, body, result, want string }{
		"GBK text":          {"text/plain; charset=GBK", gbk("北京：晴 21℃"), "", "北京：晴 21℃"},
		"GB2312 JSON":       {`application/json; charset="gb2312"`, gbk(`{"now":"多云"}`), "{now}", "多云"},
		"GBK feed":          {"text/xml", `<?xml version="1.0" encoding="gb2312"?>` + gbk(`<rss><channel><item><title>新闻一</title></item></channel></rss>`), "", "1. 新闻一"},
		"GBK feed, twice":   {"text/xml; charset=gbk", `<?xml version="1.0" encoding="gbk"?>` + gbk(`<rss><channel><item><title>新闻一</title></item></channel></rss>`), "", "1. 新闻一"},
		"UTF-8, called GBK": {"text/plain; charset=gbk", "晴", "", "晴"},
		"Latin-1":           {"text/plain; charset=ISO-8859-1", "Caf\xe9 21\xb0", "", "Café 21°"},
		"UTF-8":             {"text/plain; charset=utf-8", "晴", "", "晴"},
		"no charset":        {"text/plain", "晴", "", "晴"},
		"odd content type":  {";;;", "晴", "", "晴"},
		"called HTML":       {"text/html; charset=utf-8", `{"a":1}`, "{a}", "1"},
		"unknown":           {"text/plain; charset=EBCDIC", "\xc1\xc2", "", ""},
		"unknown feed":      {"text/xml", `<?xml version="1.0" encoding="koi8-r"?><rss><channel><item><title>` + "\xf4" + `</title></item></channel></rss>`, "", ""},
		"UTF-16":            {"text/plain", "\xff\xfef\x00o\x00o\x00", "", ""},
		"a ZIP":             {"application/json", "PK\x03\x04\x14\x00\x00\x00", "", ""},
	} {
		p := page(t, Options{URL: "/", Result: test.result}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", test.contentType)
			fmt.Fprint(w, test.body)
		})
		got, err := p.Fetch(t.Context(), nil)
		if (err == nil) != (test.want != "") || got != test.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
}

// TestCut: what is told ends at a whole sign, within its limit.
func TestCut(t *testing.T) {
	for limit := range 12 {
		p := page(t, Options{URL: "/", Cut: limit + 3}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "天气晴朗微风") })
		got, err := p.Fetch(t.Context(), nil)
		if err != nil || len(got) > limit+3 || !strings.HasPrefix("天气晴朗微风", strings.TrimSuffix(got, "…")) {
			t.Errorf("cut at %d: %q, %v", limit+3, got, err)
		}
	}
}
