//lint:file-ignore SA1019 servers still send messages for a log

package external

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/schema"
)

// TestLossAndReturn: what runs fails at once and clearly, the tools go at once,
// and come back with the server.
func TestLossAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		s, cut := piped(t, tools(t), ServerOptions{Log: log.logger()})
		running(t, s)
		failed := make(chan error, 1)
		go func() {
			_, err := s.CallTool(t.Context(), "slow", nil)
			failed <- err
		}()
		synctest.Wait()
		began := time.Now()
		cut()
		if err := <-failed; !errors.Is(err, mcp.ErrClosed) || !strings.Contains(err.Error(), "near has left") {
			t.Errorf("the pending call: %v", err)
		}
		synctest.Wait()
		if took := time.Since(began); took != 0 || s.IsReady() || s.HasTool("echo") {
			t.Errorf("%v after the loss: ready %v", took, s.IsReady())
		}
		if _, err := s.CallTool(t.Context(), "echo", nil); !errors.Is(err, mcp.ErrNoTool) {
			t.Errorf("a call while it is away: %v", err)
		}
		later(1500 * time.Millisecond)
		says(t, s, "echo", "you said hi")
		log.has(t, "mcp server is away", "retry_in=")
	})
}

// TestBackoff: 1 s, doubled up to 60 s, each a fifth more or less.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		var times []time.Duration
		began := time.Now()
		s := newServer("far", Config{}, ServerOptions{})
		s.dialling.ways = []way{{Stdio, "", time.Second}}
		s.dialling.open = func(context.Context, way) (*line, error) {
			dials.Add(1)
			times = append(times, time.Since(began))
			return nil, errors.New("nobody there")
		}
		running(t, s)
		later(10 * time.Minute)
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		want := time.Second
		for i := 1; i < len(times); i++ {
			pause := times[i] - times[i-1]
			if pause < want*8/10 || pause > want*12/10 {
				t.Errorf("pause %d is %v, want %v and a fifth", i, pause, want)
			}
			want = min(2*want, time.Minute)
		}
		if len(times) < 12 || len(times) > 18 {
			t.Errorf("%d tries in 10 minutes", len(times))
		}
	})
}

// TestResetIsAtOnce: nobody waits for a pause after a reset.
func TestResetIsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := piped(t, tools(t), ServerOptions{})
		good := s.dialling.open
		s.dialling.open = func(context.Context, way) (*line, error) { return nil, errors.New("not yet") }
		running(t, s)
		later(20 * time.Second)
		if s.IsReady() {
			t.Fatal("ready")
		}
		s.calls.mu.Lock() // the run goroutine sleeps
		s.dialling.open = good
		s.calls.mu.Unlock()
		if err := s.ResetConnection(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		says(t, s, "echo", "you said hi")
	})
}

func TestListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := tools(t)
		s, _ := piped(t, peer, ServerOptions{})
		running(t, s)
		addTool(peer, "new", func(context.Context, string) (*sdk.CallToolResult, error) { return words("new"), nil })
		peer.RemoveTools("echo")
		later(2 * time.Second)
		if !s.HasTool("new") || s.HasTool("echo") || !s.IsReady() {
			t.Errorf("tools %v", names(s))
		}
	})
}

func names(s mcp.Source) string {
	var out []string
	for _, t := range s.GetAvailableTools() {
		out = append(out, t.Name)
	}
	return strings.Join(out, " ")
}

func TestListsOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := piped(t, tools(t), ServerOptions{})
		s.config.Allow, s.config.Deny = []string{"e*", "slow"}, []string{"slo?"}
		s.config.Kinds = map[string]mcp.Kind{"e*": mcp.Control}
		s.name = "my.house"
		running(t, s)
		list := s.GetAvailableTools()
		if len(list) != 1 || list[0].Name != "echo" {
			t.Fatalf("tools %v", names(s))
		}
		tool := list[0]
		if tool.Kind != mcp.Control || tool.Source != "external:my.house" || tool.Stream != "my-house" || tool.Origin != mcp.Remote {
			t.Errorf("%+v", tool)
		}
		if _, err := s.CallTool(t.Context(), "slow", nil); !errors.Is(err, mcp.ErrNoTool) {
			t.Errorf("a denied tool: %v", err)
		}
	})
}

