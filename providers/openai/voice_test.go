package openai

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sound"
)

var hello = providers.TTSRequest{Text: "hello", Language: "en"}

func newTTS(t *testing.T, s service.Section) providers.TTS {
	t.Helper()
	v, err := kindOf(t, "openai").TTS(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// speak collects the sound of one sentence.
func speak(ctx context.Context, t *testing.T, v providers.TTS) (rate int, pcm []int16, last error) {
	t.Helper()
	ear := newEar(t)
	for sound, err := range v.Synthesize(ctx, hello) {
		if last = err; err != nil {
			continue
		}
		if len(sound.Packets) > 0 {
			rate, pcm = 24000, append(pcm, ear.hear(sound.Packets)...)
			continue
		}
		if len(sound.PCM) == 0 || len(sound.PCM) > sound.Rate/10 {
			t.Errorf("a piece of %d samples at %d Hz", len(sound.PCM), sound.Rate)
		}
		rate = sound.Rate
		pcm = append(pcm, sound.PCM...)
	}
	return rate, pcm, last
}

// testFile reads test data.
func testFile(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// wavOf is a WAV file of the bytes, which are PCM of so many channels.
func wavOf(tb testing.TB, raw []byte, rate, channels int, size uint32) []byte {
	tb.Helper()
	var b bytes.Buffer
	b.WriteString("RIFF\xff\xff\xff\xffWAVELIST\x03\x00\x00\x00abc\x00fmt \x10\x00\x00\x00")
	for _, field := range []any{uint16(1), uint16(channels), uint32(rate), uint32(2 * rate * channels), uint16(2 * channels), uint16(16)} {
		if err := binary.Write(&b, binary.LittleEndian, field); err != nil {
			tb.Fatal(err)
		}
	}
	b.WriteString("data")
	b.Write(binary.LittleEndian.AppendUint32(nil, size))
	b.Write(raw)
	return b.Bytes()
}

// samples are the samples of raw PCM.
func samples(raw []byte) []int16 {
	var pcm []int16
	for sample := range slices.Chunk(raw, 2) {
		pcm = append(pcm, int16(binary.LittleEndian.Uint16(sample)))
	}
	return pcm
}

// stereo puts every sample on two channels.
func stereo(mono []byte) []byte {
	var both []byte
	for sample := range slices.Chunk(mono, 2) {
		both = append(append(both, sample...), sample...)
	}
	return both
}

// hertz counts the zero crossings of the middle of the sound, which codecs leave alone.
func hertz(rate int, pcm []int16) float64 {
	pcm = pcm[len(pcm)/4 : len(pcm)*3/4]
	crossings := 0
	for i := 1; i < len(pcm); i++ {
		if (pcm[i-1] < 0) != (pcm[i] < 0) {
			crossings++
		}
	}
	return float64(crossings) / 2 * float64(rate) / float64(len(pcm))
}

func TestTTSPassesTheSuite(t *testing.T) {
	s := newServer(t)
	v := newTTS(t, section(t, s))
	providertest.TestTTS(t, func(*testing.T) providers.TTS { return v }, hello)
}

func TestSpeechOnTheWire(t *testing.T) {
	s := newServer(t)
	o := section(t, s)
	o.Models[service.TTS], o.Voices = "tts-1", map[string]string{"": "nova", "zh": "xiaoxiao", "ja": "nanami"}
	v := newTTS(t, o)
	for _, tt := range []struct {
		req   providers.TTSRequest
		voice string
	}{
		{providers.TTSRequest{Text: "你好", Language: "zh"}, "xiaoxiao"},
		{providers.TTSRequest{Text: "hi", Language: "en"}, "nova"},
		{providers.TTSRequest{Text: "你好", Language: "zh-TW"}, "xiaoxiao"},
		{providers.TTSRequest{Text: "どうぞ", Language: "ja"}, "nanami"},
		{providers.TTSRequest{Text: "hallo", Language: "de"}, "nova"},
		{providers.TTSRequest{Text: "hi", Language: "zh", Voice: "echo"}, "echo"},
	} {
		for _, err := range v.Synthesize(t.Context(), tt.req) {
			if err != nil {
				t.Fatal(err)
			}
		}
		all := s.Requests(openaitest.Speak)
		body := all[len(all)-1].JSON()
		want := map[string]any{"model": "tts-1", "input": tt.req.Text, "voice": tt.voice, "response_format": "pcm"}
		for key, value := range want {
			if body[key] != value {
				t.Errorf("%s is %v, want %v", key, body[key], value)
			}
		}
		if len(body) != len(want) {
			t.Errorf("body %v", body)
		}
	}
}

func TestSoundFormats(t *testing.T) {
	tone := openaitest.Tone(24000, 440, 500*time.Millisecond)
	tone16 := openaitest.Tone(16000, 440, 500*time.Millisecond)
	unknown := uint32(math.MaxUint32)
	tests := []struct {
		name, asked, media string
		body               []byte
		rate               int
		exact              []byte // mono PCM, or nil where a codec changes it
	}{
		{"pcm", "pcm", "audio/pcm", tone, 24000, tone},
		{"pcm without a media type", "pcm", "", tone, 24000, tone},
		{"pcm with its rate", "pcm", "audio/L16; rate=16000", tone16, 16000, tone16},
		{"pcm with a byte too many", "pcm", "application/octet-stream", append(slices.Clone(tone), 7), 24000, tone},
		{"wav", "wav", "audio/wav", wavOf(t, tone16, 16000, 1, uint32(len(tone16))), 16000, tone16},
		{"wav that streams", "wav", "audio/wav", wavOf(t, tone16, 16000, 1, unknown), 16000, tone16},
		{"wav of length 0", "wav", "audio/wav", wavOf(t, tone16, 16000, 1, 0), 16000, tone16},
		{"wav in stereo", "wav", "audio/wav", wavOf(t, stereo(tone), 24000, 2, uint32(2*len(tone))), 24000, tone},
		{"wav though pcm was asked", "pcm", "audio/pcm", wavOf(t, tone16, 16000, 1, 0), 16000, tone16},
		{"mp3", "mp3", "audio/mpeg", testFile(t, "tone.mp3"), 24000, nil},
		{"mp3 though pcm was asked", "pcm", "audio/mpeg", testFile(t, "tone.mp3"), 24000, nil},
		{"opus", "opus", "audio/ogg", testFile(t, "tone.opus"), 24000, nil},
		{"opus though mp3 was asked", "mp3", "", testFile(t, "tone.opus"), 24000, nil},
	}
	s := newServer(t)
	for _, tt := range tests {
		for _, size := range []int{1 << 20, 997, 1} { // whole, odd pieces, single bytes
			o := section(t, s)
			o.Format = tt.asked
			s.Reply(openaitest.Speak, openaitest.Sound(tt.media, tt.body[:min(len(tt.body), 1<<20)], max(size, len(tt.body)/300|1)))
			rate, pcm, err := speak(t.Context(), t, newTTS(t, o))
			if err != nil || rate != tt.rate {
				t.Errorf("%s: %d Hz, %v", tt.name, rate, err)
				continue
			}
			if want := samples(tt.exact); tt.exact != nil && !slices.Equal(pcm, want) {
				t.Errorf("%s: %d samples, not the %d that were sent", tt.name, len(pcm), len(want))
			}
			seconds := float64(len(pcm)) / float64(rate)
			if seconds < 0.45 || seconds > 0.65 || math.Abs(hertz(rate, pcm)-440) > 5 {
				t.Errorf("%s: %.2f s of %.0f Hz", tt.name, seconds, hertz(rate, pcm))
			}
		}
	}
}

func TestOddPiecesOfPCM(t *testing.T) {
	tone := openaitest.Tone(24000, 440, 20*time.Millisecond)
	for size := 1; size < 8; size++ {
		var got []int16
		p := (&sound.Pool{}).Get(func(s providers.Sound, _ error) bool {
			got = append(got, s.PCM...)
			return true
		})
		left := tone
		in := readFunc(func(b []byte) (int, error) {
			n := copy(b[:min(size, len(b))], left)
			left = left[n:]
			if n == 0 {
				return 0, os.ErrClosed
			}
			return n, nil
		})
		if err := p.Decode(in, sound.Expected{Format: "pcm", Rate: 24000, MediaType: "audio/pcm"}); err != os.ErrClosed { //nolint:errorlint // the very one
			t.Fatal(err)
		}
		if !slices.Equal(got, samples(tone)) {
			t.Errorf("in pieces of %d bytes: %d samples, not those that were sent", size, len(got))
		}
	}
}

func TestInvalidSound(t *testing.T) {
	tone := openaitest.Tone(24000, 440, 100*time.Millisecond)
	float := wavOf(t, tone, 24000, 1, 0)
	float[bytes.Index(float, []byte("fmt "))+8] = 3
	mp3, opus := testFile(t, "tone.mp3"), testFile(t, "tone.opus")
	tests := []struct {
		name, asked, media string
		body               []byte
		part               string
	}{
		{"nothing", "pcm", "audio/pcm", nil, "no sound"},
		{"JSON error", "pcm", "application/json", []byte(`{"error":{"message":"no such voice"}}`), "no such voice"},
		{"JSON error without its media type", "pcm", "", []byte(`{"error":{"message":"no such voice"}}`), "no such voice"},
		{"JSON error called bytes", "mp3", "application/octet-stream", []byte("{\n \"error\":\"no such voice\"}"), "no such voice"},
		{"a page", "pcm", "text/html", []byte("<html>" + strings.Repeat("x", 5000)), "text instead of sound: <html>"},
		{"flac", "pcm", "audio/flac", []byte("fLaC................"), "flac"},
		{"aac", "pcm", "audio/aac", []byte("................"), "audio/aac"},
		{"wav of floats", "wav", "audio/wav", float, "float of 16 bits"},
		{"wav cut in its header", "wav", "audio/wav", float[:30], "before the fmt chunk"},
		{"wav cut in its sound", "wav", "audio/wav", wavOf(t, tone, 24000, 1, uint32(len(tone)+2)), "missing"},
		{"wav at 6 kHz", "wav", "audio/wav", wavOf(t, tone, 6000, 1, 0), "6000 Hz"},
		{"wav without a format", "wav", "audio/wav", []byte("RIFF\x00\x00\x00\x00WAVEdata\x00\x00\x00\x00abcd"), "before the fmt chunk"},
		{"mp3 of noise", "mp3", "audio/mpeg", bytes.Repeat([]byte{1, 2, 3, 4}, 100), "mp3"},
		{"mp3 with nothing in it", "mp3", "audio/mpeg", mp3[:20], "mp3"},
		{"opus cut in a page", "opus", "audio/ogg", opus[:len(opus)-10], "EOF"},
		{"opus cut in its tags", "opus", "audio/ogg", opus[:60], "EOF"},
		{"ogg without opus", "opus", "audio/ogg", bytes.Replace(opus, []byte("OpusHead"), []byte("Speex   "), 1), "no opus"},
		{"ogg of noise", "opus", "audio/ogg", bytes.Repeat([]byte("OggS\x00"), 50), "ogg"},
	}
	s := newServer(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := section(t, s)
			o.Format = tt.asked
			s.Reply(openaitest.Speak, openaitest.Sound(tt.media, tt.body, 1000))
			_, _, err := speak(t.Context(), t, newTTS(t, o))
			kind := providers.Unavailable
			if strings.HasPrefix(tt.name, "JSON error") { // its words say what sort it is of
				kind = providers.BadRequest
			}
			wantError(t, err, kind, tt.part)
		})
	}
}

func TestSpeechFailures(t *testing.T) {
	s := newServer(t)
	o := section(t, s)
	for _, tt := range statuses {
		s.Reply(openaitest.Speak, openaitest.Failure(tt.status, "no"))
		_, _, err := speak(t.Context(), t, newTTS(t, o))
		wantError(t, err, tt.kind, "no")
	}
	for _, format := range []string{"pcm", "mp3", "opus"} {
		body := map[string][]byte{"pcm": openaitest.Tone(24000, 440, 200*time.Millisecond), "mp3": testFile(t, "tone.mp3"), "opus": testFile(t, "tone.opus")}[format]
		cut := openaitest.Sound("", body, len(body)).Then(openaitest.Piece{Cut: true})
		o.Format = format
		s.Reply(openaitest.Speak, cut)
		_, pcm, err := speak(t.Context(), t, newTTS(t, o))
		wantError(t, err, providers.Unavailable, "EOF")
		if len(pcm) == 0 {
			t.Errorf("%s: what came before the cut was not heard", format)
		}
	}
}

func TestSpeechStalls(t *testing.T) {
	s := newServer(t)
	some := openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, 60*time.Millisecond), 10000)
	for name, tt := range map[string]struct {
		reply openaitest.Reply
		limit func(*service.Timeouts, time.Duration)
		heard int
	}{
		"no status":     {openaitest.Reply{Hang: true}, func(t *service.Timeouts, d time.Duration) { t.First = d }, 0},
		"no sound":      {openaitest.Reply{}.Then(openaitest.Piece{Hang: true}), func(t *service.Timeouts, d time.Duration) { t.First = d }, 0},
		"no more sound": {some.Then(openaitest.Piece{Hang: true}), func(t *service.Timeouts, d time.Duration) { t.Next = d }, 1440},
	} {
		t.Run(name, func(t *testing.T) {
			heard := 0
			gone := quickest(t, s, openaitest.Speak, func(limit time.Duration) bool {
				o := section(t, s)
				tt.limit(&o.Timeouts, limit)
				s.Reply(openaitest.Speak, tt.reply)
				_, pcm, err := speak(t.Context(), t, newTTS(t, o))
				wantError(t, err, providers.Unavailable, "nothing in time")
				heard = len(pcm)
				return heard == tt.heard
			})
			if heard != tt.heard {
				t.Errorf("%d samples heard, want %d", heard, tt.heard)
			}
			wantGone(t, gone)
		})
	}
}

