package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/providers"
)

// weather decides what the providers of a storm do next.
type weather struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	calm    bool
	streams atomic.Int64 // recogniser streams that are open
}

func (w *weather) roll(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm {
		return n - 1
	}
	return w.rnd.IntN(n)
}

// delay waits for anything up to a second and a half, mostly for less.
func (w *weather) delay(ctx context.Context) bool {
	d := time.Duration(w.roll(4)) * time.Duration(w.roll(500)) * time.Millisecond
	w.mu.Lock()
	if w.calm {
		d = 0
	}
	w.mu.Unlock()
	return pause(ctx, d.String())
}

func (w *weather) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = true
}

var errWeather = errors.New("bad weather")

type stormASR struct{ *weather }

func (stormASR) Name() string { return "storm-asr" }

func (a stormASR) Open(ctx context.Context, _ providers.ASRRequest) (providers.ASRStream, error) {
	if a.roll(12) == 0 {
		return nil, errWeather
	}
	a.streams.Add(1)
	return &stormStream{weather: a.weather, ctx: ctx, over: make(chan struct{})}, nil
}

type stormStream struct {
	*weather
	ctx  context.Context //nolint:containedctx // a stream lives as long as the context of its Open
	over chan struct{}
}

func (s *stormStream) Write([]int16) error {
	if s.roll(300) == 0 {
		return errWeather
	}
	return nil
}

func (s *stormStream) CloseWrite() error {
	close(s.over)
	if s.roll(40) == 0 {
		return errWeather
	}
	return nil
}

func (s *stormStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		defer s.streams.Add(-1)
		select {
		case <-s.over:
		case <-s.ctx.Done():
		}
		if !s.delay(s.ctx) {
			yield(providers.Transcript{}, s.ctx.Err())
			return
		}
		t := providers.Transcript{Final: true, Provider: "storm-asr", Text: "hello there"}
		switch s.roll(12) {
		case 0:
			yield(t, errWeather)
			return
		case 1:
			t.Text = ""
		case 2:
			t.Rejected = true
		case 3:
			return // no final transcript
		case 4:
			panic("storm in the recogniser")
		case 5:
			<-s.ctx.Done()
			yield(providers.Transcript{}, s.ctx.Err())
			return
		}
		yield(t, nil)
	}
}

type stormLLM struct{ *weather }

func (stormLLM) Name() string { return "storm-llm" }

func (l stormLLM) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		for range 1 + l.roll(4)%3 {
			if !l.delay(ctx) {
				yield(providers.Delta{}, ctx.Err())
				return
			}
			d := providers.Delta{Provider: "storm-llm", Text: "Yes, I am here. "}
			switch l.roll(14) {
			case 0:
				yield(d, errWeather)
				return
			case 1:
				panic("storm in the model")
			case 2:
				<-ctx.Done()
				yield(providers.Delta{}, ctx.Err())
				return
			case 3:
				return
			case 4, 5, 6, 7:
				tool := req.Tools[l.roll(len(req.Tools))]
				d.Text = ""
				d.ToolCalls = []providers.ToolCall{{ID: fmt.Sprint("c", l.roll(1<<30)), Name: tool.Name, Arguments: "{}"}}
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

type stormTTS struct{ *weather }

func (stormTTS) Name() string { return "storm-tts" }

func (s stormTTS) Synthesize(ctx context.Context, _ providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		for range 2 {
			if !s.delay(ctx) {
				return
			}
			switch s.roll(16) {
			case 0:
				yield(providers.Sound{}, errWeather)
				return
			case 1:
				panic("storm in the voice")
			case 2:
				return
			case 3:
				<-ctx.Done()
				yield(providers.Sound{}, ctx.Err())
				return
			}
			if !yield(tone(8000, 2+s.roll(4)), nil) {
				return
			}
		}
	}
}

// stormSource are tools of all kinds and outcomes.
func stormSource() *scriptSource {
	return newScriptSource("device", []string{
		"lamp control 200ms done", "door control 2s !error stuck", "status query 700ms fine", "slow query 30s late",
		"broken query 10ms !error broke", "tell query 10ms !say It is told.", "quiet query 10ms !none",
		"odd query 10ms !handler nobody_knows", "self.camera.take_photo query 3s a photo",
		"dig@external:x query 20s gold", "dig_badly@external:x query 4s !error no gold", "open_door query 10ms opened",
		`timer@local query 0s !handler mcp_handler_timer {"action":"set","due":"7s"}`,
		`play@local query 0s !handler mcp_handler_play_music {"action":"play","name":"a","song":"a","title":"A"}`,
		`play_broken@local query 0s !handler mcp_handler_play_music {"action":"play","name":"b","song":"broken","title":"B"}`,
		`pause@local query 0s !handler mcp_handler_play_music {"action":"pause"}`,
		`resume@local query 0s !handler mcp_handler_play_music {"action":"resume"}`,
		`photo@local query 0s !handler mcp_handler_take_photo {"tool":"self.camera.take_photo","question":"what"}`,
		"forget@local query 0s !handler mcp_handler_forget",
	})
}
