package audio

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// piece is a stretch of sound with one probability.
type piece struct {
	p float32
	d time.Duration
}

func voice(d time.Duration) piece   { return piece{0.9, d} }
func silence(d time.Duration) piece { return piece{0.05, d} }

// listen feeds the pieces in windows of that length and notes what was reported
// and when, as "event@time".
func listen(e *Endpointer, window time.Duration, pieces ...piece) []string {
	var events []string
	var now time.Duration
	for _, part := range pieces {
		for range part.d / window {
			now += window
			if got := e.Feed(part.p, window); got != EndpointNone {
				events = append(events, fmt.Sprintf("%v@%d", got, now/ms))
			}
		}
	}
	return events
}

func TestEndpoints(t *testing.T) {
	for name, c := range map[string]struct {
		options EndpointOptions
		pieces  []piece
		want    []string
	}{
		"silence only": {pieces: []piece{silence(5 * time.Second)}},
		"one utterance": {
			pieces: []piece{silence(100 * ms), voice(2 * time.Second), silence(2 * time.Second)},
			want:   []string{"speech_start@250", "trigger@2300", "commit@2800"},
		},
		"two utterances": {
			pieces: []piece{voice(500 * ms), silence(1000 * ms), voice(500 * ms), silence(1000 * ms)},
			want: []string{
				"speech_start@150", "trigger@700", "commit@1200",
				"speech_start@1650", "trigger@2200", "commit@2700",
			},
		},
		"pause in the middle": {
			options: EndpointOptions{Commit: 800 * ms},
			pieces:  []piece{voice(1000 * ms), silence(600 * ms), voice(1000 * ms), silence(1000 * ms)},
			want:    []string{"speech_start@150", "trigger@1200", "resume@1610", "trigger@2800", "commit@3400"},
		},
		"short pause": {
			pieces: []piece{voice(300 * ms), silence(190 * ms), voice(300 * ms), silence(700 * ms)},
			want:   []string{"speech_start@150", "trigger@990", "commit@1490"},
		},
		"resumed at the last moment": {
			pieces: []piece{voice(300 * ms), silence(690 * ms), voice(10 * ms), silence(700 * ms)},
			want:   []string{"speech_start@150", "trigger@500", "resume@1000", "trigger@1200", "commit@1700"},
		},
		"a click": {pieces: []piece{silence(300 * ms), voice(120 * ms), silence(2 * time.Second)}},
		"two clicks": {
			pieces: []piece{voice(120 * ms), silence(110 * ms), voice(120 * ms), silence(2 * time.Second)},
		},
		"speech with gaps": {
			pieces: []piece{voice(80 * ms), silence(90 * ms), voice(200 * ms), silence(700 * ms)},
			want:   []string{"speech_start@240", "trigger@570", "commit@1070"},
		},
		"a doubtful beginning": {
			pieces: []piece{{0.49, 3 * time.Second}},
		},
		"held by the lower threshold": {
			pieces: []piece{voice(100 * ms), {0.4, 1000 * ms}, {0.3, 700 * ms}},
			want:   []string{"speech_start@150", "trigger@1300", "commit@1800"},
		},
		"the lower threshold does not begin voice": {
			pieces: []piece{voice(200 * ms), silence(300 * ms), {0.4, 400 * ms}},
			want:   []string{"speech_start@150", "trigger@400", "commit@900"},
		},
		"own thresholds": {
			options: EndpointOptions{Start: 0.95, End: 0.92, MinSpeech: 20 * ms},
			pieces:  []piece{voice(2 * time.Second)},
		},
		"End above Start means Start": {
			options: EndpointOptions{Start: 0.3, End: 0.95},
			pieces:  []piece{voice(200 * ms), {0.31, 300 * ms}, silence(700 * ms)},
			want:    []string{"speech_start@150", "trigger@700", "commit@1200"},
		},
		"too long": {
			options: EndpointOptions{MaxSpeech: time.Second},
			pieces:  []piece{silence(500 * ms), voice(1200 * ms), silence(time.Second)},
			want:    []string{"speech_start@650", "overlong@1500", "speech_start@1650", "trigger@1900", "commit@2400"},
		},
		"too long by pauses": {
			options: EndpointOptions{MaxSpeech: time.Second},
			pieces:  []piece{voice(900 * ms), silence(time.Second)},
			want:    []string{"speech_start@150", "overlong@1000"},
		},
		"no trigger before the commit": {
			options: EndpointOptions{Trigger: time.Second, Commit: 500 * ms},
			pieces:  []piece{voice(200 * ms), silence(2 * time.Second)},
			want:    []string{"speech_start@150", "commit@700"},
		},
		"not a number": {
			pieces: []piece{{float32(math.NaN()), 500 * ms}, voice(200 * ms), {float32(math.NaN()), 700 * ms}},
			want:   []string{"speech_start@650", "trigger@900", "commit@1400"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewEndpointer(c.options)
			if got := listen(e, 10*ms, c.pieces...); !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			e.Reset()
			if got := listen(e, 10*ms, c.pieces...); !slices.Equal(got, c.want) {
				t.Errorf("after Reset: %v", got)
			}
		})
	}
}

