// Package hostedtest holds every memory service to the contract of [hosted.Service], over real sockets.
package hostedtest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/providers"
)

// Fake is the fake of a service: its server, and what that keeps.
type Fake interface {
	URL() string
	Fail(f servicetest.Fault)
	Behave(t servicetest.Trouble)
	All() []servicetest.Item
	Requests() []servicetest.Request
}

// Case is a service with its fake.
type Case struct {
	Fake Fake
	New  func(a hosted.Account) (hosted.Service, error)
	// Talks: it knows from which talk it has learned something. Users: what it tells says whose it is.
	Talks, Users bool
}

var (
	anna   = memory.Owner{Device: "24:6f:28:aa:10:01", Agent: "home"}
	work   = memory.Owner{Device: anna.Device, Agent: "work"}
	nobody = memory.Owner{Device: "24:6f:28:aa:10:02", Agent: "home"}
	at     = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
)

// TestService holds a service to the contract.
func TestService(t *testing.T, c Case) {
	t.Helper()
	s, err := c.New(account(c.Fake, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("keeps, finds and deletes", func(t *testing.T) { c.whole(t, s) })
	t.Run("tells nobody what is known of others", func(t *testing.T) { c.foreign(t, s) })
	t.Run("does not say that something is gone which is not", func(t *testing.T) { c.keeps(t, s) })
	t.Run("says what is wrong", func(t *testing.T) { c.faults(t) })
}

func account(f Fake, limit time.Duration) hosted.Account {
	return hosted.Account{Name: "mine", BaseURL: f.URL(), Key: servicetest.Key, Proxy: "none", Timeout: limit}
}

// texts lists the facts of an owner.
func texts(t *testing.T, s hosted.Service, o memory.Owner) (all []string) {
	t.Helper()
	facts, err := s.Facts(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range facts {
		all = append(all, f.Text)
	}
	slices.Sort(all)
	return all
}

// only fails unless there are as many texts as parts, and each part is in one.
func only(t *testing.T, got []string, parts ...string) {
	t.Helper()
	if len(got) != len(parts) {
		t.Errorf("%q, want %q", got, parts)
		return
	}
	for _, part := range parts {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, part) }) {
			t.Errorf("%q, want %q", got, parts)
		}
	}
}

func (c *Case) whole(t *testing.T, s hosted.Service) {
	ctx := t.Context()
	only(t, texts(t, s, anna)) // it has never heard of her
	said := []memory.Said{
		{Seq: 1, At: at, Agent: "home", Heard: "I drink green tea. What time is it?", Reply: "It is nine."}, {Seq: 2, At: at, Agent: "home", Heard: "My cat is called Tom.", Reply: "Noted."},
	}
	if settled, err := s.Learn(ctx, anna, "talk-1", said); err != nil || !settled {
		t.Fatalf("a talk: %v %v", settled, err)
	}
	only(t, texts(t, s, anna), "I drink green tea", "My cat is called Tom")
	only(t, texts(t, s, work))
	only(t, texts(t, s, nobody))
	facts, _ := s.Facts(ctx, anna)
	for _, f := range facts {
		if f.At.Year() != 2026 || f.Sure == 0 || f.ID == "" || f.Told || c.Talks != (f.Talk == "talk-1") {
			t.Errorf("%+v", f)
		}
	}

	id, err := s.Remember(ctx, anna, memory.Fact{Text: "The key is under the mat."})
	other, failed := s.Remember(ctx, work, memory.Fact{Text: "The key is in the safe."})
	if err = errors.Join(err, failed); err != nil || id == "" || id == other {
		t.Fatalf("remembered: %q %q %v", id, other, err)
	}
	if facts, _ = s.Facts(ctx, anna); !slices.ContainsFunc(facts, func(f memory.Fact) bool { return f.ID == id && f.Text == "The key is under the mat." && f.Told }) {
		t.Errorf("what it was told: %+v", facts)
	}
	if finder, ok := s.(hosted.Searcher); ok {
		if ids, err := finder.Search(ctx, anna, "where is the key", 5); err != nil || len(ids) == 0 || ids[0] != id {
			t.Errorf("found %v, %v", ids, err)
		}
		if ids, err := finder.Search(ctx, anna, " ", 5); err != nil || len(ids) > 0 {
			t.Errorf("no words: found %v, %v", ids, err)
		}
	}
	if err := s.Edit(ctx, anna, id, "The key is in the shed."); err != nil {
		t.Error(err)
	}
	if err := s.Edit(ctx, anna, "00000000-0000-4000-8000-000000000000", "x"); !errors.Is(err, memory.ErrUnknown) {
		t.Errorf("what is not there was edited: %v", err)
	}
	only(t, texts(t, s, anna), "I drink green tea", "The key is in the shed.", "My cat is called Tom")

	for range 2 { // once more is no error
		if err := s.Forget(ctx, anna, memory.Fact{ID: id}); err != nil {
			t.Error(err)
		}
	}
	only(t, texts(t, s, anna), "I drink green tea", "My cat is called Tom")
	only(t, texts(t, s, work), "The key is in the safe.")
	if err := s.ForgetTalk(ctx, anna, "talk-1"); c.Talks && err != nil || !c.Talks && !errors.Is(err, hosted.ErrNoTalks) {
		t.Error(err)
	}
	if c.Talks {
		only(t, texts(t, s, anna))
	}
	for _, o := range []memory.Owner{anna, anna, nobody} {
		if err := s.ForgetAll(ctx, o); err != nil {
			t.Error(err)
		}
	}
	only(t, texts(t, s, anna))
	only(t, texts(t, s, work), "The key is in the safe.")
	if all := c.Fake.All(); len(all) != 1 {
		t.Errorf("it still keeps %+v", all)
	}
	if _, err := s.Remember(ctx, anna, memory.Fact{Text: "I am back."}); err != nil {
		t.Errorf("after all was forgotten: %v", err)
	}
	_, _ = s.Remember(ctx, nobody, memory.Fact{Text: "I am nobody."})
}

