package memories_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/memories"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// service is a memory service in memory, with what is wrong with it. What it learns is what was said.
type service struct {
	mu     sync.Mutex
	facts  map[memory.Owner][]memory.Fact
	asked  []string // what it was asked for, by name
	last   int
	away   error         // of everything
	refuse string        // a talk that it does not take
	stall  time.Duration // before it answers
	late   time.Duration // until it has worked off a talk
	keeps  bool          // what it is to delete
}

var errAway = &providers.Error{Provider: "fake", Op: "ask", Kind: providers.Unavailable, Err: errors.New("it is away")}

func (s *service) Name() string { return "fake" }

// ask begins a request, with the lock held.
func (s *service) ask(ctx context.Context, name string) error {
	s.mu.Lock()
	s.asked = append(s.asked, name)
	stall, err := s.stall, s.away
	s.mu.Unlock()
	select {
	case <-time.After(stall):
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	return err
}

func (s *service) add(o memory.Owner, f memory.Fact) string {
	s.last++
	f.ID = fmt.Sprint(s.last)
	s.facts[o] = append(s.facts[o], f)
	return f.ID
}

func (s *service) Facts(ctx context.Context, o memory.Owner) ([]memory.Fact, error) {
	err := s.ask(ctx, "facts")
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.facts[o]), nil
}

func (s *service) Search(ctx context.Context, o memory.Owner, words string, _ int) (ids []string, err error) {
	err = s.ask(ctx, "search")
	defer s.mu.Unlock()
	for _, f := range s.facts[o] {
		if strings.Contains(f.Text, "drink") && strings.Contains(words, "thirsty") {
			ids = append(ids, f.ID)
		}
	}
	return ids, err
}

func (s *service) Learn(ctx context.Context, o memory.Owner, talk string, said []memory.Said) (bool, error) {
	err := s.ask(ctx, "learn "+talk)
	defer s.mu.Unlock()
	if err != nil {
		return false, err
	}
	if talk == s.refuse {
		return true, &providers.Error{Provider: "fake", Op: "learn", Kind: providers.BadRequest, Err: errors.New("no")}
	}
	work := func() {
		for _, t := range said {
			s.add(o, memory.Fact{Text: t.Heard, Talk: talk, At: t.At, Sure: 90})
		}
	}
	if s.late == 0 {
		work()
		return true, nil
	}
	time.AfterFunc(s.late, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		work()
	})
	return false, nil
}

func (s *service) Remember(ctx context.Context, o memory.Owner, f memory.Fact) (string, error) {
	err := s.ask(ctx, "remember")
	defer s.mu.Unlock()
	if err != nil {
		return "", err
	}
	return s.add(o, f), nil
}

func (s *service) Edit(ctx context.Context, o memory.Owner, id, words string) error {
	err := s.ask(ctx, "edit")
	defer s.mu.Unlock()
	for i := range s.facts[o] {
		if s.facts[o][i].ID == id && err == nil {
			s.facts[o][i].Text = words
			return nil
		}
	}
	return cmp.Or(err, memory.ErrUnknown)
}

func (s *service) delete(ctx context.Context, o memory.Owner, name string, meant func(memory.Fact) bool) error {
	err := s.ask(ctx, name)
	defer s.mu.Unlock()
	if err == nil && s.keeps {
		err = errAway
	}
	if err == nil {
		s.facts[o] = slices.DeleteFunc(s.facts[o], meant)
	}
	return err
}

func (s *service) Forget(ctx context.Context, o memory.Owner, f memory.Fact) error {
	return s.delete(ctx, o, "forget", func(known memory.Fact) bool { return known.ID == f.ID })
}

func (s *service) ForgetTalk(ctx context.Context, o memory.Owner, talk string) error {
	return s.delete(ctx, o, "forget talk", func(known memory.Fact) bool { return known.Talk == talk })
}

func (s *service) ForgetAll(ctx context.Context, o memory.Owner) error {
	return s.delete(ctx, o, "forget all", func(memory.Fact) bool { return true })
}

// knows are the texts that it keeps, of everybody.
func (s *service) knows() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for o, facts := range s.facts {
		for _, f := range facts {
			all = append(all, o.Device+" "+o.Agent+" "+f.Text)
		}
	}
	slices.Sort(all)
	return all
}

