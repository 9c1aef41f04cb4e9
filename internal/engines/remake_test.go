package engines

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
)

// cloudSettings are those of a server with two services in a cloud.
func cloudSettings(t *testing.T, cloud *openaitest.Server) *config.Config {
	t.Helper()
	return mustLoadText(t, `
asr: [c]
llm: [c, rules]
tts: [c]
providers:
  c: {type: openai, api_key: k, model: m, base_url: '`+cloud.URL()+`'}
  d: {type: openai, api_key: k, model: n, base_url: '`+cloud.URL()+`'}
  keyless: {type: openai, api_key: '${NOT_SET}', model: n}
`)
}

// keysOf lists what a maker has.
func keysOf(f *Maker) []string { return slices.Sorted(maps.Keys(f.made)) }

// has reports whether a maker has an engine.
func has(f *Maker, key string) bool { return len(f.made[key]) > 0 }

// Engines for other agents are made beside those there are, and let go of with the last set that has them. Of what fails
// nothing stays.
func TestRemake(t *testing.T) {
	bare(t)
	cfg, texts := cloudSettings(t, fakeCloud(t)), textsOf(t)
	f := New(slog.New(slog.DiscardHandler))
	t.Cleanup(f.Close)
	e, err := f.Make(t.Context(), cfg, texts, NewReport(f.log))
	if err != nil {
		t.Fatal(err)
	}
	first := keysOf(f)
	remake := func(p config.Persona) (Set, error) {
		all := *cfg
		all.Agents = map[string]config.Persona{"anna": p}
		return f.Remake(t.Context(), &all, texts, "anna")
	}
	made, err := remake(config.Persona{LLM: []string{"d", "rules"}, TTS: []string{"c"}})
	if anna := made.Agents["anna"]; err != nil || anna.LLM == nil || anna.TTS != e.Main.TTS || anna.ASR != nil || made.Main != e.Main {
		t.Fatalf("%+v %v", made, err)
	}
	if made.Release(); !slices.Equal(keysOf(f), first) {
		t.Errorf("what was given up is there: %v", keysOf(f))
	}
	again, err := remake(config.Persona{LLM: []string{"d", "rules"}})
	if err != nil {
		t.Fatal(err)
	}
	if e.Release(); !has(f, "LLM d") || !has(f, "HTTP d") || !has(f, "ASR c") {
		t.Errorf("what is used was let go of: %v", keysOf(f))
	}
	same, err := remake(config.Persona{LLM: []string{"d", "rules"}, Voice: "x"})
	if err != nil || same.Agents["anna"].LLM != again.Agents["anna"].LLM {
		t.Errorf("an engine that stays was made again, %v", err)
	}
	before := keysOf(f)
	if _, err := remake(config.Persona{LLM: []string{"keyless", "rules"}}); err == nil || !strings.Contains(err.Error(), "agents.anna.llm: keyless cannot be used: ") || !strings.Contains(err.Error(), "NOT_SET") {
		t.Errorf("without its key: %v", err)
	}
	if !slices.Equal(keysOf(f), before) {
		t.Errorf("of what failed there is %v", keysOf(f))
	}
	again.Release()
	same.Release()
	if len(f.made) > 0 {
		t.Errorf("left are %v", keysOf(f))
	}
}

