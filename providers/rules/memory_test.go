package rules

import (
	"encoding/json"
	"testing"

	"xiaozhi/providers"
)

// TestRecallSubject: who asks what is remembered without naming anything is told all of it, and else what was named.
func TestRecallSubject(t *testing.T) {
	tools := []providers.ToolSpec{{Name: "recall_memory", Parameters: json.RawMessage(`{"type":"object","properties":{"about":{"type":"string"}}}`)}}
	b := newBrain(t, true)
	for said, want := range map[string]string{
		"你还记得我什么": "{}", "你还记得我吗": "{}", "你记不记得我": "{}", "你还记得关于我的事吗": "{}", "你还记得些什么": "{}", "你还记得我的什么事情吗": "{}",
		"你还记得我女儿吗": `{"about":"我女儿"}`, "你还记得我的生日吗": `{"about":"我的生日"}`, "你还记得我喜欢什么吗": `{"about":"我喜欢什么"}`,
		"what do you remember": "{}", "do you still remember me": "{}", "can you remember anything about me": "{}", "what do you know about us": "{}",
		"do you remember my dog": `{"about":"my dog"}`, "do you remember what my dog is called": `{"about":"what my dog is called"}`,
	} {
		if got := show(generate(t, b, ask(said, languageOf(said), tools))); got != "recall_memory "+want {
			t.Errorf("%q: %s, want %s", said, got, want)
		}
	}
}
