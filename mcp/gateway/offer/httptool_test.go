package offer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/secret"
)

// lampFile is a file as a user writes it; HOST is replaced.
const lampFile = `
name: home.lamp
description: Turns a lamp on or off. 开关灯。
schema:
  type: object
  properties:
    room: {type: string}
    on: {type: boolean}
    note: {type: string}
  required: [room, "on"]
request:
  url: "http://HOST/rooms/{room}/lamp?note={note}"
  headers: {X-Key: "${LAMP_KEY}", X-Room: "{room}"}
  body: '{"on": {on}, "room": {room}, "note": {note}}'
result: "{state.name} is {state.on}; {lamps.*.watts} W"
`

func variables() secret.Sources {
	return secret.Sources{Variable: func(name string) (string, bool) { return "k3y", name == "LAMP_KEY" }}
}

// TestHTTPTool: the request is what the file says, with the arguments escaped in
// each place as they must be, and the result what the template makes of the answer.
func TestHTTPTool(t *testing.T) {
	var got *http.Request
	var sent string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got, sent = r, string(body)
		_, _ = io.WriteString(w, `{"state":{"name":"Lamp","on":true},"lamps":[{"watts":5},{"watts":7}]}`)
	}))
	defer web.Close()
	tools, err := readToolFile(t.Context(), []byte(strings.ReplaceAll(lampFile, "HOST", web.Listener.Addr().String())), variables())
	if err != nil || len(tools) != 1 || tools[0].outward().Name != "lamp" {
		t.Fatalf("%v, %v", tools, err)
	}
	run := offered(t, tools...)
	run("home.lamp", `{"room":"a/b c?","on":true,"note":"\"x\"&y=1\r\nEvil: 1"}`).want(t, "Lamp is true; 5, 7 W")
	if got.Method != "POST" || got.URL.EscapedPath() != "/rooms/a%2Fb%20c%3F/lamp" || got.URL.Query().Get("note") != "\"x\"&y=1\r\nEvil: 1" || got.Header.Get("X-Key") != "k3y" || got.Header.Get("Evil") != "" {
		t.Errorf("request %s %s %v", got.Method, got.URL, got.Header)
	}
	var body struct {
		On   bool
		Room string
		Note string
	}
	if err := json.Unmarshal([]byte(sent), &body); err != nil || !body.On || body.Room != "a/b c?" || !strings.HasPrefix(body.Note, `"x"`) {
		t.Errorf("body %s: %v", sent, err)
	}
	for _, room := range []string{".", ".."} {
		if a := run("home.lamp", `{"room":"`+room+`","on":true}`); !a.failed {
			t.Errorf("room %s: %+v of %s", room, a, got.URL)
		}
	}
	if a := run("home.lamp", `{"room":"x"}`); !strings.Contains(a.invalid, "on") {
		t.Errorf("an argument that is missing: %+v", a)
	}
}

// TestHTTPToolTrouble: what the other side does wrong is an error in words,
// without the address; a redirect to another host is not followed.
func TestHTTPToolTrouble(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/broken":
			http.Error(w, "no lamp here", http.StatusTeapot)
		case "/away":
			http.Redirect(w, r, "http://192.0.2.1/secret", http.StatusFound)
		case "/hang":
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, "plain text")
		}
	}))
	defer web.Close()
	for path, want := range map[string]string{"/broken": "HTTP 418: no lamp here", "/away": "HTTP 302", "/hang": "deadline", "/text": "no JSON"} {
		tools, err := readToolFile(t.Context(), []byte("name: x\ntimeout: 200ms\nrequest: {url: 'http://"+web.Listener.Addr().String()+path+"?key=s3cret'}\nresult: '{a}'"), variables())
		if err != nil {
			t.Fatal(err)
		}
		if path == "/hang" {
			want = "no answer in time"
		}
		if a := offered(t, tools...)("x", ""); !a.failed || !strings.Contains(a.text, want) || strings.Contains(a.text, "s3cret") {
			t.Errorf("%s: %+v, want %s", path, a, want)
		}
	}
}

