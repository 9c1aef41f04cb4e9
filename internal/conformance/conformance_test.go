package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway"
)

// start is a gateway with the fixtures, behind a real listener.
func start(t *testing.T) string {
	t.Helper()
	g := gateway.New(gateway.Options{})
	g.SetOwner("of the owner")
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	wait, err := Register(ctx, g)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(Bearing("of the owner", g))
	t.Cleanup(func() {
		cancel()
		wait()
		g.Close()
		s.Close()
	})
	return s.URL + "/api/mcp/jsonrpc"
}

// TestFixtures: what the scenarios call by name is there and answers.
func TestFixtures(t *testing.T) {
	asked := 0
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		CreateMessageHandler: func(context.Context, *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "Paris"}}, nil
		},
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked++
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{
				"name": "Ann", "color": "red", "ok": true, "context": "tests", "username": "ann", "email": "a@example.org", "untitledSingle": "option1",
			}}, nil
		},
	})
	s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: start(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" {
			t.Errorf("%s has no description", tool.Name)
		}
	}
	for name, want := range map[string]string{
		"test_simple_text": "simple text", "test_image_content": "image/png", "test_audio_content": "audio/wav", "test_embedded_resource": "test://embedded-resource",
		"test_multiple_content_types": "image/png", "test_tool_with_progress": "", "test_error_handling": "always fails", "test_reconnection": "still here",
		"test_missing_capability": "it samples", "test_input_required_result_elicitation": "Hello, Ann!", "test_input_required_result_sampling": "Paris",
		"test_input_required_result_request_state": "state-ok", "test_input_required_result_multi_round": "Ann likes red", "test_input_required_result_multiple_inputs": "Paris Ann",
		"test_input_required_result_list_roots": "0 roots", "test_trigger_tool_change": "changed", "test_trigger_prompt_change": "changed",
		"test_trigger_resource_change": "changed", "test_cancelled_waits": "0", "json_schema_2020_12_tool": "called",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("there is no %s", name)
			continue
		}
		result, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got string
		for _, c := range result.Content {
			data, err := c.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			got += string(data)
		}
		if !strings.Contains(got, want) || result.IsError != (name == "test_error_handling") {
			t.Errorf("%s: %s (failed: %v), want %s", name, got, result.IsError, want)
		}
	}
	if asked != 5 {
		t.Errorf("the user was asked %d times", asked)
	}
	for uri, want := range map[string]string{"test://static-text": "static text", "test://template/7/data": "Data for ID: 7"} {
		if r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err != nil || !strings.Contains(r.Contents[0].Text, want) {
			t.Errorf("%s: %v, %v", uri, r, err)
		}
	}
	p, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "test_prompt_with_arguments", Arguments: map[string]string{"arg1": "a", "arg2": "b"}})
	if err != nil || p.Messages[0].Content.(*sdk.TextContent).Text != "Prompt with arguments: arg1='a', arg2='b'" {
		t.Errorf("prompt: %v, %v", p, err)
	}
}

// TestGivenUp: the tool that waits begins with progress, and notes that its call
// was given up.
func TestGivenUp(t *testing.T) {
	begun := make(chan struct{}, 1)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) { begun <- struct{}{} },
	})
	s, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: start(t)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	wait := &sdk.CallToolParams{Name: "test_wait"}
	wait.SetProgressToken("p")
	if _, err := s.CallTool(ctx, wait); !errors.Is(err, context.Canceled) {
		t.Fatalf("the call that was given up: %v", err)
	}
	for got := "0"; got != "1"; { // ends with the test's time limit
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "test_cancelled_waits"})
		if err != nil {
			t.Fatal(err)
		}
		got = r.Content[0].(*sdk.TextContent).Text
	}
}

// TestSeal: a state that was changed is known.
func TestSeal(t *testing.T) {
	s := newSeal()
	for signed, ok := range map[string]bool{s.sign("a"): true, s.sign("a") + "-TAMPERED": false, newSeal().sign("a"): false, "a": false, "": false} {
		if _, got := s.open(signed); got != ok {
			t.Errorf("%q: %v", signed, got)
		}
	}
}

// TestClient: the client finds the tools of a server and makes the calls that a
// scenario wants.
func TestClient(t *testing.T) {
	url := start(t)
	t.Setenv("MCP_CONFORMANCE_CONTEXT", `{"toolCalls":[{"name":"test_simple_text","arguments":{}}]}`)
	if err := Client(t.Context(), url, "tools_call"); err != nil {
		t.Errorf("a call: %v", err)
	}
	t.Setenv("MCP_CONFORMANCE_CONTEXT", `{"toolCalls":[{"name":"nope","arguments":{}}]}`)
	if err := Client(t.Context(), url, "tools_call"); err == nil {
		t.Error("a tool that there is not was called")
	}
	if err := Client(t.Context(), "nonsense", "x"); err == nil {
		t.Error("an address that is none was taken")
	}
}

// TestArguments: each argument gets a value that fits its schema.
func TestArguments(t *testing.T) {
	got := arguments([]byte(`{"properties":{"a":{"type":"integer"},"b":{"type":"boolean"},"c":{"type":"string"},"d":{"enum":["x"]},"e":{"type":"array"}}}`))
	if fmt.Sprint(got) != "map[a:5 b:true c:text d:x]" || len(arguments([]byte(`7`))) != 0 {
		t.Errorf("%v", got)
	}
}