// TestStalledServer: a call ends with its caller's time, or with the server's own where the caller sets none.
func TestStalledServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := piped(t, tools(t), ServerOptions{})
		s.config.Timeout = 5 * time.Second
		running(t, s)
		for limit, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Minute: time.Minute, 0: 5 * time.Second} {
			ctx, cancel := context.WithCancel(t.Context())
			if limit > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), limit)
			}
			began := time.Now()
			_, err := s.CallTool(ctx, "slow", nil)
			cancel()
			if took := time.Since(began); took != want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("limit %v: %v after %v", limit, err, took)
			}
		}
		says(t, s, "echo", "you said hi")
		if _, err := s.CallTool(t.Context(), "fail", nil); !reported(err, "the lamp is broken") {
			t.Errorf("a failure of the tool: %v", err)
		}
	})
}

// reported tells whether err is a failure that the server told of.
func reported(err error, text string) bool {
	e, ok := errors.AsType[*mcp.ToolError](err)
	return ok && e.Message == text
}

// TestFrozenServer: one that does not answer is left, and reached again.
func TestFrozenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		p := &puppet{answers: map[string]string{"initialize": greeting, "tools/list": `{"tools":[{"name":"a"}]}`}}
		s := p.server(ServerOptions{Log: log.logger()})
		running(t, s)
		later(discoverTime)
		if !s.HasTool("a") {
			t.Fatal("no tool")
		}
		later(pingPause*pingFailures + pingLimit + time.Second)
		if s.IsReady() {
			t.Error("a frozen server is ready")
		}
		log.has(t, errSilent.Error())
		later(2*time.Second + discoverTime)
		if !s.HasTool("a") || p.opened.Load() != 2 {
			t.Errorf("it was opened %d times", p.opened.Load())
		}
	})
}

// TestBusyServer: a server that does one thing at a time, and answers no ping meanwhile, has its call's time; after it,
// one that is still silent is left.
func TestBusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{answers: map[string]string{"initialize": greeting, "tools/list": `{"tools":[{"name":"a"}]}`}}
		s := p.server(ServerOptions{})
		running(t, s)
		later(discoverTime)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := s.CallTool(ctx, "a", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 30*time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if p.opened.Load() != 1 {
			t.Errorf("it was opened %d times", p.opened.Load())
		}
		later(pingPause*(pingFailures+1) + pingLimit)
		if p.opened.Load() != 2 {
			t.Errorf("a frozen server was opened %d times", p.opened.Load())
		}
	})
}

// TestPingUnknown: an error is a sign of life.
func TestPingUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{answers: map[string]string{"initialize": greeting, "tools/list": `{"tools":[{"name":"a"}]}`}, refuse: true}
		s := p.server(ServerOptions{})
		running(t, s)
		later(10 * time.Minute)
		if !s.IsReady() || p.opened.Load() != 1 {
			t.Errorf("ready %v, opened %d times", s.IsReady(), p.opened.Load())
		}
	})
}

// TestSilentOnUnknownMethods: server/discover is given up on the same connection.
func TestSilentOnUnknownMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{answers: map[string]string{"initialize": greeting, "tools/list": `{"tools":[{"name":"a"}]}`}}
		s := p.server(ServerOptions{})
		running(t, s)
		if s.IsReady() {
			t.Fatal("it cannot be ready before server/discover is given up")
		}
		later(discoverTime)
		if !s.HasTool("a") || p.opened.Load() != 1 {
			t.Errorf("tools %q, opened %d times", names(s), p.opened.Load())
		}
	})
}

