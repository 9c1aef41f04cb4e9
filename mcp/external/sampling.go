//lint:file-ignore SA1019 servers still ask for words of a model

package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Limits of what a server may ask our model.
const (
	maxAsked    = 32 << 10 // bytes of all messages
	maxAnswered = 4096     // tokens of an answer, whatever the server wants
	tokenBytes  = 4        // of an answer, about
	maxSampling = 1000     // answers in an hour that an entry may allow
	askWindow   = time.Hour
	askLimit    = 2 * time.Minute // of one answer
)

// Ask is a question of a server to our model.
type Ask struct {
	Server   string
	System   string
	Messages []Said
	Most     int // bytes of the answer that are wanted
}

// Said is one message of an [Ask].
type Said struct {
	Assistant bool
	Text      string
}

// Answer holds the words of a model.
type Answer struct {
	Text  string
	Model string
	Cut   bool // it would have gone on
}

// quota counts the answers of the last hour. Its method may be called at the same time.
type quota struct {
	mu   sync.Mutex
	each []time.Time // the oldest first
}

// take takes one of so many an hour; wait says when the next is there if none is left.
func (a *quota) take(most int) (wait time.Duration, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for len(a.each) > 0 && now.Sub(a.each[0]) >= askWindow {
		a.each = a.each[1:]
	}
	if len(a.each) >= most {
		return askWindow - now.Sub(a.each[0]), false
	}
	a.each = append(a.each, now)
	return 0, true
}

// sample answers sampling/createMessage by our model, within the quota of the entry. The model gets the words of the server
// and nothing else: no tools, and nothing of what people said.
func (s *Server) sample(ctx context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
	refuse := func(code int64, why string) (*sdk.CreateMessageResult, error) {
		s.log.Warn("mcp server gets no words of the model", "why", why)
		return nil, &jsonrpc.Error{Code: code, Message: why}
	}
	if r.Params == nil {
		return refuse(jsonrpc.CodeInvalidParams, "there are no params")
	}
	q := Ask{Server: s.name, System: r.Params.SystemPrompt, Most: int(min(cmp.Or(max(r.Params.MaxTokens, 0), maxAnswered), maxAnswered)) * tokenBytes}
	size := len(q.System)
	for _, m := range r.Params.Messages {
		words, is := contentText(m)
		if !is {
			return refuse(jsonrpc.CodeInvalidParams, "only texts of user and assistant are answered here")
		}
		q.Messages = append(q.Messages, Said{m.Role == "assistant", words})
		size += len(words)
	}
	switch {
	case len(q.Messages) == 0:
		return refuse(jsonrpc.CodeInvalidParams, "there are no messages")
	case size > maxAsked:
		return refuse(jsonrpc.CodeInvalidParams, fmt.Sprintf("%d bytes are asked, %d at most are answered", size, maxAsked))
	}
	if wait, ok := s.quota.take(s.config.Sampling); !ok {
		return refuse(codeSpent, fmt.Sprintf("the %d answers of this hour are spent; the next one is there in %s", s.config.Sampling, wait.Round(time.Second)))
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	a, err := s.answers(ctx, q)
	if err != nil {
		s.log.Warn("mcp server gets no words of the model", "err", err)
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: ErrNoModel.Error()} // the reason is nothing to strangers
	}
	s.log.Info("mcp server has asked the model", "asked_bytes", size, "answered_bytes", len(a.Text), "model", a.Model)
	out := &sdk.CreateMessageResult{Role: "assistant", Model: a.Model, Content: &sdk.TextContent{Text: a.Text}, StopReason: "endTurn"}
	if a.Cut {
		out.StopReason = "maxTokens"
	}
	return out, nil
}

// codeSpent is the code of a refusal by the user, as the specification has it in its examples.
const codeSpent = -1

// ErrNoModel says that no language model answers.
var ErrNoModel = errors.New("no language model answers here now")

func contentText(m *sdk.SamplingMessage) (words string, ok bool) {
	if m == nil || m.Role != "user" && m.Role != "assistant" {
		return "", false
	}
	c, is := m.Content.(*sdk.TextContent)
	if !is || strings.TrimSpace(c.Text) == "" {
		return "", false
	}
	return c.Text, true
}
