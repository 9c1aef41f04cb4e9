//lint:file-ignore SA1019 older clients still sample and log

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/external/library"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
)

// socketTransport is a client's side of /mcp/ws for the SDK.
type socketTransport struct {
	conn *websocket.Conn
	mu   sync.Mutex // writing
}

func (s *socketTransport) Connect(context.Context) (sdk.Connection, error) { return s, nil }
func (s *socketTransport) SessionID() string                               { return "" }
func (s *socketTransport) Close() error                                    { return s.conn.Close() }

func (s *socketTransport) Read(context.Context) (jsonrpc.Message, error) {
	_, data, err := s.conn.ReadMessage()
	if err != nil {
		return nil, io.EOF
	}
	return jsonrpc.DecodeMessage(data)
}

func (s *socketTransport) Write(_ context.Context, m jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.WriteMessage(websocket.TextMessage, data)
}

// heard is what a client was told without asking.
type heard struct {
	mu       sync.Mutex
	tools    int
	prompts  int
	resource int
	updated  []string
	logged   []string
	progress []float64
}

func (h *heard) note(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func (h *heard) get(f func() int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f()
}

// eachClient runs a test with the SDK's client over each way in.
func eachClient(t *testing.T, change func(*Options), f func(t *testing.T, r *rig, s *sdk.ClientSession, h *heard)) {
	for _, way := range []string{"http", "http 2026", "sse", "websocket"} {
		t.Run(way, func(t *testing.T) {
			r := newRig(t, change)
			h := &heard{}
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
				ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) { h.note(func() { h.tools++ }) },
				PromptListChangedHandler:   func(context.Context, *sdk.PromptListChangedRequest) { h.note(func() { h.prompts++ }) },
				ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { h.note(func() { h.resource++ }) },
				ResourceUpdatedHandler: func(_ context.Context, q *sdk.ResourceUpdatedNotificationRequest) {
					h.note(func() { h.updated = append(h.updated, q.Params.URI) })
				},
				LoggingMessageHandler: func(_ context.Context, q *sdk.LoggingMessageRequest) {
					h.note(func() { h.logged = append(h.logged, fmt.Sprint(q.Params.Level, " ", q.Params.Data)) })
				},
				ProgressNotificationHandler: func(_ context.Context, q *sdk.ProgressNotificationClientRequest) {
					h.note(func() { h.progress = append(h.progress, q.Params.Progress) })
				},
				CreateMessageHandler: func(_ context.Context, q *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
					return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "sampled"}}, nil
				},
			})
			client.AddRoots(&sdk.Root{URI: "file:///home/x", Name: "x"})
			o := &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
			var transport sdk.Transport
			switch way {
			case "http 2026":
				o = nil
				fallthrough
			case "http":
				transport = &sdk.StreamableClientTransport{Endpoint: r.server.URL + "/api/mcp/jsonrpc"}
			case "sse":
				transport = &sdk.SSEClientTransport{Endpoint: r.server.URL + "/api/mcp/connect"}
			case "websocket":
				transport = &socketTransport{conn: r.dialSocket("", nil)}
			}
			s, err := client.Connect(t.Context(), transport, o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			f(t, r, s, h)
		})
	}
}

