package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// TestStormFarewell has devices do anything while the server stops, or has no capacity
// for them: the rules of the wire hold, and each is hung up on once.
func TestStormFarewell(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	loud, mute := stormPackets(t)
	for seed := range *storms {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprint(seed, " turned away: ", away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { part(t, uint64(seed), set, loud, mute, away) })
			})
		}
	}
}

// part plays the storm of one seed until the device is hung up on.
func part(t *testing.T, seed uint64, set *prompts.Set, loud, mute []byte, away bool) { //nolint:thelper // it is the test itself
	w := &weather{rnd: rand.New(rand.NewPCG(seed, 3))}
	var detectors sync.WaitGroup
	var log strings.Builder
	o := Options{
		VAD: energyVAD{&detectors}, ASR: stormASR{w}, LLM: stormLLM{w}, TTS: stormTTS{w}, Prompts: set,
		Devices: NewDevices(), Zone: time.UTC, IdleClose: 24 * time.Hour, Log: debugLog(&log),
		Reply: audio.Format{Rate: 8000, Frame: 60 * time.Millisecond},
	}
	songs := &scriptMusic{}
	o.Features = allFeatures(songs)
	source := stormSource()
	cause := errors.New("the end")
	s := &storm{t: t, rnd: rand.New(rand.NewPCG(seed, 4)), loud: loud, mute: mute, connect: func() *visit {
		if !away {
			return connect(t, o, router.Options{Log: o.Log, Jobs: []string{"dig*"}, Rules: router.Rules{Confirm: []string{"open_door"}}}, source)
		}
		v := &visit{box: newBox(), over: make(chan struct{})}
		v.c = NewFarewell(o, wire.Session{DeviceID: "d", Language: "en"}, v.box, Farewell{Phrase: prompts.Overload, Cause: cause})
		ctx, cancel := context.WithCancel(t.Context())
		v.leave = cancel
		go func() {
			defer close(v.over)
			v.c.Run(ctx)
		}()
		synctest.Wait()
		return v
	}}
	s.come()
	if !away {
		for range s.rnd.IntN(20) {
			s.gust()
		}
	}
	for range s.rnd.IntN(3) { // asked twice, it does the same
		s.post(wire.Drain{Cause: cause}, "drain")
	}
	s.post(wire.Drain{Cause: cause}, "drain")
	synctest.Wait()
	for i := 0; i < 15 && !strings.Contains(s.box.String(), "hang up"); i++ {
		s.gust()
	}
	w.settle()
	time.Sleep(2 * time.Minute)
	got := s.box.String()
	if n := strings.Count(got, "hang up: the end"); n != 1 || strings.Count(got, "hang up") != 1 {
		t.Errorf("hung up %d times", n)
	}
	if _, after, _ := strings.Cut(got, "hang up"); strings.Contains(after, "tts start") {
		t.Error("a reply begins after the end")
	}
	s.leave()
	o.Devices.Close()
	detectors.Wait()
	if n := len(songs.opened) - len(songs.closed); n != 0 {
		t.Errorf("%d songs were not closed", n)
	}
	if t.Failed() {
		t.Logf("the device did\n%s\nand got at last\n%s\nlog:\n%s", strings.Join(s.story, "\n"), s.box, &log)
	}
}
