package offer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/mcp/secret"
)

// safeOf opens secrets for one host.
type safeOf struct{ host string }

func (s safeOf) Sent(_ context.Context, name, address string) (string, error) {
	if address != s.host {
		return "", errors.New("not for " + address)
	}
	return "{" + name + "}-in-the-safe", nil
}

func (safeOf) Given(context.Context, string, string) (string, error) {
	return "", errors.New("no program")
}

func (s safeOf) Address(context.Context, string) (string, error) {
	return s.host + "/of/{room}?key=in-the-safe", nil
}

// TestHTTPToolSecrets: headers, body and address may be sealed or in files of their own; what is sealed reaches no other
// host than its own, whatever the arguments and the answers are.
func TestHTTPToolSecrets(t *testing.T) {
	var got []string
	note := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.URL.RequestURI()+" "+r.Header.Get("X-Key")+" "+r.Header.Get("X-File")+" "+string(body))
		if r.URL.Path == "/away" {
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
		}
	}
	web, other := httptest.NewServer(http.HandlerFunc(note)), httptest.NewServer(http.HandlerFunc(note))
	defer web.Close()
	defer other.Close()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("in-a-file {room}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	from := secret.Sources{Sealed: safeOf{web.URL}}
	read := func(text string) (func(name, arguments string) answer, error) {
		tools, err := readToolFile(t.Context(), []byte(strings.NewReplacer("WEB", web.URL, "OTHER", other.URL, "FILE", file).Replace(text)), from)
		return offered(t, tools...), err
	}
	run, err := read(`
tools:
- {name: a, schema: {properties: {room: {type: string}}}, request: {url: "WEB/a/{room}", headers: {X-Key: "sealed:lamp"}, headers_file: {X-File: FILE}}}
- {name: b, schema: {properties: {room: {type: string}}}, request: {url: "sealed:url", body_file: FILE, headers: {Content-Type: text/plain}}}
- {name: away, schema: {properties: {to: {type: string}}}, request: {url: "WEB/away?to={to}", headers: {X-Key: "sealed:lamp"}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	run("a", `{"room":"den"}`)
	run("b", `{"room":"den"}`)
	run("away", `{"to":"`+other.URL+`/"}`)
	run("away", `{"to":"`+strings.Replace(web.URL, "http:", "https:", 1)+`/"}`)
	want := []string{"/a/den {lamp}-in-the-safe in-a-file {room} ", "/of/den?key=in-the-safe   in-a-file den"}
	if len(got) != 4 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %q", got)
	}
	for text, want := range map[string]string{
		`{name: x, request: {url: "OTHER/a", headers: {X-Key: "sealed:lamp"}}}`:       "request.headers.X-Key: not for " + other.URL,
		`{name: x, request: {url: "OTHER/a", body: "sealed:lamp"}}`:                   "request.body: not for",
		`{name: x, request: {url: "http://{to}/a", headers: {X-Key: "sealed:lamp"}}}`: "an argument cannot choose the host",
		`{name: x, request: {url: "WEB/", headers_file: {X-Key: "FILE.none"}}}`:       "request.headers.X-Key: open",
		`{name: x, request: {url: "WEB/", headers_file: {X-Key: "${NONE}"}}}`:         "NONE is not set",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "in-the-safe") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A redirect takes the headers along: to the same host only, and never from https to http. Many a device sends the
// other way.
func TestHTTPToolRedirects(t *testing.T) {
	p, err := HTTPRequest{URL: "https://h/"}.compile(t.Context(), secret.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from, to string
		follows  bool
	}{
		{"https://h/", "https://h/x", true}, {"https://h/", "http://h/x", false}, {"https://h/", "https://h:444/x", false},
		{"https://h/", "https://evil/x", false}, {"http://h/", "https://h/x", true}, {"http://h/", "https://evil/x", false},
	} {
		err := p.client.CheckRedirect(httptest.NewRequest(http.MethodGet, c.to, nil), []*http.Request{httptest.NewRequest(http.MethodGet, c.from, nil)})
		if c.follows != (err == nil) {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
}
