package main

import (
	"context"

	"xiaozhi/internal/config"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
)

// embed has vectors made of a question and of two sentences, and says which of them is nearer.
func (t *trier) embed(ctx context.Context, by providers.Embedder, price config.Price) ([]outcome, error) {
	word := func(id string) string { return message.In(text.Lang(t.f.language), id) }
	made, err := probe.Embed(ctx, by, word("services/embed-asked"), word("services/embed-near"), word("services/embed-far"))
	if err != nil {
		return nil, err
	}
	nearest := word("services/embed-far")
	if made.Right {
		nearest = word("services/embed-near")
	}
	return []outcome{{
		Heard: word("services/embed-asked"), Text: nearest, Total: inMS(made.Took), Numbers: made.Dimensions, Sent: made.Tokens, Cost: price.Embedding(made.Tokens),
		times: func(o outcome) string { return message.Both("services/embedded", o.Numbers, ms(o.Total)) },
	}}, nil
}
