package speak

import (
	"context"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/scene"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// device is an Outbox that keeps what it gets, as a device that decodes and
// plays it would. refuse says whether it takes a packet at that time.
type device struct {
	refuse func(at time.Duration) bool
	lag    func(at time.Duration) time.Duration

	mu      sync.Mutex
	began   time.Time
	packets [][]byte
	at      []time.Duration
	ends    time.Duration // of the sound, on the device's clock
	silence time.Duration // within a reply, after its first frame
	most    time.Duration // the largest lead
	least   time.Duration // the smallest lead that a packet met
	closing []byte
	lines   []string

	messages []string
}

// kinds name the messages that tests look at.
var kinds = map[wire.MessageKind]string{
	wire.MessageSTT: "stt", wire.MessageTTSStart: "tts start", wire.MessageSentenceStart: "sentence", wire.MessageTTSStop: "tts stop",
	wire.MessageEmotion: "emotion", wire.MessageChunk: "chunk", wire.MessageThought: "thought",
}

func newDevice() *device { return &device{began: time.Now(), least: time.Hour} }

func (d *device) Send(m wire.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Kind == wire.MessageSentenceStart {
		d.lines = append(d.lines, m.Text)
	}
	if m.Kind == wire.MessageTTSStop {
		d.closing = m.Closing
	}
	d.messages = append(d.messages, strings.TrimSpace(kinds[m.Kind]+" "+m.Text))
}

func (d *device) Audio(_ uint64, packet []byte) (uint32, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Since(d.began)
	if d.refuse != nil && d.refuse(now) {
		return 0, false
	}
	if len(d.packets) > 0 {
		d.silence += max(0, now-d.ends)
		d.least = min(d.least, max(0, d.ends-now))
	}
	d.ends = max(d.ends, now) + 60*time.Millisecond
	d.most = max(d.most, d.ends-now)
	d.packets, d.at = append(d.packets, slices.Clone(packet)), append(d.at, now)
	return 0, true
}

func (d *device) Lag() time.Duration {
	if d.lag == nil {
		return 0
	}
	return d.lag(time.Since(d.began))
}

func (d *device) HangUp(error) {}

// hear decodes what came, the closing frame too.
func (d *device) hear(t *testing.T) []int16 {
	t.Helper()
	dec, err := audio.NewDecoder(24000)
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, audio.MaxFrameSamples(24000))
	var all []int16
	packets := d.packets
	if d.closing != nil {
		packets = append(slices.Clip(packets), d.closing)
	}
	for i, p := range packets {
		n, err := dec.Decode(p, pcm)
		if err != nil || n != 1440 {
			t.Fatalf("packet %d: %d samples, %v", i, n, err)
		}
		all = append(all, pcm[:n]...)
	}
	return all
}

// reply is a speaker at work in a bubble.
type reply struct {
	*testing.T
	speaker *Speaker
	player  *Player
	dev     *device
	cancel  context.CancelFunc
	over    sync.WaitGroup
	err     error
}

// soundOptions are those of a server that speaks with tts.
func soundOptions(t *testing.T, tts providers.TTS) Options {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		TTS: tts, Prompts: set, Reply: audio.Reply, Coding: audio.Usual(), Lead: 4, Guard: 105 * time.Millisecond, StopAfter: 100 * time.Millisecond,
		SlowAfter: 2500 * time.Millisecond, SoundTimeout: 30 * time.Second,
	}
}

func speakTo(t *testing.T, o *Options, dev *device) *reply {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	r := &reply{T: t, dev: dev, player: NewPlayer(dev, 1, o.Reply, o.Coding, o.Lead)}
	r.speaker = NewSpeaker(o, log, r.player, timeline.New(timeline.Times{}), "", atOnce(r.player))
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	r.over.Go(func() { r.err = r.speaker.Synthesize(ctx) })
	r.over.Go(func() {
		if err := r.speaker.Play(ctx); err == nil {
			r.player.Stop()
		}
	})
	return r
}