func TestEndpointsAtTheDetectorsWindow(t *testing.T) {
	const window = 32 * ms
	e := NewEndpointer(EndpointOptions{})
	got := listen(e, window, silence(10*window), voice(40*window), silence(40*window))
	// Up to a window late: 150, 200 and 700 ms are no multiples of 32.
	want := []string{"speech_start@480", "trigger@1824", "commit@2304"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var train []piece
	for range 500 {
		train = append(train, voice(window), silence(2*window))
	}
	if got := listen(NewEndpointer(EndpointOptions{}), window, train...); got != nil {
		t.Errorf("a train of clicks was taken for speech: %v", got)
	}
	for _, gap := range []time.Duration{window, 2 * window, 3 * window} {
		syllables := []piece{voice(3 * window), silence(gap), voice(2 * window), silence(10 * window)}
		if got := listen(NewEndpointer(EndpointOptions{}), window, syllables...); len(got) == 0 {
			t.Errorf("two syllables %v apart were not taken for speech", gap)
		}
	}
}

func TestEndpointerTellsAboutTheUtterance(t *testing.T) {
	e := NewEndpointer(EndpointOptions{})
	listen(e, 10*ms, silence(400*ms), voice(300*ms), silence(100*ms), voice(200*ms), silence(300*ms))
	if !e.Speaking() || e.Voiced() != 500*ms || e.onset != 400*ms || e.LastVoice() != 1000*ms {
		t.Errorf("in the utterance: speaking %v, voiced %v, onset %v, last voice %v",
			e.Speaking(), e.Voiced(), e.onset, e.LastVoice())
	}
	got := listen(e, 10*ms, silence(500*ms)) // the commit and a little more
	if len(got) != 1 || e.Speaking() || e.Voiced() != 500*ms || e.LastVoice() != 1000*ms {
		t.Errorf("after %v: speaking %v, voiced %v, last voice %v", got, e.Speaking(), e.Voiced(), e.LastVoice())
	}
	listen(e, 10*ms, voice(50*ms))
	if e.Speaking() || e.Voiced() != 50*ms || e.onset != 1800*ms {
		t.Errorf("in the next one: speaking %v, voiced %v, onset %v", e.Speaking(), e.Voiced(), e.onset)
	}
	e.Reset()
	if e.Speaking() || e.Voiced() != 0 || e.LastVoice() != 0 || e.onset != 0 {
		t.Error("Reset left something")
	}
	if e.Feed(1, 0) != EndpointNone || e.Feed(1, -time.Second) != EndpointNone || e.Voiced() != 0 {
		t.Error("a piece without length counted")
	}
}

func TestEndpointerAwaitPause(t *testing.T) {
	e := NewEndpointer(EndpointOptions{MaxSpeech: time.Second})
	if got, want := listen(e, 10*ms, voice(time.Second)), []string{"speech_start@150", "overlong@1000"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	e.Reset()
	e.AwaitPause()
	got := listen(e, 10*ms, voice(2*time.Second), silence(690*ms), voice(time.Second), silence(700*ms), voice(500*ms))
	if want := []string{"speech_start@4540"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	e.AwaitPause()
	e.Reset()
	if got, want := listen(e, 10*ms, voice(500*ms)), []string{"speech_start@150"}; !slices.Equal(got, want) {
		t.Errorf("after Reset: got %v, want %v", got, want)
	}
}

func TestEndpointNames(t *testing.T) {
	want := []string{"none", "speech_start", "trigger", "resume", "commit", "overlong", "none"}
	for i, name := range want {
		if got := Endpoint(i).String(); got != name {
			t.Errorf("Endpoint(%d) is called %q, want %q", i, got, name)
		}
	}
}

// checkOrder feeds random sound and holds the promises that any sound must keep.
func checkOrder(t *testing.T, o EndpointOptions, next func() (piece, bool)) {
	t.Helper()
	e := NewEndpointer(o)
	o = o.WithDefaults()
	var now time.Duration
	open, triggered, wasVoice := false, false, false
	for {
		part, more := next()
		if !more {
			return
		}
		got := e.Feed(part.p, part.d)
		if part.d > 0 {
			now += part.d
			wasVoice = part.p >= o.Start || (wasVoice && part.p >= o.End)
		}
		quiet := now - e.LastVoice()
		switch got {
		case EndpointSpeechStart:
			if open || e.Voiced() < o.MinSpeech || !wasVoice {
				t.Fatalf("start at %v: open %v, voiced %v", now, open, e.Voiced())
			}
			open = true
		case EndpointTrigger:
			if !open || triggered || quiet < o.Trigger || quiet >= o.Commit {
				t.Fatalf("trigger at %v: open %v, triggered %v, quiet %v", now, open, triggered, quiet)
			}
			triggered = true
		case EndpointResume:
			if !open || !triggered || quiet != 0 {
				t.Fatalf("resume at %v: open %v, triggered %v, quiet %v", now, open, triggered, quiet)
			}
			triggered = false
		case EndpointCommit, EndpointOverlong:
			tooEarly := got == EndpointCommit && quiet < o.Commit || got == EndpointOverlong && now-e.onset < o.MaxSpeech
			if !open || tooEarly {
				t.Fatalf("%v at %v: open %v, quiet %v, onset %v", got, now, open, quiet, e.onset)
			}
			open, triggered = false, false
		case EndpointNone:
			if open && (quiet >= o.Commit || now-e.onset >= o.MaxSpeech || quiet >= o.Trigger && !triggered) {
				t.Fatalf("nothing at %v: quiet %v, onset %v, triggered %v", now, quiet, e.onset, triggered)
			}
		}
		if e.Speaking() != open {
			t.Fatalf("speaking %v at %v, want %v", e.Speaking(), now, open)
		}
		if e.LastVoice() > now || e.onset > e.LastVoice() || e.Voiced() < 0 || e.Voiced() > e.LastVoice()-e.onset {
			t.Fatalf("at %v: onset %v, last voice %v, voiced %v", now, e.onset, e.LastVoice(), e.Voiced())
		}
	}
}

func TestEndpointPromises(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		left, p := 3000, float32(0)
		checkOrder(t, EndpointOptions{MaxSpeech: 5 * time.Second}, func() (piece, bool) {
			left--
			if random.IntN(6) == 0 {
				p = random.Float32()
			}
			return piece{p, time.Duration(10+random.IntN(50)) * ms}, left > 0
		})
	}
}

func FuzzEndpointer(f *testing.F) {
	f.Add([]byte{200, 200, 200, 200, 200, 200, 10, 10, 10, 10, 10, 10, 10}, uint16(700))
	f.Add([]byte{130, 100, 80, 200, 0, 200, 0, 200}, uint16(1))
	f.Fuzz(func(t *testing.T, sound []byte, commit uint16) {
		checkOrder(t, EndpointOptions{Commit: time.Duration(commit) * ms, MaxSpeech: 2 * time.Second}, func() (piece, bool) {
			if len(sound) == 0 {
				return piece{}, false
			}
			b := sound[0]
			sound = sound[1:]
			return piece{float32(b) / 255, time.Duration(1+b%64) * ms}, true
		})
	})
}
