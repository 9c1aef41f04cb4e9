package echo

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"xiaozhi/audio"
	"xiaozhi/audio/internal/dsp"
	"xiaozhi/internal/speechtest"
)

// echoRoom is a loudspeaker, a room and a microphone.
type echoRoom struct {
	decay  int     // ms until the response is 30 dB down
	delay  int     // ms from the loudspeaker to the microphone's sample
	reverb float64 // of the room against the direct sound, for each sample
	gain   float64 // of the echo
	clip   float64 // the loudspeaker's limit; 0: none
	drift  float64 // of the loudspeaker's clock against the microphone's, in parts
	phase  int     // samples by which the microphone's frames begin later than the packets
	queue  int     // timestamps that wait on the device
	seed   uint64
	coded  bool    // Opus both ways, as on the wire
	softer float64 // s after which the echo is half as loud; 0: never
	stall  int     // samples that the loudspeaker stands still after 4 s
}

// response is a direct sound and decaying noise behind it.
func (r echoRoom) response() []float64 {
	n := r.decay * 16
	if r.reverb == 0 {
		r.reverb = 0.1
	}
	rng := rand.New(rand.NewPCG(r.seed, 1))
	h := make([]float64, n+1)
	for i := range h {
		h[i] = r.reverb * rng.NormFloat64() * math.Pow(10, -1.5*float64(i)/float64(n+1))
	}
	h[0] = 1
	sum := 0.0
	for _, v := range h {
		sum += v * v
	}
	for i := range h {
		h[i] *= r.gain / math.Sqrt(sum)
	}
	return h
}

// stallAt is where the loudspeaker of a room with a stall stands still.
const stallAt = 4 * 16000

// through is what the microphone hears of far.
func (r echoRoom) through(far []int16) []float64 {
	x := make([]float64, len(far))
	for i := range x {
		at := float64(i)*(1+r.drift) - float64(r.delay*16)
		if r.stall > 0 && at > stallAt {
			at = max(stallAt, at-float64(r.stall))
		}
		k := int(math.Floor(at))
		if k < 0 || k+1 >= len(far) {
			continue
		}
		part := at - float64(k)
		x[i] = float64(far[k])*(1-part) + float64(far[k+1])*part
		if r.clip > 0 {
			x[i] = r.clip * math.Tanh(x[i]/r.clip)
		}
	}
	y := convolve(x, r.response())
	if r.softer > 0 {
		for i := int(r.softer * 16000); i < len(y); i++ {
			y[i] /= 2
		}
	}
	return y
}

// convolve is fast enough for a test: blocks in the frequency domain.
func convolve(x, h []float64) []float64 {
	const size = 8192
	f := dsp.NewFFT(size)
	block := size - len(h)
	spectrum := func(x []float64) []complex64 {
		in := make([]float32, size)
		for i, v := range x {
			in[i] = float32(v)
		}
		out := make([]complex64, f.Bins())
		f.Forward(out, in)
		return out
	}
	hf, y := spectrum(h), make([]float64, len(x)+size)
	part := make([]float32, size)
	for from := 0; from < len(x); from += block {
		xf := spectrum(x[from:min(from+block, len(x))])
		for k := range xf {
			xf[k] *= hf[k]
		}
		f.Inverse(part, xf)
		for i, v := range part {
			y[from+i] += float64(v)
		}
	}
	return y[:len(x)]
}

// coded is the sound after its way through Opus, at the given rate on the wire.
func throughOpus(tb testing.TB, pcm []int16, f audio.Format) []int16 {
	tb.Helper()
	enc, err := audio.NewEncoder(f)
	if err != nil {
		tb.Fatal(err)
	}
	dec, err := audio.NewDecoder(16000)
	if err != nil {
		tb.Fatal(err)
	}
	up, err := audio.NewResampler(16000, f.Rate)
	if err != nil {
		tb.Fatal(err)
	}
	in := up.Flush(up.Write(nil, pcm))
	var out []int16
	packet, buf := make([]byte, audio.MaxPacket), make([]int16, audio.MaxFrameSamples(16000))
	for ; len(in) >= f.Samples(); in = in[f.Samples():] {
		n, err := enc.Encode(in[:f.Samples()], packet)
		if err != nil {
			tb.Fatal(err)
		}
		k, err := dec.Decode(packet[:n], buf)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, buf[:k]...)
	}
	return out
}

// echoScene is what a device plays and what its microphone gets.
type echoScene struct {
	far, mic []int16
	echo     []int16 // the microphone without near
	near     []int16
	stamps   []uint32 // of the microphone's frames
	playing  []int    // the packet in each of them, if some were lost
	look     func(frame int)
}