func (r *reply) say(texts ...string) {
	for _, text := range texts {
		if err := r.speaker.Say(r.Context(), NewSegment(text, "en", 0)); err != nil {
			r.Error(err)
		}
	}
}

// end waits until all was played.
func (r *reply) end() {
	r.Helper()
	r.speaker.Close()
	r.over.Wait()
	r.cancel()
	if r.err != nil {
		r.Error(r.err)
	}
}

// TestNoSeam: while text is ahead, sentences follow each other without a gap,
// though each takes longer to begin than a short one before it lasts.
func TestNoSeam(t *testing.T) {
	for name, script := range map[string][]providertest.Speech{
		"300 ms each": {
			{Delay: 300 * time.Millisecond, Length: 900 * time.Millisecond},
		},
		"a short clause, then one that takes a second": {
			{Delay: 300 * time.Millisecond, Length: 800 * time.Millisecond},
			{Delay: time.Second, Length: 2 * time.Second},
			{Delay: time.Second, Length: 2 * time.Second},
		},
		"in real time": {
			{Delay: 300 * time.Millisecond, Length: 2 * time.Second, EveryPiece: 55 * time.Millisecond},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tts := &providertest.TTS{Script: script}
				o := soundOptions(t, tts)
				r := speakTo(t, &o, newDevice())
				r.say("One is short,", "two is longer.", "Three is the end.")
				r.end()
				if r.dev.silence != 0 || len(r.dev.lines) != 3 {
					t.Errorf("%v of silence between %q", r.dev.silence, r.dev.lines)
				}
				if r.dev.most > 360*time.Millisecond {
					t.Errorf("lead %v", r.dev.most)
				}
			})
		})
	}
}

// watchedTTS counts the requests that are open.
type watchedTTS struct {
	providers.TTS
	mu         sync.Mutex
	open, most int
}

func (w *watchedTTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		w.count(1)
		defer w.count(-1)
		w.TTS.Synthesize(ctx, req)(yield)
	}
}

func (w *watchedTTS) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += n
	w.most = max(w.most, w.open)
}

func (w *watchedTTS) now() (open, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.most
}

// TestOneSentenceAhead: of many sentences two are synthesised at a time, with
// bounded sound, and a cut closes both requests at once.
func TestOneSentenceAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &providertest.TTS{Script: []providertest.Speech{{Length: time.Minute}}}
		tts := &watchedTTS{TTS: fake}
		o := soundOptions(t, tts)
		r := speakTo(t, &o, newDevice())
		r.say("One.", "Two.", "Three.", "Four.", "Five.")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if open, most := tts.now(); open != 2 || most != 2 {
			t.Errorf("%d requests are open, %d at most", open, most)
		}
		for i, s := range fake.Spoken() {
			if ahead := s.Sound - []time.Duration{2 * time.Second, 0}[i]; ahead > 2500*time.Millisecond {
				t.Errorf("request %d is %v ahead", i, ahead)
			}
		}
		r.player.Cut()
		r.cancel()
		r.over.Wait()
		if open, _ := tts.now(); open != 0 {
			t.Error("a request is still open after the cut")
		}
		if n := len(fake.Spoken()); n != 2 {
			t.Errorf("%d sentences were asked for", n)
		}
	})
}

// TestFirstRequestIsAlone: the second request waits until the first has given
// sound, or for 100 ms.
func TestFirstRequestIsAlone(t *testing.T) {
	for _, c := range []struct{ delay, second time.Duration }{
		{30 * time.Millisecond, 30 * time.Millisecond}, {time.Second, 100 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := &providertest.TTS{Script: []providertest.Speech{{Delay: c.delay, Length: time.Second}}}
			o := soundOptions(t, fake)
			r := speakTo(t, &o, newDevice())
			r.say("One.", "Two.")
			time.Sleep(c.second - time.Millisecond)
			if n := len(fake.Spoken()); n != 1 {
				t.Errorf("delay %v: %d requests before %v", c.delay, n, c.second)
			}
			time.Sleep(2 * time.Millisecond)
			if n := len(fake.Spoken()); n != 2 {
				t.Errorf("delay %v: %d requests after %v", c.delay, n, c.second)
			}
			r.end()
		})
	}
}