// foreign: a service that tells what it knows of others, too.
func (c *Case) foreign(t *testing.T, s hosted.Service) {
	if !c.Users {
		t.Skip("it does not say whose something is")
	}
	c.Fake.Behave(servicetest.Trouble{Foreign: true})
	defer c.Fake.Behave(servicetest.Trouble{})
	only(t, texts(t, s, anna), "I am back.")
	if finder, ok := s.(hosted.Searcher); ok {
		if ids, err := finder.Search(t.Context(), anna, "I am nobody", 5); err != nil || len(ids) > 1 {
			t.Errorf("found %v, %v", ids, err)
		}
	}
}

// keeps: a service that says that it has deleted something, and has not.
func (c *Case) keeps(t *testing.T, s hosted.Service) {
	c.Fake.Behave(servicetest.Trouble{Keeps: true})
	defer c.Fake.Behave(servicetest.Trouble{})
	facts, err := s.Facts(t.Context(), anna)
	if err != nil || len(facts) != 1 {
		t.Fatalf("%+v %v", facts, err)
	}
	if err := s.Forget(t.Context(), anna, facts[0]); err == nil {
		t.Error("a fact is said to be gone")
	}
	if err := s.ForgetAll(t.Context(), anna); err == nil {
		t.Error("all is said to be gone")
	}
}

// faults: each is an error that names the service, comes in time and holds no key; what changes something is asked for once.
func (c *Case) faults(t *testing.T) {
	s, err := c.New(account(c.Fake, 100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"facts":    func() error { _, err := s.Facts(t.Context(), anna); return err },
		"remember": func() error { _, err := s.Remember(t.Context(), anna, memory.Fact{Text: "It rains."}); return err },
		"learn": func() error {
			_, err := s.Learn(t.Context(), anna, "t", []memory.Said{{Seq: 1, Heard: "It rains."}})
			return err
		},
		"forget": func() error {
			return s.Forget(t.Context(), anna, memory.Fact{ID: "9a1d4b60-0000-4000-8000-000000000001", Text: "x"})
		},
		"all": func() error { return s.ForgetAll(t.Context(), anna) },
	}
	for _, f := range []struct {
		fault servicetest.Fault
		kind  providers.Kind
	}{
		{servicetest.WrongKey, providers.Unauthorized}, {servicetest.RateLimited, providers.RateLimited}, {servicetest.Silent, providers.Unavailable},
		{servicetest.Cut, providers.Unavailable}, {servicetest.Broken, providers.Unavailable}, {servicetest.Huge, providers.Unavailable},
	} {
		c.Fake.Fail(f.fault)
		for name, call := range calls {
			if (f.fault == servicetest.Silent || f.fault == servicetest.Huge) && name != "facts" { // all wait and read in the same way
				continue
			}
			began := len(c.Fake.Requests())
			err := call()
			failed, ok := errors.AsType[*providers.Error](err)
			if !ok || failed.Provider != "mine" || failed.Kind != f.kind && f.fault != servicetest.Huge || strings.Contains(err.Error(), servicetest.Key) {
				t.Errorf("%v, %s: %v", f.fault, name, err)
			}
			for _, r := range c.Fake.Requests()[began:] {
				if strings.Contains(r.Path, servicetest.Key) {
					t.Errorf("the key stands in an address: %s", r.Path)
				}
			}
		}
	}
	c.Fake.Fail(servicetest.None)
	c.Fake.Behave(servicetest.Trouble{Fails: true})
	defer c.Fake.Behave(servicetest.Trouble{})
	for _, name := range []string{"remember", "all"} {
		if err := calls[name](); err == nil {
			t.Errorf("%s was refused, and is no error", name)
		}
	}
}
