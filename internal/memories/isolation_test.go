package memories_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/memories"
	"xiaozhi/memory"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// TestNobodyElse: 50 devices with two agents each, whose facts differ in little, ask at the same time: each is given facts of its own, and never
// one of another device or agent, by words, by meaning or as a whole; nobody can change or forget what is another's.
func TestNobodyElse(t *testing.T) {
	const devices, each = 50, 12
	mark := regexp.MustCompile(`house \d\d (?:home|work)`)
	synctest.Test(t, func(t *testing.T) {
		kept, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		desk := memories.New(kept.Memories, func(memory.Run) *int { return nil })
		embedder := &providertest.Embedder{}
		book := memory.New(t.Context(), memory.Options{Store: desk, Vectors: desk, Embedder: func() providers.Embedder { return embedder }, NewID: store.NewID})
		defer book.Close()

		var owners []memory.Owner
		var rows []store.Identity
		for d := range devices {
			id := fmt.Sprintf("24:6f:28:aa:20:%02x", d)
			rows = append(rows, store.Identity{ID: id, Address: id, Client: id, State: store.DevicePaired, FirstAt: time.Now()})
			owners = append(owners, memory.Owner{Device: id, Agent: "home"}, memory.Owner{Device: id, Agent: "work"})
		}
		if err := kept.Devices.Commit(t.Context(), store.DeviceChange{Save: rows}); err != nil {
			t.Fatal(err)
		}
		own := func(i int) string { return fmt.Sprintf("house %02d %s", i/2, owners[i].Agent) }
		for i, o := range owners {
			c := memory.Change{Owner: o, Summary: &memory.Summary{Text: "They spoke in " + own(i) + ".", At: time.Now()}}
			for n := range each {
				c.Add = append(c.Add, memory.Fact{
					ID: store.NewID(), Owner: o, At: time.Now(), Sure: 90,
					Text: fmt.Sprintf("The spare key of locker number %d of %s hangs behind the %d. wooden board on the left hand side of the corridor in the cellar.", n, own(i), n+1),
				})
			}
			if err := desk.Write(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		book.Start()
		defer synctest.Wait()

		check := func(i int, what, words string, least int) {
			marks := mark.FindAllString(words, -1)
			for _, m := range marks {
				if m != own(i) {
					t.Errorf("%s is given what is of %s (%s)", own(i), m, what)
				}
			}
			if len(marks) < least {
				t.Errorf("%s is given %d facts, want %d (%s)", own(i), len(marks), least, what)
			}
		}
		var asking sync.WaitGroup
		for i, o := range owners {
			asking.Go(func() {
				r := book.Open(o)
				defer r.Close()
				other := own((i + 2) % len(owners))
				for _, words := range []string{"where is the spare key of locker number 13", "what do you know of " + other} {
					n := r.Notes(t.Context(), words, true)
					check(i, words, n.Always+n.Found, 9)
					found, err := r.Find(t.Context(), words, 40)
					if err != nil {
						t.Error(err)
					}
					for _, f := range found {
						check(i, words, f.Text, 1)
					}
				}
				k, err := r.Known(t.Context())
				if err != nil || len(k.Facts) != each {
					t.Errorf("%s: %d facts, %v", own(i), len(k.Facts), err)
				}
				for _, f := range k.Facts {
					check(i, "all", f.Text+k.Summary.Text, 2)
				}
			})
		}
		asking.Wait()

		victim, thief := owners[0], owners[1] // of the same device
		k, _ := desk.Load(t.Context(), victim)
		for _, o := range []memory.Owner{thief, owners[2]} {
			_ = book.Forget(t.Context(), o, k.Facts[0].ID)
			_ = book.Edit(t.Context(), o, k.Facts[1].ID, "stolen")
		}
		if n, err := book.ForgetAll(t.Context(), owners[2]); n != each || err != nil {
			t.Errorf("forgot %d, %v", n, err)
		}
		for i, o := range owners {
			want := each
			if i == 2 {
				want = 0
			}
			if k, err := desk.Load(t.Context(), o); err != nil || len(k.Facts) != want {
				t.Errorf("%s has %d facts, %v", own(i), len(k.Facts), err)
			} else if want > 0 {
				check(i, "afterwards", k.Facts[0].Text, 1)
			}
		}
	})
}