func loudness(pcm []int16) float64 {
	m := audio.NewMeter(24000)
	m.Add(pcm)
	return m.Loudness()
}

// TestVoicesAreLevelled: two voices of one reply that are 20 dB apart come to
// the device equally loud, at once when they were heard before.
func TestVoicesAreLevelled(t *testing.T) {
	tts := &scene.TTS{Label: "two voices", Sound: func(text string) []providers.Sound {
		if strings.Contains(text, "你好") {
			return []providers.Sound{{Rate: 16000, PCM: scene.Voiced(16000, 2*time.Second, 3000)}}
		}
		return []providers.Sound{{Rate: 24000, PCM: scene.Voiced(24000, 2*time.Second, 15000)}}
	}}
	levels := audio.NewLevels()
	for _, c := range []struct {
		name   string
		levels *audio.Levels
		most   float64 // dB between the two
		least  float64
	}{
		{"off", nil, 16, 12}, {"first time", levels, 4, 0}, {"known voices", levels, 1.5, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := soundOptions(t, tts)
			o.Levels = c.levels
			r := speakTo(t, &o, newDevice())
			r.say("Hello there.", "你好，很高兴。")
			r.end()
			pcm := r.dev.hear(t)
			n := 24000 * 2
			a, b := loudness(pcm[:n]), loudness(pcm[n:])
			if apart := math.Abs(a - b); apart > c.most || apart < c.least {
				t.Errorf("%s: %.1f and %.1f dBFS", c.name, a, b)
			}
			if c.name == "known voices" && (math.Abs(a+20) > 1.5 || math.Abs(b+20) > 1.5) {
				t.Errorf("%s: %.1f and %.1f dBFS, want -20", c.name, a, b)
			}
		})
	}
}

// TestMusicKeepsItsLoudness: what is no voice is not levelled.
func TestMusicKeepsItsLoudness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := soundOptions(t, &scene.TTS{Label: "none"})
		o.Levels = audio.NewLevels()
		r := speakTo(t, &o, newDevice())
		song := scene.Voiced(24000, 2*time.Second, 2000)
		music := Segment{Sound: func(yield func(providers.Sound, error) bool) { yield(providers.Sound{Rate: 24000, PCM: song}, nil) }}
		music.Display = "♪"
		if err := r.speaker.Say(t.Context(), music); err != nil {
			t.Fatal(err)
		}
		r.end()
		if got, want := loudness(r.dev.hear(t)), loudness(song); math.Abs(got-want) > 1 {
			t.Errorf("%.1f dBFS, want %.1f", got, want)
		}
	})
}

// worstStep is the largest step from sample to sample.
func worstStep(pcm []int16) (worst int) {
	for i := 1; i < len(pcm); i++ {
		worst = max(worst, int(pcm[i])-int(pcm[i-1]), int(pcm[i-1])-int(pcm[i]))
	}
	return worst
}

// hum is a low tone that begins at its top: every edge of it is a click.
func hum(length time.Duration) []int16 {
	pcm := make([]int16, audio.Format{Rate: 24000, Frame: length}.Samples())
	for i := range pcm {
		pcm[i] = int16(12000 * math.Cos(2*math.Pi*100*float64(i)/24000))
	}
	return pcm
}