func (s *service) change(f func(s *service)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// count says how often it was asked for something.
func (s *service) count(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		if strings.HasPrefix(asked, name) {
			n++
		}
	}
	return n
}

// house is a book of memories with a service, above a real store.
type house struct {
	*memory.Book

	t    *testing.T
	fake *service
	kept *store.Store
	at   *hosted.Store
	seq  map[string]int
	ends []func()
}

var anna, ben = memory.Owner{Device: "anna", Agent: "home"}, memory.Owner{Device: "ben", Agent: "home"}

// housed runs a test with a house, in fake time.
func housed(t *testing.T, f func(t *testing.T, h *house)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		kept, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close()
		for _, o := range []memory.Owner{anna, ben} {
			id := store.Identity{ID: o.Device, Address: o.Device, Client: o.Device, State: store.DevicePaired, FirstAt: time.Now()}
			if err := kept.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{id}}); err != nil {
				t.Fatal(err)
			}
		}
		h := &house{t: t, fake: &service{facts: map[memory.Owner][]memory.Fact{}}, kept: kept, seq: map[string]int{}}
		h.open()
		defer h.close()
		f(t, h)
	})
}

// open starts the book and what is below it.
func (h *house) open() {
	desk := memories.New(h.kept.Memories, func(memory.Run) *int { return nil })
	h.at = hosted.New(h.t.Context(), hosted.Options{Desk: desk, Service: h.fake, Changed: func(o memory.Owner) { h.Reread(o) }})
	h.Book = memory.New(h.t.Context(), memory.Options{Store: h.at, NewID: store.NewID, Find: h.at.Finder(), Elsewhere: true, Zone: func(memory.Owner) *time.Location { return time.UTC }})
	if err := h.at.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.Book.Start()
}

func (h *house) close() {
	h.at.Close()
	h.Book.Close()
}

