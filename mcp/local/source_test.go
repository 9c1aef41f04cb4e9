package local_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/local/news"
	"xiaozhi/mcp/local/search"
	"xiaozhi/mcp/local/weather"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/sourcetest"
)

func TestSource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Case{
		New: func(t *testing.T) mcp.Source {
			s := local.New(everything(t))
			err := s.AddTool(mcp.Tool{Name: "slow"}, func(ctx context.Context, _ map[string]any) mcp.ActionResponse {
				<-ctx.Done()
				return mcp.ActionResponse{}
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Tool: "get_current_time",
		Slow: "slow",
	})
}

// started is a source whose clock stands still.
func started(t *testing.T, now time.Time) *local.Source {
	t.Helper()
	s := local.New(local.Options{Now: func() time.Time { return now }})
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

func TestCurrentTime(t *testing.T) {
	s := started(t, time.Date(2026, 11, 21, 4, 4, 5, 0, time.UTC))
	shanghai := time.FixedZone("CST", 8*3600)
	tests := map[string]struct {
		info mcp.Info
		want string
	}{
		"zh":            {mcp.Info{Language: "zh", Zone: shanghai}, "当前时间是: 2026-11-21 12:04:05 星期六"},
		"en":            {mcp.Info{Language: "en", Zone: shanghai}, "The current time is 2026-11-21 12:04:05 Saturday"},
		"no language":   {mcp.Info{Zone: shanghai}, "当前时间是: 2026-11-21 12:04:05 星期六"},
		"no zone":       {mcp.Info{Language: "en"}, "The current time is 2026-11-21 04:04:05 Saturday"},
		"over midnight": {mcp.Info{Zone: time.FixedZone("LINT", 14*3600+6*3600)}, "当前时间是: 2026-11-22 00:04:05 星期日"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := s.CallTool(mcp.WithInfo(t.Context(), test.info), "get_current_time", nil)
			want := mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: test.want}
			if err != nil || got != any(want) {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
		})
	}
}

func TestExit(t *testing.T) {
	s := started(t, time.Now())
	arguments := map[string]any{"say_goodbye": "再见"}
	got, err := s.CallTool(t.Context(), "exit", arguments)
	want := mcp.ActionResponse{
		Action: mcp.ActionTypeCallHandler,
		Result: mcp.ActionResponseCall{FuncName: "mcp_handler_exit", Args: arguments},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("exit = %+v, %v, want %+v", got, err, want)
	}
}

// everything are options under which there is every tool.
func everything(t *testing.T) local.Options {
	t.Helper()
	forecast, err := weather.New(weather.Options{})
	if err != nil {
		t.Fatal(err)
	}
	feeds, err := news.New(news.Options{Feeds: map[string][]string{"en": {"bbc"}}})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := search.New(search.Options{Kind: search.SearXNG, Base: "http://searx.lan"})
	if err != nil {
		t.Fatal(err)
	}
	return local.Options{
		Roles: []string{"poet"}, World: local.World{Forecast: forecast, Feeds: feeds, Search: engine}, Music: local.NewMusic(t.TempDir()), Memory: true, Quiet: true, Routines: true,
		Documents: noDocuments{}, Voices: func() bool { return true },
	}
}

// noDocuments has nothing that could be found.
type noDocuments struct{}

func (noDocuments) Find(context.Context, string, string, int) ([]local.Passage, error) {
	return nil, nil
}

// TestRegistry: every tool of this server is complete, described in both
// languages, and has a schema that the router's check can use.
func TestRegistry(t *testing.T) {
	s := local.New(everything(t))
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	var log bytes.Buffer
	box := router.New(router.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}, s)
	defer box.Close()
	names := make(map[string]bool)
	for _, tool := range s.GetAvailableTools() {
		if names[tool.Name] {
			t.Errorf("%s is there twice", tool.Name)
		}
		names[tool.Name] = true
		han := strings.ContainsFunc(tool.Description, func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff })
		latin := strings.ContainsFunc(tool.Description, func(r rune) bool { return r >= 'a' && r <= 'z' })
		if !han || !latin {
			t.Errorf("%s: description %q is not in both languages", tool.Name, tool.Description)
		}
		var schema struct{ Type string }
		if err := json.Unmarshal(tool.Schema, &schema); err != nil || schema.Type != "object" {
			t.Errorf("%s: schema %s: %v", tool.Name, tool.Schema, err)
		}
		if tool.Kind == "" || tool.Origin != mcp.Local || tool.Source != "local" {
			t.Errorf("%s: kind %q, origin %q, source %q", tool.Name, tool.Kind, tool.Origin, tool.Source)
		}
		box.Prepare(mcp.Call{Name: tool.Name, Arguments: "{}"})
	}
	for _, name := range local.Names() {
		if !names[name] {
			t.Errorf("%s is missing", name)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the router has something to say: %s", log.String())
	}
}

func answer(context.Context, map[string]any) mcp.ActionResponse {
	return mcp.ActionResponse{Action: mcp.ActionTypeNone}
}

func TestAddTool(t *testing.T) {
	s := started(t, time.Now())
	for name, err := range map[string]error{
		"no name":    s.AddTool(mcp.Tool{}, answer),
		"no handler": s.AddTool(mcp.Tool{Name: "x"}, nil),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	before := len(s.GetAvailableTools())
	if err := s.AddTool(mcp.Tool{Name: "exit", Description: "mine"}, answer); err != nil {
		t.Fatal(err)
	}
	if after := s.GetAvailableTools(); len(after) != before {
		t.Errorf("replacing a tool made %d of %d", len(after), before)
	}
	got, err := s.CallTool(t.Context(), "exit", nil)
	if r, ok := got.(mcp.ActionResponse); err != nil || !ok || r.Action != mcp.ActionTypeNone {
		t.Errorf("the replaced tool answered %v, %v", got, err)
	}
}

func TestRegisterTools(t *testing.T) {
	tools := []mcp.Tool{{Name: "a"}, {Name: "b"}}
	tests := map[string]struct {
		handlers map[string]local.Handler
		want     bool
	}{
		"all":             {map[string]local.Handler{"a": answer, "b": answer}, true},
		"one is missing":  {map[string]local.Handler{"a": answer}, false},
		"one is nil":      {map[string]local.Handler{"a": answer, "b": nil}, false},
		"one is too many": {map[string]local.Handler{"a": answer, "b": answer, "c": answer}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := started(t, time.Now())
			err := s.RegisterTools(tools, test.handlers)
			if (err == nil) != test.want {
				t.Errorf("RegisterTools: %v", err)
			}
			if s.HasTool("a") != test.want || s.HasTool("b") != test.want {
				t.Errorf("tools there: a %v, b %v, want %v", s.HasTool("a"), s.HasTool("b"), test.want)
			}
		})
	}
}

func TestCallBeforeStart(t *testing.T) {
	if _, err := local.New(local.Options{}).CallTool(t.Context(), "exit", nil); !errors.Is(err, mcp.ErrNoTool) {
		t.Errorf("got %v, want ErrNoTool", err)
	}
}

// TestToolsAreAwaited: whatever the type of a tool, its outcome is waited for.
func TestToolsAreAwaited(t *testing.T) {
	s := local.New(everything(t))
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	for _, tool := range s.GetAvailableTools() {
		if tool.Kind != mcp.Query {
			t.Errorf("%s is a %q: its outcome would be lost", tool.Name, tool.Kind)
		}
	}
}
