package routine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestEvents: a routine begins when what it waits for happens, with what has happened.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doer{}
		b := opened(t, &kept{all: map[string]Routine{}}, d)
		add(t, b, Definition{Name: "lamp", To: Here, On: &On{Tool: "self.lamp.*", Device: "Hall"}, Say: "x"})
		add(t, b, Definition{Name: "broken", To: "all", On: &On{Tool: "external:shop/*", Failed: true, Contains: "Empty"}, Say: "x"})
		add(t, b, Definition{Name: "door", To: "all", On: &On{Server: "home", Resource: "home://door"}, Say: "x"})
		off, _ := add(t, b, Definition{Name: "off", To: "all", On: &On{Tool: "*"}, Say: "x"})
		off.Disabled = true
		if _, err := b.Replace(t.Context(), off.ID, off.Definition); err != nil {
			t.Fatal(err)
		}
		if got := b.Resources(); len(got) != 1 || got["home"][0] != "home://door" {
			t.Error(got)
		}
		for _, e := range []Event{
			{Tool: "self.lamp.on", Source: "device", Device: "24:6f", Name: "hall", Text: " done "},
			{Tool: "self.lamp.on", Source: "device", Device: "24:6f", Name: "kitchen"},
			{Tool: "self.lamp.on", Source: "device", Device: "24:6f", Name: "hall", Failed: true},
			{Tool: "buy", Source: "external:shop", Failed: true, Text: "the shelf is empty"},
			{Tool: "buy", Source: "external:shop", Failed: true, Text: "closed"},
			{Server: "home", Resource: "home://door", Text: "open\xff" + strings.Repeat("x", 3000)},
			{Server: "elsewhere", Resource: "home://door"},
		} {
			b.Happened(e)
			synctest.Wait()
		}
		want := "lamp 01 00:00 done; broken 01 00:00 the shelf is empty; door 01 00:00 open\uFFFD" + strings.Repeat("x", maxEvent-5)
		if got := d.taken(); got != want {
			t.Errorf("it did\n%s, want\n%s", got, want)
		}
	})
}

// TestStorm: of a storm of events only so many begin a routine, in an hour and at once, and all routines together are bounded; the
// rest of the program goes on.
func TestStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doer{}
		b := opened(t, &kept{all: map[string]Routine{}}, d)
		one, _ := add(t, b, Definition{Name: "one", To: "all", On: &On{Tool: "one"}, Say: "x", Limit: 6})
		for range 3600 {
			b.Happened(Event{Tool: "one"})
			time.Sleep(time.Second)
		}
		if n := len(strings.Split(d.taken(), "; ")); n < 6 || n > 6+burst {
			t.Errorf("it was begun %d times in an hour", n)
		}
		if r, _ := b.Find(one.ID); r.Outcome != Limited {
			t.Errorf("it is %+v", r.State)
		}
		for i := range 100 {
			add(t, b, Definition{Name: fmt.Sprint(i), To: "all", On: &On{Tool: "many"}, Say: "x", Limit: maxLimit})
		}
		for range 60 {
			b.Happened(Event{Tool: "many"})
			time.Sleep(time.Minute)
		}
		if n := len(strings.Split(d.taken(), "; ")); n > houseLimit+houseBurst {
			t.Errorf("100 routines were begun %d times in an hour", n)
		}
		release := make(chan struct{})
		time.Sleep(time.Hour)
		d.will(func(Routine, Run) error { <-release; return nil })
		for range 10 {
			b.Happened(Event{Tool: "many"})
		}
		synctest.Wait()
		b.mu.Lock()
		busy := b.busy
		b.mu.Unlock()
		if busy > maxBusy {
			t.Errorf("%d run at once", busy)
		}
		close(release)
	})
}

// TestLoop: a routine that has a device run the tool which begins it ends after a few rounds, however long its rounds take and
// whatever its limits are.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *Book
		d := &doer{}
		d.do = func(_ Routine, run Run) error { // its device is told at its next pause, and runs the tool
			time.AfterFunc(30*time.Second, func() {
				b.Told("hall", run.Key, false)
				time.AfterFunc(10*time.Second, func() {
					b.Told("hall", run.Key, true)
					time.AfterFunc(20*time.Second, func() { b.Happened(Event{Tool: "lamp", Device: "hall"}) })
				})
			})
			return nil
		}
		b = opened(t, &kept{all: map[string]Routine{}}, d)
		add(t, b, Definition{Name: "loop", To: Here, On: &On{Tool: "lamp"}, Prompt: "the lamp", Limit: maxLimit})
		b.Happened(Event{Tool: "lamp", Device: "hall"})
		time.Sleep(time.Hour)
		if n := len(strings.Split(d.taken(), "; ")); n != maxDepth+1 {
			t.Errorf("it ran %d times", n)
		}
		b.Happened(Event{Tool: "lamp", Device: "hall"}) // by somebody, later
		time.Sleep(time.Second)
		if got := d.taken(); !strings.HasPrefix(got, "loop") {
			t.Errorf("it did %q", got)
		}
		b.depths.sweep(time.Now().Add(time.Hour))
	})
}

// TestHook: who has the token begins a routine, and nobody else; one that is begun too often says so.
func TestHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doer{}
		b := opened(t, &kept{all: map[string]Routine{}}, d)
		door, token := add(t, b, Definition{Name: "door", To: "all", On: &On{Hook: true, Contains: "open"}, Say: "x"})
		day, none := add(t, b, Definition{Name: "day", To: "all", When: "every day at 7", Say: "x"})
		if len(token) < 32 || none != "" || strings.Contains(fmt.Sprintf("%+v", door), token) {
			t.Errorf("the tokens are %q and %q", token, none)
		}
		for _, c := range []struct {
			id, token string
			want      error
		}{{door.ID, "", ErrNone}, {door.ID, token + "x", ErrNone}, {"nobody", token, ErrNone}, {day.ID, token, ErrNone}, {day.ID, "", ErrNone}, {door.ID, token, nil}} {
			if err := b.Hook(c.id, c.token, `{"state":"Open"}`); !errors.Is(err, c.want) {
				t.Errorf("%s with %q: %v", c.id, c.token, err)
			}
		}
		if err := b.Hook(door.ID, token, "shut"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := d.taken(); got != `door 01 00:00 {"state":"Open"}` {
			t.Errorf("it did %s", got)
		}
		var err error
		for range burst + 1 {
			err = errors.Join(err, b.Hook(door.ID, token, "open"))
		}
		if !errors.Is(err, ErrOften) {
			t.Error(err)
		}
		door.On = &On{Tool: "x"}
		if _, err := b.Replace(t.Context(), door.ID, door.Definition); err == nil {
			t.Error("a hook was taken from a routine")
		}
		door.Disabled, door.On = true, &On{Hook: true}
		if _, err := b.Replace(t.Context(), door.ID, door.Definition); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := b.Hook(door.ID, token, "open"); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
	})
}

// TestBegin: a person begins a routine by hand, whatever it waits for.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doer{}
		b := opened(t, &kept{all: map[string]Routine{}}, d)
		day, _ := add(t, b, Definition{Name: "day", To: "all", When: "every day at 7", Say: "x"})
		if err := errors.Join(b.Begin(day.ID)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := b.Begin("nobody"); !errors.Is(err, ErrNone) {
			t.Error(err)
		}
		if r, _ := b.Find(day.ID); d.taken() != "day 01 00:00" || r.Due.Hour() != 7 || r.Runs != 1 {
			t.Errorf("it is %+v", r.State)
		}
	})
}
