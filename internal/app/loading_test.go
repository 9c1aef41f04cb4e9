package app

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/devicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/providertest"
)

// loadTime is the time that a slow recogniser takes to load.
const loadTime = 5 * time.Second

// slowEngine is a recogniser that takes sound at once, and understands it when it
// has been loaded.
type slowEngine struct {
	*providertest.ASR
	loaded chan struct{} // closed when it is
}

// load is done once, by the start of the server.
func (l *slowEngine) load(context.Context) error {
	time.Sleep(loadTime) // fake time; loading cannot be interrupted
	close(l.loaded)
	return nil
}

func (l *slowEngine) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	s, err := l.ASR.Open(ctx, req)
	return &loadingStream{s, l.loaded, ctx.Done(), ctx.Err}, err
}

type loadingStream struct {
	providers.ASRStream
	loaded <-chan struct{}
	ended  <-chan struct{}
	cause  func() error
}

func (s *loadingStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		select {
		case <-s.loaded:
			s.ASRStream.Transcripts()(yield)
		case <-s.ended:
			yield(providers.Transcript{}, s.cause())
		}
	}
}

// TestTurnWhileRecogniserLoads: a recogniser takes 5 s to load. Hello is
// answered at once, and only once; what is said meanwhile is answered as soon as
// it is loaded, with all of its sound heard; the next turn is as quick as any.
func TestTurnWhileRecogniserLoads(t *testing.T) {
	for _, mode := range []devicetest.Mode{devicetest.Auto, devicetest.Manual} {
		t.Run(string(mode), func(t *testing.T) {
			engine := &slowEngine{ASR: &providertest.ASR{Script: []providertest.Hearing{{Text: "what time is it", Language: "en"}}}}
			does := script{
				llm: []providertest.Step{providertest.Say("It is ten.")},
				replace: func(h *harness, o *agent.Options) {
					engine.loaded = make(chan struct{}) // of the bubble
					asr, err := chain.NewASR([]providers.ASR{engine}, chain.Options{Log: h.app.log})
					if err != nil {
						t.Fatal(err)
					}
					o.ASR = asr
					h.app.life.loads = append(h.app.life.loads, engine.load)
				},
			}
			inMemory(t, does, func(ctx context.Context, t *testing.T, h *harness) {
				began := time.Now()
				d := h.dial(ctx, devicetest.Options{Mode: mode, OpenListen: true, Tools: devicetest.NewBoard().Tools()})
				if took := time.Since(began); took > 50*time.Millisecond {
					t.Errorf("hello after %v", took)
				}
				said := 1500 * time.Millisecond
				sayAll(ctx, t, d, said)
				if mode == devicetest.Manual {
					if err := d.ListenStop(); err != nil {
						t.Fatal(err)
					}
				}
				answer := answered(ctx, t, d, "It is ten.")
				if answer.Started.Before(began.Add(loadTime)) || answer.Started.After(began.Add(2*loadTime)) {
					t.Errorf("the answer began %v after the start of the loading", answer.Started.Sub(began))
				}
				heard := engine.Utterances()
				if len(heard) != 1 || !heard[0].Final || time.Duration(heard[0].Samples)*time.Second/16000 < said {
					t.Errorf("the recogniser heard %+v", heard)
				}
				if err := d.Detect("and now"); err != nil {
					t.Fatal(err)
				}
				asked := time.Now()
				if again := answered(ctx, t, d, "It is ten."); again.Started.Sub(asked) > 100*time.Millisecond {
					t.Errorf("the next answer began after %v", again.Started.Sub(asked))
				}
				hellos := func(e devicetest.Event) bool { return e.Kind != devicetest.KindReceived || e.Type != "hello" }
				if n := len(slices.DeleteFunc(d.Events(), hellos)); n != 1 {
					t.Errorf("%d hellos", n)
				}
				noViolations(t, d)
			})
		})
	}
}

// answered waits for the reply with that text; before it there may be one that
// says that hearing takes long.
func answered(ctx context.Context, t *testing.T, d *devicetest.Device, text string) *devicetest.Reply {
	t.Helper()
	for range 2 {
		r, err := d.WaitReply(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if r.Text() == text {
			return r
		}
		if !strings.Contains(r.Text(), "语音识别还没有结果") {
			t.Fatalf("the device heard %q", r.Text())
		}
	}
	t.Fatalf("never answered by %q", text)
	return nil
}
