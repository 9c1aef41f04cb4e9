package config

import (
	"strings"
	"testing"
)

// An agent that is not in a file is read and checked as one of a file, and told without a place.
func TestReadAgent(t *testing.T) {
	c, _, err := Load(Options{File: writeFile(t, "x.yaml", "providers: {cloud: {type: openai, base_url: 'http://x'}}\nagents: {anna: {tts: [cloud], voice: x}}\ndevices: {aa:bb:cc:00:11:22: {agent: anna}}")})
	if err != nil {
		t.Fatal(err)
	}
	prompts := []string{"default", "storyteller"}
	p, err := c.ReadAgent("bob", []byte(`{"prompt":"storyteller","tts":["cloud","local"],"voice":"alto","tools":{"deny":["self.*","play_music"]},"memory":"forget","wake_words":["bob"]}`), prompts)
	if err != nil || p.Prompt != "storyteller" || len(p.TTS) != 2 || p.Voice != "alto" || len(p.Tools.Deny) != 2 || p.Memory != Forget || len(p.WakeWords) != 1 || p.Place != "" {
		t.Errorf("%+v, %v", p, err)
	}
	for doc, want := range map[string]string{
		`{}`:                                     "",
		`{"languag":"en"}`:                       "unknown key agents.bob.languag (did you mean agents.bob.language?) / 未知的键",
		`{"llm":["ruls"]}`:                       "agents.bob.llm: there is no providers.ruls (did you mean rules?) / 没有",
		`{"tts":["pocketsphinx"]}`:               "agents.bob.tts: pocketsphinx cannot do tts",
		`{"llm":"rules"}`:                        "agents.bob.llm must be a list",
		`{"prompt":"storytellr"}`:                "agents.bob.prompt: there is no prompt storytellr (did you mean storyteller?)",
		`{"voice":"slx"}`:                        "agents.bob.voice: there is no voice slx in the chain local (did you mean slt?)",
		`{"tools":{"allow":["clock","exitt"]}}`:  "agents.bob.tools.allow: there is no tool exitt (did you mean exit?)",
		`{"memory":"never"}`:                     "agents.bob.memory: ",
		`{"voice":`:                              "not valid YAML",
		`{"knowledge":["/etc"]}`:                 "agents.bob.knowledge: folders are named in the files of settings only",
		`{"prompt_text":" \n\t"}`:                "agents.bob.prompt_text: the text is empty / ",
		`{"prompt_text":"a","prompt":"default"}`: "agents.bob.prompt_text: the prompt default is named beside it; keep one of the two / ",
		`{"prompt_text":"` + strings.Repeat("x", 32<<10+1) + `"}`: "agents.bob.prompt_text: the text is 32769 bytes long, which is more than 32768 / ",
	} {
		_, err := c.ReadAgent("bob", []byte(doc), prompts)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", doc, err, want)
		}
	}
	if got := c.Agents["anna"].Place; !strings.HasSuffix(got, "x.yaml:2") {
		t.Errorf("anna is set at %q", got)
	}
	if got := c.Devices.ByID["aa:bb:cc:00:11:22"].AgentPlace; !strings.HasSuffix(got, ".yaml:3") {
		t.Errorf("the device's agent is set at %q", got)
	}
}

func TestListOfAgent(t *testing.T) {
	for key, want := range map[string]bool{"llm": true, "tools.deny": true, "wake_words": true, "voice": false, "tools": false, "tool.deny": false, "tools.deny.x": false, "": false} {
		if ListOfAgent(key) != want {
			t.Errorf("%s: %v", key, !want)
		}
	}
}

// FuzzReadAgent: settings of an agent that are taken are taken again as they are written.
func FuzzReadAgent(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"prompt":"default","voice":"slt","tts":["local"],"tools":{"deny":["self.*"]}}`, `{"memory":"forget","wake_words":["a"],"record":"user"}`,
		`{"llm":"rules"}`, `{"prompt_text":"a\n{{b}} \"c\" ${D} \u2028"}`, `[`, `{"a":{"b":[1,{}]}}`, "&a [*a]", "{\"language\":\"\\u0000\"}",
	} {
		f.Add([]byte(seed))
	}
	c := Default()
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, err := c.ReadAgent("bob", doc, []string{"default"})
		if err != nil {
			return
		}
		again, err := c.ReadAgent("bob", p.Doc(), []string{"default"})
		if err != nil || string(again.Doc()) != string(p.Doc()) {
			t.Errorf("%q is %s, which is %s, %v", doc, p.Doc(), again.Doc(), err)
		}
	})
}