// until waits until ok holds.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// TestClients: the SDK's client lists, calls, reads, completes and gets prompts,
// over each way in.
func TestClients(t *testing.T) {
	eachClient(t, nil, func(t *testing.T, r *rig, s *sdk.ClientSession, _ *heard) {
		ctx := t.Context()
		list, err := s.ListTools(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, tool := range list.Tools {
			found = append(found, tool.Name)
		}
		for _, want := range []string{"system.info", "time.get_current_time", "timer.set_timer", kitchenStream + ".self.audio_speaker.set_volume"} {
			if !slices.Contains(found, want) {
				t.Errorf("no %s in %v", want, found)
			}
		}
		if !slices.IsSorted(found) {
			t.Errorf("not in order: %v", found)
		}
		text := func(name string, arguments map[string]any) (string, bool) {
			t.Helper()
			result, err := s.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: arguments})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(result.Content) == 0 {
				return "", result.IsError
			}
			return result.Content[0].(*sdk.TextContent).Text, result.IsError
		}
		if got, failed := text(kitchenStream+".self.audio_speaker.set_volume", map[string]any{"volume": 30}); failed || !strings.Contains(got, `"volume":30`) {
			t.Errorf("a control of the device: %s, %v", got, failed)
		}
		if got, failed := text("timer.set_timer", map[string]any{"seconds": 60, "device_id": "kitchen"}); failed || got != "mcp_handler_timer on "+kitchenID {
			t.Errorf("a tool that the conversation completes: %s, %v", got, failed)
		}
		if got, _ := text("timer.set_timer", map[string]any{"seconds": 60}); got != "mcp_handler_timer on "+kitchenID {
			t.Errorf("the only device: %s", got)
		}
		templates, err := s.ListResourceTemplates(ctx, nil)
		if err != nil || len(templates.ResourceTemplates) != 3 {
			t.Errorf("templates: %v, %v", templates, err)
		}
		for uri, want := range map[string]string{
			"xiaozhi://devices": "kitchen", "xiaozhi://devices/246f28aa1002/status": `"audio_speaker":{"volume":70}`,
			"xiaozhi://devices/246f28aa1002/states": `"Lamp":{"power":true}`, "xiaozhi://devices/246f28aa1002/transcript": `"lines":[]`,
			"xiaozhi://config": `"token":"***"`, "xiaozhi://log": "a line",
		} {
			got, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
			if err != nil || !strings.Contains(got.Contents[0].Text, want) {
				t.Errorf("%s: %v, %v", uri, got, err)
			}
		}
		p, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "default", Arguments: map[string]string{"language": "en", "assistant_name": "Robbie"}})
		if err != nil || !strings.Contains(p.Messages[0].Content.(*sdk.TextContent).Text, "Robbie") {
			t.Errorf("prompt: %v, %v", p, err)
		}
		if _, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "default", Arguments: map[string]string{"language": "jp"}}); err == nil {
			t.Error("a language that there is not was taken")
		}
		for _, c := range []struct {
			ref      *sdk.CompleteReference
			argument sdk.CompleteParamsArgument
			want     []string
		}{
			{&sdk.CompleteReference{Type: "ref/prompt", Name: "default"}, sdk.CompleteParamsArgument{Name: "language", Value: "e"}, []string{"en", "es"}},
			{&sdk.CompleteReference{Type: "ref/prompt", Name: "default"}, sdk.CompleteParamsArgument{Name: "device_name", Value: ""}, []string{"kitchen"}},
			{&sdk.CompleteReference{Type: "ref/resource", URI: "xiaozhi://devices/{id}/status"}, sdk.CompleteParamsArgument{Name: "id", Value: "24"}, []string{"246f28aa1002"}},
			{&sdk.CompleteReference{Type: "ref/prompt", Name: "default"}, sdk.CompleteParamsArgument{Name: "x", Value: ""}, []string{}},
		} {
			got, err := s.Complete(ctx, &sdk.CompleteParams{Ref: c.ref, Argument: c.argument})
			if err != nil || !slices.Equal(got.Completion.Values, c.want) {
				t.Errorf("%v: %v, %v", c.argument, got, err)
			}
		}
	})
}

// TestProgressCancelLog: a tool tells how far it is and what it does, to a client
// that wants to hear it, and ends when its caller gives it up.
func TestProgressCancelLog(t *testing.T) {
	eachClient(t, nil, func(t *testing.T, r *rig, s *sdk.ClientSession, h *heard) {
		running, ended := make(chan struct{}, 1), make(chan error, 1)
		add := func(tool catalog.Tool) {
			t.Helper()
			if err := r.Registry().Add(tool); err != nil {
				t.Fatal(err)
			}
		}
		add(catalog.Tool{Name: "waits", Run: func(ctx context.Context, _ map[string]any) (any, error) {
			running <- struct{}{}
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}})
		add(catalog.Tool{Name: "tells", Handle: func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			_ = req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "debug", Logger: "xiaozhi", Data: "a detail"})
			_ = req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "warning", Logger: "xiaozhi", Data: "a warning"})
			for i := range 3 {
				told := &sdk.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i), Total: 2}
				_ = req.Session.NotifyProgress(ctx, told)
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "told"}}}, nil
		}})
		modern := s.InitializeResult() == nil || s.InitializeResult().ProtocolVersion >= catalog.VersionModern
		if !modern {
			if err := s.SetLoggingLevel(t.Context(), &sdk.SetLoggingLevelParams{Level: "warning"}); err != nil {
				t.Fatal(err)
			}
		}
		params := &sdk.CallToolParams{Name: "tells"}
		params.SetProgressToken("p1")
		if _, err := s.CallTool(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		until(t, "the progress", func() bool { return h.get(func() int { return len(h.progress) }) == 3 })
		h.note(func() {
			if !slices.Equal(h.progress, []float64{0, 1, 2}) {
				t.Errorf("progress %v", h.progress)
			}
			if !modern && !slices.Equal(h.logged, []string{"warning a warning"}) {
				t.Errorf("logged %v", h.logged)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "waits"})
			done <- err
		}()
		<-running
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the call ended with %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("the call was not cancelled")
		}
		<-done
	})
}

