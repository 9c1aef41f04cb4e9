package web

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestClient sends what it is asked to under the path of the base, and reads what comes.
func TestClient(t *testing.T) {
	var asked, body string
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		asked, body, header = r.Method+" "+r.RequestURI, string(raw), r.Header
		switch r.URL.Path {
		case "/api/made":
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"a":1}`)
		case "/api/refused":
			w.WriteHeader(http.StatusPaymentRequired)
			fmt.Fprint(w, `{"reason":"no money"}`+strings.Repeat(" ", maxRefusal))
		case "/api/deep":
			fmt.Fprint(w, strings.Repeat("[", 1000))
		default:
			fmt.Fprint(w, `not json`)
		}
	}))
	defer server.Close()
	c, err := NewClient(ClientOptions{Base: server.URL + "/api/", Headers: map[string]string{"Authorization": "Bearer k"}, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got struct{ A int }
	if err := c.JSON(t.Context(), Request{Path: "/made", Body: map[string]string{"q": "北京"}}, &got); err != nil || got.A != 1 || asked != "POST /api/made" || body != `{"q":"北京"}` || header.Get("Authorization") != "Bearer k" || header.Get("Content-Type") != "application/json" {
		t.Errorf("%+v, %v, asked %s %s %v", got, err, asked, body, header)
	}
	err = c.JSON(t.Context(), Request{Path: "/refused", Query: url.Values{"q": {"a b"}}}, &got)
	if status, ok := errors.AsType[StatusError](err); !ok || status != 402 || asked != "GET /api/refused?q=a+b" || !strings.HasPrefix(string(Refusal(err)), `{"reason":"no money"}`) || len(Refusal(err)) != maxRefusal {
		t.Errorf("%v %q, asked %s", err, Refusal(err), asked)
	}
	for _, path := range []string{"/deep", "/text"} {
		if err := c.JSON(t.Context(), Request{Path: path}, &got); !errors.Is(err, ErrJSON) || Refusal(err) != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, base := range []string{"", "example.org", "ftp://example.org", "http://", "http://a:b@example.org", "http://a b"} {
		if _, err := NewClient(ClientOptions{Base: base}); err == nil || strings.Contains(err.Error(), "a:b") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestFeed reads what the kinds of feeds say of an item.
func TestFeed(t *testing.T) {
	for name, body := range map[string]string{
		"RSS":  `<rss xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><item><title>One</title><link>https://example.org/1</link><description>short</description><content:encoded><![CDATA[<p>the <b>whole</b> story</p>]]></content:encoded><pubDate>Tue, 24 Nov 2026 07:04:00 GMT</pubDate></item></channel></rss>`,
		"Atom": `<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>One</title><link rel="alternate" href="https://example.org/1"/><summary>short</summary><content type="html">&lt;p&gt;the whole story&lt;/p&gt;</content><published>2026-11-24T07:04:00Z</published></entry></feed>`,
	} {
		items, err := Feed([]byte(body), "application/xml; charset=utf-8", 5, 100)
		if err != nil || len(items) != 1 || items[0].Title != "One" || items[0].About != "the whole story" || items[0].Link != "https://example.org/1" || items[0].At.UTC().Format("02 15:04") != "24 07:04" {
			t.Errorf("%s: %+v, %v", name, items, err)
		}
	}
	items, err := Feed([]byte("<rss><item><title>x</title><link>javascript:alert(1)</link></item></rss>"), "", 5, 100)
	if err != nil || len(items) != 1 || items[0].Link != "" {
		t.Errorf("a link that is no address: %+v, %v", items, err)
	}
	for _, body := range []string{"", "x", "<!doctype html><html>", "<rss></rss>", "\x00"} {
		if items, err := Feed([]byte(body), "", 5, 100); err == nil {
			t.Errorf("%q: %v", body, items)
		}
	}
}
