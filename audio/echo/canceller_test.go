package echo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"xiaozhi/audio"
	"xiaozhi/audio/internal/dsp"
	"xiaozhi/internal/testall"
)

// usualRoom is one that every test can start from.
func usualRoom() echoRoom { return echoRoom{decay: 100, delay: 90, gain: 0.5, phase: 400} }

func TestEchoIsGone(t *testing.T) {
	testall.Arithmetic(t)
	far := farSpeech(t, 8)
	for name, change := range map[string]func(*echoRoom){
		"usual":            func(*echoRoom) {},
		"dry and near":     func(r *echoRoom) { r.decay, r.delay, r.phase = 50, 20, 0 },
		"echoing and late": func(r *echoRoom) { r.decay, r.delay, r.reverb = 150, 250, 0.25 },
		"timestamps queue": func(r *echoRoom) { r.queue = 3 },
		"soft":             func(r *echoRoom) { r.gain = 0.05 },
		"loud":             func(r *echoRoom) { r.gain = 1.5 },
		"fast clock":       func(r *echoRoom) { r.drift = 1e-4 },
		"slow clock":       func(r *echoRoom) { r.drift = -1e-4 },
		"overdriven":       func(r *echoRoom) { r.clip = 6000 },
		"coded":            func(r *echoRoom) { r.coded = true },
		"coded overdriven": func(r *echoRoom) { r.coded, r.clip = true, 6000 },
		"turned down":      func(r *echoRoom) { r.softer = 4 },
		"speaker stalls":   func(r *echoRoom) { r.stall = 600 },
	} {
		t.Run(name, func(t *testing.T) {
			r := usualRoom()
			change(&r)
			s := r.play(t, far, nil)
			out := s.run(NewCanceller(), 0)
			after := 2 * 16000
			if got := erle(s.echo[after:], out[after:]); got < 20 {
				t.Errorf("the echo is %.1f dB softer, want 20", got)
			} else {
				t.Logf("%.1f dB", got)
			}
		})
	}
}

// The suppressor hides much: the filter has to learn the room all the same.
func TestEchoFilterLearnsTheRoom(t *testing.T) {
	testall.Arithmetic(t)
	for coded, want := range map[bool]float64{false: 16, true: 13} {
		r := usualRoom()
		r.coded = coded
		s := r.play(t, farSpeech(t, 7), nil)
		c := NewCanceller()
		var rest, mic float64
		s.look = func(frame int) {
			for k := range c.now.rest {
				if frame > 50 { // of the last 10 ms of each frame after 3 s
					rest += float64(c.now.rest[k] * c.now.rest[k])
					mic += float64(c.now.mic[k] * c.now.mic[k])
				}
			}
		}
		s.run(c, 0)
		if got := 10 * math.Log10(mic/rest); got < want {
			t.Errorf("coded %v: the filter leaves %.1f dB less, want %.0f", coded, got, want)
		} else {
			t.Logf("coded %v: %.1f dB", coded, got)
		}
	}
}

// spoken compares sound with what should be left of it, by pieces of 60 ms in
// which the user speaks: the mean ratio to what is wrong with them in dB, and
// the part that is cut off, softer by 15 dB or more.
func spoken(near, got []int16, late int) (ratio, cut float64) {
	n := 0.0
	for i := 4 * 16000; i+frameSize+late <= len(got); i += frameSize {
		want := near[i : i+frameSize]
		if rms(want) < 300 {
			continue
		}
		var power, wrong, alike float64
		for k, v := range want {
			g, v := float64(got[i+k+late]), float64(v)
			power += v * v
			wrong += (g - v) * (g - v)
			alike += g * v
		}
		ratio += max(-15, min(30, 10*math.Log10(power/(wrong+1))))
		if alike < 0.178*power {
			cut++
		}
		n++
	}
	return ratio / n, cut / n
}

// doubleTalk is a scene in which the user speaks from 4 s on, so loud in parts
// of the echo.
func doubleTalk(t *testing.T, r echoRoom, level float64) echoScene {
	t.Helper()
	far, near := farSpeech(t, 10), nearSpeech(t, 10)
	clear(near[:4*16000])
	echo := r.play(t, far, nil).echo
	scale := level * rms(echo[4*16000:]) / rms(near[4*16000:])
	for i, v := range near {
		near[i] = dsp.Round(float32(float64(v) * scale))
	}
	return r.play(t, far, near)
}

