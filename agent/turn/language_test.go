package turn

import (
	"testing"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/prompts"
)

// TestTurnLanguage: a turn is in the language that was heard, else in the one that the script tells, else in the device's.
func TestTurnLanguage(t *testing.T) {
	for _, c := range []struct {
		device, learned, heard text.Lang
		words                  string
		want, next             text.Lang // of the turn; what the recogniser is told for the next one
	}{
		{"en", "", "", "what time is it", "en", "en"},
		{"en", "", "", "现在几点", "zh", "zh"},
		{"", "", "", "26", "zh", "zh"},
		{"en", "zh", "", "26", "zh", "zh"},
		{"en", "", "de", "wie spät ist es", "de", "de"},
		{"en", "", "ja", "現在何時", "ja", "ja"},
		{"en", "", "", "今何時ですか", "ja", "ja"},
		{"ja", "", "", "現在何時", "ja", "ja"},
		{"ja", "", "", "OK", "ja", "ja"},
		{"ja", "", "en", "what time is it", "en", "ja"},
		{"de-AT", "", "de", "wie spät ist es", "de-AT", "de-AT"},
		{"de-AT", "en", "", "wie spät ist es", "de-AT", "de-AT"},
		{"zh-TW", "", "zh", "現在幾點", "zh-TW", "zh-TW"},
	} {
		r := rules()
		r.DeviceLang = c.device
		s := in(wire.Auto, None)
		s.Learned.Lang = c.learned
		s.Said[0].Role, s.Said[0].Spoken, s.Said[0].Ended = Awaited, epoch, epoch
		s.Ear = Reading
		next, _ := r.Next(s, Seen{Now: epoch}, Transcript{ID: 1, Attempt: 1, Text: Text{Status: Final, Words: c.words, Lang: c.heard}})
		if got := next.Reply.Request.Lang; got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		if got := (&step{Rules: r, State: next}).hearing(); got != c.next {
			t.Errorf("%+v: the recogniser is told %q next", c, got)
		}
	}
}

// TestDraftOfAnotherLanguage: the words are the same, but the model was asked to answer in another language.
func TestDraftOfAnotherLanguage(t *testing.T) {
	for heard, adopted := range map[text.Lang]bool{"": true, "en": true, "de": false} {
		s := in(wire.Auto, Speculative)
		s.Said[0].Role, s.Said[0].Spoken, s.Said[0].Ended, s.Said[0].Text = Awaited, epoch, epoch, Text{}
		s.Ear = Reading
		_, did := rules().Next(s, Seen{Now: epoch}, Transcript{ID: 1, Attempt: 1, Text: Text{Status: Final, Words: "hello there", Lang: heard}})
		found := false
		for _, e := range did {
			_, is := e.(Adopt)
			found = found || is
		}
		if found != adopted {
			t.Errorf("heard %q: adopted %v", heard, found)
		}
	}
}

// TestRejectedLanguage: what no recogniser knows is told by its name where the program knows it.
func TestRejectedLanguage(t *testing.T) {
	for device, want := range map[text.Lang]string{"zh": prompts.NoChineseASR, "en": prompts.NoChineseASR, "zh-TW": prompts.NoChineseASR, "ja": prompts.NoASR, "fr": prompts.NoASR} {
		r := rules()
		r.DeviceLang, r.NoChinese = device, true
		s := in(wire.Auto, None)
		s.Said[0].Role, s.Said[0].Spoken, s.Said[0].Ended = Awaited, epoch, epoch
		s.Ear = Reading
		next, _ := r.Next(s, Seen{Now: epoch.Add(time.Hour)}, Transcript{ID: 1, Attempt: 1, Text: Text{Status: Rejected, Words: "knee how"}})
		if got := next.Reply.Request; got.Phrase != want || got.Lang != device {
			t.Errorf("%s: %s in %s", device, got.Phrase, got.Lang)
		}
	}
}

// TestMusicStopWords: music is stopped by the words of the language, too.
func TestMusicStopWords(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	r := rules()
	r.DeviceLang, r.Texts = "ja", set
	for words, stops := range map[string]bool{"音楽を止めて": true, "stop": true, "音楽をかけて": false} {
		s := in(wire.Auto, None)
		s.Said[0].Role, s.Said[0].Spoken, s.Said[0].Ended = Awaited, epoch, epoch
		s.Ear = Reading
		next, _ := r.Next(s, Seen{Now: epoch, Song: true}, Transcript{ID: 1, Attempt: 1, Text: Text{Status: Final, Words: words}})
		if got := next.Reply.Request.Answer == prompts.OK; got != stops {
			t.Errorf("%s: %v", words, got)
		}
	}
}
