package connection

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"xiaozhi/agent"
)

func TestMessagesToDevices(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    agent.Message
		want string
	}{
		{"stt", agent.Message{Kind: agent.MessageSTT, Text: "几点了"}, `{"session_id":"s1","type":"stt","text":"几点了"}`},
		{"start", agent.Message{Kind: agent.MessageTTSStart, Turn: 3}, `{"session_id":"s1","type":"tts","state":"start"}`},
		{"sentence", agent.Message{Kind: agent.MessageSentenceStart, Text: `a "b" <c> & d`}, `{"session_id":"s1","type":"tts","state":"sentence_start","text":"a \"b\" <c> & d"}`},
		{"stop", agent.Message{Kind: agent.MessageTTSStop}, `{"session_id":"s1","type":"tts","state":"stop"}`},
		{"emotion", agent.Message{Kind: agent.MessageEmotion, Emotion: "happy", Text: "🙂"}, `{"session_id":"s1","type":"llm","emotion":"happy","text":"🙂"}`},
		{"keep alive", agent.Message{Kind: agent.MessageKeepAlive}, `{"session_id":"s1","type":"llm","emotion":"neutral","text":""}`},
		{"empty stt", agent.Message{Kind: agent.MessageSTT}, `{"session_id":"s1","type":"stt","text":""}`},
		{"chunk is not for standard devices", agent.Message{Kind: agent.MessageChunk, Text: "x"}, ""},
		{"nor is final", agent.Message{Kind: agent.MessageFinal, Text: "x"}, ""},
		{"nor is thought", agent.Message{Kind: agent.MessageThought, Text: "x"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := textOf("s1", tc.m)
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestMessagesStayReadableAndSmall(t *testing.T) {
	for _, text := range []string{strings.Repeat("好", 5000), "a\xff\xfeb", "\x00\x01\n", strings.Repeat("x", 100_000)} {
		got, err := textOf("s1", agent.Message{Kind: agent.MessageSentenceStart, Text: text})
		if err != nil || !json.Valid(got) || !utf8.Valid(got) || len(got) > 8<<10 {
			t.Errorf("%d bytes of json, valid %v: %v", len(got), json.Valid(got), err)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"你好", 4, "你…"}, {"你好", 2, "…"}, {"", 0, ""}} {
		if got := clip(tc.text, tc.limit); got != tc.want {
			t.Errorf("clip(%q, %d) = %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
}
