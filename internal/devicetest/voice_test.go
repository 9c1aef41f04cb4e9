package devicetest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
)

// What is said goes out in real time, in frames of the asked length, silence as DTX.
func TestSay(t *testing.T) {
	for _, frameMs := range []int{20, 40, 60} {
		var first, last time.Time
		d := talk(t, Options{OpenListen: true, Sound: Sound{FrameMs: frameMs}}, func(w *wire) {
			w.hello()
			w.await(`"state":"start"`)
			sound, silence := 0, 0
			for range 1200 / frameMs {
				p := <-w.binary
				if length, err := audio.PacketDuration(p); err != nil || length != time.Duration(frameMs)*ms {
					t.Errorf("packet of %s, %v", length, err)
				}
				if len(p) <= 2 {
					silence++
				} else {
					sound++
				}
				if last = time.Now(); first.IsZero() {
					first = last
				}
			}
			if sound != 600/frameMs || silence != 600/frameMs {
				t.Errorf("%d ms: %d packets of sound, %d of silence", frameMs, sound, silence)
			}
		}, func(ctx context.Context, d *Device) {
			if err := d.Say(ctx, append(make([]int16, 9600), buzz(800, 9600)...)); err != nil {
				t.Error(err)
			}
		})
		if got, want := last.Sub(first), time.Duration(1200-frameMs)*ms; got != want {
			t.Errorf("%d ms: all frames within %s, want %s", frameMs, got, want)
		}
		if s := d.Stats(); s.FramesOut != 1200/frameMs {
			t.Errorf("stats %+v", s)
		}
	}
}

// While the device speaks in auto mode it is deaf.
func TestSayUnheard(t *testing.T) {
	d := talk(t, Options{OpenListen: true}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.pause(590 * ms)
		w.reply(10)
		w.pause(2 * time.Second)
	}, func(ctx context.Context, d *Device) {
		if err := d.Silence(ctx, 1200*ms); err != nil {
			t.Error(err)
		}
	})
	if s := d.Stats(); s.FramesOut != 9 || s.Unheard != 11 {
		t.Errorf("stats: %+v", s)
	}
}

// The end of ctx and of the connection end a Say.
func TestSayEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := converse(t, Options{OpenListen: true}, func(w *wire) {
			w.hello()
			w.await(`"state":"start"`)
			w.pause(time.Second)
		}, func(ctx context.Context, d *Device) {
			short, cancel := context.WithTimeout(ctx, 100*ms)
			defer cancel()
			if err := d.Silence(short, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after ctx: %v", err)
			}
			if err := d.Silence(ctx, time.Minute); err == nil {
				t.Error("no error though the connection ended")
			}
		})
		if err := d.Abort(""); !errors.Is(err, ErrClosed) {
			t.Errorf("abort after the end: %v", err)
		}
		if err := d.SendText([]byte("{}")); err == nil {
			t.Error("text after the end")
		}
	})
}

// Downlink timestamps come back with the microphone's frames (4.5).
func TestEchoTimestamps(t *testing.T) {
	talk(t, Options{OpenListen: true, Mode: Realtime, Sound: Sound{AEC: true}, Protocol: 2}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.begin()
		w.binaryOut(frameUp(2, 777, w.packet(false)))
		w.pause(160 * ms)
		w.stop()
		for {
			if _, timestamp, err := frameDown(2, <-w.binary); err != nil || timestamp == 777 {
				return
			}
		}
	}, func(ctx context.Context, d *Device) { d.Silence(ctx, time.Second) })
}

// Wait goes on behind what it last gave; a reply is given once.
func TestWait(t *testing.T) {
	talk(t, Options{OpenListen: true}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.reply(1)
		w.reply(2)
	}, func(ctx context.Context, d *Device) {
		for _, frames := range []int{1, 2} {
			if _, err := d.WaitText(ctx, "tts", "stop"); err != nil {
				t.Error(err)
			}
			if r, err := d.WaitReply(ctx); err != nil || r.Frames != frames {
				t.Errorf("reply %+v, %v", r, err)
			}
		}
		if _, err := d.WaitText(ctx, "tts", "stop"); !errors.Is(err, ErrClosed) {
			t.Errorf("third stop: %v", err)
		}
	})
}

// Packets that were encoded before leave in real time from the given moment on,
// those that are late at once; a closed microphone loses them.
func TestSayPackets(t *testing.T) {
	var came []time.Duration
	d := talk(t, Options{OpenListen: true, Sound: Sound{NoDecode: true}}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		from := time.Now()
		for range 4 {
			if p := <-w.binary; len(p) != 3 {
				t.Errorf("packet %v", p)
			}
			came = append(came, time.Since(from))
		}
		w.reply(1)
	}, func(ctx context.Context, d *Device) {
		packet := []byte{11 << 3, 1, 2}
		if err := d.SayPackets(ctx, time.Now().Add(-80*ms), packet, packet, packet, packet); err != nil {
			t.Error(err)
		}
		if _, err := d.WaitText(ctx, "tts", "start"); err != nil {
			t.Error(err)
		}
		if err := d.SayPackets(ctx, time.Now(), Pause(60)); err != nil {
			t.Error(err)
		}
	})
	if want := []time.Duration{0, 40 * ms, 100 * ms, 160 * ms}; !slices.Equal(came, want) {
		t.Errorf("they came at %v, want %v", came, want)
	}
	if s := d.Stats(); s.Unheard != 1 || s.FramesOut != 4 {
		t.Errorf("stats: %+v", s)
	}
}

// With OnFrame the journal holds no frames, and the reply is the same.
func TestOnFrame(t *testing.T) {
	var at []time.Time
	d := talk(t, Options{OpenListen: true, Sound: Sound{NoDecode: true, OnFrame: func(now time.Time, _ []byte) { at = append(at, now) }}}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.reply(10)
	}, func(ctx context.Context, d *Device) {
		r, err := d.WaitReply(ctx)
		if err != nil || r.Frames != 10 || !r.FirstFrame.Equal(at[0]) || !r.LastFrame.Equal(at[9]) || r.Underruns != 0 {
			t.Errorf("%d frames were told of, the reply %+v, %v", len(at), r, err)
		}
	})
	for _, e := range d.Events() {
		if e.Kind == KindFrame {
			t.Error("a frame in the journal")
		}
	}
	if found := d.Violations(); len(found) > 0 {
		t.Errorf("%v", found)
	}
}