// Of changed settings only what has changed is made: the rest is as it was, with the connections and the failures that it
// has seen. What has changed must be there.
func TestRenew(t *testing.T) {
	bare(t)
	cloud := fakeCloud(t)
	cfg, texts := cloudSettings(t, cloud), textsOf(t)
	f := New(slog.New(slog.DiscardHandler))
	t.Cleanup(f.Close)
	e, err := f.Make(t.Context(), cfg, texts, NewReport(f.log))
	if err != nil {
		t.Fatal(err)
	}
	cloud.Reply(openaitest.Chat, openaitest.Failure(401, "no"))
	for range e.Main.LLM.Generate(t.Context(), providers.LLMRequest{Messages: []providers.Message{{Role: providers.RoleUser, Content: "hi"}}}) {
	}
	failures := func(llm providers.LLM) (n int) {
		for _, s := range llm.(*chain.LLM).States() {
			if s.Name == "c" {
				n = s.Failures
			}
		}
		return n
	}
	if failures(e.Main.LLM) != 1 {
		t.Fatalf("%d failures", failures(e.Main.LLM))
	}
	renew := func(change func(c *config.Config)) (Set, error) {
		next := *cfg
		next.Providers = maps.Clone(cfg.Providers)
		change(&next)
		return f.Renew(t.Context(), cfg, &next, texts)
	}
	longer, err := renew(func(c *config.Config) { c.LLM = []string{"d", "c", "rules"} })
	if err != nil {
		t.Fatal(err)
	}
	if longer.Main.LLM == e.Main.LLM || longer.Main.TTS != e.Main.TTS || longer.Main.ASR != e.Main.ASR || longer.VAD != e.VAD || failures(longer.Main.LLM) != 1 {
		t.Errorf("%+v\n%+v", longer, e)
	}
	other, err := renew(func(c *config.Config) {
		p := c.Providers["c"]
		p.Model = "other"
		c.Providers["c"] = p
	})
	if err != nil {
		t.Fatal(err)
	}
	if other.Main.LLM == e.Main.LLM || other.Main.TTS == e.Main.TTS || failures(other.Main.LLM) != 0 {
		t.Errorf("an engine with other settings is the one of before: %+v", other)
	}
	priced, err := renew(func(c *config.Config) {
		p := c.Providers["c"]
		p.Price.Input, p.Place = 3, "config.yaml:1"
		c.Providers["c"] = p
	})
	if err != nil || priced.Main != e.Main {
		t.Errorf("a price makes another engine, %v", err)
	}
	half, err := renew(func(c *config.Config) { c.TTS = []string{"keyless", "c"} })
	if err != nil || half.Left["TTS keyless"] == nil {
		t.Errorf("of a chain that has a member: %v, left out %v", err, half.Left)
	}
	half.Release()
	before := keysOf(f)
	for _, c := range []struct {
		change func(c *config.Config)
		want   string
	}{
		{func(c *config.Config) { c.TTS = []string{"keyless"} }, "tts: keyless cannot be used: "},
		{func(c *config.Config) {
			c.Agents = map[string]config.Persona{"anna": {ASR: []string{"keyless"}}}
		}, "agents.anna.asr: keyless cannot be used: "},
		{func(c *config.Config) {
			c.LLM = []string{"h"}
			c.Providers["h"] = config.Provider{Type: "deepgram", Keys: config.Keys{APIKey: "k"}}
		}, "h "},
	} {
		if _, err := renew(c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if !slices.Equal(keysOf(f), before) {
		t.Errorf("of what failed there is %v, before there was %v", keysOf(f), before)
	}
	for _, set := range []Set{e, longer, other, priced} {
		set.Release()
		set.Release() // nothing
	}
	if len(f.made) > 0 {
		t.Errorf("left are %v", keysOf(f))
	}
}

// closing tells how it was ended.
type closing struct{ ended *string }

func (c closing) Close() error { *c.ended += "closed"; return nil }
func (c closing) Retire()      { *c.ended += "retired" }

// What is not named any more may be in use still: it is retired, and closed only at the end of the program.
func TestReleaseRetires(t *testing.T) {
	f := New(slog.New(slog.DiscardHandler))
	var gone, kept string
	hold := func(key string, c closing) *batch {
		b := f.batch(config.Default(), NewReport(f.log))
		if _, _, err := once(b, key, "", func(*made) (closing, error) { return c, nil }); err != nil {
			t.Fatal(err)
		}
		return b
	}
	old := hold("ASR old", closing{&gone})
	hold("ASR new", closing{&kept})
	old.release()
	f.Close()
	if gone != "retired" || kept != "closed" {
		t.Errorf("the one that nobody has is %s, the other one %s", gone, kept)
	}
}
