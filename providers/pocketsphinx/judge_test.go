package pocketsphinx

import (
	"strings"
	"testing"
)

// said makes the segments of words that all last and fit the same, between silences.
func said(frames int, acousticPerFrame, language, posterior int32, words ...string) []segment {
	out := []segment{{word: "<sil>", frames: 30, acoustic: -9000, language: -500}}
	for _, w := range words {
		out = append(out, segment{w, frames, acousticPerFrame * int32(frames), language, posterior})
	}
	return append(out, segment{word: "</s>", frames: 30, acoustic: -9000, language: -500, posterior: -90000})
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name              string
		m                 measurement
		text              string
		grammar, rejected bool
	}{
		{"nothing", measurement{}, "", false, false},
		{"silence", measurement{dictation: said(0, 0, 0, 0)}, "", false, false},
		{"silence, yet a phrase", measurement{command: said(40, -50, 0, 0, "stop")}, "", false, false},
		{
			"plain dictation",
			measurement{dictation: said(30, -30, -300, -500, "Hello", "world(2)")},
			"hello world", false, false,
		},
		{
			"the same phrase, though badly said",
			measurement{dictation: said(40, -82, -300, -30000, "zero"), command: said(40, -92, 0, 0, "zero")},
			"zero", true, false,
		},
		{"a phrase that fits about as well", measurement{
			dictation: said(40, -30, -300, -20000, "they're", "seeing"), command: said(78, -38, 0, 0, "thirty"),
		}, "thirty", true, false},
		{"a phrase that fits far worse", measurement{
			dictation: said(40, -30, -300, -500, "good", "evening"), command: said(80, -60, 0, 0, "stop"),
		}, "good evening", false, false},
		{"a phrase that explains half", measurement{
			dictation: said(40, -30, -300, -500, "go", "forward", "ten", "meters"), command: said(40, -29, 0, 0, "go", "forward"),
		}, "go forward ten meters", false, false},
		{"a phrase that lasts far too long", measurement{
			dictation: said(50, -30, -300, -500, "good", "evening", "all"), command: said(140, -29, 0, 0, "stop"),
		}, "good evening all", false, false},
		{"another language", measurement{
			dictation: said(25, -44, -400, -25000, "to", "wanna", "watch", "all", "they", "are"), command: said(150, -50, 0, 0, "stop"),
		}, "to wanna watch all they are", false, true},
		{
			"words that fit the sound but not one another",
			measurement{dictation: said(15, -35, -600, -6000, strings.Fields("the the top what on boy")...)},
			"the the top what on boy", false, true,
		},
		{
			"the same as three words, which prove little",
			measurement{dictation: said(15, -35, -600, -6000, "the", "top", "boy")},
			"the top boy", false, false,
		},
		{"much of it is babble", measurement{dictation: append(
			said(30, -30, -300, -6000, "and", "then", "in", "half", "for"), segment{word: "[SPEECH]", frames: 30})}, "and then in half for", false, true},
		{"words that join nothing", measurement{dictation: said(30, -18, -300, -500, "but", "i")}, "but i", false, true},
		{"words that join something", measurement{dictation: said(30, -18, -300, -500, "to", "me")}, "to me", false, false},
		{"a phrase that joins nothing", measurement{
			dictation: said(30, -18, -300, -500, "to", "a"), command: said(30, -18, 0, 0, "to", "a"),
		}, "to a", true, false},
		{"a click before a word", measurement{dictation: append(
			said(30, -50, -300, -6000, "playback", "mode"), segment{word: "[NOISE]", frames: 15})}, "playback mode", false, false},
		{"a cough in between", measurement{dictation: append(
			said(30, -30, -300, -1000, "and", "then", "in", "half", "for"), segment{word: "++COUGH++", frames: 10})}, "and then in half for", false, false},
		{"a tone as one long word", measurement{
			dictation: said(300, -30, -300, 0, "if"), command: said(300, -30, 0, 0, "stop"),
		}, "if", false, true},
	} {
		v := c.m.judge("")
		if v.text != c.text || v.grammar != c.grammar || v.rejected != c.rejected {
			t.Errorf("%s: %+v; want text %q, grammar %v, rejected %v", c.name, v, c.text, c.grammar, c.rejected)
		}
	}
}

