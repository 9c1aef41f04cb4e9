package agent

import (
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/tools/txtar"
)

// The one line of a turn names who did the work.
func TestTurnLineNamesProviders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readScene(txtar.Parse([]byte("-- asr --\nhello\n-- llm --\ntext Hi.\nend\n-- script --\nlisten manual\nvoice 300ms\nstop\nuntil tts stop\n")))
		s.run(t)
		for _, want := range []string{"asr=script-asr", "llm=script-llm", "tts=tone-tts", "cause=done", "heard_chars=3", "steps=1", "underruns=0"} {
			if n := countLines(s.log.String(), "msg=turn", want); n != 1 {
				t.Errorf("%d lines about the turn say %q:\n%s", n, want, &s.log)
			}
		}
	})
}

// countLines is how many lines of text hold both words.
func countLines(text, a, b string) int {
	n := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, a+" ") && strings.Contains(line, b) {
			n++
		}
	}
	return n
}
