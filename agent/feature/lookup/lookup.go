// Package lookup tells models that there are documents in which they can look things up.
package lookup

import (
	"context"
	"slices"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// Feature tells models of a tool that looks into documents, wherever it is offered.
type Feature struct{ Tool string }

// Name is the name of its state, which it does not have.
func (Feature) Name() string { return "lookup" }

// Attach makes the instance of a conversation.
func (f Feature) Attach(h feature.Host, _ feature.State) feature.Instance {
	return instance{f.Tool, h.Env().Tools}
}

// instance is the feature in one conversation.
type instance struct {
	tool  string
	tools *router.Router // nil: there are none
}

var _ feature.Noting = instance{}

// Expects implements [feature.Instance].
func (instance) Expects(time.Time) bool { return false }

// Detach implements [feature.Instance].
func (instance) Detach() feature.State { return nil }

// Notes implements [feature.Noting].
func (i instance) Notes(_ context.Context, _, _ string, lang text.Lang) think.Notes {
	if i.tools == nil || !slices.ContainsFunc(i.tools.Offers(), func(o router.Offer) bool { return o.Tool.Name == i.tool && o.Tool.Source == "local" }) {
		return think.Notes{}
	}
	return think.Notes{Always: prompts.Documents.In(lang, "tool", i.tool)}
}
