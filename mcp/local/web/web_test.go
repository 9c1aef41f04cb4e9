package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/nearby"
	"xiaozhi/internal/outbound"
)

// page is a Page of a test server: httptest listens on a loopback address,
// which the configured URL names.
func page(t *testing.T, o Options, handler http.HandlerFunc) *Page {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	o.URL = server.URL + o.URL
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFetch(t *testing.T) {
	const wttr = `{"current_condition":[{"temp_C":"21","weatherDesc":[{"value":"Sunny"}]}],"weather":[{"date":"2026-11-21","maxtempC":24},{"date":"2026-11-22","maxtempC":19.5}],"nothing":null}`
	const rss = `<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>
		<item><title>One &amp; only</title><description><![CDATA[<p>It <b>happened</b>&nbsp;again.</p>]]></description></item>
		<item><title>Two</title><description>Two</description></item><item></item><item><description>no title</description></item><item><title>four</title></item></channel></rss>`
	const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>一</title><summary type="html">&lt;i&gt;二&lt;/i&gt;</summary></entry></feed>`
	const rdf = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel><title>x</title></channel><item><title>old</title></item></rdf:RDF>`
	for name, test := range map[string]struct{ body, result, want string }{
		"JSON, a result":  {wttr, "{current_condition.0.weatherDesc.0.value}, {current_condition.0.temp_C} °C; {weather.*.date}: {weather.*.maxtempC}", "Sunny, 21 °C; 2026-11-21; 2026-11-22: 24; 19.5"},
		"JSON, a part":    {wttr, "{weather.1}", `{"date":"2026-11-22","maxtempC":19.5}`},
		"JSON, all of it": {`{"a": 12345678901234567890}`, "", `{"a":12345678901234567890}`},
		"JSON, a list":    {`[{"t":"a"},{"t":"b"},{"x":1}]`, "{*.t}", "a; b"},
		"JSON, half":      {wttr, "{gone}{nothing}{weather.9.date}{weather.x}{current_condition.0.temp_C}", "21"},
		"text":            {"  Sunny +21°C\n", "", "Sunny +21°C"},
		"text, not UTF-8": {"Sunny \xff", "", "Sunny \uFFFD"},
		"RSS":             {rss, "", "1. One & only: It happened again.\n2. Two\n3. no title"},
		"Atom":            {atom, "", "1. 一: 二"},
		"RDF":             {rdf, "", "1. old"},
		"BOM":             {"\ufeff" + rdf, "", "1. old"},
	} {
		p := page(t, Options{URL: "/", Result: test.result, Items: 3}, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, test.body) })
		got, err := p.Fetch(t.Context(), nil)
		if err != nil || got != test.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, test.want)
		}
	}
}

func TestFetchErrors(t *testing.T) {
	for name, test := range map[string]struct {
		status       int
		body, result string
		want         string
	}{
		"not found":     {404, "x", "", "the service answered 404 Not Found"},
		"no content":    {204, "", "", "the service answered 204 No Content"},
		"empty":         {200, " \n", "", "the page is empty"},
		"HTML":          {200, "<!DOCTYPE html><html><body>hi", "", errHTML.Error()},
		"HTML, bare":    {200, "<html><body>hi</body></html>", "", errHTML.Error()},
		"no feed":       {200, "<a><b/></a>", "", errFeed.Error()},
		"broken feed":   {200, "<rss><channel><item><title>x", "", ""},
		"broken JSON":   {200, `{"a":`, "", "the page is no JSON that can be read"},
		"deep JSON":     {200, strings.Repeat("[", 100000), "", "the page is no JSON that can be read"},
		"another JSON":  {200, `{"error":"no key"}`, "{temp}", errResult.Error()},
		"too large":     {200, strings.Repeat("x", maxBody+1), "", ErrTooLarge.Error()},
		"other charset": {200, `<?xml version="1.0" encoding="gb2312"?><rss></rss>`, "", errFeed.Error()},
	} {
		p := page(t, Options{URL: "/", Result: test.result}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.body)
		})
		got, err := p.Fetch(t.Context(), nil)
		if test.want == "" && err == nil {
			continue
		}
		if err == nil || test.want != "" && err.Error() != test.want {
			t.Errorf("%s: %q, %v, want %s", name, got, err, test.want)
		}
	}
}

