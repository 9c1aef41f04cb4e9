package toolcount

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"xiaozhi/mcp/router"
)

// TestTally: each call counts for its source, once, as what became of it; whatever a source is called, there are no more labels.
func TestTally(t *testing.T) {
	tally := New()
	var wg sync.WaitGroup
	for _, rec := range []router.Record{
		{Source: "local", Outcome: "req_llm", Took: time.Second},
		{Source: "gateway", Outcome: "response", Took: time.Second},
		{Source: "file", Outcome: "error"},
		{Source: "device", Outcome: "error", Late: true},
		{Source: "device", Outcome: "none"},
		{Source: "light", Outcome: "error", Refusal: router.RefusedInvalid},
		{Source: "iot", Outcome: "error", Refusal: router.RefusedDenied},
		{Source: "external:a", Outcome: "not_found"},
		{Source: "external:b", Outcome: "error", Refusal: router.RefusedConsent},
		{Source: "", Outcome: "not_found", Refusal: router.RefusedUnknown},
		{Source: "made up", Outcome: "not_found", Refusal: router.RefusedUnknown},
	} {
		wg.Go(func() { tally.Note(rec) })
	}
	wg.Wait()
	type row struct{ calls, failed, late, unknown, denied, invalid, consent uint64 }
	want := map[string]row{
		"local": {calls: 2}, "file": {calls: 1, failed: 1}, "device": {calls: 2, failed: 1, late: 1}, "light": {invalid: 1}, "iot": {denied: 1},
		"external": {calls: 1, failed: 1, consent: 1}, "none": {unknown: 2},
	}
	all := tally.Counts()
	for i, c := range all {
		got := row{c.Calls, c.Failed, c.Late, c.Refused[router.RefusedUnknown], c.Refused[router.RefusedDenied], c.Refused[router.RefusedInvalid], c.Refused[router.RefusedConsent]}
		if c.Source != Labels()[i] || got != want[c.Source] || len(c.Refused) != len(router.Refusals()) {
			t.Errorf("%s: %+v, want %+v", c.Source, c, want[c.Source])
		}
	}
	if len(all) != len(want) || all[0].Took != 2*time.Second {
		t.Errorf("%+v", all)
	}
	all[0].Refused[router.RefusedBusy] = 9
	if tally.Counts()[0].Refused[router.RefusedBusy] != 0 {
		t.Error("it gave away its own numbers")
	}
	if out, err := json.Marshal(tally.Counts()[6]); err != nil || string(out) != `{"source":"none","calls":0,"failed":0,"late":0,"refused":{"busy":0,"closed":0,"consent":0,"denied":0,"invalid":0,"limit":0,"not_found":2}}` {
		t.Errorf("%s, %v", out, err)
	}
}
