package offer

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
	"xiaozhi/mcp/external/library"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// share is the library of a server, with what was asked of it.
func share(followed *[]string) library.Share {
	return library.Share{
		Server: "house", Stream: "house", Library: &library.Library{
			Resources: []*sdk.Resource{{URI: "house://papers", Name: "papers"}, {URI: "no address", Name: "bad"}, {URI: "xiaozhi://config", Name: "ours"}},
			Templates: []*sdk.ResourceTemplate{{URITemplate: "house://rooms/{room}", Name: "room"}},
			Prompts:   []*sdk.Prompt{{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}}},
		},
		Read: func(_ context.Context, uri string) (*sdk.ReadResourceResult, error) {
			if uri == "house://rooms/none" {
				return nil, &mcp.ToolError{Code: -32002, Message: "no such room"}
			}
			return textResource(uri, "text/plain", "text of "+uri), nil
		},
		Get: func(_ context.Context, name string, arguments map[string]string) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Description: name + " " + arguments["who"]}, nil
		},
		Follow: func(_ context.Context, uri string) error {
			*followed = append(*followed, uri)
			return nil
		},
	}
}

// TestShare: resources and prompts of another server are passed on, also after it came anew; what cannot be offered, or calls
// itself ours, is not.
func TestShare(t *testing.T) {
	var followed []string
	shares := []library.Share{share(&followed)}
	r := catalog.NewRegistry(router.Gate{})
	f := NewFollower(r, Options{Shared: func() []mcp.Tool { return nil }, Shares: func() []library.Share { return shares }, Log: slog.New(slog.DiscardHandler)}, nil)
	v := viewOf(r)
	ctx := catalog.WithCaller(t.Context(), english())
	for uri, want := range map[string]string{"house://papers": "text of house://papers", "house://rooms/hall": "text of house://rooms/hall", "xiaozhi://config": "", "house://cellar": ""} {
		got, err := v.ReadURI(ctx, uri)
		if (want == "") != (err != nil) || err == nil && got[0].Text != want {
			t.Errorf("%s: %v, %v", uri, got, err)
		}
	}
	if _, err := v.ReadURI(ctx, "house://rooms/none"); codeOf(err) != -32002 {
		t.Errorf("what the server reports: %v", err)
	}
	if got, known, err := v.Prompt(ctx, "house.greet", map[string]string{"who": "Ada"}); err != nil || !known || got.Description != "greet Ada" {
		t.Errorf("%v, %v, %v", got, known, err)
	}
	if _, _, err := v.Prompt(ctx, "house.greet", nil); codeOf(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("without an argument that is required: %v", err)
	}
	shares = []library.Share{share(&followed)} // it came anew, and looks the same
	f.takeShared()
	shares = nil
	f.takeShared()
	if _, err := v.ReadURI(ctx, "house://papers"); err == nil {
		t.Error("what has left is read")
	}
}

func codeOf(err error) int64 {
	if e, is := errors.AsType[*jsonrpc.Error](err); is {
		return e.Code
	}
	return 0
}
