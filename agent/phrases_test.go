package agent

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// askedASR notes the phrases that it is told to expect.
type askedASR struct {
	scriptASR
	phrases chan []string
}

func (a *askedASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	a.phrases <- req.Phrases
	return a.scriptASR.Open(ctx, req)
}

// TestPhrasesAreOfTheDevice: recognisers expect the names of the device's own
// tools, and not those of the server and of others.
func TestPhrasesAreOfTheDevice(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	_, pcm := stormPackets(t)
	synctest.Test(t, func(t *testing.T) {
		asr := &askedASR{phrases: make(chan []string, 1)}
		detectors := new(sync.WaitGroup)
		o := Options{
			VAD: energyVAD{detectors}, ASR: asr, LLM: &scriptLLM{}, TTS: &toneTTS{rate: 16000}, Prompts: set, Devices: NewDevices(),
			Phrases: func(_ string, tools []providers.ToolSpec) []string {
				var names []string
				for _, tool := range tools {
					names = append(names, tool.Name)
				}
				return names
			},
		}
		v := connect(t, o, router.Options{}, newScriptSource("device", []string{
			"lamp control 0s ok", "arm@light query 0s ok", "fan@iot query 0s ok", "clock@local query 0s ok", "web@external:x query 0s ok",
		}))
		if err := v.c.Post(wire.ListenStart{Mode: wire.Manual}); err != nil {
			t.Fatal(err)
		}
		v.c.Hear(wire.Packet{Data: pcm})
		if got := <-asr.phrases; !slices.Equal(got, []string{"lamp", "arm", "fan"}) {
			t.Errorf("phrases %q", got)
		}
		v.bye()
		detectors.Wait()
	})
}
