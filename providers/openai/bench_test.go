package openai

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
)

// BenchmarkChatEvent is the work for one token.
func BenchmarkChatEvent(b *testing.B) {
	raw := []byte(openaitest.Delta(`{"content":"hello"}`))
	a := &answer{llm: &LLM{}, yield: func(providers.Delta, error) bool { return true }}
	b.ReportAllocs()
	for b.Loop() {
		if err := a.event(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPCM is the work for one second of raw sound.
func BenchmarkPCM(b *testing.B) {
	tone := openaitest.Tone(24000, 440, time.Second)
	p := &player{yield: func(providers.Sound, error) bool { return true }}
	b.SetBytes(int64(len(tone)))
	b.ReportAllocs()
	for b.Loop() {
		if err := playPCM(bytes.NewReader(tone), 24000, 1, p); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzChatEvent feeds the reader of events strangers' JSON.
func FuzzChatEvent(f *testing.F) {
	f.Add([]byte(openaitest.Delta(`{"content":"<think>a"}`)), []byte(openaitest.Finish("stop")))
	f.Add([]byte(openaitest.Delta(`{"tool_calls":[{"function":{"name":"a","arguments":{}}}]}`)), []byte(`{"error":{"message":1}}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a := &answer{llm: &LLM{o: Options{Name: "x"}}}
		a.yield = func(d providers.Delta, err error) bool {
			if err != nil || d.Provider != "x" || d.Text == "" && d.Thought == "" && len(d.ToolCalls) == 0 {
				t.Errorf("delta %s, %v", fmt.Sprint(d), err)
			}
			return true
		}
		if a.event(first) != nil || a.event(second) != nil {
			return
		}
		if err := a.finish(); err == nil && !a.spoken {
			t.Error("an answer without text and call is none")
		}
	})
}