// TestHTTPToolWrong: a file that is wrong says what and where.
func TestHTTPToolWrong(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    "EOF",
		`{}`:                                  `"name" or "tools" is missing`,
		"name: x\nurl: y":                     "field url not found",
		`name: x`:                             "request.url is no address",
		"name: x\nrequest: {url: 'ftp://h/'}": "request.url is no address",
		"name: x\nrequest: {url: 'http://{a}.h/'}":                                       "cannot choose the host",
		"name: x\nrequest: {url: 'http://h/${NO}'}":                                      "NO is not set",
		"name: x\nrequest: {url: 'http://h/', method: TRACE}":                            "none of GET",
		"name: 灯\nrequest: {url: 'http://h/'}":                                           "letters, digits",
		"name: device-1.x\nrequest: {url: 'http://h/'}":                                  "those of devices",
		"name: x\nschema: {type: string}\nrequest: {url: 'http://h/'}":                   `"type":"object"`,
		"name: x\nkind: order\nrequest: {url: 'http://h/'}":                              "neither control nor query",
		"tools: [{name: a, request: {url: 'http://h/'}}, {name: b, request: {url: ''}}]": "tool 2 (b)",
	} {
		if _, err := readToolFile(t.Context(), []byte(text), variables()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestToolsFolder: tools of the folder come and go with their files, and a file
// that was broken leaves what it held before.
func TestToolsFolder(t *testing.T) {
	dir := t.TempDir()
	registry := catalog.NewRegistry(router.Gate{})
	var log bytes.Buffer
	f := NewFiles(dir, variables(), slog.New(slog.NewTextHandler(&log, nil)))
	f.taken = func(p *catalog.Part) { registry.Set(catalog.PartFiles, p) }
	view := viewOf(registry)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f.look(t.Context())
	}
	there := func(name string) bool {
		_, ok := view.Tool(name)
		return ok
	}
	write("a.yaml", "name: home.one\nrequest: {url: 'http://127.0.0.1:1/'}")
	write("notes.txt", "name: home.three")
	if !there("home.one") || there("home.three") {
		t.Error("the first tool is missing, or a file that is none of tools was read")
	}
	write("a.yaml", "name: home.one\nrequest: {url: 'nonsense'}")
	if !there("home.one") || !strings.Contains(log.String(), "file of tools is wrong") {
		t.Errorf("the tool has gone with a mistake; log: %s", &log)
	}
	write("a.yaml", "tools:\n  - {name: home.two, request: {url: 'http://127.0.0.1:1/'}}")
	if !there("home.two") || there("home.one") {
		t.Error("no other tool is in its place")
	}
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	if f.look(t.Context()); there("home.two") {
		t.Error("the tool outlived its file")
	}
}

// TestFilesInTalk: the model of a speaker is offered the tools of files too, each as its file says, and a change
// of a file counts from the next look at them.
func TestFilesInTalk(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			http.Error(w, "no lamp here", http.StatusTeapot)
			return
		}
		_, _ = io.WriteString(w, r.Method+" "+r.URL.RequestURI())
	}))
	defer web.Close()
	path := filepath.Join(t.TempDir(), "a.yaml")
	f := NewFiles(filepath.Dir(path), variables(), nil)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "HOST", "http://"+web.Listener.Addr().String())), 0o600); err != nil {
			t.Fatal(err)
		}
		f.look(t.Context())
	}
	box := router.New(router.Options{Rules: router.Rules{Deny: []string{"file/home.hidden"}, Confirm: []string{"home.door"}}}, f)
	defer box.Close()
	offers := func() (out []string) {
		for _, o := range box.Offers() {
			out = append(out, fmt.Sprintf("%s %s %v", o.LLMName, o.Kind, o.Consent))
		}
		return out
	}
	write(`tools:
  - {name: home.set_lamp, request: {url: "HOST/lamp?on={on}"}, schema: {properties: {"on": {type: boolean}}, required: ["on"]}}
  - {name: home.heat, read_only: true, request: {url: "HOST/heat"}}
  - {name: home.door, kind: query, request: {url: "HOST/door"}}
  - {name: wipe, destructive: true, kind: control, request: {url: "HOST/broken"}}
  - {name: home.hidden, request: {url: "HOST/"}}
  - {name: home.broken, request: {url: "HOST/broken"}}
`)
	want := []string{"home_set_lamp control false", "home_heat query false", "home_door query true", "wipe control true", "home_broken query false"}
	if got := offers(); !slices.Equal(got, want) {
		t.Errorf("offers %q, want %q", got, want)
	}
	call := func(name, arguments string) string {
		p, refused := box.Prepare(mcp.Call{Name: name, Arguments: arguments})
		if refused != nil {
			return mcp.ResultText(*refused)
		}
		return mcp.ResultText(box.Run(t.Context(), p))
	}
	for _, c := range [][3]string{{"home_set_lamp", `{"on":true}`, "GET /lamp?on=true"}, {"home_broken", "", "HTTP 418: no lamp here"}, {"home_set_lamp", "{}", "on"}} {
		if got := call(c[0], c[1]); !strings.Contains(got, c[2]) {
			t.Errorf("%s %s: %q, want %q", c[0], c[1], got, c[2])
		}
	}
	write(`{name: home.other, request: {url: "HOST/"}}`)
	if got := offers(); !slices.Equal(got, []string{"home_other query false"}) {
		t.Errorf("after the change: %q", got)
	}
}

// FuzzToolFile: no file of tools brings the server down.
func FuzzToolFile(f *testing.F) {
	f.Add([]byte(lampFile))
	f.Add([]byte("tools: [{name: a, schema: {type: object, properties: {x: {$ref: '#'}}}, request: {url: 'http://h/{x}'}}]"))
	f.Add([]byte("name: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) { _, _ = readToolFile(t.Context(), data, variables()) })
}
