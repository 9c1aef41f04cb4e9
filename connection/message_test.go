package connection

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"xiaozhi/internal/wire"
)

func TestMessagesToDevices(t *testing.T) {
	for _, tc := range []struct {
		name string
		m    wire.Message
		want string
	}{
		{"stt", wire.Message{Kind: wire.MessageSTT, Text: "几点了"}, `{"session_id":"s1","type":"stt","text":"几点了"}`},
		{"start", wire.Message{Kind: wire.MessageTTSStart, Turn: 3}, `{"session_id":"s1","type":"tts","state":"start"}`},
		{"sentence", wire.Message{Kind: wire.MessageSentenceStart, Text: `a "b" <c> & d`}, `{"session_id":"s1","type":"tts","state":"sentence_start","text":"a \"b\" <c> & d"}`},
		{"stop", wire.Message{Kind: wire.MessageTTSStop}, `{"session_id":"s1","type":"tts","state":"stop"}`},
		{"emotion", wire.Message{Kind: wire.MessageEmotion, Emotion: "happy", Text: "🙂"}, `{"session_id":"s1","type":"llm","emotion":"happy","text":"🙂"}`},
		{"keep alive", wire.Message{Kind: wire.MessageKeepAlive}, `{"session_id":"s1","type":"llm","emotion":"neutral","text":""}`},
		{"empty stt", wire.Message{Kind: wire.MessageSTT}, `{"session_id":"s1","type":"stt","text":""}`},
		{"chunk is not for standard devices", wire.Message{Kind: wire.MessageChunk, Text: "x"}, ""},
		{"nor is final", wire.Message{Kind: wire.MessageFinal, Text: "x"}, ""},
		{"nor is thought", wire.Message{Kind: wire.MessageThought, Text: "x"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := textOf("s1", tc.m)
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestMessageSize(t *testing.T) {
	for _, text := range []string{strings.Repeat("好", 5000), "a\xff\xfeb", "\x00\x01\n", strings.Repeat("x", 100_000)} {
		got, err := textOf("s1", wire.Message{Kind: wire.MessageSentenceStart, Text: text})
		if err != nil || !json.Valid(got) || !utf8.Valid(got) || len(got) > 8<<10 {
			t.Errorf("%d bytes of json, valid %v: %v", len(got), json.Valid(got), err)
		}
	}
}