func TestDoubleTalk(t *testing.T) {
	testall.Arithmetic(t)
	for _, tc := range []struct {
		name   string
		change func(*echoRoom)
		level  float64
		cut    float64
	}{
		{"as loud", func(*echoRoom) {}, 1, 0.04},
		{"half as loud", func(*echoRoom) {}, 0.5, 0.08},
		{"twice as loud", func(*echoRoom) {}, 2, 0.08},
		{"overdriven", func(r *echoRoom) { r.clip = 6000 }, 1, 0.06},
		{"fast clock", func(r *echoRoom) { r.drift = 1e-4 }, 1, 0.08},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := usualRoom()
			tc.change(&r)
			s := doubleTalk(t, r, tc.level)
			before, _ := spoken(s.near, s.mic, 0)
			after, cut := spoken(s.near, s.run(NewCanceller(), 0), Latency)
			t.Logf("ratio %.1f to %.1f dB, cut off %.3f", before, after, cut)
			if after < before+4 {
				t.Errorf("ratio %.1f dB, was %.1f", after, before)
			}
			if cut > tc.cut {
				t.Errorf("%.3f of the speech is cut off, want at most %.2f", cut, tc.cut)
			}
		})
	}
}

// Without anything played, sound passes as it was, 10 ms late, in any frames.
func TestSilentReferenceChangesNothing(t *testing.T) {
	near := nearSpeech(t, 3)
	quiet := make([]int16, frameSize)
	for name, play := range map[string]func(c *Canceller, stamp uint32){
		"nothing played": func(*Canceller, uint32) {},
		"silence played": func(c *Canceller, stamp uint32) { c.Played(stamp, quiet) },
	} {
		for _, size := range []int{160, 320, 640, 960} {
			c := NewCanceller()
			got := slices.Clone(near[:len(near)/960*960])
			for i := 0; i < len(got); i += size {
				play(c, uint32(i+1))
				c.Cancel(uint32(i+1), got[i:i+size])
			}
			if !slices.Equal(got[Latency:], near[:len(got)-Latency]) {
				t.Errorf("%s, frames of %d: the sound is changed", name, size)
			}
		}
	}
}

// A device whose loudspeaker cannot be heard, as with headphones.
func TestNoEchoKeepsSpeech(t *testing.T) {
	testall.Arithmetic(t)
	r := usualRoom()
	r.gain = 0
	s := r.play(t, farSpeech(t, 10), nearSpeech(t, 10))
	if ratio, cut := spoken(s.near, s.run(NewCanceller(), 0), Latency); ratio < 9 || cut > 0.05 {
		t.Errorf("ratio %.1f dB, cut off %.3f", ratio, cut)
	} else {
		t.Logf("ratio %.1f dB, cut off %.3f", ratio, cut)
	}
}

// Who speaks for the first time over a reply that the microphone did not hear is
// heard from the first word on.
func TestNoEchoFirstWord(t *testing.T) {
	testall.Arithmetic(t)
	for _, late := range []int{1, 2, 4} {
		r := usualRoom()
		r.gain = 0
		near := append(make([]int16, late*audio.Recognition.Rate), nearSpeech(t, 2)...)
		s := r.play(t, farSpeech(t, late+2), near)
		got := s.run(NewCanceller(), 0)
		word := s.near[late*audio.Recognition.Rate:][:audio.Recognition.Rate]
		kept := rms(got[late*audio.Recognition.Rate+Latency:][:audio.Recognition.Rate]) / rms(word)
		if kept < 0.9 {
			t.Errorf("after %d s of silence %.2f of the first second is left", late, kept)
		}
	}
}

func TestLostFrames(t *testing.T) {
	testall.Arithmetic(t)
	r := usualRoom()
	s := r.play(t, farSpeech(t, 8), nil)
	for _, i := range []int{110, 71, 70, 40} {
		s.lose(i)
	}
	c := NewCanceller()
	out := s.run(c, 0)
	for _, from := range []int{2, 4, 6} { // in each there is a loss
		a, b := from*16000, min((from+2)*16000, len(out))
		if got := erle(s.echo[a:b], out[a:b]); got < 20 {
			t.Errorf("from %d s: %.1f dB", from, got)
		}
	}
}

