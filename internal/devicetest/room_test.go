package devicetest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"xiaozhi/audio"
)

// microphone decodes what the device sends until it has that many frames.
func (w *wire) microphone(frames int) (pcm []int16, stamps []uint32) {
	dec, err := audio.NewDecoder(microphoneRate)
	if err != nil {
		w.t.Error(err)
		return nil, nil
	}
	buf := make([]int16, audio.MaxFrameSamples(microphoneRate))
	for range frames {
		packet, stamp, err := frameDown(2, <-w.binary)
		if err != nil {
			w.t.Error(err)
			return nil, nil
		}
		n, err := dec.Decode(packet, buf)
		if err != nil {
			w.t.Error(err)
			return nil, nil
		}
		pcm, stamps = append(pcm, buf[:n]...), append(stamps, stamp)
	}
	return pcm, stamps
}

// stamped tone: n frames from that timestamp on, four ahead.
func (w *wire) stampedTone(first uint32, n int) {
	start := time.Now()
	for i := range n {
		if i >= 4 {
			w.pause(time.Until(start.Add(time.Duration(i-3) * 60 * time.Millisecond)))
		}
		w.binaryOut(frameUp(2, first+uint32(i), w.packet(false)))
	}
}

func level(pcm []int16) float64 {
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(1, len(pcm))))
}

func hearing(response []float32, delay time.Duration) Options {
	return Options{
		OpenListen: true, Mode: Realtime, Sound: Sound{AEC: true, Room: &Room{Response: response, Delay: delay}}, Protocol: 2, Limits: Limits{StrictLead: true},
	}
}

// The microphone hears the reply, as loud as the room makes it and as late.
func TestRoomEcho(t *testing.T) {
	for _, delay := range []time.Duration{0, 20 * ms, 130 * ms, 600 * ms} {
		talk(t, hearing([]float32{0.5, 0.0, 0.1}, delay), func(w *wire) {
			w.hello()
			w.await(`"state":"start"`)
			w.pause(10 * ms)
			listens := time.Now()
			w.begin()
			plays := time.Since(listens)
			w.stampedTone(1000, 20)
			w.finish()
			pcm, _ := w.microphone(40)
			// The microphone began to listen when the device said so.
			from := int((plays + delay).Seconds() * microphoneRate)
			const slack = microphoneRate / 50 // the codec's delay, and 10 ms of pause
			if got := level(pcm[:max(0, from-slack)]); got > 30 {
				t.Errorf("delay %s: loudness %.0f before the reply can be heard", delay, got)
			}
			during := pcm[from+3*slack : from+10*960]
			if got, want := level(during), 0.5*level(tonePCM()); got < want/2 || got > want*2 {
				t.Errorf("delay %s: loudness %.0f, want about %.0f", delay, got, want)
			}
			if got := level(pcm[min(len(pcm), from+21*960+slack):]); got > 30 {
				t.Errorf("delay %s: loudness %.0f after the reply", delay, got)
			}
		}, func(ctx context.Context, d *Device) { d.Silence(ctx, 2400*ms) })
	}
}

// tonePCM is the sound of packet.
func tonePCM() []int16 {
	pcm := make([]int16, audio.Reply.Samples())
	for i := range pcm {
		pcm[i] = int16((i%80 - 40) * 200)
	}
	return pcm
}

// A device without a room hears only what is said.
func TestEchoNeedsRoom(t *testing.T) {
	o := hearing(nil, 0)
	o.Sound.Room = nil
	talk(t, o, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.reply(10)
		pcm, _ := w.microphone(20)
		if got := level(pcm); got > 5 {
			t.Errorf("loudness %.0f", got)
		}
	}, func(ctx context.Context, d *Device) { d.Silence(ctx, 1500*ms) })
}

