package roster_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"xiaozhi/internal/roster"
	"xiaozhi/internal/roster/recordstest"
)

func TestMemory(t *testing.T) {
	m := roster.NewMemory()
	recordstest.Run(t, [2]string{"a", "b"}, "u", func(*testing.T) roster.Records { return m })
}

// users take all agents but those whose settings hold the word bad. One agent is in the settings.
type users struct {
	staged, dropped, given int
	now                    map[string]string
}

func (u *users) Stage(_ context.Context, docs map[string]string, changed string) (apply, drop func(), err error) {
	if strings.Contains(docs[changed], "bad") {
		return nil, nil, errors.New("it is bad / 不好")
	}
	u.staged++
	docs = maps.Clone(docs)
	return func() { u.now = docs }, func() { u.dropped++ }, nil
}

func (u *users) Names() []string {
	return slices.Sorted(maps.Keys(map[string]bool{"file": true, "prompt": true, "pirate": u.now["pirate"] != ""}))
}

func (u *users) Agent(name string) roster.Seen {
	if name == "file" {
		return roster.Seen{Place: "config.yaml:7", Doc: []byte(`{"voice":"tenor"}`)}
	}
	return roster.Seen{}
}

func (u *users) Given() { u.given++ }

func (u *users) Pinned(device string) string {
	if device == "pinned" {
		return "config.yaml:9"
	}
	return ""
}

func open(t *testing.T, records roster.Records) (*roster.Roster, *users) {
	t.Helper()
	u := &users{}
	r, err := roster.Open(t.Context(), roster.Options{Records: records, Users: u})
	if err != nil {
		t.Fatal(err)
	}
	return r, u
}

var anna = roster.Author{Name: "anna"}

// Each change is a revision, and is used when it is kept.
func TestChanges(t *testing.T) {
	m := roster.NewMemory()
	r, u := open(t, m)
	ctx := t.Context()
	for i, step := range []struct {
		do  func() (roster.Revision, error)
		rev int
		doc string
	}{
		{func() (roster.Revision, error) {
			return r.Set(ctx, anna, "pirate", []byte(`{"voice": "alto", "llm":["b","a"]}`))
		}, 1, `{"llm":["b","a"],"voice":"alto"}`},
		{func() (roster.Revision, error) {
			return r.Set(ctx, anna, "pirate", []byte(`{"llm":["b","a"],"voice": "alto"}`))
		}, 1, `{"llm":["b","a"],"voice":"alto"}`},
		{func() (roster.Revision, error) {
			return r.Patch(ctx, anna, "pirate", []byte(`{"llm":null,"tools":{"deny":["x"],"allow":["y"]}}`))
		}, 2, `{"tools":{"allow":["y"],"deny":["x"]},"voice":"alto"}`},
		{func() (roster.Revision, error) {
			return r.Patch(ctx, anna, "pirate", []byte(`{"tools":{"deny":null}}`))
		}, 3, `{"tools":{"allow":["y"]},"voice":"alto"}`},
		{func() (roster.Revision, error) { return r.Restore(ctx, anna, "pirate", 1) }, 4, `{"llm":["b","a"],"voice":"alto"}`},
		{func() (roster.Revision, error) { _ = r.Delete(ctx, "pirate"); return r.Restore(ctx, anna, "pirate", 3) }, 5, `{"tools":{"allow":["y"]},"voice":"alto"}`},
		{func() (roster.Revision, error) {
			return r.Patch(ctx, anna, "pirate", []byte(`{"voice":7,"tools":{"allow":[1.50]}}`))
		}, 6, `{"tools":{"allow":["1.50"]},"voice":"7"}`},
	} {
		got, err := step.do()
		if err != nil || got.Rev != step.rev || got.Doc != step.doc || got.By != "anna" || u.now["pirate"] != step.doc {
			t.Errorf("%d: %+v, %v, used is %q", i, got, err, u.now["pirate"])
		}
	}
	again, _ := open(t, m)
	if list := again.List(); len(list) != 1 || list[0].Rev != 6 {
		t.Errorf("after a start there is %+v", list)
	}
}

// failing are records that keep nothing.
type failing struct{ roster.Records }

func (failing) Save(context.Context, roster.Revision) error { return errors.New("disk full") }
func (failing) Delete(context.Context, string) error        { return errors.New("disk full") }
func (failing) Assign(context.Context, string, string) (int, error) {
	return 0, roster.ErrNone
}

