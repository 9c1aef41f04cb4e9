package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// TestRunnerCounts: each call that no router has made leaves one record, which says what became of it.
func TestRunnerCounts(t *testing.T) {
	s := newShop(t)
	var records []router.Record
	s.runner.Count = func(rec router.Record) { records = append(records, rec) }
	s.runner.SetGate(router.NewGate(router.Rules{Confirm: []string{"shop.buy"}}))
	fails := Tool{Stream: "shop", Name: "fail", Source: "external:shop", Trusted: true, Run: func(context.Context, map[string]any) (any, error) { return nil, errors.New("oh") }}
	routed := func(o Outcome) func(context.Context, Call) Outcome {
		return func(context.Context, Call) Outcome { return o }
	}
	for _, tool := range []Tool{
		says("shop", "look", "nice"), says("shop", "buy", "sold"), fails,
		{Stream: "device-1", Name: "lamp", Routed: true, Source: "device", Do: routed(Outcome{Response: mcp.ActionResponse{Action: mcp.ActionTypeNone}})},
		{Stream: "device-1", Name: "fan", Routed: true, Source: "device", Do: routed(Outcome{Invalid: "n"})},
	} {
		if err := s.Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	owner, reader := Caller{Owner: true}, Caller{Token: &Token{Name: "r", ReadOnly: true}}
	for _, c := range []struct {
		who       Caller
		tool      string
		arguments string
		source    string
		outcome   string
		why       router.Refusal
		counts    bool
	}{
		{owner, "shop.look", "", "gateway", "req_llm", "", true},
		{owner, "shop.fail", "", "external:shop", "error", "", true},
		{owner, "shop.look", "[]", "gateway", "error", router.RefusedInvalid, true},
		{owner, "shop.buy", "", "gateway", "error", router.RefusedConsent, true},
		{reader, "shop.look", "", "gateway", "error", router.RefusedDenied, true},
		{reader, "device-1.lamp", "", "device", "error", router.RefusedDenied, true},
		{owner, "device-1.lamp", "", "", "", "", false}, // its router has counted it
		{owner, "device-1.fan", "", "", "", "", false},
	} {
		v, _ := s.Of(c.who, "")
		e, ok := v.Tool(c.tool)
		if !ok {
			t.Fatal(c.tool)
		}
		records = nil
		_, _ = s.runner.Run(WithCaller(t.Context(), c.who), e, json.RawMessage(c.arguments), nil)
		if len(records) > 0 != c.counts || c.counts && (len(records) != 1 || records[0].Source != c.source || records[0].Outcome != c.outcome || records[0].Refusal != c.why) {
			t.Errorf("%s %s by %s: %+v", c.tool, c.arguments, c.who.Name(), records)
		}
	}
	records = nil
	s.runner.RefuseUnknown(owner, "shop.none")
	if len(records) != 1 || records[0].Refusal != router.RefusedUnknown || records[0].Source != "" {
		t.Errorf("unknown: %+v", records)
	}
}