// Devices may cut the microphone's sound into shorter frames than the reply's,
// and callers into longer ones.
func TestOtherFrames(t *testing.T) {
	testall.Arithmetic(t)
	for _, size := range []int{320, 640, 1920} {
		s := usualRoom().play(t, farSpeech(t, 6), nil)
		c, out := NewCanceller(), slices.Clone(s.mic)
		packet, last := 0, uint32(0)
		for i := 0; i+size <= len(out); i += size {
			for ; packet*frameSize < i+5*frameSize && (packet+1)*frameSize <= len(s.far); packet++ {
				c.Played(uint32(packet+1), s.far[packet*frameSize:][:frameSize])
			}
			stamp := uint32((i + size + 400) / frameSize) // of the usual room's phase
			if stamp == last {
				stamp = 0
			} else {
				last = stamp
			}
			c.Cancel(stamp, out[i:i+size])
		}
		if got := erle(s.echo[2*16000:], out[2*16000:len(out)/size*size]); got < 20 {
			t.Errorf("frames of %d: %.1f dB", size, got)
		}
	}
}

// Timestamps that are missing, old, unknown or stand still do no harm once the
// reference runs.
func TestBadTimestamps(t *testing.T) {
	testall.Arithmetic(t)
	far := farSpeech(t, 6)
	for name, spoil := range map[string]func(i int, rng *rand.Rand, stamp uint32) uint32{
		"mostly missing":  func(i int, _ *rand.Rand, s uint32) uint32 { return s * b2u(i%10 == 0) },
		"missing after 1": func(i int, _ *rand.Rand, s uint32) uint32 { return s * b2u(i < 2) },
		"jumping about":   func(_ int, rng *rand.Rand, s uint32) uint32 { return s - min(s-b2u(s > 0), rng.Uint32N(4)) },
		"unknown":         func(i int, rng *rand.Rand, s uint32) uint32 { return s + 1e6*b2u(i%3 != 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := usualRoom().play(t, far, nil)
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range s.stamps {
				s.stamps[i] = spoil(i, rng, s.stamps[i])
			}
			out := s.run(NewCanceller(), 0)
			if got := erle(s.echo[2*16000:], out[2*16000:]); got < 20 {
				t.Errorf("%.1f dB", got)
			}
		})
	}
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func TestTimestampsWrapAround(t *testing.T) {
	testall.Arithmetic(t)
	s := usualRoom().play(t, farSpeech(t, 5), nil)
	straight := s.run(NewCanceller(), 0)
	wrapped := s.run(NewCanceller(), math.MaxUint32-60)
	// Packet 61 gets timestamp 0, which means none: everything else is the same.
	if got := erle(s.echo[2*16000:], wrapped[2*16000:]); got < 20 || len(straight) != len(wrapped) {
		t.Errorf("%.1f dB", got)
	}
}

// The second reply finds the room known, though it begins elsewhere in a frame.
func TestNextReplyIsQuickerGone(t *testing.T) {
	testall.Arithmetic(t)
	far := farSpeech(t, 4)
	c := NewCanceller()
	usualRoom().play(t, far, nil).run(c, 0)
	pause := make([]int16, frameSize)
	for range 50 {
		c.Cancel(0, pause)
	}
	r := usualRoom()
	r.phase = 900
	second := r.play(t, far, nil)
	out := second.run(c, 1000)
	if got := erle(second.echo[:16000], out[:16000]); got < 20 {
		t.Errorf("%.1f dB in the first second", got)
	} else {
		t.Logf("%.1f dB in the first second", got)
	}
}

// A reply that is cut leaves packets that were sent and never played; the next
// one begins soon, and elsewhere in a frame.
func TestReplyAfterACut(t *testing.T) {
	testall.Arithmetic(t)
	far := farSpeech(t, 8)
	for _, pause := range []int{1, 3, 6, 20} {
		c := NewCanceller()
		first := usualRoom().play(t, far, nil)
		const cut = 70
		first.stamps, first.mic = first.stamps[:cut], first.mic[:cut*frameSize]
		first.run(c, 0)
		frame := make([]int16, frameSize)
		for range pause {
			c.Cancel(0, frame)
		}
		r := usualRoom()
		r.phase = 880
		second := r.play(t, far, nil)
		out := second.run(c, 1000)
		early, late := erle(second.echo[:24000], out[:24000]), erle(second.echo[32000:], out[32000:])
		if early < 15 || late < 20 {
			t.Errorf("pause of %d frames: %.1f dB in the first 1.5 s, %.1f after 2 s", pause, early, late)
		} else {
			t.Logf("pause of %d frames: %.1f dB in the first 1.5 s, %.1f after 2 s", pause, early, late)
		}
	}
}

// After a reply the microphone is as it was again, a third of a second later.
func TestSpeechAfterReplyIsUntouched(t *testing.T) {
	testall.Arithmetic(t)
	c := NewCanceller()
	usualRoom().play(t, farSpeech(t, 5), nil).run(c, 0)
	near := nearSpeech(t, 3)
	got := slices.Clone(near[:48*frameSize])
	for i := 0; i < len(got); i += frameSize {
		c.Cancel(0, got[i:i+frameSize])
	}
	from := 16 * frameSize
	if !slices.Equal(got[from+Latency:], near[from:len(got)-Latency]) {
		t.Error("the sound is changed")
	}
}

func TestEchoReset(t *testing.T) {
	testall.Arithmetic(t)
	s := usualRoom().play(t, farSpeech(t, 6), nil)
	c := NewCanceller()
	s.run(c, 0)
	c.Reset()
	near := nearSpeech(t, 1)[:16*frameSize]
	got := slices.Clone(near)
	for i := 0; i < len(got); i += frameSize {
		c.Cancel(5, got[i:i+frameSize]) // a packet of the time before
	}
	if !slices.Equal(got[2*Latency:], near[Latency:len(near)-Latency]) {
		t.Error("the time before the reset is not forgotten")
	}
	out := s.run(c, 0)
	if got := erle(s.echo[16000:], out[16000:]); got < 20 {
		t.Errorf("after a reset %.1f dB", got)
	}
}

// Sound that breaks every rule must not break the canceller.
func TestCancellerRecovers(t *testing.T) {
	testall.Arithmetic(t)
	c := NewCanceller()
	rng := rand.New(rand.NewPCG(5, 5))
	frame := make([]int16, frameSize)
	for i := range 100 {
		for k := range frame {
			frame[k] = int16(rng.Uint32())
		}
		c.Played(uint32(i+1), frame)
		for k := range frame {
			frame[k] = math.MinInt16 + int16(rng.Uint32N(2))*math.MaxInt16
		}
		c.Cancel(uint32(i+1), frame)
	}
	s := usualRoom().play(t, farSpeech(t, 8), nil)
	out := s.run(c, 1000)
	if got := erle(s.echo[4*16000:], out[4*16000:]); got < 20 {
		t.Errorf("%.1f dB", got)
	}
}

func TestCancellerDoesNotAllocate(t *testing.T) {
	s := usualRoom().play(t, farSpeech(t, 4), nil)
	c := NewCanceller()
	frame := make([]int16, frameSize)
	i := 0
	if n := testing.AllocsPerRun(60, func() {
		copy(frame, s.mic[i*frameSize:])
		c.Played(uint32(i+1), s.far[i*frameSize:][:frameSize])
		c.Cancel(s.stamps[i], frame)
		i++
	}); n != 0 {
		t.Errorf("%v allocations per frame", n)
	}
}

func FuzzCanceller(f *testing.F) {
	f.Add([]byte{1, 200, 1, 200, 2, 160, 0, 0, 255, 255})
	f.Fuzz(func(t *testing.T, script []byte) {
		c := NewCanceller()
		pcm := make([]int16, 2048)
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range pcm {
			pcm[i] = int16(rng.Uint32())
		}
		for ; len(script) >= 2; script = script[2:] {
			stamp := uint32(script[0]>>3) * 0x8000001
			n := int(script[1]) * 8
			switch script[0] & 7 {
			case 0, 1, 2:
				c.Played(stamp, pcm[:n])
			case 3:
				c.Reset()
			default:
				frame := slices.Clone(pcm[:n])
				c.Cancel(stamp, frame)
				whole := n / hopSize * hopSize
				if !slices.Equal(frame[whole:], pcm[whole:n]) {
					t.Fatal("samples beyond whole 10 ms were changed")
				}
			}
		}
		if v := slices.Max(c.filter.loud[:]); !(v >= 0 && v < 2e9) {
			t.Fatalf("loudness %v", v)
		}
	})
}

func BenchmarkCanceller(b *testing.B) {
	s := usualRoom().play(b, farSpeech(b, 12), nil)
	c := NewCanceller()
	frame := make([]int16, frameSize)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		copy(frame, s.mic[i*frameSize:])
		c.Played(uint32(i+1), s.far[i*frameSize:][:frameSize])
		c.Cancel(s.stamps[i], frame)
		i = (i + 1) % len(s.stamps)
	}
}
