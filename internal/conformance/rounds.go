//lint:file-ignore SA1019 the suite tests sampling and roots, which the newest revision deprecates

package conformance

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
)

// This file is the tools of 2026-07-28 that need more of the client before they
// can answer: they return what they ask for, and are called again with it.

func form(message, field, kind string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: message, RequestedSchema: json.RawMessage(
		fmt.Sprintf(`{"type":"object","properties":{%q:{"type":%q}},"required":[%[1]q]}`, field, kind))}
}

// accepted returns what the user has filled in; nil: nothing, or the user refused.
func accepted(responses sdk.InputResponseMap, key string) map[string]any {
	if r, ok := responses[key].(*sdk.ElicitResult); ok && r != nil && r.Action == "accept" {
		return r.Content
	}
	return nil
}

// sampled returns the words of the client's model.
func sampled(responses sdk.InputResponseMap, key string) (string, bool) {
	r, ok := responses[key].(*sdk.CreateMessageWithToolsResult)
	if !ok || r == nil {
		return "", false
	}
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			return t.Text, true
		}
	}
	return "", true
}

func sample1(question string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{MaxTokens: 100, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: question}}}}
}

func want(state string, requests sdk.InputRequestMap) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{InputRequests: requests, RequestState: state}, nil
}

// seal signs a state, so that one that comes back changed is known.
type seal struct{ key []byte }

func newSeal() seal {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return seal{key}
}

func (s seal) sign(state string) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(state))
	return state + "|" + hex.EncodeToString(mac.Sum(nil))
}

func (s seal) open(signed string) (string, bool) {
	state, _, ok := strings.Cut(signed, "|")
	return state, ok && hmac.Equal([]byte(s.sign(state)), []byte(signed))
}

func roundTool(name string, handle func(q *sdk.CallToolRequest) (*sdk.CallToolResult, error)) catalog.Tool {
	return catalog.Tool{Name: name, Description: "asks for more before it answers", Handle: func(_ context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return handle(q)
	}}
}

func roundTools() []catalog.Tool {
	s := newSeal()
	return []catalog.Tool{
		roundTool("test_missing_capability", missingCapability),
		roundTool("test_input_required_result_elicitation", askName),
		roundTool("test_input_required_result_sampling", func(q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if said, ok := sampled(q.Params.InputResponses, "capital_question"); ok {
				return text("Sampling response: " + said), nil
			}
			return want("", sdk.InputRequestMap{"capital_question": sample1("What is the capital of France?")})
		}),
		roundTool("test_input_required_result_list_roots", func(q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if r, ok := q.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok && r != nil {
				return text(fmt.Sprintf("%d roots", len(r.Roots))), nil
			}
			return want("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}})
		}),
		roundTool("test_input_required_result_request_state", s.confirm),
		roundTool("test_input_required_result_tampered_state", s.confirm),
		roundTool("test_input_required_result_multiple_inputs", s.several),
		roundTool("test_input_required_result_multi_round", s.twoRounds),
		roundTool("test_input_required_result_capabilities", askWhatCan),
	}
}

func missingCapability(q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if c := q.ClientCapabilities(); c != nil && c.Sampling != nil {
		return text("it samples"), nil
	}
	data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}})
	if err != nil {
		return nil, err
	}
	return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client must sample", Data: data}
}

func askName(q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if name, _ := accepted(q.Params.InputResponses, "user_name")["name"].(string); name != "" {
		return text("Hello, " + name + "!"), nil
	}
	return want("", sdk.InputRequestMap{"user_name": form("What is your name?", "name", "string")})
}

// confirm answers only to a state that it has signed itself.
func (s seal) confirm(q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if q.Params.RequestState != "" {
		if _, ok := s.open(q.Params.RequestState); !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this requestState is not ours"}
		}
		if accepted(q.Params.InputResponses, "confirm") != nil {
			return text("state-ok: confirmed"), nil
		}
	}
	return want(s.sign("asked"), sdk.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")})
}

// several asks for three things at once.
func (s seal) several(q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	in := q.Params.InputResponses
	name, _ := accepted(in, "user_name")["name"].(string)
	greeting, greeted := sampled(in, "greeting")
	roots, rooted := in["client_roots"].(*sdk.ListRootsResult)
	if name != "" && greeted && rooted && roots != nil {
		return text(fmt.Sprintf("%s %s, %d roots", greeting, name, len(roots.Roots))), nil
	}
	return want(s.sign("several"), sdk.InputRequestMap{
		"user_name": form("What is your name?", "name", "string"), "greeting": sample1("Generate a greeting"), "client_roots": &sdk.ListRootsParams{},
	})
}

// twoRounds asks twice; what it was told first is in the state.
func (s seal) twoRounds(q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	state, ok := s.open(q.Params.RequestState)
	name, second := strings.CutPrefix(state, "second:")
	switch {
	case !ok:
		return want(s.sign("first"), sdk.InputRequestMap{"step1": form("Step 1: What is your name?", "name", "string")})
	case !second:
		name, _ := accepted(q.Params.InputResponses, "step1")["name"].(string)
		return want(s.sign("second:"+name), sdk.InputRequestMap{"step2": form("Step 2: What is your favorite color?", "color", "string")})
	}
	return text(fmt.Sprintf("%s likes %v", name, accepted(q.Params.InputResponses, "step2")["color"])), nil
}

// askWhatCan asks only for what the client says that it can do.
func askWhatCan(q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if len(q.Params.InputResponses) > 0 {
		return text("done"), nil
	}
	requests := sdk.InputRequestMap{}
	if c := q.ClientCapabilities(); c != nil {
		if c.Elicitation != nil {
			requests["user_name"] = form("What is your name?", "name", "string")
		}
		if c.Sampling != nil {
			requests["greeting"] = sample1("Generate a short greeting")
		}
		if c.RootsV2 != nil {
			requests["client_roots"] = &sdk.ListRootsParams{}
		}
	}
	if len(requests) == 0 {
		return text("the client can do nothing of it"), nil
	}
	return want("", requests)
}
