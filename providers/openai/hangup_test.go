package openai

import (
	"context"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
)

// TestHangUpReachesTheServer ends requests of all roles at all stages, and tells
// how soon the server saw it; the bound of 100 ms is the benchmark's to judge.
func TestHangUpReachesTheServer(t *testing.T) {
	s := newServer(t)
	o := options(t, s)
	s.Reply(openaitest.Transcribe, openaitest.Reply{Hang: true})
	llm, asr, tts := newLLM(t, o), newASR(t, section(t, s)), newTTS(t, section(t, s))
	chat := func(ctx context.Context) {
		for range llm.Generate(ctx, ask) { // until it ends
		}
	}
	speech := func(ctx context.Context) {
		for range tts.Synthesize(ctx, hello) { // until it ends
		}
	}
	long := make([]int16, 60*16000)
	for _, tt := range []struct {
		name  string
		role  openaitest.Role
		reply openaitest.Reply
		run   func(ctx context.Context)
	}{
		{"chat, no status yet", openaitest.Chat, openaitest.Reply{Hang: true}, chat},
		{"chat, in the stream", openaitest.Chat, openaitest.Events(openaitest.Delta(`{"content":"a"}`)).Then(openaitest.Piece{Hang: true}), chat},
		{"transcription of a minute", openaitest.Transcribe, openaitest.Reply{Hang: true}, func(ctx context.Context) { _, _ = hear(ctx, asr, long, "") }},
		{"speech, no status yet", openaitest.Speak, openaitest.Reply{Hang: true}, speech},
		{"speech, in the sound", openaitest.Speak, openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, 60*time.Millisecond), 480).Then(openaitest.Piece{Hang: true}), speech},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s.Reply(tt.role, tt.reply)
			var worst time.Duration
			before := len(s.Requests(tt.role))
			for i := range 10 {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					tt.run(ctx)
				}()
				r, err := s.Await(t.Context(), tt.role, before+i+1)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				cancel()
				wantGone(t, r)
				worst = max(worst, time.Since(start))
				<-ended
			}
			t.Logf("the server saw the hang-up after at most %v", worst)
		})
	}
}
