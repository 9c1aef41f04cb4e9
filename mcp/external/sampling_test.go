//lint:file-ignore SA1019 servers still ask for words of a model

package external

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// thinking adds a tool by which a server asks our model what it is told.
func thinking(peer *sdk.Server, params *sdk.CreateMessageParams) {
	peer.AddTool(&sdk.Tool{Name: "think", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Session.InitializeParams().Capabilities.Sampling == nil {
			return words("not told"), nil
		}
		got, err := r.Session.CreateMessage(ctx, params)
		if err != nil {
			return words("refused: " + err.Error()), nil
		}
		return words(fmt.Sprint(got.Model, " ", got.StopReason, " ", got.Content.(*sdk.TextContent).Text)), nil
	})
}

func said(role sdk.Role, text string) *sdk.SamplingMessage {
	return &sdk.SamplingMessage{Role: role, Content: &sdk.TextContent{Text: text}}
}

// TestSampling: a server whose entry allows it gets words of our model, so many times an hour, and hears nothing of why there are
// none; without that it is not told that there is a model.
func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []Ask
		var fault error
		o := ServerOptions{Answers: func(_ context.Context, q Ask) (Answer, error) {
			asked = append(asked, q)
			return Answer{Text: "a poem", Model: "m1", Cut: q.Most < 100}, fault
		}}
		run := func(c Config, params *sdk.CreateMessageParams) *Server {
			p, peer := newPipeNet(), tools(t)
			thinking(peer, params)
			p.serve(t, streamable(t, peer))
			c.Transport, c.URL, c.Legacy = HTTP, "http://h/mcp", true
			s := dialled(c, p, o)
			running(t, s)
			return s
		}
		params := &sdk.CreateMessageParams{SystemPrompt: "be short", MaxTokens: 20, Messages: []*sdk.SamplingMessage{said("user", "hi"), said("assistant", "ho"), said("user", "a poem")}}
		says(t, run(Config{}, params), "think", "not told")
		s := run(Config{Sampling: 2}, params)
		says(t, s, "think", "m1 maxTokens a poem")
		if q := asked[0]; q.Server != "far" || q.System != "be short" || q.Most != 80 || fmt.Sprint(q.Messages) != "[{false hi} {true ho} {false a poem}]" {
			t.Errorf("%+v", q)
		}
		later(30 * time.Minute)
		fault = errors.New("key sk-secret is wrong")
		if got, err := s.CallTool(t.Context(), "think", nil); err != nil || !strings.Contains(got.(string), ErrNoModel.Error()) || strings.Contains(got.(string), "secret") {
			t.Errorf("%v, %v", got, err)
		}
		fault = nil
		if got, _ := s.CallTool(t.Context(), "think", nil); !strings.Contains(got.(string), "the 2 answers of this hour are spent; the next one is there in 30m0s") || len(asked) != 2 {
			t.Errorf("%v", got)
		}
		later(30 * time.Minute)
		says(t, s, "think", "m1 maxTokens a poem")
		for want, bad := range map[string]*sdk.CreateMessageParams{
			"no messages": {MaxTokens: 1}, "only texts": {MaxTokens: 1, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.ImageContent{Data: []byte("x"), MIMEType: "image/png"}}}},
			"at most": {MaxTokens: 1, Messages: []*sdk.SamplingMessage{said("user", strings.Repeat("x", maxAsked+1))}},
		} {
			if got, err := run(Config{Sampling: 9}, bad).CallTool(t.Context(), "think", nil); err != nil || !strings.Contains(got.(string), want) {
				t.Errorf("%s: %v, %v", want, got, err)
			}
		}
		if len(asked) != 3 {
			t.Errorf("the model was asked %d times", len(asked))
		}
	})
}
