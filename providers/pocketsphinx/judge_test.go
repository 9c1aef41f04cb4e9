package pocketsphinx

import "testing"

// said makes the segments of words that all last and fit the same.
func said(frames int, acousticPerFrame, posterior int32, words ...string) []segment {
	out := []segment{{word: "<sil>", frames: 30, acoustic: -9000}}
	for _, w := range words {
		out = append(out, segment{w, frames, acousticPerFrame * int32(frames), posterior})
	}
	return out
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name              string
		m                 measurement
		text              string
		grammar, rejected bool
	}{
		{"nothing", measurement{}, "", false, false},
		{"silence, yet a phrase", measurement{command: said(40, -50, 0, "stop")}, "", false, false},
		{
			"plain dictation",
			measurement{dictation: said(30, -30, -500, "Hello", "world(2)"), aligned: said(30, -30, 0, "hello", "world")},
			"hello world", false, false,
		},
		{
			"the same phrase",
			measurement{dictation: said(40, -52, -30000, "zero"), aligned: said(40, -52, 0, "zero"), command: said(40, -52, 0, "zero")},
			"zero", true, false,
		},
		{"a phrase that fits about as well", measurement{
			dictation: said(40, -30, -20000, "they're", "seeing"),
			aligned:   said(40, -30, 0, "they're", "seeing"), command: said(78, -38, 0, "thirty"),
		}, "thirty", true, false},
		{"a phrase that fits far worse", measurement{
			dictation: said(40, -30, -500, "good", "evening"),
			aligned:   said(40, -30, 0, "good", "evening"), command: said(80, -60, 0, "stop"),
		}, "good evening", false, false},
		{
			"a phrase that explains half",
			measurement{
				dictation: said(40, -30, -500, "go", "forward", "ten", "meters"),
				aligned:   said(40, -30, 0, "go", "forward", "ten", "meters"), command: said(40, -29, 0, "go", "forward"),
			},
			"go forward ten meters", false, false,
		},
		{
			"another language",
			measurement{
				dictation: said(25, -44, -25000, "to", "wanna", "watch", "all", "they", "are"),
				aligned:   said(25, -44, 0, "to", "wanna", "watch", "all", "they", "are"), command: said(150, -50, 0, "stop"),
			},
			"to wanna watch all they are", false, true,
		},
		{
			"a tone as one long word",
			measurement{dictation: said(300, -30, 0, "if"), aligned: said(300, -30, 0, "if"), command: said(300, -30, 0, "stop")},
			"if", false, true,
		},
		{"not aligned, not judged", measurement{dictation: said(30, -90, -90000, "odd", "words", "here")}, "odd words here", false, false},
	} {
		v := c.m.judge("")
		if v.text != c.text || v.grammar != c.grammar || v.rejected != c.rejected {
			t.Errorf("%s: %+v; want text %q, grammar %v, rejected %v", c.name, v, c.text, c.grammar, c.rejected)
		}
	}
}

func TestCleanText(t *testing.T) {
	for hyp, want := range map[string]string{
		"":                                "",
		"<s> <sil> </s>":                  "",
		"<s> the(2) [NOISE] TIME ++UM++ ": "the time",
	} {
		if got := cleanText(hyp); got != want {
			t.Errorf("%q: %q, want %q", hyp, got, want)
		}
	}
}

func TestFeatureArgsLeaveTheMeanToUs(t *testing.T) {
	args := featureArgs("-lowerf 130\n-cmn batch\n-cmninit 41.00,-5.29\n-model ptm\n-nfilt 25\n")
	want := []string{"-featparams", "/dev/null", "-cmn", "none", "-lowerf", "130", "-nfilt", "25"}
	if len(args) != len(want) {
		t.Fatalf("args %q, want %q", args, want)
	}
	for i := range want {
		if args[i] != want[i] {
			t.Errorf("argument %d: %q, want %q", i, args[i], want[i])
		}
	}
}

func TestCepstralMeanStartsTypicalAndFollows(t *testing.T) {
	m := newCepstralMean()
	if got := m.remove(nil, typicalMean)[0]; got != (cepstrum{}) {
		t.Errorf("a typical frame becomes %v", got)
	}
	loud := cepstrum{80}
	for range 10000 {
		m.hear(loud)
	}
	if got := m.remove(nil, loud)[0][0]; got > 0.5 || got < 0 {
		t.Errorf("after 100 s of the same frame it still becomes %v", got)
	}
	before := *m
	m.hear(cepstrum{-20})
	if *m != before {
		t.Error("digital silence moved the mean")
	}
}

func TestJudgeWithAHint(t *testing.T) {
	short := measurement{dictation: said(30, -30, -500, "the", "top"), aligned: said(30, -30, 0, "the", "top")}
	long := measurement{
		dictation: said(30, -30, -500, "set", "the", "table"), aligned: said(30, -30, 0, "set", "the", "table"),
	}
	command := measurement{
		dictation: said(30, -30, -500, "stop"), aligned: said(30, -30, 0, "stop"), command: said(30, -30, 0, "stop"),
	}
	for _, c := range []struct {
		name     string
		m        measurement
		hint     string
		rejected bool
	}{
		{"two words, no hint", short, "", false},
		{"two words, English expected", short, "en", false},
		{"two words, Chinese expected", short, "zh", true},
		{"three words, Chinese expected", long, "zh", false},
		{"a phrase, Chinese expected", command, "zh", false},
		{"nothing, Chinese expected", measurement{}, "zh", false},
	} {
		if v := c.m.judge(c.hint); v.rejected != c.rejected {
			t.Errorf("%s: rejected %v", c.name, v.rejected)
		}
	}
}
