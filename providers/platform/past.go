package platform

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/generation"
)

// trace is left with each answer in the history, so that a dialogue goes on after a restart
// wherever histories are kept.
type trace struct {
	Talk  string `json:"talk"` // as the service calls it
	Agent string `json:"agent"`
	At    int64  `json:"at"` // in Unix seconds
}

// owner names whose traces are read.
func (m *Model) owner() string { return generation.Owner(m.o.Account.Name, m.o.Model) }

// traceOf returns the trace of a turn; none if the service does not name the dialogue.
func (m *Model) traceOf(t *Turn) providers.Echo {
	if t.Talk == "" {
		return providers.Echo{}
	}
	raw, err := json.Marshal(trace{t.Talk, t.AgentID, time.Now().Unix()})
	if err != nil {
		return providers.Echo{}
	}
	return providers.NewEcho(m.owner(), string(raw))
}

// recall lets a turn go on with the dialogue whose trace is in the history, unless it is
// known what it goes on with, or the service has forgotten it by now.
func (m *Model) recall(t *Turn) {
	if t.Talk != "" {
		return
	}
	for _, before := range slices.Backward(t.Before) {
		var left trace
		if json.Unmarshal([]byte(before.Echo.For(m.owner())), &left) != nil || left.Agent != t.AgentID {
			continue
		}
		if time.Since(time.Unix(left.At, 0)) < m.talks.idle {
			t.Talk = left.Talk
		}
		return
	}
}

// What a service is told of a dialogue that it has lost.
const (
	toldMessages = 8   // the last ones
	toldBytes    = 600 // of each
)

// retell puts what was said before in front of the user's words. Without any it changes
// nothing.
func (t *Turn) retell() error {
	var lines []string
	answered := false
	for _, m := range slices.Backward(t.Before) {
		who := ""
		switch {
		case m.Content == "" || len(lines) == toldMessages:
		case m.Role == providers.RoleAssistant:
			who, answered = "A: ", true
		case m.Role == providers.RoleUser && answered: // what was not answered says nothing
			who = "U: "
		}
		if who != "" {
			lines = append(lines, who+text.Cut(strings.Join(strings.Fields(m.Content), " "), toldBytes))
		}
	}
	last := len(t.Messages) - 1
	if len(lines) == 0 || last < 0 || t.Messages[last].Role != providers.RoleUser {
		return nil
	}
	phrases, err := prompts.Load("")
	if err != nil {
		return err
	}
	slices.Reverse(lines)
	t.Messages = slices.Clone(t.Messages)
	t.Messages[last].Content = phrases.Phrase(prompts.EarlierTalk, t.Language, "dialogue", strings.Join(lines, "\n"), "words", t.Messages[last].Content)
	return nil
}
