package agent

import (
	"context"
	"iter"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// patientLLM thinks until it is given up, and notes when that is.
type patientLLM struct {
	mu     sync.Mutex
	closed []time.Time
}

func (l *patientLLM) Name() string { return "patient" }

func (l *patientLLM) Generate(ctx context.Context, _ providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		<-ctx.Done()
		l.mu.Lock()
		l.closed = append(l.closed, time.Now())
		l.mu.Unlock()
		yield(providers.Delta{}, ctx.Err())
	}
}

// TestTrialIsGivenUpAtOnce (behaviour 7): the request that began at a pause is
// closed when the first frame comes in which the user goes on.
func TestTrialIsGivenUpAtOnce(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		llm := &patientLLM{}
		v := connect(t, Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{lines: []string{"turn on", "turn on the lamp"}}, LLM: llm,
			TTS: &toneTTS{rate: 16000}, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
		}, router.Options{})
		enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
		if err != nil {
			t.Fatal(err)
		}
		loud, packet := make([]int16, 960), make([]byte, audio.MaxPacket)
		for i := range loud {
			loud[i] = int16(12000 * math.Sin(2*math.Pi*300*float64(i)/16000))
		}
		frames := func(pcm []int16, n int) {
			for range n {
				time.Sleep(60 * time.Millisecond)
				size, err := enc.Encode(pcm, packet)
				if err != nil {
					t.Error(err)
				}
				v.c.Hear(wire.Packet{Data: packet[:size]})
				synctest.Wait()
			}
		}
		v.listens(t, wire.Auto)
		frames(loud, 10)
		frames(make([]int16, 960), 9)
		if len(llm.closed) != 0 {
			t.Error("given up without a word")
		}
		frames(loud, 1)
		resumed := time.Now()
		frames(loud, 1)
		if len(llm.closed) != 1 || llm.closed[0].Sub(resumed) > 20*time.Millisecond {
			t.Errorf("closed %v, the user went on at %v", llm.closed, resumed)
		}
		v.bye()
		detectors.Wait()
	})
}

// TestQueryIsCancelledAtOnce (behaviour 37): a cut reaches a tool that is
// awaited at once.
func TestQueryIsCancelledAtOnce(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		var cancelled time.Time
		source := &watchedSource{scriptSource: newScriptSource("server", []string{"look_up query 10s found"}), done: func() { cancelled = time.Now() }}
		v := connect(t, Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, LLM: &scriptLLM{lines: []string{"call look_up {}", "end"}},
			TTS: &toneTTS{rate: 16000}, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
		}, router.Options{}, source)
		v.types(t, "look it up")
		time.Sleep(time.Second)
		aborted := time.Now()
		if err := v.c.Post(wire.Abort{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if cancelled.IsZero() || cancelled.Sub(aborted) > 50*time.Millisecond {
			t.Errorf("aborted at %v, cancelled at %v", aborted, cancelled)
		}
		v.bye()
		detectors.Wait()
	})
}

// watchedSource tells when a call of it ends.
type watchedSource struct {
	*scriptSource
	done func()
}

func (s *watchedSource) CallTool(ctx context.Context, name string, args map[string]any) (any, error) {
	defer s.done()
	return s.scriptSource.CallTool(ctx, name, args)
}