func TestValuesInTheURL(t *testing.T) {
	var asked string
	var header http.Header
	p := page(t, Options{URL: "/v1/{city}/x?q={city}&lang={language}", Headers: map[string]string{"X-Key": "k", "User-Agent": "me"}}, func(w http.ResponseWriter, r *http.Request) {
		asked, header = r.RequestURI, r.Header
		fmt.Fprint(w, "ok")
	})
	if got := strings.Join(p.Names(), " "); got != "city language" {
		t.Errorf("names %q", got)
	}
	for city, want := range map[string]string{
		"北京":                 "/v1/%E5%8C%97%E4%BA%AC/x?q=%E5%8C%97%E4%BA%AC&lang=zh",
		"a/../b?c=d#e&f=g h": "/v1/a%2F..%2Fb%3Fc=d%23e&f=g%20h/x?q=a%2F..%2Fb%3Fc%3Dd%23e%26f%3Dg+h&lang=zh",
		"":                   "/v1//x?q=&lang=zh",
		"{language}":         "/v1/%7Blanguage%7D/x?q=%7Blanguage%7D&lang=zh",
	} {
		if _, err := p.Fetch(t.Context(), map[string]string{"city": city, "language": "zh"}); err != nil || asked != want {
			t.Errorf("%q: asked for %s, %v, want %s", city, asked, err, want)
		}
	}
	if header.Get("X-Key") != "k" || header.Get("User-Agent") != "me" {
		t.Errorf("headers %v", header)
	}
	for _, city := range []string{"..", ".", "a\r\nb", strings.Repeat("x", 300)} {
		asked = ""
		if _, err := p.Fetch(t.Context(), map[string]string{"city": city}); err == nil || asked != "" {
			t.Errorf("%q: asked for %q, %v", city, asked, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("another host was asked")
		fmt.Fprint(w, "secret")
	}))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	p := page(t, Options{URL: "/{to}"}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/end":
			fmt.Fprint(w, "fine")
		case "/host":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/port":
			http.Redirect(w, r, other.URL, http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	})
	if got, err := p.Fetch(t.Context(), map[string]string{"to": "here"}); err != nil || got != "fine" {
		t.Errorf("a redirect on the host: %q, %v", got, err)
	}
	for _, to := range []string{"host", "port", "file"} {
		if got, err := p.Fetch(t.Context(), map[string]string{"to": to}); !errors.Is(err, ErrElsewhere) {
			t.Errorf("%s: %q, %v", to, got, err)
		}
	}
	if got, err := p.Fetch(t.Context(), map[string]string{"to": "loop"}); err == nil || !strings.Contains(err.Error(), "too many redirects") {
		t.Errorf("a loop: %q, %v", got, err)
	}
}

// TestDowngrade: a page over TLS is not followed into the open.
func TestDowngrade(t *testing.T) {
	p, err := NewClient(ClientOptions{Base: "https://example.org"})
	if err != nil {
		t.Fatal(err)
	}
	from, to := &http.Request{URL: &url.URL{Scheme: "https", Host: "example.org"}}, &http.Request{URL: &url.URL{Scheme: "http", Host: "example.org"}}
	if err := p.redirect(to, []*http.Request{from}); !errors.Is(err, ErrElsewhere) {
		t.Errorf("from https to http: %v", err)
	}
	if err := p.redirect(from, []*http.Request{to}); err != nil {
		t.Errorf("from http to https: %v", err)
	}
}

// TestInternal: a public name that leads inside is not connected to.
func TestInternal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("an internal address was asked") }))
	defer server.Close()
	c, err := NewClient(ClientOptions{Base: "http://weather.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	transport, ok := c.http.Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	dial := transport.DialContext
	for _, address := range []string{strings.TrimPrefix(server.URL, "http://"), "[::1]:1", "10.1.2.3:80", "169.254.169.254:80", "[fe80::1]:80", "[::ffff:127.0.0.1]:80"} {
		conn, err := dial(t.Context(), "tcp", address)
		if err == nil {
			conn.Close()
		}
		if !errors.Is(err, ErrInternal) {
			t.Errorf("%s: %v, want ErrInternal", address, err)
		}
	}
	for text, want := range map[string]bool{
		"127.0.0.1": true, "10.0.0.1": true, "172.16.0.1": true, "192.168.1.1": true, "100.64.0.1": true, "0.0.0.0": true, "169.254.0.1": true, "224.0.0.1": true, "255.255.255.255": true,
		"::1": true, "fc00::1": true, "fe80::1": true, "64:ff9b::7f00:1": true, "2002:7f00:1::": true, "::": true, "8.8.8.8": false, "2606:4700::1": false, "172.32.0.1": false,
	} {
		if got := nearby.NotPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("NotPublic(%s) = %v", text, got)
		}
	}
	for host, want := range map[string]bool{
		"localhost": true, "nas": true, "nas.local": true, "weather.lan": true, "192.168.1.5": true, "::1": true, "wttr.in": false, "8.8.8.8": false, "local.example.org": false,
	} {
		if got := outbound.NamesHome(host); got != want {
			t.Errorf("NamesHome(%s) = %v", host, got)
		}
	}
}

func TestSlow(t *testing.T) {
	release := make(chan struct{})
	p := page(t, Options{URL: "/?key=secret"}, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Fetch(ctx, nil); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "secret") {
		t.Errorf("given up: %v", err)
	}
	p.client.http.Timeout = time.Nanosecond
	if _, err := p.Fetch(t.Context(), nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("too late: %v", err)
	}
}

func TestNewErrors(t *testing.T) {
	for _, o := range []Options{
		{},
		{URL: "wttr.in"},
		{URL: "ftp://wttr.in/"},
		{URL: "http://"},
		{URL: "http://user:pass@wttr.in/"},
		{URL: "http://{city}.example.org/"},
		{URL: "http://wttr.in:{city}/"},
		{URL: "http://wttr.in/%zz"},
		{URL: "http://wttr.in/", Result: "nothing"},
		{URL: "file:///etc/passwd"},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "pass@") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"c"}]}`, "<rss><channel><item><title>x</title></item></channel></rss>", "plain", "<feed><entry/></feed>", `[[[["`, "<!DOCTYPE html>"} {
		f.Add(s, "{a.1.b}{*}")
	}
	f.Fuzz(func(t *testing.T, body, result string) {
		p := &Page{options: Options{Result: result, Items: 5, Cut: 100}}
		text, err := p.text([]byte(body))
		if err == nil && len(Cut(text, 100)) > 100 {
			t.Errorf("%q is %d bytes", text, len(text))
		}
	})
}
