package recognition

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// TestNamedSentences: where a service names its sentences, their texts may come late, twice and
// in any order.
func TestNamedSentences(t *testing.T) {
	for name, test := range map[string]struct {
		results []Result
		want    string
	}{
		"one after the other":       {[]Result{{Kind: Partial, Text: "a"}, {Kind: Sentence, Text: "A."}, {Kind: Partial, Text: "b"}, {Kind: Sentence, Text: "B."}}, "A. B."},
		"the end of one is missing": {[]Result{{Kind: Partial, Part: "1", Text: "one"}, {Kind: Partial, Part: "2", Text: "tw"}, {Kind: Partial, Part: "2", Text: "two"}}, "one two"},
		"the end of one is late":    {[]Result{{Kind: Partial, Part: "1", Text: "on"}, {Kind: Partial, Part: "2", Text: "two"}, {Kind: Sentence, Part: "1", Text: "One."}}, "One. two"},
		"an end comes twice":        {[]Result{{Kind: Sentence, Part: "1", Text: "One."}, {Kind: Sentence, Part: "1", Text: "One."}}, "One."},
		"a partial one is late":     {[]Result{{Kind: Sentence, Part: "1", Text: "One."}, {Kind: Partial, Part: "1", Text: "on"}}, "One."},
		"an empty end":              {[]Result{{Kind: Partial, Part: "1", Text: "one"}, {Kind: Sentence, Part: "1"}}, "one"},
		"the next session":          {[]Result{{Kind: Partial, Part: "1", Text: "one"}, {Kind: Over}, {Kind: Sentence, Part: "1", Text: "two"}}, "one two"},
		"all of it at the end":      {[]Result{{Kind: Partial, Text: "on"}, {Kind: Over, Text: "one"}}, "one"},
		"pieces":                    {[]Result{{Kind: Append, Text: "o"}, {Kind: Append, Text: "ne"}, {Kind: Sentence}, {Kind: Append, Text: "two"}}, "one two"},
	} {
		var s sentences
		for _, r := range test.results {
			s.add(r)
		}
		if got := s.text(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestLongSpeechGoesOn: a session that takes only so much sound is followed by another one, without
// a gap, and one that does not come to its end then is given up.
func TestLongSpeechGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, next := newScript(), newScript()
		first.finish = func(s *script) { s.results <- Result{Kind: Over, Text: "one"} }
		next.finish = func(s *script) { s.results <- Result{Kind: Over, Text: "two"} }
		r, dials := recognizer(Options{Longest: time.Second}, first, next)
		_, final, err := recognize(t, r, 2*second)
		if err != nil || final != "one two" || *dials != 2 || first.sent != second || next.sent != second {
			t.Errorf("final %q, error %v, %d dials, %d and %d samples", final, err, *dials, first.sent, next.sent)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r, _ := recognizer(Options{Longest: time.Second}, newScript())
		if _, _, err := recognize(t, r, 60*second); err == nil || time.Since(begun) < 6*time.Second {
			t.Errorf("error %v after %v", err, time.Since(begun))
		}
	})
}

// TestServiceThatOnlyCloses: not all services say that they have said all, and some close at their
// limit in the middle.
func TestServiceThatOnlyCloses(t *testing.T) {
	closed := transport.Refused(providers.Unavailable, transport.ClosedInOrder, "bye")
	for name, test := range map[string]struct {
		sessions []*script
		want     string
		fails    bool
	}{
		"at the end": {sessions: []*script{{finish: func(s *script) { s.results <- Result{Kind: Partial, Text: "one"}; s.results <- Result{Kind: Over} }, fails: closed}}, want: "one"},
		"in the middle": {sessions: []*script{
			{hear: func(s *script, sent int) {
				if sent == second {
					s.results <- Result{Kind: Partial, Text: "one"}
					s.results <- Result{Kind: Over}
				}
			}, fails: closed},
			{finish: func(s *script) { s.results <- Result{Kind: Over, Text: "two"} }},
		}, want: "one two"},
		"at the end, after another session": {sessions: []*script{
			{hear: func(s *script, sent int) {
				if sent == second {
					s.results <- Result{Kind: Sentence, Text: "one"}
					s.results <- Result{Kind: Over}
				}
			}, fails: closed},
			{finish: func(s *script) { s.results <- Result{Kind: Over} }, fails: closed},
		}, want: "one"},
		"at the end, without a word": {sessions: []*script{{finish: func(s *script) { s.results <- Result{Kind: Over} }, fails: closed}}, fails: true},
		"with a complaint": {sessions: []*script{{finish: func(s *script) { s.results <- Result{Kind: Partial, Text: "one"}; s.results <- Result{Kind: Over} },
			fails: transport.Refused(providers.Unavailable, "close 1011", "oh")}}, fails: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			for _, s := range test.sessions {
				s.results, s.closed = make(chan Result, 64), make(chan struct{})
			}
			r, _ := recognizer(Options{}, test.sessions...)
			if _, final, err := recognize(t, r, 2*second); (err != nil) != test.fails || final != test.want {
				t.Errorf("%s: final %q, error %v", name, final, err)
			}
		})
	}
}

// TestServiceThatEndsAtOnce: one that ends each session before a word is not dialled again and again.
func TestServiceThatEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := slices.Collect(func(yield func(*script) bool) {
			for range renewal {
				s := newScript()
				s.results <- Result{Kind: Over}
				yield(s)
			}
		})
		r, dials := recognizer(Options{}, all...)
		if _, _, err := recognize(t, r, 10*second); err == nil || *dials != mostOff {
			t.Errorf("error %v after %d dials", err, *dials)
		}
	})
}
