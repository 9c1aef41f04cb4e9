package turn

import (
	"testing"
	"time"
)

func anna(sure int) Speaker { return Speaker{Voice: Familiar, ID: "a", Name: "Anna", Sure: sure} }

// Who has spoken is said of all that is answered together: it is one person's, or nobody's.
func TestSpeakerOfWhatWasSaid(t *testing.T) {
	ben := Speaker{Voice: Familiar, ID: "b", Name: "Ben", Sure: 90}
	before := anna(80)
	before.Before = true
	of := func(all ...Speaker) (said []*Utterance) {
		for _, s := range all {
			said = append(said, &Utterance{Speaker: s})
		}
		return said
	}
	for name, c := range map[string]struct {
		said []*Utterance
		last Speaker
		ago  time.Duration
		want Speaker
	}{
		"one":                           {of(anna(80)), Speaker{}, 0, anna(80)},
		"the least sure counts":         {of(anna(80), anna(70)), Speaker{}, 0, anna(70)},
		"two people":                    {of(anna(80), ben), Speaker{}, 0, Speaker{Voice: Stranger}},
		"with a stranger":               {of(anna(80), Speaker{Voice: Stranger}), Speaker{}, 0, Speaker{Voice: Stranger}},
		"with what says nothing":        {of(anna(80), Speaker{Voice: Unclear}), Speaker{}, 0, anna(80)},
		"with what is not known yet":    {of(anna(80), Speaker{}), Speaker{}, 0, anna(80)},
		"not known yet":                 {of(Speaker{}), Speaker{}, 0, Speaker{}},
		"not known yet, after Anna":     {of(Speaker{}), anna(80), 20 * time.Second, before},
		"a minute after Anna":           {of(Speaker{}), anna(80), 61 * time.Second, Speaker{}},
		"not known yet, after stranger": {of(Speaker{}), Speaker{Voice: Stranger}, 0, Speaker{}},
		"unclear, after Anna":           {of(Speaker{Voice: Unclear}), anna(80), 0, Speaker{Voice: Unclear}},
		"a stranger, after Anna":        {of(Speaker{Voice: Stranger}), anna(80), 0, Speaker{Voice: Stranger}},
		"nothing was said":              {nil, anna(80), 0, Speaker{}},
	} {
		x := &step{Rules: rules(), seen: Seen{Now: epoch}}
		x.LastSpeaker = lastSpeaker{c.last, 1, epoch.Add(-c.ago)}
		if got := speaker(x, c.said); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// What is found out of a voice late counts for what comes next; what is found out of an utterance before a later one does not
// replace that.
func TestIdentifiedLate(t *testing.T) {
	s := in("auto", Committed)
	s.Said = nil
	s, effects := rules().Next(s, Seen{Now: epoch}, Identified{ID: 3, Speaker: anna(80)})
	if len(effects) > 0 || s.Reply.Stage != Committed || s.Reply.Request.Speaker.ID != "" {
		t.Errorf("what goes on was touched: %v %+v", effects, s.Reply)
	}
	for _, e := range []Identified{{2, Speaker{Voice: Stranger}}, {4, Speaker{Voice: Unclear}}} {
		s, _ = rules().Next(s, Seen{Now: epoch}, e)
		if s.LastSpeaker.Speaker != anna(80) {
			t.Errorf("%+v: the last is %+v", e, s.LastSpeaker)
		}
	}
	if s, _ = rules().Next(s, Seen{Now: epoch}, Identified{4, Speaker{Voice: Stranger}}); s.LastSpeaker.Voice != Stranger {
		t.Errorf("the last is %+v", s.LastSpeaker)
	}
}

// The answer that was begun is begun again if it was for somebody else, and only then.
func TestIdentifiedWhileAnswerIsBegun(t *testing.T) {
	for name, c := range map[string]struct {
		begun Speaker
		now   Speaker
		again bool
	}{
		"for nobody":         {Speaker{}, anna(80), true},
		"for the same":       {anna(70), anna(80), false},
		"for another":        {Speaker{Voice: Familiar, ID: "b"}, anna(80), true},
		"nobody, a stranger": {Speaker{}, Speaker{Voice: Stranger}, false},
		"Anna, a stranger":   {anna(80), Speaker{Voice: Stranger}, true},
	} {
		s := in("auto", Speculative)
		s.Reply.Request.Speaker = c.begun
		next, _ := rules().Next(s, Seen{Now: epoch}, Identified{ID: 1, Speaker: c.now})
		if again := next.Reply.Stage == Discarded; again != c.again {
			t.Errorf("%s: begun again: %v", name, again)
		}
	}
}

// A yes to what only certain people may allow counts if it was theirs, by its own voice.
func TestConsentedBy(t *testing.T) {
	before := anna(80)
	before.Before = true
	lower := anna(80)
	lower.Name = "anna"
	for name, c := range map[string]struct {
		words   string
		speaker Speaker
		again   bool
		allow   bool
		answer  string
	}{
		"Anna":                    {"yes", anna(80), false, true, ""},
		"in other letters":        {"yes", lower, false, true, ""},
		"Ben":                     {"yes", Speaker{Voice: Familiar, ID: "b", Name: "Ben", Sure: 90}, false, false, "consent_others"},
		"a stranger":              {"yes", Speaker{Voice: Stranger}, false, false, "consent_others"},
		"too short to tell":       {"yes", Speaker{Voice: Unclear}, false, false, "consent_voice"},
		"too short again":         {"yes", Speaker{Voice: Unclear}, true, false, "consent_others"},
		"known too late":          {"yes", Speaker{}, false, false, "consent_voice"},
		"Anna has spoken before":  {"yes", before, false, false, "consent_voice"},
		"and before, again":       {"yes", before, true, false, "consent_others"},
		"no of a stranger counts": {"no", Speaker{Voice: Stranger}, false, false, "consent_no"},
		"not clear":               {"maybe", anna(80), false, false, "consent_ask"},
	} {
		s := State{Learned: Learned{Spoke: true}, Consent: Consent{ID: 7, Until: epoch.Add(time.Minute), Again: c.again, By: []string{"Ben's mother", "Anna"}}}
		x := &step{State: s, Rules: rules(), seen: Seen{Now: epoch}}
		r := consented(x, Request{Words: c.words, Lang: "en", Speaker: c.speaker})
		if r.Allow != c.allow || r.Answer != c.answer {
			t.Errorf("%s: %v %q, want %v %q", name, r.Allow, r.Answer, c.allow, c.answer)
		}
	}
}
