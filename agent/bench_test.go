package agent

import (
	"context"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// sink is an Outbox that only tells when the first frame of a turn comes.
type sink struct {
	first chan struct{}
	stop  chan struct{}
	mu    sync.Mutex
	turn  uint64
}

func (s *sink) Send(m wire.Message) {
	if m.Kind == wire.MessageTTSStop {
		s.stop <- struct{}{}
	}
}

func (s *sink) Audio(turn uint64, _ []byte) (uint32, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if turn != s.turn {
		s.turn = turn
		s.first <- struct{}{}
	}
	return 0, true
}
func (s *sink) HangUp(error) {}

func (s *sink) Lag() time.Duration { return 0 }

// BenchmarkTurn is the server's own part of a turn: from typed text to the
// first frame, with providers that answer at once and no guard.
func BenchmarkTurn(b *testing.B) {
	set, err := prompts.Load("")
	if err != nil {
		b.Fatal(err)
	}
	llm, tts := &scriptLLM{}, &toneTTS{rate: 24000}
	o := Options{VAD: energyVAD{&sync.WaitGroup{}}, ASR: &scriptASR{}, LLM: llm, TTS: tts, Prompts: set, Devices: NewDevices(), Guard: time.Nanosecond}
	out := &sink{first: make(chan struct{}, 1), stop: make(chan struct{}, 4)}
	tools := router.New(router.Options{})
	defer tools.Close()
	c := New(o, wire.Session{DeviceID: "bench"}, out, tools)
	ctx, cancel := context.WithCancel(b.Context())
	over := make(chan struct{})
	go func() { defer close(over); c.Run(ctx) }()
	b.ReportAllocs()
	for b.Loop() {
		llm.mu.Lock()
		llm.lines = []string{"text Hello there.", "end"}
		llm.mu.Unlock()
		if err := c.Post(wire.Detect{Text: "say hello"}); err != nil {
			b.Fatal(err)
		}
		<-out.first
		b.StopTimer()
		if err := c.Post(wire.Abort{}); err != nil {
			b.Fatal(err)
		}
		<-out.stop
		b.StartTimer()
	}
	cancel()
	<-over
}