// TestStrictOnUnknownMethods: one that hangs up is tried with the older
// handshake, over a new connection and without a pause, and that is remembered.
func TestStrictOnUnknownMethods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{answers: map[string]string{"initialize": greeting, "tools/list": `{"tools":[{"name":"a"}]}`, "server/discover": "hang up"}}
		s := p.server(ServerOptions{})
		running(t, s)
		if !s.HasTool("a") || p.opened.Load() != 2 {
			t.Fatalf("tools %q, opened %d times", names(s), p.opened.Load())
		}
		if err := s.ResetConnection(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !s.HasTool("a") || p.opened.Load() != 3 {
			t.Errorf("tools %q, opened %d times", names(s), p.opened.Load())
		}
	})
}

// TestForeignShapes: what servers get wrong costs one tool or one result, never
// the session.
func TestForeignShapes(t *testing.T) {
	const greetingOf1999 = `{"protocolVersion":"1999-01-01","capabilities":{"tools":true}}`
	p := &puppet{refuse: true, answers: map[string]string{
		"initialize": greetingOf1999,
		"tools/list": `{"tools":[null,{"name":"a","inputSchema":null},{"name":"b","inputSchema":{"properties":{"x":{"const":"<&>"}}}},
			{"name":"c","inputSchema":{"type":"array"}},{"name":""},{"name":"a"},{"name":"d","title":"D","annotations":{"readOnlyHint":true}}],"nextCursor":"again"}`,
		"tools/call a": `"just text"`,
		"tools/call b": `{"content":[{"type":"hologram","text":"odd"},{"type":"text","text":"even"}]}`,
		"tools/call c": `{"structuredContent":{"n":1},"content":[]}`,
		"tools/call d": `error {"code":-32003,"message":"no power"}`,
	}, mangle: true}
	synctest.Test(t, func(t *testing.T) {
		var log record
		s := p.server(ServerOptions{Log: log.logger()})
		running(t, s)
		if got := names(s); got != "a b c d" {
			t.Fatalf("tools %q:\n%s", got, log.String())
		}
		list := s.GetAvailableTools()
		if string(list[0].Schema) != schema.Empty || string(list[2].Schema) != schema.Empty || list[3].Description != "D" || !*list[3].Annotations.ReadOnly {
			t.Errorf("%+v", list)
		}
		if want := `{"properties":{"x":{"const":"<&>"}},"type":"object"}`; string(list[1].Schema) != want {
			t.Errorf("schema %s, want %s", list[1].Schema, want)
		}
		says(t, s, "a", "just text")
		says(t, s, "b", "odd\neven")
		if got, err := s.CallTool(t.Context(), "c", nil); err != nil || toJSON(t, got) != `{"n":1}` {
			t.Errorf("c: %v, %v", got, err)
		}
		if _, err := s.CallTool(t.Context(), "d", nil); !reported(err, "no power") {
			t.Errorf("d: %v", err)
		}
		if !s.IsReady() || p.opened.Load() != 1 {
			t.Errorf("the session did not live: opened %d times", p.opened.Load())
		}
		log.has(t, "mcp message dropped", "mcp server tool list does not end", "mcp server tools left out")
	})
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestServerWithoutTools is ready all the same.
func TestServerWithoutTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{answers: map[string]string{"initialize": greeting}, refuse: true}
		s := p.server(ServerOptions{})
		running(t, s)
		if !s.IsReady() || len(s.GetAvailableTools()) != 0 {
			t.Errorf("ready %v, tools %q", s.IsReady(), names(s))
		}
		if now := s.Status(); now.Phase != Connected || now.Tools != 0 || now.Trouble != "" || now.Restarts != 0 {
			t.Errorf("status %+v", now)
		}
		if _, n, err := s.Test(t.Context()); n != 0 || err != nil {
			t.Errorf("tested: %d tools, %v", n, err)
		}
		if err := s.ResetConnection(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if now := s.Status(); now.Phase != Connected || now.Trouble != "" || now.Restarts != 1 {
			t.Errorf("status after a restart %+v", now)
		}
	})
}