func TestJudgeHint(t *testing.T) {
	short := measurement{dictation: said(30, -30, -300, -500, "the", "top")}
	doubtful := measurement{dictation: said(30, -50, -300, -8000, "set", "the", "table", "for", "two")}
	misfit := measurement{dictation: said(30, -48, -300, -8000, "i", "cannot")}
	thanks := measurement{dictation: said(40, -52, -230, -2300, "thank", "you")}
	unsure := measurement{dictation: said(30, -40, -300, -36000, "anyhow")}
	long := measurement{dictation: said(30, -30, -300, -500, "set", "the", "table")}
	command := measurement{
		dictation: said(30, -30, -300, -500, "stop"), command: said(30, -30, 0, 0, "stop"),
	}
	for _, c := range []struct {
		name     string
		m        measurement
		hint     string
		rejected bool
	}{
		{"doubtful words, no hint", doubtful, "", false},
		{"doubtful words, English expected", doubtful, "en", false},
		{"doubtful words, Chinese expected", doubtful, "zh", true},
		{"doubtful words, British English expected", doubtful, "en-GB", false},
		{"doubtful words, Japanese expected", doubtful, "ja", true},
		{"two words, no hint", short, "", false},
		{"two words, English expected", short, "en", false},
		{"two words that fit well, Chinese expected", short, "zh", false},
		{"two words that fit badly, no hint", misfit, "", false},
		{"two words that fit badly, Chinese expected", misfit, "zh", true},
		{"two words that fit badly, but nothing else does, Chinese expected", thanks, "zh", false},
		{"one word that others might be, no hint", unsure, "", false},
		{"one word that others might be, Chinese expected", unsure, "zh", true},
		{"three words, Chinese expected", long, "zh", false},
		{"a phrase, Chinese expected", command, "zh", false},
		{"nothing, Chinese expected", measurement{}, "zh", false},
	} {
		if v := c.m.judge(c.hint); v.rejected != c.rejected {
			t.Errorf("%s: rejected %v", c.name, v.rejected)
		}
	}
}

func TestJudgeMotion(t *testing.T) {
	words := func(n int) []string { return strings.Fields("set the table for two of us")[:n] }
	for _, c := range []struct {
		name     string
		words    int
		motion   float64
		rejected bool
	}{
		{"unknown", 6, 0, false},
		{"a sentence", 6, 60, false},
		{"a sentence in a noisy room", 6, 38, false},
		{"a sentence in music", 6, 15, true},
		{"a word", 1, 40, false},
		{"a word in a tone", 1, 4, true},
		{"a word in a scream", 1, 110, true},
		{"a sentence in a scream", 6, 110, true},
	} {
		m := measurement{dictation: said(30, -30, -300, -500, words(c.words)...), motion: c.motion}
		if v := m.judge(""); v.rejected != c.rejected {
			t.Errorf("%s: rejected %v, doubt %.1f", c.name, v.rejected, v.doubt)
		}
		m.command = said(30, -30, 0, 0, words(c.words)...)
		if v := m.judge(""); !v.grammar || v.rejected {
			t.Errorf("%s, as one of the phrases: %+v", c.name, v)
		}
	}
}

func TestDoubtGrows(t *testing.T) {
	doubt := func(acoustic, language, posterior int32) float64 {
		return measurement{dictation: said(30, acoustic, language, posterior, "one", "two", "three", "four", "five")}.judge("").doubt
	}
	plain := doubt(-30, -300, -1000)
	for name, odd := range map[string]float64{
		"sound that fits worse":      doubt(-31, -300, -1000),
		"words that follow worse":    doubt(-30, -330, -1000),
		"others as likely to be it":  doubt(-30, -300, -2200),
		"all of it, a little of all": doubt(-31, -310, -1300),
	} {
		if odd <= plain {
			t.Errorf("%s: doubt %.2f, plain speech %.2f", name, odd, plain)
		}
	}
}
