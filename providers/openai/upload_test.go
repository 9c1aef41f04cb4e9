package openai

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sse"
)

type dialFunc = func(context.Context, string, string) (net.Conn, error)

// countDials counts; the test makes one request at a time.
func countDials(dial dialFunc, n *int) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		*n++
		return dial(ctx, network, address)
	}
}

func newASR(t *testing.T, s service.Section) providers.ASR {
	t.Helper()
	a, err := kindOf(t, "openai").ASR(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// hear recognises pcm and gives the final transcript.
func hear(ctx context.Context, a providers.ASR, pcm []int16, language string) (final providers.Transcript, last error) {
	s, err := a.Open(ctx, providers.ASRRequest{Rate: 16000, Language: language})
	if err != nil {
		return final, err
	}
	if err := s.Write(pcm); err != nil {
		return final, err
	}
	if err := s.CloseWrite(); err != nil {
		return final, err
	}
	for tr, err := range s.Transcripts() {
		final, last = tr, err
	}
	return final, last
}

// second is a second of sound, every sample different from its neighbours.
func second() []int16 {
	pcm := make([]int16, 16000)
	for i := range pcm {
		pcm[i] = int16(i * 7)
	}
	return pcm
}

func TestASRPassesTheSuite(t *testing.T) {
	s := newServer(t)
	a := newASR(t, section(t, s))
	providertest.TestASR(t, func(*testing.T) providers.ASR { return a }, second())
}

func TestTranscriptionOnTheWire(t *testing.T) {
	s := newServer(t)
	o := section(t, s)
	o.Models[service.ASR] = "whisper-1"
	a := newASR(t, o)
	for _, tt := range []struct{ hint, want string }{{"zh", "zh"}, {"zh-CN", "zh"}, {"en", "en"}, {"", ""}, {"fr", "fr"}, {"pt-PT", "pt"}, {"ja", "ja"}, {"zh-TW", "zh"}} {
		if _, err := hear(t.Context(), a, second(), tt.hint); err != nil {
			t.Fatal(err)
		}
		all := s.Requests(openaitest.Transcribe)
		r := all[len(all)-1]
		language, given := r.Fields["language"]
		if language != tt.want || given != (tt.want != "") {
			t.Errorf("hint %q: language %q, given %v", tt.hint, language, given)
		}
		if r.Fields["model"] != "whisper-1" || r.Fields["response_format"] != "json" || r.Filename != "utterance.wav" || r.FileType != "audio/wav" {
			t.Errorf("fields %v, file %q of %q", r.Fields, r.Filename, r.FileType)
		}
		if r.Header.Get("Authorization") != "Bearer sk-secret-key" || r.Header.Get("Content-Length") == "0" {
			t.Errorf("headers %v", r.Header)
		}
		pcm, rate, err := file.ReadWAV(bytes.NewReader(r.File))
		if err != nil || rate != 16000 || !slices.Equal(pcm, second()) {
			t.Errorf("upload: %d samples of %d Hz, %v", len(pcm), rate, err)
		}
	}
}

func TestTranscripts(t *testing.T) {
	s := newServer(t)
	a := newASR(t, section(t, s))
	tests := []struct{ name, body, text, language, fails string }{
		{"plain", `{"text":" turn on the light. "}`, "turn on the light.", "", ""},
		{"verbose", `{"task":"transcribe","language":"english","duration":1.2,"text":"hi","segments":[{"id":"x","transient":1}]}`, "hi", "en", ""},
		{"german", `{"text":"hallo","language":"german"}`, "hallo", "de", ""},
		{"cantonese", `{"text":"你好","language":"Cantonese"}`, "你好", "yue", ""},
		{"nonsense", `{"text":"hi","language":"wobbly"}`, "hi", "", ""},
		{"chinese", `{"text":"你好","language":"zh"}`, "你好", "zh", ""},
		{"language null", `{"text":"hi","language":null,"usage":{"type":"tokens"}}`, "hi", "", ""},
		{"language of another type", `{"text":"hi","language":["en"]}`, "hi", "", ""},
		{"nothing said", `{"text":""}`, "", "", ""},
		{"error", `{"error":{"message":"cannot hear"}}`, "", "", "cannot hear"},
		{"no text", `{"result":"x"}`, "", "", "no text"},
		{"broken", `{"text":`, "", "", "not the JSON"},
		{"no object", `[]`, "", "", "not the JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.Reply(openaitest.Transcribe, openaitest.JSON(200, tt.body))
			got, err := hear(t.Context(), a, second(), "")
			if tt.fails != "" {
				wantError(t, err, providers.Unavailable, tt.fails)
				return
			}
			want := providers.Transcript{Text: tt.text, Language: tt.language, Final: true, Provider: "fake"}
			if err != nil || got != want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestPlainTextTranscripts(t *testing.T) {
	s := newServer(t)
	a := newASR(t, section(t, s))
	for body, want := range map[string]string{"hello\n": "hello", `{"text":"hello"}`: "hello"} {
		s.Reply(openaitest.Transcribe, openaitest.Sound("text/plain; charset=utf-8", []byte(body), 100))
		if got, err := hear(t.Context(), a, second(), ""); err != nil || got.Text != want {
			t.Errorf("%q: got %+v, %v", body, got, err)
		}
	}
	s.Reply(openaitest.Transcribe, openaitest.Sound("text/plain", []byte(`{"error":"no"}`), 100))
	_, err := hear(t.Context(), a, second(), "")
	wantError(t, err, providers.Unavailable, "no")
}

func TestTooShortToAsk(t *testing.T) {
	s := newServer(t)
	got, err := hear(t.Context(), newASR(t, section(t, s)), make([]int16, 1599), "")
	if want := (providers.Transcript{Final: true, Provider: "fake"}); err != nil || got != want || s.Total() != 0 {
		t.Errorf("got %+v, %v after %d requests", got, err, s.Total())
	}
}

func TestTranscriptionFailures(t *testing.T) {
	s := newServer(t)
	o := section(t, s)
	a := newASR(t, o)
	for _, tt := range statuses {
		s.Reply(openaitest.Transcribe, openaitest.Failure(tt.status, "no "+strings.Repeat("x", 1000)))
		_, err := hear(t.Context(), a, second(), "")
		wantError(t, err, tt.kind, "no x")
	}
	s.Reply(openaitest.Transcribe, openaitest.JSON(200, `{"te`).Then(openaitest.Piece{Cut: true}))
	_, err := hear(t.Context(), a, second(), "")
	wantError(t, err, providers.Unavailable, "EOF")
	wantGone(t, quickest(t, s, openaitest.Transcribe, func(limit time.Duration) bool {
		o.Timeouts.First = limit
		s.Reply(openaitest.Transcribe, openaitest.Reply{Hang: true})
		_, err = hear(t.Context(), newASR(t, o), second(), "")
		wantError(t, err, providers.Unavailable, "nothing in time")
		return true
	}))
}

func TestHangUpClosesTheTranscription(t *testing.T) {
	s := newServer(t)
	a := newASR(t, section(t, s))
	s.Reply(openaitest.Transcribe, openaitest.Reply{Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := make(chan *openaitest.Request, 1)
	go func() { asked <- hangUp(ctx, t, s, openaitest.Transcribe, 1, cancel) }()
	if _, err := hear(ctx, a, second(), ""); err != context.Canceled { //nolint:errorlint // unchanged
		t.Errorf("got %v", err)
	}
	wantGone(t, <-asked)
}

func TestNobodyThere(t *testing.T) {
	s := newServer(t)
	o, heard := options(t, s), section(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := hear(t.Context(), newASR(t, heard), second(), "")
	wantError(t, err, providers.Unavailable, "refused")
	_, err = generate(t.Context(), newLLM(t, o), ask)
	wantError(t, err, providers.Unavailable, "refused")
}

// TestEventsWithoutTheWhole: some servers that stream end with their mark, and never say the text
// as a whole.
func TestEventsWithoutTheWhole(t *testing.T) {
	for in, want := range map[string]recognition.Result{
		`{"type":"transcript.text.delta","delta":"a","logprobs":7}`: {Kind: recognition.Append, Text: "a"},
		`{"type":"transcript.text.done"}`:                           {Kind: recognition.Over},
		`{"type":"transcript.text.done","text":" a b","usage":1}`:   {Kind: recognition.Over, Text: "a b"},
	} {
		if got, err := transcriptEvent([]byte(in)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	x := uploading{u: &uploader{}, stream: sse.NewReader(strings.NewReader("data: [DONE]\n\n"))}
	if got, err := x.event(); err != nil || got.Kind != recognition.Over {
		t.Errorf("the mark: %+v, %v", got, err)
	}
}