// TestSampling: a tool may ask the client's model and for its roots, over each
// transport, in the revisions that know such requests.
func TestSampling(t *testing.T) {
	eachClient(t, nil, func(t *testing.T, r *rig, s *sdk.ClientSession, _ *heard) {
		if err := r.Registry().Add(catalog.Tool{Name: "asks", Handle: func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			said, err := req.Session.CreateMessage(ctx, &sdk.CreateMessageParams{
				MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "hello"}}},
			})
			if err != nil {
				return nil, err
			}
			listed, err := req.Session.ListRoots(ctx, nil)
			if err != nil {
				return nil, err
			}
			return &sdk.CallToolResult{Content: []sdk.Content{said.Content, &sdk.TextContent{Text: listed.Roots[0].URI}}}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "asks"})
		if s.InitializeResult() == nil || s.InitializeResult().ProtocolVersion >= catalog.VersionModern {
			if err == nil && !result.IsError {
				t.Errorf("its revision has no such requests, but %v", result)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"sampled", "file:///home/x"} {
			if got := result.Content[i].(*sdk.TextContent).Text; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	})
}

// TestDevicesComeAndGo: each coming and going is told once, to the views that it
// concerns, and what is listed and can be called follows.
func TestDevicesComeAndGo(t *testing.T) {
	eachClient(t, nil, func(t *testing.T, r *rig, s *sdk.ClientSession, h *heard) {
		if s.InitializeResult() == nil || s.InitializeResult().ProtocolVersion >= catalog.VersionModern {
			t.Skip("this revision subscribes to changes by a stream of its own, which conformance tests")
		}
		if err := s.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uriDevices}); err != nil {
			t.Fatal(err)
		}
		if err := s.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "xiaozhi://devices/nobody/status"}); err == nil {
			t.Error("a resource that there is not was subscribed to")
		}
		other := r.dialSocket("?stream=time", nil) // a view that is not concerned
		ask(t, other, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		listed := func() bool {
			list, err := s.ListTools(t.Context(), nil)
			return err == nil && slices.ContainsFunc(list.Tools, func(tool *sdk.Tool) bool { return strings.HasPrefix(tool.Name, "device-246f28aa1003.") })
		}
		toolsTold := func() int { return h.get(func() int { return h.tools }) }
		updates := func() int { return h.get(func() int { return len(h.updated) }) }
		r.home.connect(bedroomID, "bedroom", nil)
		for range 5 { // it comes in several steps
			r.DeviceChanged(bedroomID)
		}
		until(t, "the coming", func() bool { return toolsTold() == 1 && updates() >= 1 && listed() })
		if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "device-246f28aa1003.self.get_device_status"}); err != nil {
			t.Errorf("a call of the new device: %v", err)
		}
		r.home.leave(bedroomID)
		r.DeviceChanged(bedroomID)
		until(t, "the going", func() bool { return toolsTold() == 2 && !listed() })
		if err := s.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: uriDevices}); err != nil {
			t.Fatal(err)
		}
		before := updates()
		r.home.connect(bedroomID, "bedroom", nil)
		r.DeviceChanged(bedroomID)
		until(t, "the second coming", func() bool { return toolsTold() == 3 })
		if got := ask(t, other, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); field(t, got, "id") != 2.0 {
			t.Errorf("a view that is not concerned was told: %s", got)
		}
		if n := toolsTold(); n != 3 {
			t.Errorf("told %d times", n)
		}
		if n := updates(); n != before {
			t.Errorf("updated after it was unsubscribed: %d, %d", before, n)
		}
	})
}

