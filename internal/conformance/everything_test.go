package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// TestMain is also the node that runs the reference server: its script says
// what is wrong with it.
func TestMain(m *testing.M) {
	if n := len(os.Args); n > 2 && strings.HasPrefix(os.Args[n-2], "everything-") {
		if err := beReference(strings.TrimPrefix(os.Args[n-2], "everything-"), os.Args[n-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// beReference is a server with some tools of the reference server.
func beReference(fault, transport string) error {
	if fault == "broken" {
		return errors.New("no server today")
	}
	s := referenceServer(fault)
	if transport == "stdio" {
		return s.Run(context.Background(), &sdk.StdioTransport{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		return err
	}
	get := func(*http.Request) *sdk.Server { return s }
	mux := http.NewServeMux()
	mux.Handle("/sse", sdk.NewSSEHandler(get, nil))
	mux.Handle("/mcp", sdk.NewStreamableHTTPHandler(get, nil))
	fmt.Printf("hello\nport %d\n", l.Addr().(*net.TCPAddr).Port)
	return http.Serve(l, mux) //nolint:gosec // a test, on this machine
}

func referenceServer(fault string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "reference", Version: "1"}, nil)
	add := func(name, schema string, handle sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(schema)}, handle)
	}
	says := func(format string) sdk.ToolHandler {
		return func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text(fmt.Sprintf(format, r.Params.Arguments)), nil
		}
	}
	add("echo", `{"type":"object"}`, says("Echo: %s"))
	if fault == "wrong" {
		add("get-sum", `{"type":"object"}`, says("41 %.0s"))
	} else {
		add("get-sum", `{"type":"object"}`, says("the sum is 42%.0s"))
	}
	add("get-tiny-image", `{"type":"object"}`, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "look:"}, image()}}, nil
	})
	add("trigger-long-running-operation", `{"type":"object"}`, says("completed%.0s"))
	add("trigger-elicitation-request", `{"type":"object"}`, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if said, ok := r.Params.InputResponses["name"].(*sdk.ElicitResult); ok {
			return text("User " + said.Action + "d"), nil
		}
		return want("", sdk.InputRequestMap{"name": form("who?", "name", "string")})
	})
	return s
}

// TestEverything: our client is tried over each transport, and what goes wrong
// is told of each.
func TestEverything(t *testing.T) {
	node, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[string]string{"": "", "wrong": `get-sum: "41 "`} {
		var told strings.Builder
		err := Everything(t.Context(), &told, node, "everything-"+fault)
		lines := strings.Split(strings.TrimSpace(told.String()), "\n")
		if (err == nil) != (fault == "") {
			t.Errorf("%q: %v", fault, err)
		}
		good := 0
		for _, line := range lines {
			if strings.HasPrefix(line, "ok ") && strings.HasSuffix(line, ": 5 tools") {
				good++
			}
		}
		if fault == "" && good != 3 || fault != "" && good != 0 || fault == "wrong" && strings.Count(told.String(), want) < 3 {
			t.Errorf("%q:\n%s", fault, told.String())
		}
	}
}

// TestBrokenReference: a server that does not start is told of at once.
func TestBrokenReference(t *testing.T) {
	node, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := reference(t.Context(), node, "everything-broken", "sse"); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("%v", err)
	}
	if _, _, err := reference(t.Context(), "no-such-program", "x", "sse"); err == nil {
		t.Error("no program was started")
	}
}

func TestDescribe(t *testing.T) {
	if got := describe([]any{"a", mcp.Image{MIMEType: "image/png"}}); got != "a\nimage/png" {
		t.Errorf("%q", got)
	}
	if got := describe(nil); got != "<nil>" {
		t.Errorf("%q", got)
	}
}
