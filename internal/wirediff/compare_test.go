package main

import (
	"slices"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
)

func TestNormal(t *testing.T) {
	got := normal([]string{
		`{"session_id":"0a1b2c3d-0000-4000-8000-000000000001","url":"ws://127.0.0.1:8123/x","timestamp":1790000000000}`,
		`{"id":"0a1b2c3d-0000-4000-8000-000000000002"}`, `{"session_id":"0a1b2c3d-0000-4000-8000-000000000001","token":"abcdefghij"}`,
	})
	want := []string{`{"session_id":"ID1","url":"ws://HOST/x","timestamp":TIME}`, `{"id":"ID2"}`, `{"session_id":"ID1","token":"TOKEN"}`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCompareLines(t *testing.T) {
	if found := compareLines("x", []string{"a", "b"}, []string{"a", "b"}); found != nil {
		t.Errorf("the same: %q", found)
	}
	for _, other := range [][]string{nil, {"a"}, {"a", "c"}, {"a", "b", "c"}} {
		if compareLines("x", []string{"a", "b"}, other) == nil {
			t.Errorf("%q is taken for the same", other)
		}
	}
}

func TestCompareSounds(t *testing.T) {
	whole := sound{frames: []string{"a", "b", "c", "d", "e", "f"}, sentences: []int{0}}
	cut := sound{frames: whole.frames, cut: true}
	for name, c := range map[string]struct {
		a, b sound
		same bool
	}{
		"same":              {whole, whole, true},
		"other frame":       {whole, sound{frames: []string{"a", "b", "c", "x", "e", "f"}, sentences: []int{0}}, false},
		"fewer":             {whole, sound{frames: whole.frames[:5], sentences: []int{0}}, false},
		"other subtitle":    {whole, sound{frames: whole.frames, sentences: []int{2}}, false},
		"cut earlier":       {cut, sound{frames: whole.frames[:5], cut: true}, true},
		"cut, other start":  {cut, sound{frames: []string{"x", "b", "c", "d", "e", "f"}, cut: true}, false},
		"cut only one":      {cut, whole, false},
		"cut, much shorter": {sound{frames: slices.Repeat([]string{"a"}, 80), cut: true}, sound{frames: slices.Repeat([]string{"a"}, 20), cut: true}, false},
	} {
		if found := compareSounds("d", []sound{c.a}, []sound{c.b}, false); (found == nil) != c.same {
			t.Errorf("%s: %q", name, found)
		}
	}
}

// TestTapeDevice divides frames among the replies that they stand in.
func TestTapeDevice(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	received := func(ms int, kind, state, text string) devicetest.Event {
		return devicetest.Event{At: at(ms), Kind: devicetest.KindReceived, Type: kind, State: state, Text: text, Raw: []byte(kind + state)}
	}
	tp := newTape()
	tp.device("d", []devicetest.Event{
		received(0, "tts", "start", ""), received(1, "tts", "sentence_start", "x"), received(20, "tts", "sentence_start", "y"), received(40, "tts", "stop", ""),
		received(50, "mcp", "", ""), received(60, "tts", "start", ""),
		{At: at(70), Kind: devicetest.KindSent, Type: "abort", Raw: []byte("abort")},
		received(80, "tts", "stop", ""),
	}, []frame{{at(10), "a"}, {at(30), "b"}, {at(65), "c"}})
	got := tp.sounds["d"]
	if len(got) != 2 || !slices.Equal(got[0].frames, []string{"a", "b"}) || !slices.Equal(got[0].sentences, []int{0, 1}) || got[0].cut ||
		!slices.Equal(got[1].frames, []string{"c"}) || !got[1].cut {
		t.Errorf("%+v", got)
	}
	if n := tp.lines(); n != 11 || len(tp.streams["d tools from server"]) != 1 || len(tp.streams["d talk to server"]) != 1 {
		t.Errorf("%d lines: %q", n, tp.streams)
	}
}

// TestTalks holds the set itself: enough talks, each with a name of its own.
func TestTalks(t *testing.T) {
	names := make(map[string]bool)
	for _, talk := range talks() {
		names[talk.name] = true
		if named(talk.name).play == nil {
			t.Errorf("%s plays nothing", talk.name)
		}
	}
	if len(names) != len(talks()) || len(names) < 25 {
		t.Errorf("%d names of %d talks", len(names), len(talks()))
	}
}
