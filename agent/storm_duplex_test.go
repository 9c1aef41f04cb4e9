package agent

import (
	"context"
	"iter"
	"sync"
	"time"

	"xiaozhi/providers"
)

// stormDuplex hears and speaks by itself, as the weather is. It holds who uses it to the
// contract: one answer at a time, nothing after Close, sound before an answer.
type stormDuplex struct{ *weather }

func (stormDuplex) Name() string { return "storm-duplex" }

func (d stormDuplex) Rests() bool { return d.roll(8) == 0 }

func (d stormDuplex) Open(context.Context, providers.DuplexRequest) (providers.DuplexSession, error) {
	if d.roll(12) == 0 {
		return nil, errWeather
	}
	d.streams.Add(1)
	return &stormTalk{weather: d.weather}, nil
}

type stormTalk struct {
	*weather
	mu      sync.Mutex
	samples int
	runs    bool
	closed  bool
}

// use holds the lock while f runs.
func (s *stormTalk) use(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		panic("a session is used after its end")
	}
	f()
}

func (s *stormTalk) Write(pcm []int16) error {
	s.use(func() { s.samples += len(pcm) })
	if s.roll(300) == 0 {
		return errWeather
	}
	return nil
}

func (s *stormTalk) Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		s.use(func() {
			if s.runs || len(results) == 0 && s.samples == 0 {
				panic("an answer to nothing, or two at a time")
			}
			s.runs, s.samples = true, 0
		})
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.runs = false
		}()
		words := ""
		if s.roll(4) > 0 {
			words = "hello there"
		}
		if !s.delay(ctx) {
			yield(providers.DuplexDelta{}, ctx.Err())
			return
		}
		call := ""
		switch s.roll(16) {
		case 0:
			yield(providers.DuplexDelta{}, errWeather)
			return
		case 1:
			panic("storm in the realtime service")
		case 2:
			return
		case 3:
			<-ctx.Done()
			yield(providers.DuplexDelta{}, ctx.Err())
			return
		case 4:
			call = "set_volume"
		case 5:
			call = "open_door"
		case 6:
			call = "dig_hole"
		}
		if call != "" {
			yield(providers.DuplexDelta{Heard: words, ToolCalls: []providers.ToolCall{{ID: "same", Name: call, Arguments: "{}"}}}, nil)
			return
		}
		if !yield(providers.DuplexDelta{Heard: words, Text: "Yes, I am here. "}, nil) {
			return
		}
		for i := range 1 + s.roll(30) {
			if i == 12 && s.roll(6) == 0 {
				yield(providers.DuplexDelta{}, errWeather)
				return
			}
			if s.roll(20) == 0 && !s.delay(ctx) {
				yield(providers.DuplexDelta{}, ctx.Err())
				return
			}
			if !yield(providers.DuplexDelta{Sound: tone(8000, 1)}, nil) {
				return
			}
		}
	}
}

func (s *stormTalk) Truncate(heard time.Duration) error {
	s.use(func() {
		if s.runs || heard < 0 {
			panic("told what was heard of an answer that still runs")
		}
	})
	return nil
}

func (s *stormTalk) Discard() error {
	s.use(func() {
		if s.runs {
			panic("discarded while an answer runs")
		}
		s.samples = 0
	})
	return nil
}

func (s *stormTalk) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.streams.Add(-1)
	}
	return nil
}
