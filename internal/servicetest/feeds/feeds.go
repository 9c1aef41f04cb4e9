// Package feeds is a fake of a web site with feeds: RSS 2.0 at /rss, Atom at /atom, RSS 1.0 in GBK at /rdf.
package feeds

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/encoding/simplifiedchinese"

	"xiaozhi/internal/servicetest"
)

// Item is an entry. About may hold markup.
type Item struct{ Title, About string }

// Fake is the server. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server

	mu    sync.Mutex
	items []Item
}

// New starts the server.
func New(t testing.TB, items ...Item) *Fake {
	t.Helper()
	f := &Fake{items: items}
	f.Server = servicetest.New(t, f.serve, servicetest.WrongKey, servicetest.RateLimited, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

// Publish has these items in all feeds from now on, the newest first.
func (f *Fake) Publish(items ...Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items = items
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
	switch f.Fault() {
	case servicetest.WrongKey: // a page that keeps programs out
		f.Refuse(w, http.StatusForbidden, "<!doctype html><title>Just a moment...</title>", "Content-Type", "text/html")
		return
	case servicetest.RateLimited:
		f.Refuse(w, http.StatusTooManyRequests, "", "Retry-After", "60")
		return
	default:
	}
	f.mu.Lock()
	items := f.items
	f.mu.Unlock()
	kind, body := "application/rss+xml; charset=utf-8", ""
	switch r.URL.Path {
	case "/rss":
		body = rss(items)
	case "/atom":
		kind, body = "application/atom+xml", atom(items)
	case "/rdf":
		encoded, err := simplifiedchinese.GBK.NewEncoder().String(rdf(items))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		kind, body = "text/xml", encoded
	case "/page":
		kind, body = "text/html", "<!doctype html><html><body>News</body></html>"
	default:
		http.NotFound(w, r)
		return
	}
	f.Send(w, r, f.Fault(), servicetest.Reply{Type: kind, Body: []byte(body), Broken: []byte(`<?xml version="1.0"?><rss><chan`), Filler: []byte("<item></item>")})
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a builder takes all
	return b.String()
}

// published returns the time of the n-th item.
func published(n int) time.Time {
	return time.Date(2026, 11, 24, 7, 0, 0, 0, time.UTC).Add(-time.Duration(n) * time.Hour)
}

func rss(items []Item) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel><title>Site</title><link>https://news.example.org</link><description>d</description>`)
	for i, item := range items {
		fmt.Fprintf(&b, `<item><title><![CDATA[%s]]></title><description><![CDATA[%s]]></description><link>https://news.example.org/%d</link><guid isPermaLink="false">%d</guid><pubDate>%s</pubDate><media:thumbnail width="240" url="https://i.example.org/1.jpg"/></item>`,
			item.Title, item.About, i, i, published(i).Format(time.RFC1123Z))
	}
	b.WriteString(`</channel></rss>`)
	return b.String()
}

func atom(items []Item) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>Site</title><id>urn:x</id><updated>2026-11-24T07:00:00Z</updated>`)
	for i, item := range items {
		fmt.Fprintf(&b, `<entry><title type="html">%s</title><link rel="alternate" href="https://news.example.org/%d"/><id>urn:%d</id><updated>%s</updated><content type="html">%s</content></entry>`,
			escaped(escaped(item.Title)), i, i, published(i).Format(time.RFC3339), escaped(item.About))
	}
	b.WriteString(`</feed>`)
	return b.String()
}

func rdf(items []Item) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="gbk"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="x"><title>Site</title></channel>`)
	for i, item := range items {
		fmt.Fprintf(&b, `<item rdf:about="%d"><title>%s</title><description>%s</description><dc:date>%s</dc:date></item>`, i, escaped(item.Title), escaped(item.About), published(i).Format(time.RFC3339))
	}
	b.WriteString(`</rdf:RDF>`)
	return b.String()
}