// coded is what a microphone's encoder makes of whole frames of sound: it takes a little of a low buzz.
func coded(t *testing.T, pcm []int16) (heard []int16) {
	enc, err1 := audio.NewEncoderOf(audio.Recognition, audio.Device())
	dec, err2 := audio.NewDecoder(audio.Recognition.Rate)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	packet, out := make([]byte, audio.MaxPacket), make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
	for frame := range slices.Chunk(pcm, audio.Recognition.Samples()) {
		n, err1 := enc.Encode(frame, packet)
		n, err2 := dec.Decode(packet[:n], out)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		heard = append(heard, out[:n]...)
	}
	return heard
}

// What is said and what is played are heard together.
func TestSayOverReply(t *testing.T) {
	talk(t, hearing([]float32{0.1}, 0), func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.begin()
		w.stampedTone(1, 10)
		w.finish()
		pcm, _ := w.microphone(20)
		if got, want := level(pcm), level(coded(t, buzz(0, 20*960))); got < want*0.9 {
			t.Errorf("loudness %.0f, what is said alone has %.0f", got, want)
		}
	}, func(ctx context.Context, d *Device) { d.Say(ctx, buzz(0, 20*960)) })
}

// Each timestamp comes back once, in order, in the frame in which its packet
// ended; frames before and after have none.
func TestStampsPlayedPackets(t *testing.T) {
	d := talk(t, hearing(nil, 0), func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.begin() // 110 ms
		w.stampedTone(500, 6)
		w.finish()
		_, got := w.microphone(12)
		// The first packet ends 170 ms after the microphone began to listen.
		want := []uint32{0, 0, 500, 501, 502, 503, 504, 505, 0, 0, 0, 0}
		if !slices.Equal(got, want) {
			t.Errorf("timestamps %v, want %v", got, want)
		}
	}, func(ctx context.Context, d *Device) { d.Silence(ctx, 720*ms) })
	if v := d.Violations(); len(v) > 0 {
		t.Error(v)
	}
}

// More than three that wait are thrown away one by one, each for a frame without.
func TestStampsOverflow(t *testing.T) {
	base := time.Unix(1000, 0)
	at := func(n int) time.Time { return base.Add(time.Duration(n) * ms) }
	p, s := player{limit: 40}, stamps{}
	for i := range 9 { // packets of 20 ms
		if _, ok := p.accept(at(0), 20*ms, nil, nil); ok {
			p.label(uint32(i+1), nil)
		}
	}
	var got []uint32
	for end := 60; end <= 480; end += 60 {
		got = append(got, s.next(at(end), 60*ms, &p))
	}
	// Three end in each frame: 1 of 3, none of 5 (the second goes), none of 7; then the rest.
	if want := []uint32{1, 0, 0, 0, 0, 0, 7, 8}; !slices.Equal(got, want) {
		t.Errorf("timestamps %v, want %v", got, want)
	}
	if got := s.next(at(5000), 60*ms, &p); got != 0 {
		t.Errorf("%d came back after seconds without a frame", got)
	}
	p.accept(at(5000), 20*ms, nil, nil)
	p.label(77, nil)
	s.next(at(5010), 60*ms, &p)
	s.waiting = []uint32{76}
	s.waiting = nil
	if got := s.next(at(5030), 60*ms, &p); got != 77 {
		t.Errorf("%d after a flush, want what ended since", got)
	}
}

func TestRoomInvalid(t *testing.T) {
	for name, o := range map[string]Options{
		"no decoding":   {Sound: Sound{NoDecode: true, Room: &Room{}}},
		"negative":      {Sound: Sound{Room: &Room{Delay: -ms}}},
		"too late":      {Sound: Sound{Room: &Room{Delay: 2 * time.Second}}},
		"long response": {Sound: Sound{Room: &Room{Response: make([]float32, microphoneRate+1)}}},
	} {
		o.URL = "ws://server/"
		if err := o.withDefaults().check(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	o := Options{URL: "ws://server/", Sound: Sound{Room: &Room{Response: []float32{1}, Delay: ms}}}
	if err := o.withDefaults().check(); err != nil {
		t.Error(err)
	}
}
