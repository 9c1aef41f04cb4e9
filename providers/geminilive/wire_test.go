package geminilive

import "testing"

// TestGivenUpWordsAreDropped shows that what is still understood of a turn that was given
// up is not taken for words of the next one.
func TestGivenUpWordsAreDropped(t *testing.T) {
	w := &wire{open: true}
	if err := w.Cancel(); err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct{ raw, want string }{
		{`{"serverContent":{"inputTranscription":{"text":"old"}}}`, ""},
		{`{"serverContent":{"interrupted":true}}`, ""},
		{`{"serverContent":{"turnComplete":true}}`, ""},
		{`{"serverContent":{"inputTranscription":{"text":"new"}}}`, "new"},
	} {
		e, err := w.take([]byte(m.raw))
		if err != nil || e.More != m.want || e.Done {
			t.Errorf("%s: understood %q, done %v, error %v, want %q and no end", m.raw, e.More, e.Done, err, m.want)
		}
	}
}
