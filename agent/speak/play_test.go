package speak

import (
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/scene"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// TestLeadAdaptsToTheOutbox: an outbox that is full for a while now and then
// gets more ahead, within the bound, until no device would notice.
func TestLeadAdaptsToTheOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := soundOptions(t, &providertest.TTS{Script: []providertest.Speech{{Length: 60 * time.Second}}})
		dev := newDevice()
		dev.refuse = func(at time.Duration) bool { // 300 ms of every second, until 30 s
			return at < 30*time.Second && at%time.Second > 700*time.Millisecond
		}
		r := speakTo(t, &o, dev)
		r.say("A long story.")
		time.Sleep(6 * time.Second)
		dev.mu.Lock()
		dev.least, dev.silence = time.Hour, 0
		dev.mu.Unlock()
		time.Sleep(24 * time.Second)
		dev.mu.Lock()
		if dev.least < 60*time.Millisecond || dev.silence > 0 {
			t.Errorf("the smallest lead is %v, silence %v, after the first seconds", dev.least, dev.silence)
		}
		if dev.most > 600*time.Millisecond || dev.most <= 360*time.Millisecond {
			t.Errorf("the largest lead is %v", dev.most)
		}
		dev.mu.Unlock()
		time.Sleep(20 * time.Second)
		dev.mu.Lock()
		dev.most = 0
		dev.mu.Unlock()
		r.end()
		if dev.most > 280*time.Millisecond {
			t.Errorf("20 s after the trouble the lead is still %v", dev.most)
		}
	})
}

// TestLeadAdaptsToTheSocket: an outbox that tells how far its socket is behind
// has the same effect; one that is punctual has none.
func TestLeadAdaptsToTheSocket(t *testing.T) {
	for lag, want := range map[time.Duration]time.Duration{
		0: 270 * time.Millisecond, 80 * time.Millisecond: 270 * time.Millisecond,
		300 * time.Millisecond: 480 * time.Millisecond, time.Minute: 600 * time.Millisecond,
	} {
		synctest.Test(t, func(t *testing.T) {
			o := soundOptions(t, &providertest.TTS{Script: []providertest.Speech{{Length: 10 * time.Second}}})
			dev := newDevice()
			dev.lag = func(time.Duration) time.Duration { return lag }
			r := speakTo(t, &o, dev)
			r.say("A long story.")
			r.end()
			if off := want - dev.most; off < 0 || off > 10*time.Millisecond || dev.silence > 0 {
				t.Errorf("lag %v: lead %v, want %v", lag, dev.most, want)
			}
		})
	}
}

// TestSlowSynthesisIsNoLateness: what comes late from the synthesiser must not
// be sent further ahead.
func TestSlowSynthesisIsNoLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := soundOptions(t, &providertest.TTS{Script: []providertest.Speech{{Length: 10 * time.Second, StallAt: 3 * time.Second, Stall: 2 * time.Second}}})
		r := speakTo(t, &o, newDevice())
		r.say("A long story.")
		r.end()
		if r.dev.most > 300*time.Millisecond {
			t.Errorf("lead %v", r.dev.most)
		}
	})
}

// taker is an Outbox that takes everything and keeps nothing.
type taker struct{ bytes int }

func (k *taker) Send(wire.Message)                            {}
func (k *taker) HangUp(error)                                 {}
func (k *taker) Audio(_ uint64, packet []byte) (uint32, bool) { k.bytes += len(packet); return 0, true }
func (k *taker) Lag() time.Duration                           { return 0 }

// downlink is the way of a frame from the synthesiser's PCM to the outbox.
func downlink(tb testing.TB) (frame func()) {
	tb.Helper()
	o := Options{TTS: &scene.TTS{Label: "none"}, Levels: audio.NewLevels(), Reply: audio.Reply, Coding: audio.Usual(), Lead: 4}
	f := NewPlayer(&taker{}, 1, o.Reply, o.Coding, o.Lead)
	f.Start()
	s := NewSpeaker(&o, nil, f, timeline.New(timeline.Times{}), "", atOnce(f))
	from := &stream{Segment: Segment{progress: new(progress)}, chunks: make(chan chunk, streamChunks)}
	w, p := s.writer(from.Segment), &playout{s: s}
	w.level = s.level("", "en")
	pcm := scene.Voiced(16000, 60*time.Millisecond, 9000)
	emit := w.emit(tb.Context())
	return func() {
		if !s.put(tb.Context(), from, providers.Sound{Rate: 16000, PCM: pcm}) {
			tb.Fatal("not held")
		}
		c := <-from.chunks
		if err := s.framer.write(c.pcm, c.rate, emit); err != nil {
			tb.Fatal(err)
		}
		s.pool.chunks.put(c.pcm)
		for len(s.frames) > 0 {
			p.frame, p.state = <-s.frames, frameDue
			p.encode()
			if p.send(); p.state != frameSent {
				tb.Fatal("not played", p.err)
			}
			f.late(0)
		}
	}
}

// TestDownlinkDoesNotAllocate: from PCM of the synthesiser to the packet in the
// outbox, with resampling, levelling and encoding.
func TestDownlinkDoesNotAllocate(t *testing.T) {
	frame := downlink(t)
	for range 64 {
		frame()
	}
	if n := testing.AllocsPerRun(100, frame); n > 0 {
		t.Errorf("%v allocations for a frame", n)
	}
}

func BenchmarkDownlinkFrame(b *testing.B) {
	frame := downlink(b)
	b.ReportAllocs()
	for b.Loop() {
		frame()
	}
}
