package devicetest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/echo"
	"xiaozhi/internal/speechtest"
)

// A server that cancels echoes by the timestamps of a device that hears itself
// hears nothing of its own reply.
func TestEchoCancelledByServer(t *testing.T) {
	clips, err := speechtest.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	var reply []int16
	for _, c := range clips[:3] {
		reply = append(reply, c.PCM()...)
	}
	const frames = 90
	reply = reply[:frames*960]
	rng := rand.New(rand.NewPCG(1, 1))
	response := make([]float32, 800) // 50 ms
	for i := range response {
		response[i] = float32(0.03 * rng.NormFloat64() * math.Exp(-float64(i)/200))
	}
	response[0] = 0.5
	talk(t, hearing(response, 110*ms), func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.begin()
		sent := w.speak(reply)
		w.finish()
		pcm, stamps := w.microphone(frames + 8)
		c, out := echo.NewCanceller(), slices.Clone(pcm)
		for i, stamp := range stamps {
			for ; len(sent) > 0 && sent[0].at <= time.Duration(i+1)*60*ms; sent = sent[1:] {
				c.Played(sent[0].stamp, sent[0].pcm)
			}
			c.Cancel(stamp, out[i*960:][:960])
		}
		from, to := 2*microphoneRate, 5*microphoneRate
		before, after := level(pcm[from:to]), level(out[from:to])
		t.Logf("loudness %.0f, then %.0f", before, after)
		if before < 300 || after > before/10 {
			t.Errorf("loudness %.0f of %.0f is left", after, before)
		}
	}, func(ctx context.Context, d *Device) { d.Silence(ctx, (frames+8)*60*ms) })
}

// sentSound is a packet as it sounds, and when it was sent.
type sentSound struct {
	at    time.Duration // since the first, with what the microphone heard before
	stamp uint32
	pcm   []int16
}

// speak sends 16 kHz sound, four packets ahead.
func (w *wire) speak(pcm []int16) []sentSound {
	up, err := audio.NewResampler(microphoneRate, audio.Reply.Rate)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	dec, err := audio.NewDecoder(microphoneRate)
	if err != nil {
		w.t.Error(err)
		return nil
	}
	pcm = up.Flush(up.Write(nil, pcm))
	size, start := audio.Reply.Samples(), time.Now()
	var sent []sentSound
	packet, buf := make([]byte, audio.MaxPacket), make([]int16, audio.MaxFrameSamples(microphoneRate))
	for i := 0; len(pcm) >= size; i, pcm = i+1, pcm[size:] {
		if i >= 4 {
			w.pause(time.Until(start.Add(time.Duration(i-3) * 60 * ms)))
		}
		n, err := w.enc.Encode(pcm[:size], packet)
		if err != nil {
			w.t.Error(err)
			return nil
		}
		k, err := dec.Decode(packet[:n], buf)
		if err != nil {
			w.t.Error(err)
			return nil
		}
		stamp := uint32(100 + 60*i)
		w.binaryOut(frameUp(2, stamp, packet[:n]))
		sent = append(sent, sentSound{time.Since(start) + 110*ms, stamp, slices.Clone(buf[:k])})
	}
	return sent
}