func TestHangUpClosesTheSpeech(t *testing.T) {
	s := newServer(t)
	v := newTTS(t, section(t, s))
	s.Reply(openaitest.Speak, openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, 60*time.Millisecond), 480).Then(openaitest.Piece{Hang: true}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for sound, err := range v.Synthesize(ctx, hello) { // the first piece comes though the rest never does
		if err == nil && len(sound.PCM) == 0 {
			t.Error("an empty piece")
		}
		cancel()
		last = err
	}
	if last != context.Canceled { //nolint:errorlint // unchanged
		t.Errorf("got %v", last)
	}
	wantGone(t, s.Requests(openaitest.Speak)[0])
	for range v.Synthesize(t.Context(), hello) {
		break
	}
	wantGone(t, s.Requests(openaitest.Speak)[1])
}

// TestSentencesShareNoBuffer speaks many sentences at once, each its own tone.
func TestSentencesShareNoBuffer(t *testing.T) {
	s := newServer(t)
	s.Handle(openaitest.Speak, func(r *openaitest.Request) openaitest.Reply {
		n := byte(len(r.JSON()["input"].(string)))
		return openaitest.Sound("audio/pcm", bytes.Repeat([]byte{n, n}, 24000), 4800)
	})
	v := newTTS(t, section(t, s))
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for round := range 4 {
				n := int16(i + 1)
				want := n<<8 | n
				for sound, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: strings.Repeat("x", i+1)}) {
					if err != nil || slices.Min(sound.PCM) != want || slices.Max(sound.PCM) != want {
						t.Errorf("a piece of %d to %d, want %d (%v)", slices.Min(sound.PCM), slices.Max(sound.PCM), want, err)
					}
					if round == 2 {
						break // and leave it half said
					}
				}
			}
		})
	}
	all.Wait()
}

