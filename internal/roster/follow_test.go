package roster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/roster"
)

// Two servers have the same records: what one changes, the other uses within seconds, and asks nothing else of the records
// while nothing changes.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records := &counted{Memory: roster.NewMemory()}
		here, _ := open(t, roster.Records(records))
		there, u := open(t, roster.Records(records))
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); there.Follow(ctx) }()
		do := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
		}
		set := func(r *roster.Roster, doc string) error {
			_, err := r.Set(ctx, anna, "pirate", []byte(doc))
			return err
		}
		do(set(here, `{"voice":"alto"}`))
		if a, _ := there.Get("pirate"); a.Rev != 1 || u.now["pirate"] != `{"voice":"alto"}` {
			t.Errorf("made elsewhere: %+v, used is %q", a, u.now)
		}
		do(here.Assign(ctx, "d", "file"))
		if g := there.Assigned("d"); g.Agent != "file" || u.given == 0 {
			t.Errorf("given elsewhere: %+v", g)
		}
		do(set(there, `{"voice":"bass"}`))
		if err := set(here, `{"voice":"tenor"}`); !refused(err, roster.Conflict) {
			t.Errorf("what somebody else has changed is overwritten: %v", err)
		}
		do(here.Refresh(ctx))
		do(here.Delete(ctx, "pirate"))
		if _, ok := there.Get("pirate"); ok || u.now["pirate"] != "" {
			t.Errorf("deleted elsewhere: %v", u.now)
		}
		staged, loads := u.staged, records.loads
		time.Sleep(time.Hour)
		synctest.Wait()
		if u.staged != staged || records.loads != loads {
			t.Errorf("nothing has changed, and it was read %d times and made ready %d times", records.loads-loads, u.staged-staged)
		}
		stop()
		<-over
	})
}

// counted counts how often everything is read.
type counted struct {
	*roster.Memory
	loads int
}

func (c *counted) Load(ctx context.Context) (roster.Kept, error) {
	c.loads++
	return c.Memory.Load(ctx)
}

func refused(err error, kind roster.Kind) bool {
	refusal, ok := errors.AsType[*roster.RefusalError](err)
	return ok && refusal.Kind == kind
}

// pausing records do something else before an assignment, or all that is kept, is answered.
type pausing struct {
	*roster.Memory
	meanwhile func()
}

func (p *pausing) Assign(ctx context.Context, device, name string) (int, error) {
	times, err := p.Memory.Assign(ctx, device, name)
	p.meanwhile()
	return times, err
}

func (p *pausing) Load(ctx context.Context) (roster.Kept, error) {
	kept, err := p.Memory.Load(ctx)
	p.meanwhile()
	return kept, err
}

// A device that is forgotten while it is given an agent, or while others' changes are read, has none when it comes again.
func TestForgottenMeanwhile(t *testing.T) {
	records := &pausing{roster.NewMemory(), func() {}}
	r, _ := open(t, roster.Records(records))
	other, _ := open(t, roster.Records(records.Memory))
	records.meanwhile = func() { r.Forget("d") }
	if err := r.Assign(t.Context(), "d", "file"); err != nil || r.Assigned("d") != (roster.Given{}) {
		t.Errorf("%+v, %v", r.Assigned("d"), err)
	}
	if err := errors.Join(other.Assign(t.Context(), "d", "file"), other.Assign(t.Context(), "e", "file"), r.Refresh(t.Context())); err != nil {
		t.Fatal(err)
	}
	if r.Assigned("d") != (roster.Given{}) || r.Assigned("e").Agent != "file" {
		t.Errorf("%+v, %+v", r.Assigned("d"), r.Assigned("e"))
	}
}

// An agent that comes back after it was deleted is still whose it was.
func TestOwnerComesBack(t *testing.T) {
	r, _ := open(t, roster.NewMemory())
	by := roster.Author{Name: "anna", ID: "u1"}
	if _, err := r.Set(t.Context(), by, "pirate", []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := r.Delete(t.Context(), "pirate"); err != nil {
		t.Fatal(err)
	}
	if a, err := r.Restore(t.Context(), roster.Author{Name: "owner"}, "pirate", 1); err != nil || a.Owner != "u1" {
		t.Errorf("%+v, %v", a, err)
	}
}
