package agent

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/scene"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// noisy is a sound like no other: noise in syllables.
func noisy(seed uint64, rate int, length time.Duration) []int16 {
	random := rand.New(rand.NewPCG(seed, seed))
	pcm := scene.Voiced(rate, length, 30000)
	last := 0.0
	for i := range pcm {
		last += 0.3 * (random.NormFloat64() - last)
		pcm[i] = int16(0.2*float64(pcm[i])*last + 3000*last)
	}
	return pcm
}

// echoing is a device without echo cancelling whose microphone is open: what it
// plays comes back after a while.
type echoing struct {
	*box
	t     *testing.T
	c     *Conversation
	delay time.Duration

	mu      sync.Mutex
	decoder *audio.Decoder
	sound   []int16 // that is not heard yet
	begins  time.Time
}

func (e *echoing) Audio(turn uint64, packet []byte) (uint32, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pcm := make([]int16, audio.MaxFrameSamples(16000))
	n, err := e.decoder.Decode(packet, pcm)
	if err != nil {
		e.t.Errorf("decode: %v", err)
	}
	if len(e.sound) == 0 && time.Since(e.begins) > e.delay {
		e.begins = time.Now()
	}
	e.sound = append(e.sound, pcm[:n]...)
	return e.box.Audio(turn, packet)
}

// hear sends what the microphone hears, a frame each 60 ms: the device, and the
// user, who is nearer.
func (e *echoing) hear(length time.Duration, user []int16) {
	enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
	if err != nil {
		e.t.Fatal(err)
	}
	packet := make([]byte, audio.MaxPacket)
	n := audio.Recognition.Samples()
	for range int(length / audio.Recognition.Frame) {
		time.Sleep(audio.Recognition.Frame)
		frame := make([]int16, n)
		e.mu.Lock()
		if time.Since(e.begins) >= e.delay+audio.Recognition.Frame {
			for i, s := range e.sound[:min(n, len(e.sound))] {
				frame[i] = int16(max(-30000, min(30000, 2*int(s))))
			}
			e.sound = e.sound[min(n, len(e.sound)):]
		}
		e.mu.Unlock()
		for i, s := range user[:min(n, len(user))] {
			frame[i] = int16(max(-30000, min(30000, int(frame[i])+4*int(s))))
		}
		user = user[min(n, len(user)):]
		size, err := enc.Encode(frame, packet)
		if err != nil {
			e.t.Fatal(err)
		}
		e.c.Hear(wire.Packet{Data: packet[:size]})
	}
}

// TestOwnVoice: a device whose microphone hears what it plays does not interrupt
// itself, whatever a recogniser makes of its voice, nor does it do what it seems
// to have said. The user still interrupts it.
func TestOwnVoice(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		user []int16
		cut  bool
	}{
		{"alone", nil, false},
		{"and the user", append(make([]int16, 3*16000), noisy(7, 16000, 2*time.Second)...), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var detectors sync.WaitGroup
				llm := &scriptLLM{lines: []string{"text A reply that takes quite a while to say.", "end", "text Muted.", "end"}}
				e := &echoing{box: newBox(), t: t, delay: 150 * time.Millisecond}
				if e.decoder, err = audio.NewDecoder(16000); err != nil {
					t.Fatal(err)
				}
				tools := router.New(router.Options{})
				e.c = New(Options{
					VAD: energyVAD{&detectors}, ASR: &scriptASR{lines: strings.Split(strings.Repeat("mute the sound\n", 40), "\n")}, LLM: llm, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
					TTS: &scene.TTS{Label: "noisy", Sound: func(string) []providers.Sound {
						return []providers.Sound{{Rate: 24000, PCM: noisy(3, 24000, 6*time.Second)}}
					}},
				}, wire.Session{DeviceID: "d", Language: "en"}, e, tools)
				ctx, cancel := context.WithCancel(t.Context())
				var over sync.WaitGroup
				over.Go(func() { e.c.Run(ctx) })
				for _, ev := range []wire.Event{wire.ListenStart{Mode: wire.Realtime}, wire.Detect{Text: "tell me something"}} {
					if err := e.c.Post(ev); err != nil {
						t.Fatal(err)
					}
				}
				e.hear(9*time.Second, tc.user)
				said := e.String()
				if cut := len(llm.requests) > 1; cut != tc.cut {
					t.Errorf("interrupted: %t, want %t\n%s", cut, tc.cut, said)
				}
				if !tc.cut && (strings.Count(said, "stt") != 1 || strings.Count(said, "tts start") != 1 || !strings.Contains(said, "frames 100\n")) {
					t.Errorf("the device got\n%s", said)
				}
				cancel()
				over.Wait()
				tools.Close()
				detectors.Wait()
			})
		})
	}
}

// TestEchoWithoutARecogniser: a device that hears itself does not talk to itself
// while the recogniser is slow or down: nobody has said anything.
func TestEchoWithoutARecogniser(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, hears := range []string{"@100ms some words that were heard", "@6s some words that were heard", "@20s some words that were heard", "@100ms !error the service is down"} {
		t.Run(hears, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var detectors sync.WaitGroup
				e := &echoing{box: newBox(), t: t, delay: 150 * time.Millisecond}
				if e.decoder, err = audio.NewDecoder(16000); err != nil {
					t.Fatal(err)
				}
				tools := router.New(router.Options{})
				llm := &scriptLLM{lines: []string{"text A reply that takes quite a while to say.", "end"}}
				e.c = New(Options{
					VAD: energyVAD{&detectors}, LLM: llm, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
					ASR: &scriptASR{lines: strings.Split(strings.Repeat(hears+"\n", 400), "\n")},
					TTS: &scene.TTS{Label: "noisy", Sound: func(text string) []providers.Sound {
						return []providers.Sound{{Rate: 24000, PCM: noisy(uint64(len(text)), 24000, 4*time.Second)}}
					}},
				}, wire.Session{DeviceID: "d", Language: "en"}, e, tools)
				ctx, cancel := context.WithCancel(t.Context())
				var over sync.WaitGroup
				over.Go(func() { e.c.Run(ctx) })
				for _, ev := range []wire.Event{wire.ListenStart{Mode: wire.Realtime}, wire.Detect{Text: "tell me something"}} {
					if err := e.c.Post(ev); err != nil {
						t.Fatal(err)
					}
				}
				e.hear(60*time.Second, nil)
				if said := e.String(); strings.Count(said, "sentence") != 1 || strings.Count(said, "stt") != 1 {
					t.Errorf("nobody said anything, and the device got\n%s", said)
				}
				cancel()
				over.Wait()
				tools.Close()
				detectors.Wait()
			})
		})
	}
}