// Of what is refused nothing has changed, and one sentence in both languages says why.
func TestRefusals(t *testing.T) {
	m := roster.NewMemory()
	r, u := open(t, m)
	ctx := t.Context()
	if _, err := r.Set(ctx, anna, "pirate", []byte(`{"voice":"alto"}`)); err != nil {
		t.Fatal(err)
	}
	broken, _ := open(t, failing{m})
	set := func(r *roster.Roster, name, doc string) error {
		_, err := r.Set(ctx, anna, name, []byte(doc))
		return err
	}
	restore := func(name string, rev int) error { _, err := r.Restore(ctx, anna, name, rev); return err }
	patch := func(doc string) error { _, err := r.Patch(ctx, anna, "pirate", []byte(doc)); return err }
	staged := u.staged
	for i, w := range []struct {
		err  error
		kind roster.Kind
		says string
	}{
		{set(r, "pirate", `{"voice":"bad"}`), roster.Invalid, "it is bad"},
		{set(r, "pirate", `[1]`), roster.Invalid, "JSON"},
		{set(r, "pirate", `{} {}`), roster.Invalid, "JSON"},
		{set(r, "pirate", `{"voice":"`+strings.Repeat("x", 260<<10)+`"}`), roster.Invalid, "262144"},
		{patch(`null`), roster.Invalid, "JSON"},
		{set(r, "file", `{}`), roster.Conflict, "config.yaml:7"},
		{set(r, "a/b", `{}`), roster.Invalid, "64"},
		{set(r, "..", `{}`), roster.Invalid, "64"},
		{set(r, ".", `{}`), roster.Invalid, "64"},
		{set(r, " a", `{}`), roster.Invalid, "64"},
		{set(r, "", `{}`), roster.Invalid, "64"},
		{restore("pirate", 7), roster.Missing, "1"},
		{restore("pirat", 1), roster.Missing, "pirate"},
		{r.Delete(ctx, "pirat"), roster.Missing, "did you mean pirate?"},
		{r.Delete(ctx, "prompt"), roster.Missing, "no agent prompt that was made here"},
		{r.Delete(ctx, "file"), roster.Conflict, "config.yaml:7"},
		{r.Assign(ctx, "d", "pirat"), roster.Missing, "did you mean pirate?"},
		{r.Assign(ctx, "pinned", "pirate"), roster.Conflict, "config.yaml:9"},
		{set(broken, "new", `{}`), roster.Unwritten, "disk full"},
		{broken.Delete(ctx, "pirate"), roster.Unwritten, "disk full"},
		{broken.Assign(ctx, "d", ""), roster.Missing, "d"},
	} {
		refusal, ok := errors.AsType[*roster.RefusalError](w.err)
		if !ok || refusal.Kind != w.kind || !strings.Contains(w.err.Error(), w.says) || !strings.Contains(w.err.Error(), " / ") || strings.Contains(w.err.Error(), "\n") {
			t.Errorf("%d: %v, want %q", i, w.err, w.says)
		}
	}
	if a, ok := r.Get("pirate"); !ok || a.Rev != 1 || u.staged != staged || len(broken.List()) != 1 || r.Assigned("d") != (roster.Given{}) {
		t.Errorf("something has changed: %+v", a)
	}
}

// What was made ready for a change that cannot be kept is given up.
func TestUnwrittenIsDropped(t *testing.T) {
	r, u := open(t, failing{roster.NewMemory()})
	if _, err := r.Set(t.Context(), anna, "new", []byte(`{}`)); err == nil || u.dropped != 1 || u.now != nil {
		t.Error(err, u.dropped, u.now)
	}
}

// A device has the agent that it was given, over a start too, until it is forgotten.
func TestAssign(t *testing.T) {
	m := roster.NewMemory()
	r, _ := open(t, m)
	if err := r.Assign(t.Context(), "d", "file"); err != nil {
		t.Fatal(err)
	}
	again, _ := open(t, m)
	if got := again.Devices(); again.Assigned("d") != (roster.Given{Agent: "file", Times: 1}) || len(got) != 1 || !slices.Equal(got["file"], []string{"d"}) {
		t.Error(again.Assigned("d"), got)
	}
	if again.Forget("d"); again.Assigned("d") != (roster.Given{}) {
		t.Error("it is not forgotten")
	}
	if err := r.Assign(t.Context(), "d", ""); err != nil || r.Assigned("d") != (roster.Given{Times: 2}) || len(r.Devices()) != 0 {
		t.Error(err)
	}
}

// Many change at the same time: each change is one revision, none is lost.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := roster.NewMemory()
		r, u := open(t, m)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if _, err := r.Patch(t.Context(), anna, "pirate", fmt.Appendf(nil, `{"k%02d":%d}`, i, i)); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() { r.Assigned("d"); r.List(); r.Docs() })
		}
		all.Wait()
		a, _ := r.Get("pirate")
		if past, err := r.Revisions(t.Context(), "pirate"); err != nil || a.Rev != 20 || len(past) != 20 || strings.Count(a.Doc, "k") != 20 || u.now["pirate"] != a.Doc {
			t.Errorf("%d revisions, the last %+v, %v", len(past), a, err)
		}
	})
}