// TestNoClickAtTheEdges decodes sentences that begin and end at the top of a
// wave, of which one fills its frames exactly, and one is cut.
func TestNoClickAtTheEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tts := &scene.TTS{Label: "hum", Sound: func(text string) []providers.Sound {
			return []providers.Sound{{Rate: 24000, PCM: hum(map[string]time.Duration{
				"Exactly.": 600 * time.Millisecond, "With a rest.": 610 * time.Millisecond, "Cut.": 5 * time.Second,
			}[text])}}
		}}
		o := soundOptions(t, tts)
		r := speakTo(t, &o, newDevice())
		r.say("Exactly.", "With a rest.", "Cut.")
		time.Sleep(1900 * time.Millisecond)
		r.player.Cut()
		r.cancel()
		r.over.Wait()
		pcm := r.dev.hear(t)
		const begin2, begin3 = 11 * 1440, 22 * 1440 // the first ends in a frame of its own
		inside := worstStep(pcm[4800:12000])
		for name, at := range map[string]int{
			"begin 1": 0, "end 1": 14400, "begin 2": begin2, "end 2": begin2 + 14640, "begin 3": begin3, "the cut": len(pcm) - 1440,
		} {
			edge := pcm[max(0, at-480):min(len(pcm), at+960)]
			if at == 0 {
				edge = append([]int16{0}, edge...)
			}
			if got := worstStep(edge); got > inside*3/2 {
				t.Errorf("%s: a step of %d, inside a sentence %d", name, got, inside)
			}
		}
		if end := pcm[len(pcm)-480:]; loudness(append(end, end...)) > -50 {
			t.Errorf("it does not end in silence: %v", end[:10])
		}
	})
}

// TestCutThrowsFramesAway: the frames that wait before the socket go with the cut.
// What the device plays last is silence all the same.
func TestCutThrowsFramesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sound := scene.Voiced(24000, 4*time.Second, 20000)
		for lost := range 4 {
			for given := 5; given < 60; given++ {
				dev := newDevice()
				dev.lag = func(time.Duration) time.Duration { return time.Duration(lost) }
				f := NewPlayer(dev, 1, audio.Reply, audio.Usual(), 4)
				f.Start()
				for i := range given {
					packet, err := f.encode(slices.Clone(sound[i*1440 : (i+1)*1440]))
					if err != nil || !f.frame(packet) {
						t.Fatal(err)
					}
				}
				f.Cut()
				dev.packets = dev.packets[:given-lost]
				pcm := dev.hear(t)
				if loudest := slices.Max(pcm[len(pcm)-720:]); loudest > 100 {
					t.Errorf("%d of %d frames thrown away: the last one ends with samples of %d", lost, given, loudest)
				}
			}
		}
	})
}

// TestCutWhilePaused: a reply that is paused has ended softly. What closes it is
// silent from its first sample on, also where a frame was ready to follow.
func TestCutWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sound := scene.Voiced(24000, 4*time.Second, 20000)
		for given := 5; given < 60; given++ {
			dev := newDevice()
			f := NewPlayer(dev, 1, audio.Reply, audio.Usual(), 4)
			f.Start()
			for i := range given + 1 {
				if i == given {
					f.Pause()
				}
				packet, err := f.encode(slices.Clone(sound[i*1440 : (i+1)*1440]))
				if err != nil || f.frame(packet) == (i == given) {
					t.Fatalf("frame %d: %v", i, err)
				}
			}
			f.Cut()
			pcm := dev.hear(t)
			if closing := pcm[len(pcm)-1440:]; slices.Max(closing) > 100 || slices.Min(closing) < -100 {
				t.Errorf("after %d frames the closing one has samples of %d and %d", given, slices.Min(closing), slices.Max(closing))
			}
		}
	})
}

// TestAnotherVoiceTakesOverSoftly: where a second provider goes on within a
// sentence, at another rate, there is no click, and nothing is lost.
func TestAnotherVoiceTakesOverSoftly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		low := make([]int16, 16000)
		for i := range low {
			low[i] = int16(12000 * math.Cos(2*math.Pi*100*float64(i)/16000))
		}
		tts := &scene.TTS{Label: "two", Sound: func(string) []providers.Sound {
			return []providers.Sound{{Rate: 24000, PCM: hum(610 * time.Millisecond)}, {Rate: 16000, PCM: low, Provider: "second"}}
		}}
		o := soundOptions(t, tts)
		r := speakTo(t, &o, newDevice())
		r.say("One sentence.")
		r.end()
		pcm := r.dev.hear(t)
		if n := len(pcm); n < 1610*24 || n > 1730*24 {
			t.Errorf("%d samples of 1.61 s", n)
		}
		inside := worstStep(pcm[4800:12000])
		for _, at := range []int{14640, 11 * 1440, len(pcm) - 1440} {
			if got := worstStep(pcm[at-480 : at+960]); got > inside*3/2 {
				t.Errorf("sample %d: a step of %d, inside %d", at, got, inside)
			}
		}
	})
}

