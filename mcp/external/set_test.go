package external

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// folk is a network with a server at each of several paths, whose one tool is
// named like the path.
func folk(t *testing.T, names ...string) *pipeNet {
	t.Helper()
	p, mux := newPipeNet(), http.NewServeMux()
	for _, name := range names {
		s := sdk.NewServer(&sdk.Implementation{Name: name}, nil)
		addTool(s, name, func(context.Context, string) (*sdk.CallToolResult, error) { return words("I am " + name), nil })
		addTool(s, "who", func(context.Context, string) (*sdk.CallToolResult, error) { return words(name), nil })
		mux.Handle("/"+name, websockets(s))
	}
	p.serve(t, mux)
	return p
}

// write changes a file so that its stamp changes too, in the bubble's time.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
}

// sources are the names of a group's sources that are ready.
func sources(g mcp.Group) string {
	var out []string
	for _, s := range g.Sources() {
		if s.IsReady() {
			out = append(out, s.(*Server).Name())
		}
	}
	return strings.Join(out, " ")
}

// TestFile: servers come, change and go with the file; a broken one changes nothing.
func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp_servers.json")
	synctest.Test(t, func(t *testing.T) {
		var log record
		p := folk(t, "a", "b", "c")
		f := NewSet(Options{
			Servers:       map[string]Config{"fixed": config(t, Entry{URL: "ws://h/a"})},
			File:          file,
			ServerOptions: ServerOptions{Log: log.logger(), dial: p.dial},
		})
		running(t, f)
		steps := []struct{ text, want, tools, states string }{
			{"", "fixed", "a who", "fixed settings connected"},
			{`{"mcpServers":{"x.y":{"url":"ws://h/b"}}}`, "fixed x.y", "a who b who", "fixed settings connected, x.y file connected"},
			{`{"mcpServers":{"x.y":{"url":"ws://h/c"},"fixed":{"url":"ws://h/b"}}}`, "fixed x.y", "a who c who", ""},
			{"{\"mcpServers\":{\n\"x.y\":", "fixed x.y", "a who c who", ""},
			{`{"mcpServers":{"x.y":{"url":"soon"},"z":{"url":"ws://h/b"}}}`, "fixed x.y z", "a who c who b who", "fixed settings connected, x.y file connected, z file connected, x.y file left-out"},
			{`{"mcpServers":{"z":{"url":"ws://h/b","disabled":true}}}`, "fixed", "a who", "fixed settings connected"},
			{`{"mcpServers":{"w":{"url":"ws://h/b","deny":["who"]}}}`, "fixed w", "a who b", ""},
		}
		for _, step := range steps {
			write(t, file, step.text)
			later(3 * time.Second)
			if got := sources(f); got != step.want || names(f) != step.tools {
				t.Errorf("%s: servers %q, want %q; tools %q, want %q", step.text, got, step.want, names(f), step.tools)
			}
			var states []string
			for _, now := range f.Statuses() {
				states = append(states, now.Name+" "+now.From+" "+string(now.Phase))
			}
			if got := strings.Join(states, ", "); step.states != "" && got != step.states {
				t.Errorf("%s: states %q, want %q", step.text, got, step.states)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		later(3 * time.Second)
		if got := sources(f); got != "fixed" {
			t.Errorf("without the file: %q", got)
		}
		log.has(t, "line 2, column 6", "the settings count", "mcp server is left out", "no full address")
	})
}

// TestUnchangedServersStay: a change of one is no loss of another.
func TestUnchangedServersStay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp_servers.json")
	synctest.Test(t, func(t *testing.T) {
		p := folk(t, "a", "b")
		f := NewSet(Options{File: file, ServerOptions: ServerOptions{dial: p.dial}})
		write(t, file, `{"mcpServers":{"a":{"url":"ws://h/a","timeout":"1m"}}}`)
		running(t, f)
		before := f.Sources()[0]
		write(t, file, `{"mcpServers":{"a":{"type":"ws","url":"ws://h/a","timeout":60},"b":{"url":"ws://h/b"}}}`)
		later(3 * time.Second)
		after := f.Sources()
		if len(after) != 2 || after[0] != before || !before.IsReady() {
			t.Errorf("servers %q", sources(f))
		}
	})
}

// TestCollisions: a router offers the tools of all servers, by names that are
// always the same, and a call goes to the one it was meant for.
func TestCollisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := folk(t, "a", "b", "c")
		f := NewSet(Options{
			Servers: map[string]Config{
				"2": config(t, Entry{URL: "ws://h/b", Trust: true}), "3": config(t, Entry{URL: "ws://h/c", Trust: true}), "1": config(t, Entry{URL: "ws://h/a", Trust: true}),
			},
			ServerOptions: ServerOptions{dial: p.dial},
		})
		box := router.New(router.Options{Rules: router.Rules{Deny: []string{"b"}}}, f.For("Some-Device"))
		defer box.Close()
		if len(box.Offers()) != 0 {
			t.Error("tools before the start")
		}
		running(t, f)
		for name, want := range map[string]string{"who": "a", "who_2": "b", "who_3": "c", "a": "I am a", "c": "I am c"} {
			prepared, refused := box.Prepare(mcp.Call{Name: name})
			if refused != nil {
				t.Errorf("%s: %v", name, refused.Result)
				continue
			}
			if r := box.Run(t.Context(), prepared); r.Result != want {
				t.Errorf("%s: %v, want %q", name, r.Result, want)
			}
		}
		if offers := box.Offers(); len(offers) != 5 || slices.ContainsFunc(offers, func(o router.Offer) bool { return o.Tool.Name == "b" }) {
			t.Errorf("offers %v", offers)
		}
	})
}

