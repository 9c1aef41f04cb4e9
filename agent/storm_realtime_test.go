package agent

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature/remote"
	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// TestStormRealtime holds random conversations over an open microphone: trials,
// words over replies, echoes of them, engines that are slow enough to be
// excused, music, and somebody outside.
func TestStormRealtime(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	loud, mute := stormPackets(t)
	for seed := range *storms {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { blowRealtime(t, uint64(seed), set, loud, mute) })
		})
	}
}

// wordyASR hears what is said over replies, and is slow now and then.
type wordyASR struct{ stormASR }

func (a wordyASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	s, err := a.stormASR.Open(ctx, req)
	if err != nil {
		return nil, err
	}
	return wordyStream{s, a.weather, ctx}, nil
}

type wordyStream struct {
	providers.ASRStream
	w   *weather
	ctx context.Context //nolint:containedctx // a stream lives as long as the context of its Open
}

func (s wordyStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		for t, err := range s.ASRStream.Transcripts() {
			if s.w.roll(10) == 0 {
				pause(s.ctx, []string{"3s", "6s"}[s.w.roll(2)])
			}
			if err == nil && t.Text != "" {
				words := []string{"stop", "uh-huh", "Yes, I am here.", "yes", "hello", "tell me about the"}
				if n := s.w.roll(12); n < len(words) {
					t.Text = words[n]
				}
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// gustRealtime is one thing that happens where the microphone is open.
func (s *storm) gustRealtime(wg *sync.WaitGroup) {
	outside := func(what string, do func(ctx context.Context, d remote.Device)) {
		s.story = append(s.story, fmt.Sprintf("%d %s", time.Since(s.box.began).Milliseconds(), what))
		d := s.visit.d
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
			defer cancel()
			do(ctx, d)
		})
	}
	switch s.rnd.IntN(20) {
	case 0:
		s.post(wire.ListenStart{Mode: wire.Realtime}, "listen realtime")
	case 1:
		s.post(wire.Detect{Text: []string{"hi xiaozhi", "what is going on", "stop"}[s.rnd.IntN(3)]}, "wake word or typed")
	case 2:
		s.post(wire.Abort{}, "abort")
		s.aborts++
	case 3:
		outside("say", func(ctx context.Context, d remote.Device) { _, _ = d.Say(ctx, "A word from outside.", false) })
	case 4:
		outside("say now", func(ctx context.Context, d remote.Device) { _, _ = d.Say(ctx, "At once, a word.", true) })
	case 5:
		outside("ask", func(ctx context.Context, d remote.Device) { _, _ = d.Ask(ctx, "Is it so?") })
	case 6:
		outside("stop and listen", func(ctx context.Context, d remote.Device) { _, _ = d.Stop(ctx); _ = d.Listen(ctx) })
	case 7, 8, 9, 10, 11, 12, 13:
		s.sound(s.loud, 3+s.rnd.IntN(14), "voice")
	case 14, 15, 16:
		s.sound(s.mute, 4+s.rnd.IntN(4), "a pause")
	default:
		s.sound(s.mute, 10+s.rnd.IntN(30), "silence")
	}
}

// blowRealtime plays the storm of one seed.
func blowRealtime(t *testing.T, seed uint64, set *prompts.Set, loud, mute []byte) { //nolint:thelper // it is the test itself
	w := &weather{rnd: rand.New(rand.NewPCG(seed, 3))}
	var detectors, outside sync.WaitGroup
	var log strings.Builder
	songs := &scriptMusic{}
	o := Options{
		VAD: energyVAD{&detectors}, ASR: wordyASR{stormASR{w}}, LLM: stormLLM{w}, TTS: stormTTS{w}, Prompts: set,
		Devices: NewDevices(), Zone: time.UTC, IdleClose: 24 * time.Hour, Log: debugLog(&log), Features: allFeatures(songs),
		Reply: audio.Format{Rate: 8000, Frame: 60 * time.Millisecond}, SlowAfter: 900 * time.Millisecond,
	}
	if seed%2 == 1 {
		o.Realtime = stormDuplex{w}
		if seed%4 == 3 {
			o.ASR = nil
		}
	}
	s := &storm{t: t, rnd: rand.New(rand.NewPCG(seed, 4)), loud: loud, mute: mute, connect: func() *visit {
		return connect(t, o, router.Options{Log: o.Log, Jobs: []string{"dig*"}}, stormSource())
	}}
	s.come()
	s.post(wire.ListenStart{Mode: wire.Realtime}, "listen realtime")
	for i := range 40 {
		s.gustRealtime(&outside)
		if i%16 == 15 && s.rnd.IntN(2) == 0 {
			s.leave()
			s.come()
			s.post(wire.ListenStart{Mode: wire.Realtime}, "listen realtime")
		}
	}
	w.settle()
	s.sound(s.mute, 60, "silence")
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	outside.Wait()
	if c := s.c; c.state.Busy() || c.state.Phase() != turn.Listening || len(c.state.Said) > 0 || len(c.dev.queue.waiting) > 0 {
		t.Errorf("stuck with %d announcements in %+v", len(c.dev.queue.waiting), c.state)
	}
	if n := len(s.c.duplex.kept); n > 0 {
		t.Errorf("the sound of %d utterances is kept", n)
	}
	s.after()
	s.post(wire.ListenStop{}, "listen stop, at last")
	time.Sleep(time.Minute)
	if n := w.streams.Load(); n > seedTalks(seed) {
		t.Errorf("%d recogniser streams are still open", n)
	}
	s.leave()
	if n := w.streams.Load(); n != 0 {
		t.Errorf("%d realtime sessions are still open", n)
	}
	o.Devices.Close()
	detectors.Wait()
	if n := len(songs.opened) - len(songs.closed); n != 0 {
		t.Errorf("%d songs were not closed", n)
	}
	if strings.Contains(log.String(), "where=conversation") || strings.Contains(log.String(), "panic in ears") {
		t.Error("something of ours has panicked")
	}
	if t.Failed() {
		t.Logf("the device did\n%s\nand got at last\n%s\nlog:\n%s", strings.Join(s.story, "\n"), s.box, &log)
	}
}
