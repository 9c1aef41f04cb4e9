package devicetest

import (
	"slices"
	"testing"
	"time"
)

// Each state is entered with what belongs to it; what the firmware refuses is left out.
func TestBodyEnter(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tt := range []struct {
		name     string
		o        Options
		from, to State
		mic      bool
		entered  bool
		micAfter bool
		waiting  int // packets after it, of two
	}{
		{"idle shuts the microphone", Options{Mode: Auto}, Listening, Idle, true, true, false, 2},
		{"speaking is deaf in auto mode", Options{Mode: Auto}, Listening, Speaking, true, true, false, 0},
		{"speaking hears in realtime mode", Options{Mode: Realtime}, Listening, Speaking, true, true, true, 0},
		{"speaking keeps the queue of a browser", Options{Mode: Auto, Profile: Browser}, Listening, Speaking, true, true, false, 2},
		{"no speaking while connecting", Options{Mode: Auto}, Connecting, Speaking, false, false, false, 2},
		{"where it is", Options{Mode: Auto}, Listening, Listening, true, false, true, 2},
	} {
		j := newJournal()
		b := newBody(tt.o, j)
		b.state, b.mic.open = tt.from, tt.mic
		for range 3 { // the first plays at once
			b.speaker.accept(now, 60*ms, sample{pcm: make([]int16, 1)}, &Reply{}, 0)
		}
		entered := b.enter(now, tt.to)
		if entered != tt.entered || b.mic.open != tt.micAfter || b.speaker.player.waiting(now) != tt.waiting {
			t.Errorf("%s: entered %v, microphone %v, %d packets", tt.name, entered, b.mic.open, b.speaker.player.waiting(now))
		}
		if got := j.Stats().Flushed; got != 2-tt.waiting {
			t.Errorf("%s: %d flushed", tt.name, got)
		}
		if n := len(j.Events()); (n == 1) != tt.entered {
			t.Errorf("%s: %d events", tt.name, n)
		}
	}
}

// A fresh decoder follows each cut; the one before it judges what is still on its way.
func TestLoudspeakerFlush(t *testing.T) {
	now := time.Unix(1000, 0)
	s := loudspeaker{player: player{limit: 40}}
	if s.flush(now, true); s.decoder != nil {
		t.Error("a decoder before the hello")
	}
	if err := s.open(24000); err != nil {
		t.Fatal(err)
	}
	first := s.decoder
	if s.flush(now, false); s.outlived != first || s.decoder == first {
		t.Error("the decoder of the cut reply is gone")
	}
	if s.flush(now, false); s.outlived != first {
		t.Error("a second flush changed which reply was cut")
	}
	if s.flush(now, true); s.outlived != nil {
		t.Error("a new reply is judged by the decoder of the one before")
	}
	keeps := loudspeaker{keeps: true}
	if err := keeps.open(24000); err != nil {
		t.Fatal(err)
	}
	one := keeps.decoder
	if keeps.flush(now, false); keeps.decoder != one {
		t.Error("a client that keeps its decoder has a new one")
	}
	if err := (&loudspeaker{mute: true}).open(11000); err == nil {
		t.Error("a rate that no decoder has")
	}
}

// A call is in flight until it is answered or too old; ids are used once.
func TestRequests(t *testing.T) {
	start := time.Unix(1000, 0)
	call := func(id string) *inbound {
		return parseText([]byte(`{"type":"mcp","payload":{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"a"}}}`), nil)
	}
	j := newJournal()
	q := newRequests(j)
	q.check(start, call("1"), true)
	q.answered(1)
	q.check(start, call("2"), true)
	q.check(start.Add(14*time.Second), call("3"), true) // while 2 is in flight
	q.check(start.Add(40*time.Second), call("4"), true)
	q.check(start.Add(80*time.Second), call("4"), true)
	q.check(start.Add(99*time.Second), call("5"), false)
	var rules []Rule
	for _, v := range j.Violations() {
		rules = append(rules, v.Rule)
	}
	if want := []Rule{RuleMCPBusy, RuleMCPID, RuleMCPRequest}; !slices.Equal(rules, want) {
		t.Errorf("rules broken: %v, want %v", rules, want)
	}
}