// TestTimesInTalks: the timeout of an entry counts in a talk, a setting counts before it, and a job may take its time.
func TestTimesInTalks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeNet()
		p.serve(t, websockets(tools(t)))
		for name, test := range map[string]struct {
			timeout Text
			times   router.Times
			jobs    []string
			want    time.Duration
		}{
			"none is set":     {"", nil, nil, 15 * time.Second},
			"by the entry":    {"90s", nil, nil, 90 * time.Second},
			"by a setting":    {"90s", router.Times{"external:a/*": 5 * time.Minute}, nil, 5 * time.Minute},
			"a job":           {"", nil, []string{"slow"}, 30 * time.Minute},
			"a job, an entry": {"20s", nil, []string{"slow"}, 30 * time.Minute},
		} {
			f := NewSet(Options{
				Servers:       map[string]Config{"a": config(t, Entry{URL: "ws://h/", Trust: true, Timeout: test.timeout})},
				ServerOptions: ServerOptions{dial: p.dial},
			})
			if err := f.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			box := router.New(router.Options{Times: test.times, Jobs: test.jobs}, f)
			prepared, refused := box.Prepare(mcp.Call{Name: "slow"})
			if refused != nil {
				t.Fatalf("%s: %+v", name, refused)
			}
			run := box.Run
			if prepared.Offer.Job {
				run = box.Detach
			}
			began := time.Now()
			if r := run(t.Context(), prepared); !r.Action.Failed() || time.Since(began) != test.want {
				t.Errorf("%s: %+v after %v, want %v", name, r, time.Since(began), test.want)
			}
			if s := f.Server("a"); !s.IsReady() {
				t.Errorf("%s: the server was left", name)
			}
			box.Close()
			_ = f.Stop()
		}
	})
}

// TestView: the group that one device sees does what a source does, and starts
// and stops nothing.
func TestView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := folk(t, "a")
		f := NewSet(Options{Servers: map[string]Config{"a": config(t, Entry{URL: "ws://h/a"})}, ServerOptions: ServerOptions{dial: p.dial}})
		v := f.For("d")
		if err := v.Start(t.Context()); err != nil || v.IsReady() {
			t.Errorf("%v, ready %v", err, v.IsReady())
		}
		running(t, f)
		says(t, v, "a", "I am a")
		if !v.HasTool("a") || v.HasTool("b") || names(v) != "a who" || !v.IsReady() || v.ResetConnection() != nil || v.Stop() != nil {
			t.Errorf("tools %q", names(v))
		}
		if _, err := v.CallTool(t.Context(), "b", nil); !errors.Is(err, mcp.ErrNoTool) {
			t.Error(err)
		}
		later(time.Second)
		says(t, f, "a", "I am a")
	})
}

// TestSetEndsWithItsContext.
func TestSetEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := folk(t, "a")
		f := NewSet(Options{Servers: map[string]Config{"a": config(t, Entry{URL: "ws://h/a"})}, ServerOptions: ServerOptions{dial: p.dial}})
		ctx, cancel := context.WithCancel(t.Context())
		if err := f.Start(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		says(t, f, "a", "I am a")
		cancel()
		synctest.Wait()
		if f.HasTool("a") || f.IsReady() {
			t.Error("tools after the end")
		}
		if err := f.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestOtherSettings: servers of other settings come, change and go; those of the file stay, and so do those that did not change.
func TestOtherSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp_servers.json")
	synctest.Test(t, func(t *testing.T) {
		p := folk(t, "a", "b", "c")
		f := NewSet(Options{Servers: map[string]Config{"one": config(t, Entry{URL: "ws://h/a"})}, File: file, ServerOptions: ServerOptions{dial: p.dial}})
		write(t, file, `{"mcpServers":{"x":{"url":"ws://h/c"},"two":{"url":"ws://h/c"}}}`)
		running(t, f)
		later(3 * time.Second)
		first := f.Sources()
		for _, step := range []struct {
			ours  map[string]Config
			want  string
			tools string
		}{
			{map[string]Config{"one": config(t, Entry{URL: "ws://h/a"}), "two": config(t, Entry{URL: "ws://h/b"})}, "one two x", "a who b who c who"},
			{map[string]Config{"one": config(t, Entry{URL: "ws://h/a"})}, "one two x", "a who c who c who"},
			{map[string]Config{"one": config(t, Entry{URL: "ws://h/b"})}, "one two x", "b who c who c who"},
			{nil, "two x", "c who c who"},
		} {
			before := f.Sources()[0]
			f.SetServers(step.ours)
			later(3 * time.Second)
			if got := sources(f); got != step.want || names(f) != step.tools {
				t.Errorf("servers %q, want %q; tools %q, want %q", got, step.want, names(f), step.tools)
			}
			if stays := strings.HasPrefix(step.tools, "a "); stays != (f.Sources()[0] == before) {
				t.Errorf("%q: the first one is another", step.want)
			}
		}
		if now := f.Sources(); now[len(now)-1] != first[len(first)-1] {
			t.Error("a server of the file is another one")
		}
		write(t, file, "{")
		later(3 * time.Second)
		f.SetServers(map[string]Config{"one": config(t, Entry{URL: "ws://h/a"})})
		later(3 * time.Second)
		if got := sources(f); got != "one two x" {
			t.Errorf("with a broken file: %q", got)
		}
	})
}