func TestPCMAllocations(t *testing.T) {
	tone := openaitest.Tone(24000, 440, time.Second)
	p := (&sound.Pool{}).Get(func(providers.Sound, error) bool { return true })
	in := bytes.NewReader(tone)
	if n := testing.AllocsPerRun(10, func() {
		in.Reset(tone)
		if err := p.Decode(in, sound.Expected{Format: "pcm", Rate: 24000, MediaType: "audio/pcm"}); err != nil {
			t.Error(err)
		}
	}); n > 2 { // the media type's parts
		t.Errorf("%v allocations for a second of sound", n)
	}
}

// FuzzSound feeds every format strangers' bytes.
func FuzzSound(f *testing.F) {
	tone := openaitest.Tone(8000, 440, 10*time.Millisecond)
	f.Add(wavOf(f, tone, 8000, 1, 0), "wav")
	f.Add(wavOf(f, tone, 8000, 2, 7), "wav")
	f.Add(testFile(f, "tone.mp3")[:400], "mp3")
	f.Add(testFile(f, "tone.opus")[:400], "opus")
	f.Add([]byte(`{"error":"x"}`), "pcm")
	f.Fuzz(func(t *testing.T, body []byte, format string) {
		p := (&sound.Pool{}).Get(func(s providers.Sound, err error) bool {
			if len(s.Packets) == 1 && s.PCM == nil {
				if d, err := audio.PacketDuration(s.Packets[0]); err != nil || d != 60*time.Millisecond {
					t.Errorf("a packet of %v, %v", d, err)
				}
				return true
			}
			if err != nil || len(s.PCM) == 0 || len(s.PCM) > s.Rate/10 || s.Rate < sound.MinRate || s.Rate > sound.MaxRate {
				t.Errorf("a piece of %d samples at %d Hz, %v", len(s.PCM), s.Rate, err)
			}
			return true
		})
		// Any error will do; a panic or a loop without end will not.
		_ = p.Decode(bytes.NewReader(body), sound.Expected{Format: format, Rate: 24000})
	})
}