// TestDeviceOfAView: the view of a device outlives its absence, for clients with a
// session; others are told that there is none.
func TestDeviceOfAView(t *testing.T) {
	r := newRig(t, nil)
	view := "/api/mcp/jsonrpc/" + kitchenStream
	id := r.initialize(view)
	r.home.leave(kitchenID)
	a := r.call(view, "self.get_device_status", "{}", "Mcp-Session-Id: "+id, "Mcp-Protocol-Version: 2025-06-18")
	if got := event(t, a.body); field(t, got, "result", "isError") != true || !strings.Contains(got, "设备没有连接") {
		t.Errorf("before the change is told: %s", a.body)
	}
	r.DeviceChanged(kitchenID)
	until(t, "the stream to go", func() bool {
		return r.do("GET", "/api/mcp/tools/stream/"+kitchenStream, "").status == 404
	})
	a = r.rpc(view, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id: "+id, "Mcp-Protocol-Version: 2025-06-18")
	if got := event(t, a.body); len(field(t, got, "result", "tools").([]any)) != 0 {
		t.Errorf("while it is away: %s", a.body)
	}
	r.home.connect(kitchenID, "kitchen", nil)
	r.DeviceChanged(kitchenID)
	until(t, "the tools to be back", func() bool {
		a := r.call(view, "self.get_device_status", "{}", "Mcp-Session-Id: "+id, "Mcp-Protocol-Version: 2025-06-18")
		return strings.Contains(a.body, "audio_speaker")
	})
}

// TestTranscript: clients that subscribed are told that something was said.
func TestTranscript(t *testing.T) {
	r := newRig(t, nil)
	conn := r.dialSocket("", nil)
	ask(t, conn, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"xiaozhi://devices/246f28aa1002/transcript"}}`)
	r.home.mu.Lock()
	r.home.said = []offer.Line{{Role: "user", Text: "你好"}}
	r.home.mu.Unlock()
	r.TranscriptChanged(kitchenID)
	if got := read(t, conn); field(t, got, "method") != "notifications/resources/updated" || !strings.Contains(got, "transcript") {
		t.Errorf("told %s", got)
	}
	got := ask(t, conn, `{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"xiaozhi://devices/246f28aa1002/transcript"}}`)
	if !strings.Contains(got, "你好") {
		t.Errorf("transcript: %s", got)
	}
}

// TestActs: what a device's conversation can be made to do is offered where it
// can, and acts on the device that is meant.
func TestActs(t *testing.T) {
	var mu sync.Mutex
	var done []string
	note := func(format string, args ...any) error {
		mu.Lock()
		defer mu.Unlock()
		done = append(done, fmt.Sprintf(format, args...))
		return nil
	}
	r := newRig(t, func(o *Options) {
		o.Offer.Acts = offer.Acts{
			Say: func(_ context.Context, id, text string, now bool) (offer.Said, error) {
				return offer.Said{Heard: text, Whole: true}, note("say %s %s %v", id, text, now)
			},
			Ask: func(_ context.Context, id, text string) (offer.Said, error) {
				return offer.Said{Answer: "yes"}, note("ask %s %s", id, text)
			},
			Listen: func(context.Context, string) error { return errors.New("it listens by its button only") },
			Abort:  func(context.Context, string) (bool, error) { return false, nil },
		}
	})
	r.home.connect(bedroomID, "bedroom", nil)
	for _, c := range []struct{ name, arguments, want string }{
		{"device.say", `{"device_id":"kitchen","text":"水开了","now":true}`, `{\"heard\":\"水开了\",\"whole\":true}`},
		{"device.ask", `{"device_id":"24:6F:28:AA:10:03","text":"Open?"}`, "yes"},
		{"device.ask", `{"device_id":"device-246f28aa1003","text":"Open?"}`, "yes"},
		{"device.ask", `{"device_id":"246f28aa1003","text":"Open?"}`, "yes"},
		{"device.listen", `{"device_id":"kitchen"}`, "by its button only"},
		{"device.say", `{"text":"x"}`, bedroomID},
		{"device.say", `{"device_id":"cellar","text":"x"}`, "cellar"},
		{"device.say", `{"device_id":"kitchen"}`, "text"},
		{"device.abort", `{"device_id":"kitchen"}`, "没有在说话"},
	} {
		if a := r.call("/api/mcp/jsonrpc", c.name, c.arguments); !strings.Contains(a.body, c.want) {
			t.Errorf("%s %s: %s, want %s", c.name, c.arguments, a.body, c.want)
		}
	}
	want := []string{"say " + kitchenID + " 水开了 true", "ask " + bedroomID + " Open?", "ask " + bedroomID + " Open?", "ask " + bedroomID + " Open?"}
	if !slices.Equal(done, want) {
		t.Errorf("done %q", done)
	}
}

