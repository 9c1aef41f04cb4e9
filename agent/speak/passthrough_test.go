package speak

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/scene"
	"xiaozhi/providers"
)

// encoded is a voice as packets of that format and coding.
func encoded(t *testing.T, f audio.Format, c audio.Coding, pcm []int16) [][]byte {
	t.Helper()
	e, err := audio.NewEncoderOf(f, c)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, audio.MaxPacket)
	var packets [][]byte
	for n := f.Samples(); len(pcm) >= n; pcm = pcm[n:] {
		size, err := e.Encode(pcm[:n], buf)
		if err != nil {
			t.Fatal(err)
		}
		packets = append(packets, bytes.Clone(buf[:size]))
	}
	return packets
}

// packetTTS speaks in packets of that format, text with "plain" as PCM.
func packetTTS(t *testing.T, f audio.Format, c audio.Coding) (*scene.TTS, [][]byte) {
	t.Helper()
	packets := encoded(t, f, c, scene.Voiced(f.Rate, 1800*time.Millisecond, 9000))
	return &scene.TTS{Label: "packets", Sound: func(text string) []providers.Sound {
		if strings.Contains(text, "plain") {
			return []providers.Sound{{Rate: 24000, PCM: scene.Voiced(24000, 1800*time.Millisecond, 9000)}}
		}
		var all []providers.Sound
		for i := range packets {
			all = append(all, providers.Sound{Packets: packets[i : i+1]})
		}
		return all
	}}, packets
}

// TestPacketsArePassedThrough: the device gets a provider's packets, byte by
// byte, at the pace of all sound, and no encoder is made.
func TestPacketsArePassedThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tts, packets := packetTTS(t, audio.Format{Rate: 16000, Frame: 60 * time.Millisecond}, audio.Usual())
		o := soundOptions(t, tts)
		o.Levels = audio.NewLevels()
		r := speakTo(t, &o, newDevice())
		r.say("One.", "Two.")
		r.end()
		if len(r.dev.packets) != 2*len(packets) || r.dev.silence != 0 || r.dev.most > 360*time.Millisecond {
			t.Fatalf("%d packets, silence %v, lead %v", len(r.dev.packets), r.dev.silence, r.dev.most)
		}
		for i, p := range r.dev.packets {
			if !bytes.Equal(p, packets[i%len(packets)]) {
				t.Fatalf("packet %d is another", i)
			}
		}
		if r.player.sound.enc != nil {
			t.Error("an encoder was made")
		}
	})
}

// TestPacketsAndPCMTakeTurns: no gap and no click where one follows the other,
// whichever of Opus's coders a service uses, and a cut within packets ends in silence.
func TestPacketsAndPCMTakeTurns(t *testing.T) {
	for name, c := range map[string]struct {
		coding audio.Coding
		mode   byte // of its packets: the first configuration above it
	}{
		"SILK": {audio.Coding{Bitrate: 12000}, 12}, "hybrid": {audio.Coding{Bitrate: 16000, Complexity: 5}, 16}, "CELT": {audio.Usual(), 32},
	} {
		t.Run(name, func(t *testing.T) { takeTurns(t, c.coding, c.mode) })
	}
}

func takeTurns(t *testing.T, coding audio.Coding, mode byte) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tts, packets := packetTTS(t, audio.Reply, coding)
		if config := packets[9][0] >> 3; config >= mode || config < mode-12 && mode < 32 {
			t.Fatalf("configuration %d: the test proves nothing", config)
		}
		o := soundOptions(t, tts)
		r := speakTo(t, &o, newDevice())
		r.say("One is plain.", "Two.", "Three is plain.", "Four.")
		time.Sleep(105*time.Millisecond + 4*1800*time.Millisecond - 700*time.Millisecond)
		texts, _ := r.player.Heard(time.Now(), 1)
		r.player.Cut()
		r.cancel()
		r.over.Wait()
		if want := "One is plain. Two. Three is plain. Fou"; !strings.HasPrefix(texts[0], "One is plain. Two. Three is plain. F") || len(texts[0]) > len(want) {
			t.Errorf("heard %q", texts[0])
		}
		pcm := r.dev.hear(t)
		inside := worstStep(pcm[2400 : 30*1440-2400])
		for i := range 3 {
			at := (i + 1) * 30 * 1440
			if got := worstStep(pcm[at-960 : at+960]); got > inside {
				t.Errorf("sentence %d: a step of %d at its end, inside %d", i, got, inside)
			}
		}
		cut := len(pcm) - 1440
		if got := worstStep(pcm[cut-100:]); got > 2*inside {
			t.Errorf("a step of %d at the cut, inside %d", got, inside)
		}
		end := pcm[len(pcm)-480:]
		if loud := loudness(append(end, end...)); loud > -40 {
			t.Errorf("after the cut: %.0f dBFS", loud)
		}
	})
}

// TestPassthroughOtherLength: of another length than the reply's.
func TestPassthroughOtherLength(t *testing.T) {
	for _, c := range []struct{ from, to audio.Format }{
		{audio.Format{Rate: 24000, Frame: 20 * time.Millisecond}, audio.Reply},
		{audio.Format{Rate: 48000, Frame: 120 * time.Millisecond}, audio.Reply},
		{audio.Reply, audio.Format{Rate: 24000, Frame: 20 * time.Millisecond}},
	} {
		synctest.Test(t, func(t *testing.T) {
			tts, packets := packetTTS(t, c.from, audio.Usual())
			o := soundOptions(t, tts)
			o.Reply = c.to
			dev := newDevice()
			r := speakTo(t, &o, dev)
			r.say("One.")
			r.end()
			dec, err := audio.NewDecoder(24000)
			if err != nil {
				t.Fatal(err)
			}
			decode := func(packets [][]byte) []int16 {
				pcm := make([]int16, audio.MaxFrameSamples(24000))
				var all []int16
				for _, p := range packets {
					n, err := dec.Decode(p, pcm)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, pcm[:n]...)
				}
				return all
			}
			for _, p := range dev.packets {
				if d, err := audio.PacketDuration(p); err != nil || d != c.to.Frame {
					t.Fatalf("a packet of %v, %v", d, err)
				}
			}
			got, want := decode(dev.packets), decode(packets)
			if more := len(got) - len(want); more < 0 || more > 1440 || math.Abs(loudness(got)-loudness(want)) > 1 { // a frame for the ramp
				t.Errorf("%v to %v: %d samples of %.1f dBFS, want %d of %.1f", c.from, c.to, len(got), loudness(got), len(want), loudness(want))
			}
		})
	}
}

// TestBrokenPacketsAreAFailure: what nobody can decode is heard as one.
func TestBrokenPacketsAreAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tts := &scene.TTS{Label: "broken", Sound: func(string) []providers.Sound {
			return []providers.Sound{{Packets: [][]byte{{0x01, 1, 2, 3}}}}
		}}
		o := soundOptions(t, tts)
		dev := spokenWords(t, &o, "One.")
		if len(dev.lines) != 1 || dev.lines[0] == "One." {
			t.Errorf("the device shows %q", dev.lines)
		}
	})
}
