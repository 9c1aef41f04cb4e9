package external

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// shares adds resources, a template and a prompt to a server.
func shares(peer *sdk.Server) {
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		c := &sdk.ResourceContents{URI: r.Params.URI, Text: "text of " + r.Params.URI}
		switch r.Params.URI {
		case "house://photo":
			c = &sdk.ResourceContents{URI: r.Params.URI, MIMEType: "image/png", Blob: []byte("png")}
		case "house://bin":
			c = &sdk.ResourceContents{URI: r.Params.URI, MIMEType: "application/zip", Blob: []byte("zip!")}
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{c}}, nil
	}
	for uri, about := range map[string]string{"house://papers": "What the\nhouse knows.", "house://photo": "", "house://bin": ""} {
		peer.AddResource(&sdk.Resource{URI: uri, Name: "n", Description: about}, read)
	}
	peer.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "house://rooms/{room}", Name: "room"}, read)
	peer.AddPrompt(&sdk.Prompt{Name: "greet", Description: "Greets.", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}, {Name: "mood"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
				{Role: "user", Content: &sdk.TextContent{Text: "Greet " + r.Params.Arguments["who"]}}, {Role: "assistant", Content: &sdk.TextContent{Text: "Hello!"}},
			}}, nil
		})
}

// TestLibrary: a model reads the resources and gets the prompts of a server by two tools, which say what there is, ask for no
// yes, and follow what the server changes.
func TestLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := tools(t)
		shares(peer)
		s, _ := piped(t, peer, ServerOptions{})
		running(t, s)
		byName := map[string]mcp.Tool{}
		for _, tool := range s.GetAvailableTools() {
			byName[tool.Name] = tool
		}
		read, prompt := byName["read_near_resource"], byName["get_near_prompt"]
		for _, tool := range []mcp.Tool{read, prompt} {
			if tool.Kind != mcp.Query || tool.Annotations.ReadOnly == nil || tool.Source != "external:near" || tool.Stream != "near" || tool.Origin != mcp.Remote {
				t.Errorf("%+v", tool)
			}
		}
		if !strings.Contains(read.Description, "house://papers: n What the house knows.\n") || !strings.Contains(read.Description, "house://rooms/{room}") ||
			!strings.Contains(prompt.Description, "greet (who, [mood]): Greets.") {
			t.Errorf("%s\n%s", read.Description, prompt.Description)
		}
		if now := s.Status(); now.Resources != 4 || now.Prompts != 1 || now.Tools != 3 {
			t.Errorf("%+v", now)
		}
		for _, c := range []struct {
			tool      string
			arguments map[string]any
			want      any
		}{
			{"read_near_resource", map[string]any{"uri": "house://papers"}, "text of house://papers"},
			{"read_near_resource", map[string]any{"uri": "house://rooms/hall"}, "text of house://rooms/hall"},
			{"read_near_resource", map[string]any{"uri": "house://photo"}, mcp.Image{MIMEType: "image/png", Data: []byte("png")}},
			{"read_near_resource", map[string]any{"uri": "house://bin"}, "[house://bin application/zip, 4 bytes]"},
			{"get_near_prompt", map[string]any{"name": "greet", "arguments": map[string]any{"who": "Ada", "mood": 1.0}}, "Greet Ada\n\nassistant: Hello!"},
			{"get_near_prompt", nil, "greet (who, [mood]): Greets."},
		} {
			if got, err := s.CallTool(t.Context(), c.tool, c.arguments); err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s %v: %v, %v", c.tool, c.arguments, got, err)
			}
		}
		if got, err := s.CallTool(t.Context(), "read_near_resource", nil); err != nil || strings.Count(fmt.Sprint(got), "\n") != 3 {
			t.Errorf("the list: %v, %v", got, err)
		}
		for tool, arguments := range map[string]map[string]any{
			"read_near_resource": {"uri": "house://none"}, "get_near_prompt": {"name": "greet", "arguments": map[string]any{"who": []any{}}},
		} {
			if _, err := s.CallTool(t.Context(), tool, arguments); !isToolError(err) {
				t.Errorf("%s: %v", tool, err)
			}
		}
		peer.RemovePrompts("greet")
		later(2 * time.Second)
		if s.HasTool("get_near_prompt") || !s.HasTool("read_near_resource") {
			t.Error("what has left is offered")
		}
	})
}

