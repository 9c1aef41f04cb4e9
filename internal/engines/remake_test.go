package engines

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/prompts"
)

// Engines for other agents are made beside those there are, and let go of when nobody names them. Of what fails nothing
// stays.
func TestRemake(t *testing.T) {
	bare(t)
	cloud := fakeCloud(t)
	cfg := mustLoadText(t, `
asr: [c]
llm: [c, rules]
tts: [c]
providers:
  c: {type: openai, api_key: k, model: m, base_url: '`+cloud.URL()+`'}
  d: {type: openai, api_key: k, model: n, base_url: '`+cloud.URL()+`'}
  keyless: {type: openai, api_key: '${NOT_SET}', model: n}
`)
	f := makerOf(cfg, slog.New(slog.DiscardHandler))
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.All(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	first := slices.Sorted(maps.Keys(f.made))
	with := func(p config.Persona) *config.Config {
		all := *cfg
		all.Agents = map[string]config.Persona{"anna": p}
		return &all
	}

	made, drop, err := f.Remake(t.Context(), with(config.Persona{LLM: []string{"d", "rules"}, TTS: []string{"c"}}), "anna")
	if err != nil || made["anna"].LLM == nil || made["anna"].TTS != e.Main.TTS || made["anna"].ASR != nil {
		t.Fatalf("%+v %v", made, err)
	}
	if drop(); !slices.Equal(slices.Sorted(maps.Keys(f.made)), first) || f.clients["d"] != nil || f.cfg != cfg {
		t.Errorf("what was given up is there: %v", slices.Sorted(maps.Keys(f.made)))
	}

	again, _, err := f.Remake(t.Context(), with(config.Persona{LLM: []string{"d", "rules"}}), "anna")
	if err != nil {
		t.Fatal(err)
	}
	f.Sweep()
	if f.made["LLM d"].what == nil || f.clients["d"] == nil {
		t.Error("what is used was let go of")
	}
	if same, _, err := f.Remake(t.Context(), with(config.Persona{LLM: []string{"d", "rules"}, Voice: "x"}), "anna"); err != nil || same["anna"].LLM != again["anna"].LLM {
		t.Errorf("an engine that stays was made again, %v", err)
	}
	if _, _, err := f.Remake(t.Context(), with(config.Persona{LLM: []string{"keyless", "rules"}}), "anna"); err == nil || !strings.Contains(err.Error(), "agents.anna.llm: keyless cannot be used: ") || !strings.Contains(err.Error(), "NOT_SET") {
		t.Errorf("without its key: %v", err)
	}
	if _, _, err := f.Remake(t.Context(), with(config.Persona{}), "anna"); err != nil {
		t.Fatal(err)
	}
	f.Sweep()
	if got := slices.Sorted(maps.Keys(f.made)); !slices.Equal(got, first) || f.clients["d"] != nil || f.clients["c"] == nil {
		t.Errorf("left are %v, want %v", got, first)
	}
}

// closing tells how it was ended.
type closing struct{ ended *string }

func (c closing) Close() error { *c.ended += "closed"; return nil }
func (c closing) Retire()      { *c.ended += "retired" }

// What is not named any more may be in use still: it is retired, and closed only at the end of the program.
func TestSweepRetires(t *testing.T) {
	f := makerOf(config.Default(), slog.New(slog.DiscardHandler))
	var gone, kept string
	f.made["ASR other"], f.made["ASR pocketsphinx"] = made{what: closing{&gone}}, made{what: closing{&kept}}
	f.Sweep()
	f.Close()
	if gone != "retired" || kept != "closed" {
		t.Errorf("the one that nobody names is %s, the other one %s", gone, kept)
	}
}
