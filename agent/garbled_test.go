package agent

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// TestGarbledFramesLogged sends what is not Opus while the microphone
// is opened again and again: one line per thousand frames, however often.
func TestGarbledFramesLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, err := prompts.Load("")
		if err != nil {
			t.Fatal(err)
		}
		var detectors sync.WaitGroup
		var log bytes.Buffer
		tools := router.New(router.Options{})
		c := New(Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, LLM: &scriptLLM{}, TTS: &toneTTS{rate: 16000},
			Prompts: set, Devices: NewDevices(), Log: slog.New(slog.NewTextHandler(&log, nil)),
		}, wire.Session{DeviceID: "d", Language: "en"}, newBox(), tools)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); c.Run(ctx) }()
		for i := range 1500 {
			mode := wire.Auto
			if i%2 == 0 {
				mode = wire.Realtime
			}
			if err := c.Post(wire.ListenStart{Mode: mode}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			c.Hear(wire.Packet{Data: []byte{0xFF, 0xFF, 0xFF}})
			synctest.Wait()
		}
		cancel()
		<-over
		tools.Close()
		detectors.Wait()
		if n := strings.Count(log.String(), "frame is not Opus"); n != 2 {
			t.Errorf("%d lines for 1500 frames", n)
		}
	})
}
