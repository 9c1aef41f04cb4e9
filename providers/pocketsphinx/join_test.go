package pocketsphinx

import (
	"strings"
	"testing"
)

func TestJoin(t *testing.T) {
	for said, want := range map[string]string{
		"":                               "",
		"quit voice mail at any time":    "quit voicemail at any time",
		"good bye":                       "goodbye",
		"a good buy":                     "a good buy",
		"the open source p b x you have": "the open source pbx you have",
		"turn on the t v and the p c":    "turn on the tv and the pc",
		"a u s b cable":                  "a usb cable",
		"the u s and i":                  "the u s and i",
		"plan b a man":                   "plan b a man",
		"x":                              "x",
		"voice mail voice mail voice":    "voicemail voicemail voice",
	} {
		if got := strings.Join(join(strings.Fields(said)), " "); got != want {
			t.Errorf("%q became %q, want %q", said, got, want)
		}
	}
}
