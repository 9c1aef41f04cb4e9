package think

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestUserWordsAreAwaited: words that a service tells in pieces are shown whole, and whole ones at once.
func TestUserWordsAreAwaited(t *testing.T) {
	type piece struct {
		after   time.Duration
		words   string
		hearing bool
	}
	for name, tt := range map[string]struct {
		pieces []piece
		want   string
		took   time.Duration
		read   bool
	}{
		"whole":        {[]piece{{0, "turn on the light", false}}, "turn on the light", 0, false},
		"in pieces":    {[]piece{{10 * time.Millisecond, "turn", true}, {30 * time.Millisecond, "turn on", true}, {30 * time.Millisecond, "turn on it", false}}, "turn on it", 70 * time.Millisecond, false},
		"never whole":  {[]piece{{10 * time.Millisecond, "turn", true}, {20 * time.Millisecond, "turn on", true}}, "turn on", 30*time.Millisecond + wordsSettle, false},
		"one for ever": {[]piece{{0, "turn", true}}, "turn", wordsSettle, false},
		"none":         {nil, "", wordsWithin, false},
		"late":         {[]piece{{190 * time.Millisecond, "turn", true}}, "turn", wordsWithin, false},
		"read":         {[]piece{{0, "turn on the light", false}}, "", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := userWords{read: tt.read, known: make(chan struct{}, 1)}
				begun := time.Now()
				go func() {
					for _, p := range tt.pieces {
						time.Sleep(p.after)
						w.take(p.words, p.hearing)
					}
				}()
				synctest.Wait()
				w.await(t.Context())
				if took := time.Since(begun); w.words != tt.want || took != tt.took {
					t.Errorf("%q after %v, want %q after %v", w.words, took, tt.want, tt.took)
				}
			})
		})
	}
}
