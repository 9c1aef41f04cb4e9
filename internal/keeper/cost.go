package keeper

import (
	"xiaozhi/internal/config"
	"xiaozhi/internal/timeline"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// spent puts what a turn did when into its record, with what that cost by the owner's prices.
func (k *Keeper) spent(t *store.Turn, f *timeline.Figures, calls map[string]router.Record) {
	spans, money := f.Spans(), 0.0
	whole := len(f.Attempts) > 0 || t.ASRName+t.LLMName+t.TTSName == "" // the cost is known
	for i, a := range f.Attempts {
		price, known := k.o.Price(a.Provider)
		cost := price.Tokens(providers.Usage{Prompt: a.Tokens.Prompt, Cached: a.Cached, Completion: a.Tokens.Completion}) +
			price.Hearing(a.Sound) + price.Spoken(a.Characters)
		money += cost
		free := known && price == config.Price{}
		whole = whole && (free || cost > 0 || a.Outcome != timeline.Answered)
		spans.Attempts[i].Cost = cost
		t.TokensIn += a.Tokens.Prompt
		t.TokensOut += a.Tokens.Completion
		t.TTSChars += a.Characters
		t.ASRSound = max(t.ASRSound, a.Sound)
	}
	for i := range spans.Tools {
		c := &spans.Tools[i]
		if rec, ok := calls[c.ID]; ok {
			c.Ran(rec.Started, rec.Took, string(rec.Kind), rec.Outcome == mcp.ActionTypeError.String(), f.Marks.Zero)
		}
	}
	if micros := int(money*1e6 + 0.5); micros > 0 || whole {
		t.CostMicros = &micros
	}
	t.Spans = spans.String()
}
