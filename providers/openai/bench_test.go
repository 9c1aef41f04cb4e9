package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/sound"
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
	p := (&sound.Pool{}).Get(func(providers.Sound, error) bool { return true })
	b.SetBytes(int64(len(tone)))
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Decode(bytes.NewReader(tone), sound.Expected{Format: "pcm", Rate: 24000, MediaType: "audio/pcm"}); err != nil {
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

// longRequest is a step of a long conversation on a device with many tools.
func longRequest() providers.LLMRequest {
	var req providers.LLMRequest
	req.Messages = append(req.Messages, providers.Message{Role: providers.RoleSystem, Content: strings.Repeat("You are a speaker. ", 100)})
	for i := range 60 {
		req.Messages = append(req.Messages,
			providers.Message{Role: providers.RoleUser, Content: fmt.Sprint("客厅的灯打开，然后告诉我第", i, "个时间")},
			providers.Message{Role: providers.RoleAssistant, ToolCalls: []providers.ToolCall{{ID: fmt.Sprint("c", i), Name: "self_lamp_turn_on", Arguments: `{"room":"living"}`}}},
			providers.Message{Role: providers.RoleTool, ToolCallID: fmt.Sprint("c", i), Content: `{"ok":true,"power":"on"}`},
			providers.Message{Role: providers.RoleAssistant, Content: "好的，客厅的灯已经打开了，现在是下午三点二十五分。"})
	}
	for i := range 38 {
		req.Tools = append(req.Tools, providers.ToolSpec{Name: fmt.Sprint("tool_", i), Description: "设置扬声器的音量，0 到 100 / sets the volume", Parameters: json.RawMessage(`{"type":"object","properties":{"volume":{"type":"integer","minimum":0,"maximum":100},"room":{"type":"string","enum":["living","kitchen","bedroom"]}},"required":["volume"]}`)})
	}
	return req
}

// BenchmarkChatBody is the encoding of its request, in which a core does nothing
// else.
func BenchmarkChatBody(b *testing.B) {
	req := longRequest()
	o := Options{Model: "m", MaxTokens: 500}
	b.ReportAllocs()
	for b.Loop() {
		raw, err := o.chatBody(req)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(raw)))
	}
}
