// Package coze talks with the bots of Coze, whose local plugins are our tools.
package coze

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// retries is how often a bot that is busy is asked again: it may still be at an answer
// that was stopped.
const retries = 3

func regions() map[string]string {
	return map[string]string{"cn": "https://api.coze.cn", "intl": "https://api.coze.com"}
}

// Kind describes Coze. The application is the bot.
func Kind() service.Kind {
	return service.Kind{
		Type: "coze", Title: "Coze", Regions: regions(), Address: regions()["cn"], Extra: true,
		Env:   []service.Env{{Field: service.Key, Name: "COZE_API_TOKEN"}, {Field: service.ID, Name: "COZE_BOT_ID"}},
		Needs: []service.Field{service.Key, service.ID},
		More:  []service.Setting{{Name: "bot_id"}}, // the bot, too
		LLM:   func(s service.Section) (providers.LLM, error) { return New(s) },
	}
}

// New makes the model of a section. It asks the server nothing.
func New(s service.Section) (*platform.Model, error) {
	bot := s.Text("bot_id", s.ID)
	if bot == "" {
		return nil, fmt.Errorf("%s: app_id: it must be the number of the bot, which stands in its address", s.Name)
	}
	o, at, err := generation.FromSection(s, service.LLM, s.Address(regions(), regions()["cn"]), bot)
	if err != nil {
		return nil, err
	}
	if s.Retries == nil {
		o.Retries = retries
	}
	return platform.New(platform.Options{Options: o, Log: s.Log}, &wire{s: s, at: at, bot: bot, owner: generation.Owner(s.Name, bot)}), nil
}

// wire makes the requests.
type wire struct {
	s     service.Section
	at    generation.Endpoint
	bot   string
	owner string // of echoes
}

func (w *wire) post(ctx context.Context, path string, query url.Values, body any) (*http.Request, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return w.at.Post(ctx, path, body, "Authorization", "Bearer "+w.s.Key.Reveal())
}

// pending names the answer that waits for results of tools. It goes with the calls.
type pending struct {
	Chat string `json:"chat_id"`
	Talk string `json:"conversation_id"`
}

// Request makes the request of a turn, or hands in what tools have given.
func (w *wire) Request(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	if at, outputs := w.results(t.Messages); len(outputs) > 0 {
		t.Talk, t.Run = at.Talk, at.Chat
		return w.post(ctx, "/v3/chat/submit_tool_outputs", url.Values{"conversation_id": {at.Talk}, "chat_id": {at.Chat}},
			map[string]any{"tool_outputs": outputs, "stream": true})
	}
	body := map[string]any{
		"bot_id": w.bot, "user_id": t.User, "stream": true, "auto_save_history": true,
		"additional_messages": []any{map[string]any{"role": "user", "type": "question", "content_type": "text", "content": t.NewestText()}},
	}
	if err := generation.Merge(body, w.s.Extra); err != nil {
		return nil, err
	}
	query := url.Values{}
	if t.Talk != "" { // in the body it would be ignored
		query.Set("conversation_id", t.Talk)
	}
	return w.post(ctx, "/v3/chat", query, body)
}

// output is the result of a tool.
type output struct {
	ID     string `json:"tool_call_id"`
	Output string `json:"output"`
}

// results returns the results after the last calls that the bot has made; none if the last
// message is no result of those.
func (w *wire) results(messages []providers.Message) (at pending, out []output) {
	for i := len(messages) - 1; i >= 0; i-- {
		switch m := messages[i]; m.Role {
		case providers.RoleTool:
			out = append([]output{{m.ToolCallID, m.Content}}, out...)
		case providers.RoleAssistant:
			for _, c := range m.ToolCalls {
				if raw := c.Echo.For(w.owner); raw != "" && json.Unmarshal([]byte(raw), &at) == nil {
					return at, out
				}
			}
			return at, nil
		default:
			return at, nil
		}
	}
	return at, nil
}

// Answer begins to read an answer.
func (w *wire) Answer(t *platform.Turn) generation.Answer { return &answer{turn: t, owner: w.owner} }

// Stop makes the request that cancels an answer.
func (w *wire) Stop(ctx context.Context, t *platform.Turn) (*http.Request, error) {
	if t.Talk == "" {
		return nil, errors.New("the answer is of no dialogue")
	}
	return w.post(ctx, "/v3/chat/cancel", nil, map[string]any{"conversation_id": t.Talk, "chat_id": t.Run})
}

// Judge puts the kind of a refusal right by Coze's codes.
func (w *wire) Judge(r *transport.Refusal) bool {
	switch r.Code {
	case "4000", "4001", "4002", "4003", "4200", "4015":
		r.Kind = providers.BadRequest
	case "4100", "4101", "700012006":
		r.Kind = providers.Unauthorized
	case "4013":
		r.Kind = providers.RateLimited
	case "4028", "4027", "4011":
		r.Kind = providers.NoCredit
	case "4009", "4016", "5000": // busy with an answer to what was said before
		r.Kind = providers.Unavailable
	}
	said := strings.ToLower(r.Text) // the codes for it differ
	return strings.Contains(said, "conversation") && (strings.Contains(said, "exist") || strings.Contains(said, "not found") || strings.Contains(said, "invalid"))
}
