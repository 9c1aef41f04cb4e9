package agent

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"xiaozhi/audio"
	"xiaozhi/internal/testall"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// steadyLLM answers "are you there", and plays its script for all else.
type steadyLLM struct{ *scriptLLM }

func (l steadyLLM) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == providers.RoleUser && strings.Contains(m.Content, "are you there") {
			there := &scriptLLM{lines: []string{"text Yes, I am here."}}
			l.mu.Lock()
			l.requests = append(l.requests, req)
			l.mu.Unlock()
			return there.Generate(ctx, req)
		}
		if m.Role == providers.RoleUser {
			break
		}
	}
	return l.scriptLLM.Generate(ctx, req)
}

// interruptions are the ways of a user who does not wait for the end.
var interruptions = map[string]func(s *storm){
	"abort": func(s *storm) {
		s.post(wire.Abort{}, "abort")
		s.aborts++
		time.Sleep(200 * time.Millisecond)
		s.post(wire.Detect{Text: "are you there"}, "typed")
	},
	"abort alone": func(s *storm) {
		s.post(wire.Abort{}, "abort")
		s.aborts++
		time.Sleep(20 * time.Second)
		s.post(wire.Detect{Text: "are you there"}, "typed")
	},
	"wake word": func(s *storm) {
		s.post(wire.Abort{Reason: "wake_word_detected"}, "wake word")
		s.aborts++
		s.post(wire.Detect{Text: "hi xiaozhi"}, "detect")
		s.post(wire.ListenStart{Mode: wire.Auto}, "listen auto")
		time.Sleep(1500 * time.Millisecond)
		s.post(wire.ListenStart{Mode: wire.Auto}, "listen auto")
		s.sound(s.loud, 10, "voice")
		s.sound(s.mute, 20, "silence")
	},
	"push to talk": func(s *storm) {
		time.Sleep(time.Second) // before that, a listen start belongs to the typed text
		s.post(wire.ListenStart{Mode: wire.Manual}, "listen manual")
		s.sound(s.loud, 10, "voice")
		s.post(wire.ListenStop{}, "listen stop")
	},
	"voice": func(s *storm) {
		s.sound(s.loud, 12, "voice")
		s.sound(s.mute, 20, "silence")
	},
}

// TestEightConversations interrupts each of the eight conversations with tools
// at many moments (with TEST_ALL at more of them), in all ways: the device is never stuck, every call has exactly
// one result in all that the model is sent, and nothing is done twice.
func TestEightConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/talk/eight_*.txtar")
	if err != nil || len(files) != 7 {
		t.Fatal("the eighth is the interruption of the others:", files, err)
	}
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	loud, mute := stormPackets(t)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for how, interrupt := range interruptions {
			for _, at := range testall.Pick([]int{0, 110, 320, 790, 1250, 2400}, []int{0, 320, 1250}) {
				t.Run(fmt.Sprintf("%s/%s/%d", strings.TrimSuffix(filepath.Base(file), ".txtar"), how, at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						holdEight(t, readScene(a), set, how, time.Duration(at)*time.Millisecond, interrupt, loud, mute)
					})
				})
			}
		}
	}
}

func holdEight(t *testing.T, sc *talkScene, set *prompts.Set, how string, at time.Duration, interrupt func(*storm), loud, mute []byte) { //nolint:thelper // it is the test itself
	var detectors sync.WaitGroup
	var log strings.Builder
	asr := &scriptASR{lines: slices.Repeat([]string{"are you there"}, 4)}
	o := Options{
		VAD: energyVAD{&detectors}, ASR: asr, LLM: steadyLLM{sc.llm}, TTS: sc.tts, Prompts: set,
		Devices: NewDevices(), Zone: time.UTC, Log: debugLog(&log),
		Reply: audio.Format{Rate: 8000, Frame: 60 * time.Millisecond},
	}
	sc.tts.rate = 8000
	s := &storm{t: t, loud: loud, mute: mute, connect: func() *visit {
		return connect(t, o, router.Options{Log: o.Log}, sc.tools)
	}}
	s.come()
	if how == "voice" {
		s.post(wire.ListenStart{Mode: wire.Realtime}, "listen realtime")
		time.Sleep(2 * time.Second)
	}
	s.post(wire.Detect{Text: "do it"}, "typed")
	time.Sleep(at)
	interrupt(s)
	time.Sleep(30 * time.Second)
	if said := s.box.String(); !strings.Contains(said, "final Yes, I am here.") {
		t.Errorf("the interruption is not answered:\n%s", said)
	}
	s.leave()
	for _, req := range sc.llm.requests {
		checkHistory(t, req.Messages)
	}
	calls := 0
	s.c.dev.history.Unpack()
	for _, m := range s.c.dev.history.Snapshot() {
		calls += len(m.ToolCalls)
	}
	slices.Sort(sc.tools.calls)
	if once := slices.Compact(slices.Clone(sc.tools.calls)); len(once) != len(sc.tools.calls) || len(once) > calls {
		t.Errorf("%d calls in the history, done was %q", calls, sc.tools.calls)
	}
	o.Devices.Close()
	detectors.Wait()
	if t.Failed() {
		t.Logf("log:\n%s", &log)
	}
}
