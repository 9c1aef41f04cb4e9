package connection

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// drain takes everything and writes it as a line: t:x a text, f:x a frame,
// [..] what is written as one entry.
func drain(o *outgoing) string {
	var parts []string
	for {
		e, frame, _, ok := o.take(nil)
		if !ok {
			return strings.Join(parts, " ")
		}
		if frame != nil {
			parts = append(parts, "f:"+string(frame))
			continue
		}
		var in []string
		for _, f := range e.frames {
			in = append(in, "f:"+string(f))
		}
		in = append(in, "t:"+string(e.text))
		parts = append(parts, "["+strings.Join(in, " ")+"]")
	}
}

func TestOutgoingOrder(t *testing.T) {
	text := func(o *outgoing, s string) { o.putText([]byte(s)) }
	sound := func(o *outgoing, turn uint64, s string) { o.putAudio(turn, []byte(s)) }
	stop := func(o *outgoing, turn uint64, cut bool, closing string) {
		o.putStop(turn, cut, []byte(closing), []byte("stop"))
	}
	for _, tc := range []struct {
		name string
		do   func(o *outgoing)
		want string
	}{
		{"control overtakes audio", func(o *outgoing) {
			sound(o, 1, "a")
			sound(o, 1, "b")
			text(o, "x")
			text(o, "y")
		}, "[t:x] [t:y] f:a f:b"},
		{"a cut throws the turn's frames away", func(o *outgoing) {
			sound(o, 1, "a")
			sound(o, 2, "b")
			sound(o, 1, "c")
			stop(o, 1, true, "hush")
			text(o, "x")
		}, "[f:hush t:stop] [t:x] f:b"},
		{"a cut before any frame", func(o *outgoing) { stop(o, 1, true, "") }, "[t:stop]"},
		{"an ordinary stop comes after the turn's frames", func(o *outgoing) {
			text(o, "x")
			sound(o, 1, "a")
			sound(o, 2, "b")
			sound(o, 1, "c")
			stop(o, 1, false, "")
		}, "[t:x] [f:a f:c t:stop] f:b"},
		{"no frame of a turn after its stop", func(o *outgoing) {
			stop(o, 1, true, "")
			sound(o, 1, "late")
			sound(o, 2, "b")
			stop(o, 2, false, "")
			sound(o, 2, "late")
			sound(o, 1, "late")
		}, "[t:stop] [f:b t:stop]"},
		{"a stop of no turn ends none", func(o *outgoing) {
			sound(o, 0, "a")
			stop(o, 0, true, "")
			sound(o, 0, "b")
			sound(o, 1, "c")
		}, "[t:stop] f:b f:c"},
		{"empty packets are refused", func(o *outgoing) { sound(o, 1, "") }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := newOutgoing(func() {})
			tc.do(o)
			if got := drain(o); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestOutgoingRing(t *testing.T) {
	o := newOutgoing(func() {})
	var want, got []string
	for i := range 50 {
		name := fmt.Sprint(i)
		if _, ok := o.putAudio(1, []byte(name)); !ok {
			t.Fatalf("frame %d refused", i)
		}
		want = append(want, name)
		if i%3 != 0 || o.frames.count == audioQueue {
			_, frame, _, _ := o.take(nil)
			got = append(got, string(frame))
		}
	}
	for rest := drain(o); rest != ""; rest = "" {
		for part := range strings.FieldsSeq(rest) {
			got = append(got, strings.TrimPrefix(part, "f:"))
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v", got)
	}
}

func TestOutgoingFull(t *testing.T) {
	o := newOutgoing(func() {})
	for i := range audioQueue {
		if _, ok := o.putAudio(1, []byte{1}); !ok {
			t.Fatalf("frame %d of %d refused", i+1, audioQueue)
		}
	}
	if _, ok := o.putAudio(1, []byte{1}); ok {
		t.Error("a frame more than fits was taken")
	}
	for i := range controlQueue {
		if _, ok := o.putText([]byte("x")); !ok {
			t.Fatalf("message %d of %d refused", i+1, controlQueue)
		}
	}
	if _, ok := o.putText([]byte("x")); ok {
		t.Error("a message more than fits was taken")
	}
	if ok := o.putStop(1, true, nil, []byte("stop")); ok {
		t.Error("a stop more than fits was taken")
	}
}

// A device that does not read costs a bounded amount of memory, however long the
// messages are that wait for it.
func TestOutgoingFullOfBytes(t *testing.T) {
	for _, size := range []int{8 << 10, 100 << 10, controlBytes, 4 * controlBytes} {
		o := newOutgoing(func() {})
		text := make([]byte, size)
		taken := 0
		for {
			if _, ok := o.putText(text); !ok {
				break
			}
			taken++
		}
		if want := max(1, controlBytes/size); taken != want {
			t.Errorf("%d messages of %d bytes were taken, want %d", taken, size, want)
		}
		for range taken {
			o.take(nil)
		}
		if o.bytes != 0 {
			t.Errorf("%d bytes are left of nothing", o.bytes)
		}
		if _, ok := o.putText(text); !ok {
			t.Error("an empty queue is full")
		}
	}
}

// A writer may rest only when nothing waits, and what comes then begins another.
func TestOutgoingRest(t *testing.T) {
	for name, put := range map[string]func(*outgoing){
		"text": func(o *outgoing) { o.putText([]byte("x")) }, "sound": func(o *outgoing) { o.putAudio(1, []byte("x")) },
		"stop":  func(o *outgoing) { o.putStop(1, true, nil, []byte("x")) },
		"close": func(o *outgoing) { o.close() },
	} {
		o := newOutgoing(func() {})
		begun := 0
		o.work = func() { begun++ }
		put(o)
		put(o)
		if begun != 1 || o.rest() {
			t.Errorf("%s: %d writers begun, or it rests", name, begun)
		}
		if name == "close" {
			continue
		}
		for {
			if _, _, _, ok := o.take(nil); !ok {
				break
			}
		}
		if !o.rest() {
			t.Errorf("%s: it does not rest", name)
		}
		if put(o); begun != 2 {
			t.Errorf("%s: %d writers begun after the rest", name, begun)
		}
	}
}

func TestOutgoingClosed(t *testing.T) {
	o := newOutgoing(func() {})
	o.putText([]byte("before"))
	o.putAudio(1, []byte("a"))
	o.close()
	o.close()
	if live, ok := o.putText([]byte("after")); live || !ok {
		t.Errorf("live %v, ok %v after close", live, ok)
	}
	if _, ok := o.putAudio(1, []byte("b")); ok {
		t.Error("audio taken after close")
	}
	if got := drain(o); got != "[t:before] f:a" {
		t.Errorf("left in it: %s", got)
	}
}

// The memory of a frame that was handed over may be used again, and a frame that
// waits is not touched by those that come after it.
func TestOutgoingCopiesFrames(t *testing.T) {
	o := newOutgoing(func() {})
	packet := make([]byte, 2)
	put := func(turn uint64, s string) { copy(packet, s); o.putAudio(turn, packet) }
	put(1, "aa")
	put(2, "bb")
	put(1, "cc")
	_, first, _, _ := o.take(nil)
	o.putStop(1, false, nil, []byte("stop"))
	put(2, "dd")
	put(3, "ee")
	if got := string(first) + " " + drain(o); got != "aa [f:cc t:stop] f:bb f:dd f:ee" {
		t.Errorf("got %s", got)
	}
}

// Once its places are made, a frame on its way through the queue costs nothing.
func TestOutgoingFramesAllocateNothing(t *testing.T) {
	o := newOutgoing(func() {})
	packet, buf := make([]byte, 180), make([]byte, 0, 180)
	pass := func() {
		for range 4 { // the lead
			o.putAudio(1, packet)
		}
		for range 4 {
			if _, frame, _, ok := o.take(buf); !ok || len(frame) != len(packet) {
				t.Fatal("a frame is missing")
			}
		}
	}
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("%v allocations for 4 frames", n)
	}
}

func BenchmarkOutgoingAudio(b *testing.B) {
	o := newOutgoing(func() {})
	packet, buf := make([]byte, 180), make([]byte, 0, 180)
	b.ReportAllocs()
	for b.Loop() {
		o.putAudio(1, packet)
		o.take(buf)
	}
}

// TestOutgoingLagOfNewFrame asks in the instant in which a frame was queued: it
// waits, and a cut would throw it away.
func TestOutgoingLagOfNewFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutgoing(func() {})
		if lag := o.lag(); lag != 0 {
			t.Errorf("lag %v of an empty queue", lag)
		}
		if _, ok := o.putAudio(1, []byte("a")); !ok {
			t.Fatal("the frame was refused")
		}
		if lag := o.lag(); lag <= 0 {
			t.Errorf("lag %v with a frame that waits", lag)
		}
	})
}
