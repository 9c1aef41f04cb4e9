package lockout

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		if !g.Listens("192.0.2.1:1", "laptop") {
			t.Error("not listened to")
		}
		for range MaxGuesses {
			if !g.Listens("192.0.2.1:2", "") {
				t.Error("locked out too early")
			}
			g.Wrong("192.0.2.1:3")
			g.Wrong("[2001:db8::1]:1")
		}
		for _, c := range []struct {
			remote, right string
			want          bool
		}{
			{"192.0.2.1:4", "", false},
			{"192.0.2.1:4", "phone", false}, // right, but it may be a guess
			{"192.0.2.1:4", "laptop", true},
			{"192.0.2.2:4", "", true},
			{"[2001:db8::ffff]:4", "", false}, // the same network
			{"[2001:db8:0:1::1]:4", "", true},
		} {
			if got := g.Listens(c.remote, c.right); got != c.want {
				t.Errorf("%s %q: %v", c.remote, c.right, got)
			}
		}
		time.Sleep(Window + time.Second)
		if !g.Listens("192.0.2.1:4", "phone") {
			t.Error("locked out for ever")
		}
	})
}

// Many addresses neither fill the memory nor make an address that has just guessed a new one.
func TestGuessesBounds(t *testing.T) {
	g := New()
	for i := range 3 * maxKept {
		g.Wrong(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
		g.Listens(fmt.Sprintf("11.%d.%d.%d:1", i>>16, i>>8&255, i&255), "a")
		if i%(maxKept/2) == 0 {
			for range MaxGuesses {
				g.Wrong("192.0.2.1:1")
			}
		}
	}
	if g.wrong.Len() > maxKept || g.known.Len() > maxKept {
		t.Errorf("%d addresses, %d visitors", g.wrong.Len(), g.known.Len())
	}
	if g.Listens("192.0.2.1:2", "a") || !g.Listens("192.0.2.2:1", "a") {
		t.Error("an address that guesses is listened to, or another is not")
	}
}

func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written []string
		write := func(msg string, args ...any) { written = append(written, fmt.Sprint(msg, args)) }
		l := NewLines()
		for range 1000 {
			l.Log(write, "refused")
		}
		if len(written) != maxLines {
			t.Errorf("%d lines at once", len(written))
		}
		time.Sleep(lineEvery)
		l.Log(write, "refused")
		if len(written) != maxLines+1 || written[maxLines] != "refused[suppressed=980]" {
			t.Errorf("%q", written[maxLines:])
		}
	})
}