// say writes turns of a talk. forgets: it is one in which something was forgotten, with its reply.
func (h *house) say(o memory.Owner, talk string, words ...string) {
	h.t.Helper()
	for _, heard := range words {
		h.seq[talk]++
		e := &store.Entry{
			Conversation: store.Conversation{ID: talk, DeviceID: o.Device, BeganAt: time.Now()}, Agent: o.Agent,
			Turn: store.Turn{ID: store.NewID(), Seq: h.seq[talk], At: time.Now(), Kind: "user", Cause: "done", Heard: heard, Said: "OK."},
		}
		if reply, ok := strings.CutPrefix(heard, "forget: "); ok {
			e.Turn.Said = "I have forgotten that " + reply + "."
			e.Calls = []store.Call{{ID: store.NewID(), TurnID: e.Turn.ID, Name: "forget_memory", At: time.Now()}}
		}
		h.kept.Log.Put(e)
	}
	if err := h.kept.Log.Flush(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	h.Left()
}

// later lets time pass.
func later(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// told is what a conversation with an owner is told.
func (h *house) told(o memory.Owner) []string {
	h.t.Helper()
	r := h.Open(o)
	defer r.Close()
	synctest.Wait()
	k, err := r.Known(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	var all []string
	for _, f := range k.Facts {
		all = append(all, f.Text)
	}
	slices.Sort(all)
	return all
}

func (h *house) same(what string, got []string, want ...string) {
	h.t.Helper()
	if !slices.Equal(got, want) {
		h.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestTalksAreGiven: a service is given talks that are over, once, of its owner, without what was forgotten in them; the facts that come of them
// are told in the next conversation, and the summary is still made here.
func TestTalksAreGiven(t *testing.T) {
	housed(t, func(t *testing.T, h *house) {
		h.say(anna, "t1", "I drink tea", "my cat is Tom", "forget: my cat is Tom", "")
		h.say(ben, "t2", "I live in Ulm")
		later(time.Minute)
		if n := h.fake.count("learn"); n != 0 {
			t.Errorf("%d talks were given while they went on", n)
		}
		later(20 * time.Minute)
		h.same("the service", h.fake.knows(), "anna home I drink tea", "ben home I live in Ulm")
		h.same("anna", h.told(anna), "I drink tea")
		h.same("ben", h.told(ben), "I live in Ulm")
		h.same("another agent", h.told(memory.Owner{Device: "anna", Agent: "work"}))
		h.say(anna, "t1", "I like snow")
		later(20 * time.Minute)
		if n := h.fake.count("learn t1"); n != 2 {
			t.Errorf("given %d times", n)
		}
		h.same("anna", h.told(anna), "I drink tea", "I like snow")
		r := h.Open(anna)
		defer r.Close()
		if k, _ := r.Known(t.Context()); !strings.Contains(k.Summary.Text, "I drink tea") {
			t.Errorf("the summary is %q", k.Summary.Text)
		}
	})
}

// TestAwayService: nobody waits for a service that is away or slow, and nothing is lost by that: what it is to learn it is given when it is back.
func TestAwayService(t *testing.T) {
	housed(t, func(t *testing.T, h *house) {
		h.fake.change(func(s *service) { s.away, s.stall = errAway, 3*time.Second })
		h.say(anna, "t1", "I drink tea")
		began := time.Now()
		r := h.Open(anna)
		r.Notes(t.Context(), "am I thirsty", true)
		if took := time.Since(began); took > 0 {
			t.Errorf("a turn waited %v", took)
		}
		r.Close()
		if _, _, err := h.Remember(t.Context(), memory.Fact{Owner: anna, Text: "the key is under the mat"}); !errors.Is(err, errAway) {
			t.Errorf("remembered: %v", err)
		}
		later(time.Hour)
		n := h.fake.count("learn")
		if n < 3 || n > 8 {
			t.Errorf("it was given the talk %d times in an hour", n)
		}
		h.close()
		h.fake.change(func(s *service) { s.away, s.stall = nil, 0 })
		h.open() // the program starts anew
		later(time.Minute)
		h.same("anna", h.told(anna), "I drink tea")
	})
}

// TestForgetting: what is to be forgotten is told to nobody from then on, is gone at the service when that is confirmed, and is asked for until
// then, also after a start.
func TestForgetting(t *testing.T) {
	housed(t, func(t *testing.T, h *house) {
		f, known, err := h.Remember(t.Context(), memory.Fact{Owner: anna, Text: "the key is under the mat"})
		if err != nil || known || f.ID != "fake:1" {
			t.Fatalf("%+v %v %v", f, known, err)
		}
		if _, known, err = h.Remember(t.Context(), memory.Fact{Owner: anna, Text: "The key is under the mat."}); err != nil || !known {
			t.Errorf("once more: %v %v", known, err)
		}
		g, _, _ := h.Remember(t.Context(), memory.Fact{Owner: anna, Text: "the bin is green"})
		_, _, _ = h.Remember(t.Context(), memory.Fact{Owner: ben, Text: "the bin is blue"})
		if err := h.Edit(t.Context(), anna, g.ID, "the bin is red"); err != nil {
			t.Error(err)
		}
		if err := h.Forget(t.Context(), anna, f.ID); err != nil {
			t.Error(err)
		}
		h.same("the service", h.fake.knows(), "anna home the bin is red", "ben home the bin is blue")
		h.same("anna", h.told(anna), "the bin is red")

		h.fake.change(func(s *service) { s.keeps = true })
		if err := h.Forget(t.Context(), anna, g.ID); !errors.Is(err, memory.ErrLater) {
			t.Errorf("forgotten by a service that keeps it: %v", err)
		}
		h.same("anna", h.told(anna))
		h.close()
		h.open()
		later(time.Second)
		h.same("anna, after a start", h.told(anna))
		h.fake.change(func(s *service) { s.keeps = false })
		later(2 * time.Minute)
		h.same("the service", h.fake.knows(), "ben home the bin is blue")
	})
}

// TestForgetEverything: everything of a device goes, of all its agents and of nobody else; while the service does not do it, nothing is kept that it
// would delete later, and what comes of a talk that it is working off goes, too.
func TestForgetEverything(t *testing.T) {
	housed(t, func(t *testing.T, h *house) {
		work := memory.Owner{Device: "anna", Agent: "work"}
		for _, o := range []memory.Owner{anna, work, ben} {
			if _, _, err := h.Remember(t.Context(), memory.Fact{Owner: o, Text: "it is warm"}); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := h.ForgetAll(t.Context(), memory.Owner{Device: "anna"}); n != 2 || err != nil {
			t.Errorf("forgot %d, %v", n, err)
		}
		h.same("the service", h.fake.knows(), "ben home it is warm")

		_, _, _ = h.Remember(t.Context(), memory.Fact{Owner: anna, Text: "it is cold"})
		h.fake.change(func(s *service) { s.away = errAway })
		if n, err := h.ForgetAll(t.Context(), memory.Owner{Device: "anna"}); n != 1 || !errors.Is(err, memory.ErrLater) {
			t.Errorf("forgot %d, %v", n, err)
		}
		h.same("anna", h.told(anna))
		if _, _, err := h.Remember(t.Context(), memory.Fact{Owner: anna, Text: "it is new"}); err == nil {
			t.Error("something is kept that will be deleted")
		}
		h.fake.change(func(s *service) { s.away = nil })
		if _, _, err := h.Remember(t.Context(), memory.Fact{Owner: anna, Text: "it is new"}); err != nil {
			t.Error(err)
		}
		later(time.Hour)
		h.same("the service", h.fake.knows(), "anna home it is new", "ben home it is warm")

		h.fake.change(func(s *service) { s.late = time.Minute })
		h.say(anna, "t1", "I drink tea")
		later(10*time.Minute + 30*time.Second) // it was given, and is being worked off
		if n := h.fake.count("learn t1"); n != 1 {
			t.Fatalf("given %d times", n)
		}
		if _, err := h.ForgetAll(t.Context(), memory.Owner{Device: "anna"}); !errors.Is(err, memory.ErrLater) {
			t.Errorf("a service that works off a talk has forgotten all: %v", err)
		}
		later(10 * time.Minute)
		h.same("the service", h.fake.knows(), "ben home it is warm")
		h.same("anna", h.told(anna))
	})
}

// TestDeletedTalks: what was learned from a talk goes with it.
func TestDeletedTalks(t *testing.T) {
	housed(t, func(t *testing.T, h *house) {
		h.say(anna, "t1", "I drink tea")
		h.say(anna, "t2", "I like snow")
		later(20 * time.Minute)
		if err := h.kept.DeleteTalk(t.Context(), "t1"); err != nil {
			t.Fatal(err)
		}
		h.at.Wake()
		later(time.Second)
		h.same("the service", h.fake.knows(), "anna home I like snow")
		h.same("anna", h.told(anna), "I like snow")
		if _, err := h.kept.Forget(t.Context(), "anna"); err != nil {
			t.Fatal(err)
		}
		if err := h.at.Forgotten(t.Context(), "anna"); err != nil {
			t.Error(err)
		}
		h.same("the service, of a device that was forgotten", h.fake.knows())
	})
}

// TestRefusedTalk: a talk that a service will not take keeps no other one from it, and is let go at last.
func TestRefusedTalk(t *testing.T) {
	housed(t, func(t *testing.T, h *house) {
		h.fake.change(func(s *service) { s.refuse = "t1" })
		h.say(anna, "t1", "I drink tea")
		h.say(ben, "t2", "I live in Ulm")
		later(11 * time.Minute)
		h.same("the service", h.fake.knows(), "ben home I live in Ulm")
		later(24 * time.Hour)
		if n := h.fake.count("learn t1"); n != 5 {
			t.Errorf("offered %d times", n)
		}
	})
}

// TestFoundByTheService: a service finds facts by their meaning, within what a turn waits, or for the next turn.
func TestFoundByTheService(t *testing.T) {
	housed(t, func(t *testing.T, h *house) {
		for i := range 80 {
			_, _, _ = h.Remember(t.Context(), memory.Fact{Owner: anna, Text: fmt.Sprintf("word%d is a long sentence about the number %d", i, i)})
		}
		h.fake.change(func(s *service) {
			s.add(anna, memory.Fact{Text: "what they drink is cocoa", At: time.Now().Add(-time.Hour)})
		})
		later(2 * time.Minute)
		h.told(anna)
		r := h.Open(anna)
		defer r.Close()
		later(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if n := r.Notes(ctx, "I am thirsty", true); !strings.Contains(n.Found, "cocoa") {
			t.Errorf("found %q", n.Found)
		}
		h.fake.change(func(s *service) { s.stall = time.Second })
		began := time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		n := r.Notes(ctx, "I am thirsty", true)
		if took := time.Since(began); took > 30*time.Millisecond || strings.Contains(n.Found, "cocoa") {
			t.Errorf("a turn waited %v and is told %q", took, n.Found)
		}
	})
}
