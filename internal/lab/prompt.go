package lab

import (
	"context"
	"encoding/json"
	"strings"

	"xiaozhi/agent/history"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// PromptOrder says whose prompt is shown.
type PromptOrder struct {
	Setup
	Device string `json:"device"`          // "": any, with which nothing was said
	Words  string `json:"words,omitempty"` // of the user; "": none
}

// PromptPart is a part of what a model is sent.
type PromptPart struct {
	Part   string `json:"part"` // system, tools, memory, history or words
	Tokens int    `json:"tokens"`
	Items  int    `json:"items"` // tools or messages
	Text   string `json:"text"`
}

// Prompt holds the first request of a turn to a model.
type Prompt struct {
	Agent  string       `json:"agent"`
	Model  string       `json:"model"`
	Parts  []PromptPart `json:"parts"`
	Tokens int          `json:"tokens"` // about: each model counts in its own way

	Variables []string `json:"variables"` // names that a prompt may hold in double braces
}

// maxHistoryTurns is how many turns of a talk are looked at for its history.
const maxHistoryTurns = 64

// Prompt returns what a model would be sent now, if the user said those words: made as a turn makes it.
func (l *Lab) Prompt(ctx context.Context, order PromptOrder) (p Prompt, err error) {
	typed := order.Prompt
	if typed == "" && len(order.Doc) > 0 {
		var doc struct {
			Text string `json:"prompt_text"`
		}
		if json.Unmarshal(order.Doc, &doc) == nil {
			typed = doc.Text
		}
	}
	if name, meant, line := prompts.CheckText(typed); name != "" {
		return p, refuse(Invalid, "lab/variable", line, name, meant)
	}
	cast, err := l.cast(ctx, order.Device, order.Setup, false, true)
	if err != nil {
		return p, err
	}
	defer cast.Close()
	turn := cast.Turn
	turn.Agent, turn.Words, turn.Lang = cast.Agent, order.Words, text.Resolve(order.Words, "", cast.Language)
	if order.Device != "" {
		if turn.History, err = l.history(ctx, order.Device); err != nil {
			return p, err
		}
	}
	req, err := think.Request(&cast.Think, turn, cast.Tools)
	if err != nil {
		return p, err
	}
	p = Prompt{Agent: cast.Agent, Model: cast.LLM.Name(), Variables: prompts.Variables()}
	p.Parts = l.parts(req, len(turn.History))
	for _, part := range p.Parts {
		p.Tokens += part.Tokens
	}
	return p, nil
}

// history returns the dialogue of the last talk of a device, within the budget.
func (l *Lab) history(ctx context.Context, device string) ([]providers.Message, error) {
	last, err := l.o.Turns.List(ctx, device, store.Page{Limit: 1})
	if err != nil || len(last) == 0 {
		return nil, err
	}
	next := last[0]
	next.Seq++
	rows, err := l.o.Turns.Before(ctx, next, maxHistoryTurns)
	if err != nil {
		return nil, err
	}
	var log history.Log
	for _, row := range rows {
		m, err := l.o.Read(row)
		if err != nil {
			return nil, err
		}
		log.Add(m)
	}
	log.Trim(l.o.Stage.Budget(), l.o.Stage.Count)
	return log.Snapshot(), nil
}

// parts cuts a request into what people know of it.
func (l *Lab) parts(req providers.LLMRequest, past int) []PromptPart {
	part := func(name string, items int, lines ...string) PromptPart {
		words := strings.Join(lines, "\n")
		return PromptPart{Part: name, Tokens: l.o.Stage.Count(words), Items: items, Text: words}
	}
	var tools, dialogue, words []string
	for _, t := range req.Tools {
		tools = append(tools, t.Name+": "+t.Description+"\n"+string(t.Parameters))
	}
	for i, m := range req.Messages[1:] {
		line := string(m.Role) + ": " + m.Content
		for _, c := range m.ToolCalls {
			line += "\n" + c.Name + " " + c.Arguments
		}
		if i < past {
			dialogue = append(dialogue, line)
		} else {
			words = append(words, line)
		}
	}
	return []PromptPart{
		part("system", 1, req.Messages[0].Content), part("tools", len(tools), tools...), part("memory", 0), part("history", len(dialogue), dialogue...),
		part("words", len(words), words...),
	}
}