// play makes the scene of far and near, which begin at once.
func (r echoRoom) play(tb testing.TB, far, near []int16) echoScene {
	tb.Helper()
	far = far[:len(far)/frameSize*frameSize]
	if r.coded {
		far = throughOpus(tb, far, audio.Reply)
	}
	echo := r.through(far)
	n := len(far) / frameSize * frameSize
	s := echoScene{far: far[:n]}
	rng := rand.New(rand.NewPCG(7, r.seed))
	// The microphone's clock begins phase samples into the first packet.
	for i := r.phase; i < n; i++ {
		v := echo[i] + 6*rng.NormFloat64()
		s.echo = append(s.echo, dsp.Round(float32(v)))
		k := int16(0)
		if i < len(near) {
			k = near[i]
		}
		s.near = append(s.near, k)
		s.mic = append(s.mic, dsp.Round(float32(v)+float32(k)))
	}
	n = len(s.mic) / frameSize * frameSize
	s.mic, s.echo, s.near = s.mic[:n], s.echo[:n], s.near[:n]
	if r.coded {
		s.mic = throughOpus(tb, s.mic, audio.Recognition)
		s.echo = throughOpus(tb, s.echo, audio.Recognition)
	}
	// A packet's timestamp is there once all of it was written.
	for i := 0; i+frameSize <= len(s.mic); i += frameSize {
		end := i + frameSize + r.phase
		if r.stall > 0 && end > stallAt {
			end = max(stallAt, end-r.stall)
		}
		written := end / frameSize // packets, by the frame's end
		stamp := uint32(0)
		if k := written - r.queue; k > 0 && k <= len(s.far)/frameSize {
			stamp = uint32(k)
		}
		if n := len(s.stamps); n > 0 && s.stamps[n-1] == stamp {
			stamp = 0 // each is taken once
		}
		s.stamps = append(s.stamps, stamp)
	}
	return s
}

// run hands the canceller the scene, each packet 240 ms before it is played, and
// gives what comes out. Timestamps begin behind base.
func (s echoScene) run(c *Canceller, base uint32) []int16 {
	out := slices.Clone(s.mic)
	packet := 0
	for i, stamp := range s.stamps {
		for ; packet < s.first(i)+5 && (packet+1)*frameSize <= len(s.far); packet++ {
			c.Played(base+uint32(packet+1), s.far[packet*frameSize:][:frameSize])
		}
		if stamp != 0 {
			stamp += base
		}
		c.Cancel(stamp, out[i*frameSize:][:frameSize])
		if s.look != nil {
			s.look(i)
		}
	}
	return out
}

// first is the packet that is being played in the microphone's frame i.
func (s echoScene) first(i int) int {
	if s.playing == nil {
		return i
	}
	return s.playing[i]
}

// lose takes a frame out of the microphone's stream.
func (s *echoScene) lose(i int) {
	if s.playing == nil {
		for k := range s.stamps {
			s.playing = append(s.playing, k)
		}
	}
	cut := func(pcm []int16) []int16 { return slices.Delete(slices.Clone(pcm), i*frameSize, (i+1)*frameSize) }
	s.mic, s.echo, s.near = cut(s.mic), cut(s.echo), cut(s.near)
	s.stamps, s.playing = slices.Delete(s.stamps, i, i+1), slices.Delete(s.playing, i, i+1)
}

// The recordings take longer to decode than most tests.
var (
	prompts = sync.OnceValues(speechtest.Prompts)
	others  = sync.OnceValues(speechtest.Others)
)

// farSpeech is n seconds of one speaker.
func farSpeech(tb testing.TB, seconds int) []int16 {
	tb.Helper()
	return speechOf(tb, prompts, seconds)
}

// nearSpeech is n seconds of other speakers.
func nearSpeech(tb testing.TB, seconds int) []int16 {
	tb.Helper()
	return speechOf(tb, others, seconds)
}

func speechOf(tb testing.TB, recordings func() ([]speechtest.Clip, error), seconds int) []int16 {
	tb.Helper()
	clips, err := recordings()
	if err != nil {
		tb.Fatal(err)
	}
	return joined(clips, seconds)
}

func joined(clips []speechtest.Clip, seconds int) []int16 {
	var pcm []int16
	for i := 0; len(pcm) < seconds*16000; i++ {
		pcm = append(pcm, clips[i%len(clips)].PCM()...)
		pcm = append(pcm, make([]int16, 1600)...)
	}
	return pcm[:seconds*16000]
}

// erle is by how many dB the second is softer than the first.
func erle(before, after []int16) float64 { return -decibel(rms(after), rms(before)) }

// rms returns the root mean square of pcm.
func rms(pcm []int16) float64 {
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(len(pcm), 1)))
}

func decibel(a, b float64) float64 { return 20 * math.Log10(max(a, 1e-9)/b) }