func isToolError(err error) bool {
	_, is := errors.AsType[*mcp.ToolError](err)
	return is
}

// TestLibraryHidden: the lists of an entry hold for these tools too, and a tool of the server by such a name goes first.
func TestLibraryHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := tools(t)
		shares(peer)
		addTool(peer, "get_near_prompt", func(context.Context, string) (*sdk.CallToolResult, error) { return words("its own"), nil })
		s, _ := piped(t, peer, ServerOptions{})
		s.config.Deny = []string{"read_*_resource"}
		running(t, s)
		if s.HasTool("read_near_resource") {
			t.Error("a tool that is denied is offered")
		}
		says(t, s, "get_near_prompt", "its own")
	})
}

// TestShares: what a server offers beside its tools is passed on as far as its tools that read it are, and of resources that are
// followed each change is told, over later connections too.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := sdk.NewServer(&sdk.Implementation{Name: "house"}, &sdk.ServerOptions{
			SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		})
		shares(peer)
		told := make(chan string, 10)
		set := NewSet(Options{})
		s, cut := piped(t, peer, ServerOptions{Updated: func(_ context.Context, uri string) { told <- uri }})
		set.servers["near"] = s
		running(t, s)
		reading := func(tool mcp.Tool) bool { return tool.Name == "read_near_resource" }
		all := set.Shares(reading)
		if len(all) != 1 || len(all[0].Resources) != 3 || len(all[0].Templates) != 1 || all[0].Prompts != nil || all[0].Stream != "near" {
			t.Fatalf("%+v", all)
		}
		house := set.Shares(func(mcp.Tool) bool { return true })[0]
		if r, err := house.Read(t.Context(), "house://rooms/hall"); err != nil || r.Contents[0].Text != "text of house://rooms/hall" {
			t.Errorf("%v, %v", r, err)
		}
		if p, err := house.Get(t.Context(), "greet", map[string]string{"who": "Ada"}); err != nil || len(p.Messages) != 2 {
			t.Errorf("%v, %v", p, err)
		}
		for range 2 {
			if err := house.Follow(t.Context(), "house://papers"); err != nil {
				t.Fatal(err)
			}
		}
		change := func(uri string) {
			_ = peer.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: uri})
			synctest.Wait()
		}
		synctest.Wait() // the newest revision confirms it later
		change("house://papers")
		change("house://photo")
		cut()
		later(3 * time.Second)
		change("house://papers")
		close(told)
		var got []string
		for uri := range told {
			got = append(got, uri)
		}
		if strings.Join(got, " ") != "house://papers house://papers" {
			t.Errorf("told of %v", got)
		}
		delete(set.servers, "near")
		if _, err := house.Read(t.Context(), "house://papers"); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("of a server that is gone: %v", err)
		}
	})
}

// TestFollowedAndWatched: a resource that is waited for here and followed for others is told to both, and to the others still when
// nobody waits for it here; a server that tells of no changes is not followed.
func TestFollowedAndWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		subscribes := &sdk.ServerOptions{
			SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		}
		peer := sdk.NewServer(&sdk.Implementation{Name: "house"}, subscribes)
		shares(peer)
		var waits atomic.Bool
		waits.Store(true)
		told := make(chan string, 10)
		s, _ := piped(t, peer, ServerOptions{
			Updated: func(_ context.Context, uri string) { told <- "outside" },
			Watch: Watch{
				Wanted: func(string) []string {
					if waits.Load() {
						return []string{"house://papers"}
					}
					return nil
				},
				Changed: func(string, string, string) { told <- "here" },
			},
		})
		running(t, s)
		if err := s.follow("house://papers"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"here outside", "outside"} {
			later(time.Second)
			_ = peer.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: "house://papers"})
			later(time.Second)
			var got []string
			for len(told) > 0 {
				got = append(got, <-told)
			}
			if slices.Sort(got); strings.Join(got, " ") != want {
				t.Errorf("told %v, want %s", got, want)
			}
			waits.Store(false)
			wake(s.watcher.again)
		}
		mute := sdk.NewServer(&sdk.Implementation{Name: "mute"}, nil)
		shares(mute)
		m, _ := piped(t, mute, ServerOptions{})
		if err := m.follow("house://papers"); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("not connected: %v", err)
		}
		running(t, m)
		if err := m.follow("house://papers"); !isToolError(err) {
			t.Errorf("a server that tells of nothing: %v", err)
		}
	})
}
