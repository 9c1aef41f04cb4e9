package external

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/internal/text"
	"xiaozhi/mcp"
)

// maxQuestion is how much of a server's question is logged, in bytes.
const maxQuestion = 200

// errQuestion is the failure of a call that would go on only after an answer
// that nobody here gives.
var errQuestion = &mcp.ToolError{Message: "the tool wants an answer from a person before it goes on, and nobody here is asked"}

// form is the part of a requested schema that decides how it is filled in.
type form struct {
	Properties map[string]struct {
		Default any `json:"default"`
	} `json:"properties"`
	Required []string `json:"required"`
}

// filledIn answers a server's form: each field gets its default. It is declined
// if a required field has none, and if there are no fields at all: then the
// question is whether a person agrees, which nobody has.
func filledIn(schema any) *sdk.ElicitResult {
	decline := &sdk.ElicitResult{Action: "decline"}
	raw, err := json.Marshal(schema)
	var f form
	if err != nil || json.Unmarshal(raw, &f) != nil || len(f.Properties) == 0 {
		return decline
	}
	content := map[string]any{}
	for name, field := range f.Properties {
		if field.Default != nil {
			content[name] = field.Default
		}
	}
	for _, name := range f.Required {
		if _, ok := content[name]; !ok {
			return decline
		}
	}
	return &sdk.ElicitResult{Action: "accept", Content: content}
}

// options adds to the options of the SDK's client how questions are answered.
func (s *Server) options(o *sdk.ClientOptions) *sdk.ClientOptions {
	if !s.config.Defaults {
		// It is not told that we answer; what it asks nevertheless is an error, and
		// it has no say in what is sent again.
		o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
		return o
	}
	o.ElicitationHandler = s.answer
	return o
}

// answer fills in a form, and logs the question and what became of it.
func (s *Server) answer(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	if r.Params.Mode == "url" { // which is not among our capabilities
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "nobody here opens an address"}
	}
	result := filledIn(r.Params.RequestedSchema)
	ok, held := s.messages.pass(time.Now())
	if ok {
		s.log.Info("mcp server asks a person", "question", s.mask.text(text.Cut(r.Params.Message, maxQuestion)), "answer", result.Action, "left_out", held)
	}
	return result, nil
}