// TestShared: tools of external servers are streams of their own, and
// cannot take the names of ours.
func TestShared(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Offer.Shared = func() []mcp.Tool {
			return []mcp.Tool{
				{Name: "navigate", Schema: []byte(`{"type":"object"}`), Source: "external:maps", Stream: "maps", Trusted: true},
				{Name: "info", Schema: []byte(`{"type":"object"}`), Source: "external:system", Stream: "system", Trusted: true},
			}
		}
		o.Offer.CallShared = func(_ context.Context, t mcp.Tool, _ map[string]any) (any, error) {
			source, name := t.Source, t.Name
			return source + " " + name, nil
		}
	})
	if a := r.call("/api/mcp/jsonrpc/maps", "maps.navigate", "{}"); field(t, a.body, "result", "content", 0, "text") != "external:maps navigate" {
		t.Errorf("maps: %s", a.body)
	}
	if a := r.call("/api/mcp/jsonrpc", "server-system.info", "{}"); field(t, a.body, "result", "content", 0, "text") != "external:system info" {
		t.Errorf("system: %s", a.body)
	}
	if a := r.call("/api/mcp/jsonrpc", "system.info", "{}"); !strings.Contains(a.body, "platform") {
		t.Errorf("our own: %s", a.body)
	}
}

// TestSharedResources: whoever subscribes to a resource of another server hears that it has changed, and the other server is
// asked to tell; a prompt of its is one of ours.
func TestSharedResources(t *testing.T) {
	followed := make(chan string, 8)
	eachClient(t, func(o *Options) {
		o.Offer.Shared = func() []mcp.Tool { return nil }
		o.Offer.Shares = func() []library.Share {
			return []library.Share{{
				Server: "house", Stream: "house",
				Library: &library.Library{Resources: []*sdk.Resource{{URI: "house://papers", Name: "papers"}}, Prompts: []*sdk.Prompt{{Name: "greet"}}},
				Read:    func(_ context.Context, uri string) (*sdk.ReadResourceResult, error) { return textOf(uri, "old"), nil },
				Get: func(context.Context, string, map[string]string) (*sdk.GetPromptResult, error) {
					return &sdk.GetPromptResult{Description: "greets"}, nil
				},
				Follow: func(_ context.Context, uri string) error {
					followed <- uri
					return nil
				},
			}}
		}
	}, func(t *testing.T, r *rig, s *sdk.ClientSession, h *heard) {
		if err := s.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "house://papers"}); err != nil {
			t.Fatal(err)
		}
		if uri := <-followed; uri != "house://papers" {
			t.Errorf("followed %s", uri)
		}
		until(t, "the update", func() bool {
			r.Updated(t.Context(), "house://papers")
			return h.get(func() int { return len(h.updated) }) > 0
		})
		if p, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "house.greet"}); err != nil || p.Description != "greets" {
			t.Errorf("%v, %v", p, err)
		}
	})
}

// TestSharedProgress: a client that wants to know hears how far a tool of another server is.
func TestSharedProgress(t *testing.T) {
	eachClient(t, func(o *Options) {
		o.Offer.Shared = func() []mcp.Tool {
			return []mcp.Tool{{Name: "long", Schema: []byte(`{"type":"object"}`), Source: "external:maps", Stream: "maps", Trusted: true}}
		}
		o.Offer.CallShared = func(ctx context.Context, _ mcp.Tool, _ map[string]any) (any, error) {
			heard := mcp.ProgressFrom(ctx)
			if heard == nil {
				return "nobody hears", nil
			}
			heard(mcp.Progress{Done: 1, Total: 2, Message: "half"})
			return "somebody hears", nil
		}
	}, func(t *testing.T, _ *rig, s *sdk.ClientSession, h *heard) {
		p := &sdk.CallToolParams{Name: "maps.long"}
		if r, err := s.CallTool(t.Context(), p); err != nil || r.Content[0].(*sdk.TextContent).Text != "nobody hears" {
			t.Errorf("%+v, %v", r, err)
		}
		p.SetProgressToken("mine")
		if r, err := s.CallTool(t.Context(), p); err != nil || r.Content[0].(*sdk.TextContent).Text != "somebody hears" {
			t.Errorf("%+v, %v", r, err)
		}
		until(t, "the report", func() bool { return h.get(func() int { return len(h.progress) }) == 1 })
	})
}
