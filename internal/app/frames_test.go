package app

import (
	"context"
	"fmt"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/providers/providertest"
)

// TestUplinkFrameSizes: whatever the length of the microphone's frames, and
// whether silence comes as sound or as the packets of a pause, the end of what
// was said is found within two frames, and the recogniser gets all of it.
func TestUplinkFrameSizes(t *testing.T) {
	for _, frame := range []int{20, 40, 60} {
		for _, noDTX := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d ms, dtx %v", frame, !noDTX), func(t *testing.T) {
				does := script{
					asr: []providertest.Hearing{{Text: "what time is it", Language: "en"}},
					llm: []providertest.Step{providertest.Say("It is ten.")},
				}
				inMemory(t, does, func(ctx context.Context, t *testing.T, h *harness) {
					d := h.dial(ctx, devicetest.Options{Sound: devicetest.Sound{FrameMs: frame, NoDTX: noDTX}, OpenListen: true, NoMCP: true})
					const said = 1200 * time.Millisecond
					if err := d.Say(ctx, speech(said)); err != nil {
						t.Fatal(err)
					}
					last := time.Now() // the last voice has just been sent
					if err := d.Silence(ctx, time.Second); err != nil {
						t.Fatal(err)
					}
					e, err := d.WaitText(ctx, "stt", "")
					if err != nil || e.Text != "what time is it" {
						t.Fatal(e, err)
					}
					limit := 700*time.Millisecond + max(100*time.Millisecond, 2*time.Duration(frame)*time.Millisecond)
					if after := e.At.Sub(last); after < 700*time.Millisecond || after > limit {
						t.Errorf("taken %v after the last voice", after)
					}
					if u := h.asr.Utterances(); len(u) != 1 || time.Duration(u[0].Samples)*time.Second/16000 < said {
						t.Errorf("heard %+v", u)
					}
					if _, err := d.WaitReply(ctx); err != nil {
						t.Fatal(err)
					}
					noViolations(t, d)
				})
			})
		}
	}
}