// TestStallEndsSoftly: a synthesiser that stalls within a word leaves no click
// where the device runs dry, nor where the sound goes on.
func TestStallEndsSoftly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sound := hum(2 * time.Second)
		tts := &providertest.TTS{Script: []providertest.Speech{{Length: 2 * time.Second, StallAt: time.Second, Stall: 3 * time.Second}}}
		humming := &replacedTTS{tts, sound}
		o := soundOptions(t, humming)
		r := speakTo(t, &o, newDevice())
		r.say("A long word.")
		r.end()
		pcm := r.dev.hear(t)
		// The device plays silence where it has run dry: between two packets.
		gap := -1
		for i := 1; i < len(r.dev.at); i++ {
			if r.dev.at[i]-r.dev.at[i-1] > time.Second {
				gap = i * 1440
			}
		}
		if gap < 0 {
			t.Fatal("no stall")
		}
		inside := worstStep(pcm[4800:9600])
		around := slices.Concat(pcm[gap-2880:gap], make([]int16, 480), pcm[gap:gap+2880])
		if got := worstStep(around); got > 2*inside {
			t.Errorf("a step of %d around the stall, inside %d", got, inside)
		}
		if r.dev.most > 360*time.Millisecond {
			t.Errorf("a burst: lead %v", r.dev.most)
		}
	})
}

// replacedTTS gives another sound than its fake, at the fake's times.
type replacedTTS struct {
	*providertest.TTS
	sound []int16
}

func (r *replacedTTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		at := 0
		for s, err := range r.TTS.Synthesize(ctx, req) {
			if err == nil {
				n := len(s.PCM)
				s.PCM = r.sound[at : at+n]
				at += n
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// TestSynthesiserJustKeepsUp: no silence is put in where sound
// comes in time, frame by frame.
func TestSynthesiserJustKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tts := &providertest.TTS{Script: []providertest.Speech{{Length: 3 * time.Second, EveryPiece: 60 * time.Millisecond}}}
		o := soundOptions(t, tts)
		r := speakTo(t, &o, newDevice())
		r.say("In real time.")
		r.end()
		if len(r.dev.packets) != 50 || r.dev.silence > 0 {
			t.Errorf("%d frames of 50, %v of silence", len(r.dev.packets), r.dev.silence)
		}
	})
}

// TestThinLink: what is synthesised and what is kept are encoded as the settings say.
func TestThinLink(t *testing.T) {
	bytes := map[int]int{}
	for _, bitrate := range []int{12000, 24000} {
		o := soundOptions(t, &scene.TTS{Label: "none"})
		o.Coding = audio.Coding{Bitrate: bitrate}
		player := NewPlayer(newDevice(), 1, o.Reply, o.Coding, o.Lead)
		player.Start()
		sound := scene.Voiced(24000, 600*time.Millisecond, 9000)
		kept, err := encodeAll(&o, sound, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range kept {
			packet, err := player.encode(slices.Clone(sound[i*1440:][:1440]))
			if err != nil || len(packet) != len(kept[i]) {
				t.Fatalf("packet %d has %d bytes, %v; kept %d", i, len(packet), err, len(kept[i]))
			}
			bytes[bitrate] += len(packet)
		}
	}
	if bytes[12000]*3 > bytes[24000]*2 {
		t.Errorf("%v bytes", bytes)
	}
}