// FuzzOgg looks at the pages alone: what goes in as packets comes out as packets.
func FuzzOgg(f *testing.F) {
	f.Add(testFile(f, "tone.opus"))
	f.Add([]byte("OggS\x00\x01"))
	f.Fuzz(func(t *testing.T, data []byte) {
		pages := file.NewOggReader(bytes.NewReader(data))
		total := 0
		for {
			packet, err := pages.Next()
			if err != nil {
				return
			}
			if total += len(packet); total > len(data) {
				t.Fatalf("%d bytes of packets out of %d bytes", total, len(data))
			}
		}
	})
}

func TestOpusPacketsFromOgg(t *testing.T) {
	pages := file.NewOggReader(bytes.NewReader(testFile(t, "tone.opus")))
	var total time.Duration
	for i := 0; ; i++ {
		packet, err := pages.Next()
		if err != nil {
			break
		}
		if i < 2 {
			continue // head and tags
		}
		d, err := audio.PacketDuration(packet)
		if err != nil || d != 20*time.Millisecond {
			t.Errorf("packet %d lasts %v, %v", i, d, err)
		}
		total += d
	}
	if total < 500*time.Millisecond || total > 560*time.Millisecond {
		t.Errorf("%v of packets for half a second", total)
	}
}

// readFunc is a reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// ear decodes packets as a device does.
type ear struct {
	*testing.T
	decoder *audio.Decoder
}

func newEar(t *testing.T) *ear {
	t.Helper()
	d, err := audio.NewDecoder(24000)
	if err != nil {
		t.Fatal(err)
	}
	return &ear{t, d}
}

func (e *ear) hear(packets [][]byte) []int16 {
	e.Helper()
	pcm := make([]int16, audio.MaxFrameSamples(24000))
	var all []int16
	for _, p := range packets {
		n, err := e.decoder.Decode(p, pcm)
		if err != nil {
			e.Errorf("packet %x: %v", p, err)
		}
		all = append(all, pcm[:n]...)
	}
	return all
}

// TestEnglishVoices: Groq's voices speak no Chinese, which is said before anything is asked.
func TestEnglishVoices(t *testing.T) {
	s := newServer(t)
	c := section(t, s)
	c.Models[service.TTS] = "canopylabs/orpheus-v1-english"
	groq, _ := VendorOf("groq")
	v, err := groq.kind().TTS(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range v.Synthesize(t.Context(), providers.TTSRequest{Text: "你好", Language: "zh"}) {
		if !providers.LacksLanguage(err) || len(s.Requests(openaitest.Speak)) != 0 {
			t.Errorf("got %v", err)
		}
	}
}
