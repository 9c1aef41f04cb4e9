package app

import (
	"math"
	"slices"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/speechtest"
	"xiaozhi/internal/testall"
	"xiaozhi/providers"
	"xiaozhi/providers/pocketsphinx"
	"xiaozhi/providers/silero"
)

// noise is a sound that is no speech to anybody in the room.
type noise struct {
	kind, name string
	pcm        func() []int16
}

// TestNoSpeechHasWords plays what is no speech to the detector, the endpointer and the recogniser as they stand behind
// a microphone: none of it makes words that would be answered, but of a television one utterance in
// three. It prints what came through, and runs in make quality alone; one noise each that opens no turn is in make test
// ([TestNoiseOpensNoTurn]).
func TestNoSpeechHasWords(t *testing.T) {
	testall.Only(t)
	t.Parallel()
	vad, err := silero.New()
	if err != nil {
		t.Fatal(err)
	}
	r, err := pocketsphinx.New(pocketsphinx.Options{Decoders: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	type count struct{ sounds, utterances, answered int }
	counts := map[string]*count{}
	for _, n := range slices.Concat(madeNoises(), foundNoises(t)) {
		c := counts[n.kind]
		if c == nil {
			c = &count{}
			counts[n.kind] = c
		}
		c.sounds++
		for _, u := range utterances(t, vad, n.pcm()) {
			c.utterances++
			got := transcript(t, r, u)
			t.Logf("%s, %s: %.1f s are heard as %q, rejected %v", n.kind, n.name, float64(len(u))/speechtest.Rate, got.Text, got.Rejected)
			if got.Text != "" && !got.Rejected {
				c.answered++
			}
		}
	}
	for kind, c := range counts {
		t.Logf("%s: %d sounds, %d utterances, %d with words", kind, c.sounds, c.utterances, c.answered)
		if most := map[string]int{"television": c.utterances / 3}[kind]; c.answered > most {
			t.Errorf("%s: %d turns with words, want %d at most", kind, c.answered, most)
		}
	}
}

// madeNoises are tones, screams and claps.
func madeNoises() []noise {
	sum := func(t float64, hz ...float64) (v float64) {
		for _, f := range hz {
			v += math.Sin(2*math.Pi*f*t) / float64(len(hz))
		}
		return v
	}
	seed := uint32(1)
	random := func() float64 {
		seed = seed*1664525 + 1013904223
		return float64(int32(seed)) / (1 << 31)
	}
	made := func(kind, name string, at func(t float64) float64) noise {
		return noise{kind, name, func() []int16 {
			pcm := make([]int16, 3*speechtest.Rate)
			for i := range pcm {
				pcm[i] = int16(9000 * min(1, max(-1, at(float64(i)/speechtest.Rate))))
			}
			return pcm
		}}
	}
	scream := func(name string, hz, waver, speed float64) noise {
		phase := 0.0
		return made("screams", name, func(t float64) (v float64) {
			phase += 2 * math.Pi * hz * (1 + waver*math.Sin(2*math.Pi*speed*t)) / speechtest.Rate
			for k, part := range []float64{0.5, 0.8, 0.7, 0.3, 0.2} {
				v += part / 2 * math.Sin(float64(k+1)*phase)
			}
			return v + 0.05*random()
		})
	}
	return []noise{
		made("tones", "low", func(t float64) float64 { return sum(t, 220) }),
		made("tones", "high", func(t float64) float64 { return sum(t, 1000) }),
		made("tones", "dialling", func(t float64) float64 { return sum(t, 697, 1209) * float64(int(t*5)%2) }),
		made("tones", "ringing", func(t float64) float64 { return sum(t, 440, 480) * float64(int(t)%2) }),
		made("tones", "chord", func(t float64) float64 { return sum(t, 261, 329, 392, 522, 784) }),
		made("tones", "siren", func(t float64) float64 { return math.Sin(2 * math.Pi * 200 * math.Sin(math.Pi*t)) }),
		scream("of a woman", 700, 0.1, 1.3), scream("high", 1200, 0.15, 2), scream("long", 900, 0.02, 5),
		scream("of a baby", 450, 0.2, 0.9),
		made("claps", "hands", func(t float64) float64 { return 2 * random() * math.Exp(-60*math.Mod(t, 0.4)) }),
		made("claps", "applause", func(t float64) float64 { return random() * (0.3 + 0.7*math.Exp(-40*math.Mod(t*7.3, 0.31))) }),
		made("claps", "knocks", func(t float64) float64 { return 2 * sum(t, 180, 410) * math.Exp(-45*math.Mod(t, 0.3)) }),
		made("claps", "hiss", func(float64) float64 { return 0.3 * random() }),
	}
}

// foundNoises are music, and televisions in the next room: five people at once over music.
func foundNoises(t *testing.T) (all []noise) {
	t.Helper()
	music, err := speechtest.Music()
	if err != nil {
		t.Fatal(err)
	}
	prompts, err := speechtest.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range music {
		television := func() []int16 {
			mixed, under := make([]int16, 4*speechtest.Rate), c.PCM()
			for k := range mixed {
				v := int(under[k%len(under)]) / 2
				for n := range 5 {
					voice := prompts[(7*i+11*n)%len(prompts)].PCM()
					v += int(voice[(k+n*5000)%len(voice)]) / 3
				}
				mixed[k] = int16(min(max(v, -32000), 32000))
			}
			return mixed
		}
		all = append(all, noise{"music", c.Name, c.PCM}, noise{"television", c.Name, television})
	}
	return all
}

// utterances are the parts of a sound that the detector takes for speech, each with what belongs to it before and after.
func utterances(t *testing.T, vad providers.VAD, pcm []int16) (all [][]int16) {
	t.Helper()
	d, err := vad.NewDetector()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	o := audio.EndpointOptions{}.WithDefaults()
	e, start, size := audio.NewEndpointer(o), -1, vad.FrameSamples()
	before := int((o.MinSpeech + o.PreRoll) * speechtest.Rate / time.Second)
	pcm = slices.Concat(make([]int16, speechtest.Rate/2), pcm, make([]int16, speechtest.Rate))
	for end := size; end <= len(pcm); end += size {
		p, err := d.Probability(pcm[end-size : end])
		if err != nil {
			t.Fatal(err)
		}
		switch e.Feed(p, audio.Recognition.Duration(size)) {
		case audio.EndpointSpeechStart:
			start = max(0, end-before)
		case audio.EndpointCommit, audio.EndpointOverlong:
			all, start = append(all, pcm[start:end]), -1
		default:
		}
	}
	if start >= 0 {
		all = append(all, pcm[start:])
	}
	return all
}

// transcript is what the recogniser makes of an utterance where Chinese is expected.
func transcript(t *testing.T, r *pocketsphinx.Recognizer, pcm []int16) (final providers.Transcript) {
	t.Helper()
	s, err := r.Open(t.Context(), providers.ASRRequest{Rate: speechtest.Rate, Language: "zh"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(pcm); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for got, err := range s.Transcripts() {
		if err != nil {
			t.Fatal(err)
		}
		final = got
	}
	return final
}