// TestUnansweredHandshake: a server that is reached and says nothing is told from one that is not reached, and a test of
// it waits for the end of one try.
func TestUnansweredHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes atomic.Int32
		s := (&puppet{refuse: false}).server(ServerOptions{changed: func() { changes.Add(1) }})
		if _, _, err := s.Test(t.Context()); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("test before the start: %v", err)
		}
		running(t, s)
		if now := s.Status(); now.Phase != Connecting {
			t.Errorf("at first %+v", now)
		}
		began := time.Now()
		_, _, err := s.Test(t.Context())
		if now := s.Status(); err == nil || now.Phase != Waiting || now.Trouble != Unanswered || now.Error != err.Error() || now.Failed.IsZero() {
			t.Errorf("%v after %v: %+v", err, time.Since(began), now)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := s.Test(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a test without time: %v", err)
		}
		if changes.Load() == 0 {
			t.Error("nobody was told")
		}
	})
}

// TestDeafServer: one that reads nothing is cut off, and nobody waits for it.
func TestDeafServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		p := &puppet{answers: map[string]string{"initialize": greeting, "tools/list": `{"tools":[{"name":"a"}]}`}, refuse: true, deafAfter: "tools/list"}
		s := p.server(ServerOptions{Log: log.logger()})
		running(t, s)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range maxQueue + 2 { // it does not even take the calls
			go func() { _, _ = s.CallTool(ctx, "a", nil) }()
		}
		synctest.Wait()
		if _, err := s.CallTool(ctx, "a", nil); err == nil {
			t.Error("no error")
		}
		synctest.Wait()
		if took := time.Since(began); took > time.Second || s.IsReady() {
			t.Errorf("ready %v after %v", s.IsReady(), took)
		}
		log.has(t, errStuck.Error())
	})
}

func TestResults(t *testing.T) {
	picture := mcp.Image{MIMEType: "image/png", Data: []byte{1}}
	for _, c := range []struct {
		name    string
		content []sdk.Content
		want    any
	}{
		{"nothing", nil, ""},
		{"texts", []sdk.Content{&sdk.TextContent{Text: "a"}, &sdk.TextContent{Text: "b"}}, "a\nb"},
		{"picture", []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte{1}}}, picture},
		{"both", []sdk.Content{&sdk.TextContent{Text: "a"}, &sdk.ImageContent{MIMEType: "image/png", Data: []byte{1}}}, []any{"a", picture}},
		{"sound", []sdk.Content{&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte{1, 2}}}, "[audio/wav sound, 2 bytes]"},
		{"link", []sdk.Content{&sdk.ResourceLink{Name: "n", URI: "u:1"}}, "n u:1"},
		{"resource", []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "u:1", Text: "t"}}}, "t"},
		{"picture resource", []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{MIMEType: "image/png", Blob: []byte{1}}}}, picture},
		{"other resource", []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "u:1", MIMEType: "x/y", Blob: []byte{1}}}, &sdk.EmbeddedResource{}}, "[u:1 x/y, 1 bytes]"},
	} {
		if got := resultOf(&sdk.CallToolResult{Content: c.content}); toJSON(t, got) != toJSON(t, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestServersOwnLog: what a server sends for a log is logged, without secrets,
// and a flood of it is not.
func TestServersOwnLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log record
		peer := tools(t)
		s, _ := piped(t, peer, ServerOptions{Log: log.logger()})
		s.mask = newMask(Config{Env: map[string]string{"K": "hush-hush"}})
		s.dialling.ways = []way{{Stdio, legacyVersion, time.Second}}
		running(t, s)
		if err := s.calls.live.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "debug"}); err != nil { //nolint:staticcheck // see above
			t.Fatal(err)
		}
		for range 100 {
			for session := range peer.Sessions() {
				_ = session.Log(t.Context(), &sdk.LoggingMessageParams{Level: "info", Data: "the key is hush-hush"}) //nolint:staticcheck // see above
			}
		}
		synctest.Wait()
		log.has(t, "mcp server says", "the key is ***")
		if n := strings.Count(log.String(), "mcp server says"); n != logBurst {
			t.Errorf("%d lines", n)
		}
		s.note(nil)
	})
}
