package agents

import (
	"slices"
	"strings"
	"testing"

	"xiaozhi/console/ui"
	"xiaozhi/internal/text"
	"xiaozhi/prompts"
)

// TestFormsKeepSettings: settings that are shown in the editor and sent back without a change are the same, whatever tools it lists.
func TestFormsKeepSettings(t *testing.T) {
	listed := []string{"self.lamp.on", "play_music", "news"}
	for _, doc := range []string{
		`{}`,
		`{"prompt":"teacher"}`,
		`{"prompt_text":"One.\nTwo {{language}} <b>.","language":"ja","voice":"alloy"}`,
		`{"asr":["a","b"],"llm":["c"],"tts":["d","e","f"],"vision":["g"],"realtime":["none"]}`,
		`{"tools":{"deny":["play_music"]}}`,
		`{"tools":{"deny":["*"]}}`,
		`{"tools":{"deny":["external:maps/*","news"]}}`,
		`{"tools":{"allow":["external:maps/*","news"]}}`,
		`{"tools":{"allow":["news"],"deny":["self.*"]}}`,
		`{"memory":"forget","record":"both","wake_words":["你好","hi"],"exit_words":["bye bye"]}`,
	} {
		pairs := read([]byte(doc)).form(listed)
		for _, name := range listed {
			pairs = append(pairs, "shown", name)
		}
		if got := string(typed(ui.Filled(pairs...)).doc()); got != doc {
			t.Errorf("%s comes back as %s", doc, got)
		}
	}
}

// TestToolsOfAgents: what is ticked means what the page says, also for tools that are not listed.
func TestToolsOfAgents(t *testing.T) {
	for _, w := range []struct{ mode, ticked, want string }{
		{"all", "a b", `{}`},
		{"all", "a", `{"tools":{"deny":["b"]}}`},
		{"only", "b", `{"tools":{"allow":["b"]}}`},
		{"only", "", `{"tools":{"deny":["*"]}}`}, // none, and not all
		{"only", "stranger", `{"tools":{"deny":["*"]}}`},
	} {
		pairs := []string{"from", "named", "tools-mode", w.mode, "shown", "a", "shown", "b"}
		for name := range strings.FieldsSeq(w.ticked) {
			pairs = append(pairs, "tool", name)
		}
		if got := string(typed(ui.Filled(pairs...)).doc()); got != w.want {
			t.Errorf("%s of %q: %s, not %s", w.mode, w.ticked, got, w.want)
		}
	}
}

// TestChanges: what differs is told by key, and of a prompt by line.
func TestChanges(t *testing.T) {
	all := compare([]byte(`{"voice":"x","prompt_text":"a\nb\nc","tools":{"deny":["t"]}}`), []byte(`{"llm":["m","n"],"prompt_text":"a\nc\nd","tools":{"deny":["t"]}}`))
	var got []string
	for _, c := range all {
		got = append(got, c.Key+": "+c.Old+" > "+c.New)
		for _, l := range c.Lines {
			got = append(got, l.Sign+l.Text)
		}
	}
	want := []string{"prompt_text: a\nb\nc > a\nc\nd", " a", "-b", " c", "+d", "voice: x > ", "llm:  > m, n"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	long := strings.Repeat("x\n", 3000)
	if lines := diff(strings.Split(long, "\n"), strings.Split("y\n"+long, "\n")); len(lines) != 6003 {
		t.Errorf("%d lines of texts that are too long to be compared", len(lines))
	}
}

// TestGallery: each agent to begin with is whole in both languages, and its variables are known.
func TestGallery(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, lang := range []text.Lang{text.English, text.Chinese} {
		for _, one := range gallery(lang, set.Source) {
			if one.Title == "" || one.About == "" || !strings.Contains(one.Text, "{{assistant_name}}") || !strings.Contains(one.Text, "{{emojiList}}") {
				t.Errorf("%s: %+v", lang, one)
			}
			if name, _, line := prompts.CheckText(one.Text); name != "" {
				t.Errorf("%s: %s has {{%s}} in line %d", lang, one.ID, name, line)
			}
			if han := strings.ContainsFunc(one.Title+one.About+one.Text, func(r rune) bool { return r >= 0x4e00 && r <= 0x9fff }); han != lang.IsChinese() {
				t.Errorf("%s: %s is in another language", lang, one.ID)
			}
		}
	}
}
