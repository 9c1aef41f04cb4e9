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
	"xiaozhi/providers/sse"
)

// BenchmarkChatEvent is the work for one token.
func BenchmarkChatEvent(b *testing.B) {
	raw := []byte(openaitest.Delta(`{"content":"hello"}`))
	a := &answer{}
	give := func(providers.Delta) {}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Event(sse.Event{Data: raw}, give); err != nil {
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
	f.Add([]byte(openaitest.Delta(`{"content":[{"type":"text","text":"a"},{"type":"thinking","thinking":[{"text":"b"}]}]}`)), []byte(`[{"error":{"code":429}}]`))
	f.Add([]byte(openaitest.Delta(`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":{}}]}`)), []byte(`{"base_resp":{"status_code":1002}}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a := &answer{owner: "x m", mode: EchoDetails}
		give := func(d providers.Delta) {
			for _, c := range d.ToolCalls {
				if c.ID == "" || c.Name == "" || c.Echo.JSON != "" && c.Echo.Owner != "x m" {
					t.Errorf("call %+v", c)
				}
			}
		}
		for _, raw := range [][]byte{first, second} {
			if _, err := a.Event(sse.Event{Data: raw}, give); err != nil {
				return
			}
		}
		_ = a.End(give)
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
		raw, err := o.chatBody(req, &refusals{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(raw)))
	}
}
