package turn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/wire"
)

// sounds runs events on a state, and lists the effects by name.
func sounds(r *Rules, s State, seen Seen, events ...Event) (State, string) {
	var out []string
	for _, e := range events {
		var effects []Effect
		s, effects = r.Next(s, seen, e)
		for _, f := range effects {
			name := strings.TrimPrefix(fmt.Sprintf("%T", f), "turn.")
			if b, ok := f.(Begin); ok {
				name = fmt.Sprintf("Begin(sound %v, %q, %s)", b.Request.Sound, b.Request.Words, b.Request.Phrase)
			}
			out = append(out, name)
		}
	}
	return s, strings.Join(out, " ")
}

// TestSoundIsAnswered: what is only sound is answered as it is, unless its words decide.
func TestSoundIsAnswered(t *testing.T) {
	ended := SpeechEnded{ID: 1, Epoch: 1, Attempt: 1, Spoken: epoch, Ended: epoch}
	unread := Transcript{ID: 1, Attempt: 1, Text: Text{Status: Unread}}
	read := func(status Status, words string) Event {
		return Transcript{ID: 1, Attempt: 1, Text: Text{Status: status, Words: words}}
	}
	asked := func(s State) State {
		s.Consent = Consent{ID: 3, Action: "open the door", Until: epoch.Add(consentTime)}
		return s
	}
	over := func(s State, long bool) State {
		s.Said = slices.Clone(s.Said)
		s.Said[0].Long = long
		return s
	}
	quiet, loud := in(wire.Auto, None), in(wire.Realtime, Paused)
	for _, c := range []struct {
		name   string
		state  State
		reads  bool
		events []Event
		want   string
	}{
		{"an utterance", quiet, true, []Event{ended, unread}, `Begin(sound true, "", )`},
		{"an echo", quiet, true, []Event{SpeechEnded{ID: 1, Epoch: 1, Attempt: 1, Echo: true, Spoken: epoch, Ended: epoch}, unread}, "Ignored Release"},
		{"yes to a question", asked(quiet), true, []Event{ended, unread, read(Final, "yes")}, `Read Begin(sound false, "yes", )`},
		{"something else after a question", asked(quiet), true, []Event{ended, unread, read(Final, "tell me a joke")}, `Read Begin(sound true, "tell me a joke", )`},
		{"nobody reads the answer to a question", asked(quiet), false, []Event{ended, unread}, `Begin(sound true, "", )`},
		{"the recogniser fails after a question", asked(quiet), true, []Event{ended, unread, read(Failed, "")}, `Read Begin(sound true, "", )`},
		{"a cough over a reply", over(loud, true), true, []Event{ended, unread, read(Final, "")}, "Read Resume Release"},
		{"a request over a reply", over(loud, true), true, []Event{ended, unread, read(Final, "tell me a joke")}, "Read Watch Cut"},
		{"voice over a reply that nobody reads", over(loud, true), false, []Event{ended, unread}, "Watch Cut"},
		{"a click over a reply that nobody reads", over(loud, false), false, []Event{ended, unread}, "Resume Release"},
	} {
		r := rules()
		r.Reads = c.reads
		s, got := sounds(r, c.state, Seen{Now: epoch}, c.events...)
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if strings.HasSuffix(got, "Cut") {
			if _, got = sounds(r, s, Seen{Now: epoch}, Finished{Turn: 1}); !strings.Contains(got, "Begin(sound true") {
				t.Errorf("%s: then %s", c.name, got)
			}
		}
	}
}

// TestSoundBesideWords: words of a part need those of the rest.
func TestSoundBesideWords(t *testing.T) {
	s := in(wire.Auto, None)
	s.Ear = Reading
	s.Said = []Utterance{
		{ID: 1, Epoch: 1, Attempt: 1, Role: Awaited, Sound: true, Text: Text{Status: Unread}},
		{ID: 2, Epoch: 1, Attempt: 1, Role: Awaited},
	}
	joke := Transcript{ID: 2, Attempt: 1, Text: Text{Status: Final, Words: "a joke"}}
	r := rules()
	if _, got := sounds(r, s, Seen{Now: epoch}, joke); got != `Release Release Begin(sound false, "a joke", )` {
		t.Errorf("nobody reads: %s", got)
	}
	r.Reads = true
	tell := Transcript{ID: 1, Attempt: 1, Text: Text{Status: Final, Words: "tell me"}}
	if _, got := sounds(r, s, Seen{Now: epoch}, joke, tell); got != `Release Read Begin(sound false, "tell me a joke", )` {
		t.Errorf("read: %s", got)
	}
	tell.Text.Status = Failed
	if _, got := sounds(r, s, Seen{Now: epoch}, joke, tell); got != `Release Read Release Begin(sound false, "a joke", )` {
		t.Errorf("not read: %s", got)
	}
}

// TestSoundTeachesTheLanguage: the words that were understood by who answered count for the next phrase.
func TestSoundTeachesTheLanguage(t *testing.T) {
	s := in(wire.Auto, Speaking)
	s.Said, s.Reply.Over, s.Reply.Request = nil, 0, Request{Sound: true, Lang: "en"}
	if s, _ = sounds(rules(), s, Seen{Now: epoch}, Finished{Turn: 1, Words: "今天天气怎么样"}); s.Learned.Lang != "zh" {
		t.Errorf("learned %q", s.Learned.Lang)
	}
}
