package routine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/text"
)

// kept is a store that can be copied, as a program that is killed leaves it.
type kept struct {
	mu   sync.Mutex
	all  map[string]Routine
	fail error
}

func (k *kept) Load(context.Context) (all []Routine, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.all {
		all = append(all, r)
	}
	return all, k.fail
}

func (k *kept) Put(_ context.Context, r Routine) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.fail == nil {
		k.all[r.ID] = r
	}
	return k.fail
}

func (k *kept) Delete(_ context.Context, id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, id)
	return k.fail
}

func (k *kept) failing(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fail = err
}

func (k *kept) copied() *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &kept{all: maps.Clone(k.all)}
}

// doer notes what is done.
type doer struct {
	mu   sync.Mutex
	runs []string // name, key, event
	keys map[string]int
	do   func(r Routine, run Run) error
}

func (d *doer) Do(_ context.Context, r Routine, run Run) error {
	d.mu.Lock()
	d.runs = append(d.runs, strings.TrimSpace(r.Name+" "+time.Now().Format("02 15:04")+" "+run.Event))
	if d.keys == nil {
		d.keys = map[string]int{}
	}
	d.keys[run.Key]++
	do := d.do
	d.mu.Unlock()
	if do != nil {
		return do(r, run)
	}
	return nil
}

// will has it do something else from now on.
func (d *doer) will(do func(r Routine, run Run) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.do = do
}

func (d *doer) taken() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.runs = nil }()
	return strings.Join(d.runs, "; ")
}

// opened starts a book with what is kept, which ends with the test.
func opened(t *testing.T, in *kept, d Doer, change ...func(*Options)) *Book {
	t.Helper()
	n := 0
	o := Options{Store: in, Doer: d, NewID: func() string { n++; return fmt.Sprintf("r%d-%d", n, time.Now().Unix()) }}
	for _, c := range change {
		c(&o)
	}
	b := New(t.Context(), o)
	t.Cleanup(b.Close)
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func add(t *testing.T, b *Book, d Definition) (Routine, string) {
	t.Helper()
	r, token, err := b.Add(t.Context(), Routine{Source: ByAPI, Definition: d})
	if err != nil {
		t.Fatal(err)
	}
	return r, token
}

// TestTimes: what comes again is done at each of its times, what comes once is forgotten afterwards, and what is disabled waits.
func TestTimes(t *testing.T) { // it begins on Saturday, January 1, 2000, at midnight UTC
	synctest.Test(t, func(t *testing.T) {
		d := &doer{}
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		b := opened(t, &kept{all: map[string]Routine{}}, d, func(o *Options) {
			o.Zone = func(to string) *time.Location { return map[string]*time.Location{"far": berlin}[to] }
		})
		add(t, b, Definition{Name: "day", To: "hall", When: "every morning at 7", Prompt: "the weather"})
		add(t, b, Definition{Name: "far", To: "far", When: "每天早上七点", Say: "早"})
		add(t, b, Definition{Name: "week", To: "hall", Repeat: "FREQ=WEEKLY;BYDAY=SU", When: "2000-01-01T08:30:00Z", Play: "a song"})
		add(t, b, Definition{Name: "once", To: "hall", When: "tomorrow at 9", Say: "now"})
		off, _ := add(t, b, Definition{Name: "off", To: "hall", When: "every 6 hours", Say: "now", Disabled: true})
		time.Sleep(48 * time.Hour)
		want := "far 01 06:00; day 01 07:00; far 02 06:00; day 02 07:00; week 02 08:30; once 02 09:00"
		if got := d.taken(); got != want {
			t.Errorf("it did\n%s, want\n%s", got, want)
		}
		if all := b.List(); len(all) != 4 || all[0].Name != "far" || all[0].Runs != 2 || all[0].Outcome != Done {
			t.Errorf("it lists %+v", all)
		}
		off.Disabled = false
		if _, err := b.Replace(t.Context(), off.ID, off.Definition); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7*time.Hour + time.Second)
		if got := d.taken(); got != "off 03 06:00; far 03 06:00; day 03 07:00" && got != "far 03 06:00; off 03 06:00; day 03 07:00" {
			t.Errorf("it did %s", got)
		}
	})
}

// TestRestart: what came due while the server was away is done once, if it is not too late, and counted else; nothing is done
// twice where the program is killed at its time.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name, back, want string
		missed           int
		outcome          Outcome
	}{
		{"in time", "03 08:59", "day 03 08:59", 1, Done},
		{"too late", "03 09:01", "", 2, Missed},
		{"before", "02 06:00", "day 02 07:00", 0, Done},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := &kept{all: map[string]Routine{}}
				b := opened(t, first, &doer{})
				add(t, b, Definition{Name: "day", To: "hall", When: "every morning at 7", Say: "hi"})
				time.Sleep(8 * time.Hour)
				b.Close()
				at, _ := time.Parse("2006-01-02 15:04", "2000-01-"+c.back)
				time.Sleep(time.Until(at))
				d := &doer{}
				b = opened(t, first.copied(), d)
				time.Sleep(90 * time.Minute)
				if got := d.taken(); got != c.want {
					t.Errorf("it did %q, want %q", got, c.want)
				}
				if r := b.List()[0]; r.Missed != c.missed || r.Outcome != c.outcome || !r.Due.After(time.Now()) {
					t.Errorf("it is %+v", r.State)
				}
			})
		})
	}
}

// TestKilledAtItsTime: a program that is killed while devices are told begins again with the same key; of a tool it is never known
// whether it ran, so it does not run again.
func TestKilledAtItsTime(t *testing.T) {
	for _, tool := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			first := &kept{all: map[string]Routine{}}
			var left *kept
			d := &doer{do: func(Routine, Run) error { left = first.copied(); return nil }}
			b := opened(t, first, d)
			def := Definition{Name: "day", To: "hall", When: "every morning at 7", Say: "hi"}
			if tool {
				def.Say, def.Tool = "", &Tool{Name: "self.lamp.on"}
			}
			add(t, b, def)
			time.Sleep(7*time.Hour + time.Second)
			b.Close()
			again := &doer{keys: maps.Clone(d.keys)}
			b = opened(t, left, again)
			time.Sleep(time.Minute)
			got := again.taken()
			if tool && got != "" || !tool && (got != "day 01 07:00" || len(again.keys) != 1) {
				t.Errorf("a tool: %v: it did %q with the keys %v", tool, got, again.keys)
			}
		})
	}
}

// TestUnkept: a tool does not run where it cannot be kept that it does, and nothing is confirmed that is not kept.
func TestUnkept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, d := &kept{all: map[string]Routine{}}, &doer{}
		b := opened(t, in, d)
		add(t, b, Definition{Name: "day", To: "hall", When: "every morning at 7", Tool: &Tool{Name: "x"}})
		full := errors.New("the disk is full")
		in.failing(full)
		time.Sleep(8 * time.Hour)
		if got := d.taken(); got != "" {
			t.Errorf("it did %s", got)
		}
		if _, _, err := b.Add(t.Context(), Routine{Source: ByAPI, Definition: Definition{To: "hall", When: "every day at 8", Say: "hi"}}); !errors.Is(err, full) || len(b.List()) != 1 {
			t.Errorf("%v, %d", err, len(b.List()))
		}
	})
}

// TestCrash: a routine that crashes costs that run.
func TestCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doer{do: func(Routine, Run) error { panic("oh") }}
		b := opened(t, &kept{all: map[string]Routine{}}, d)
		add(t, b, Definition{Name: "day", To: "hall", When: "every morning at 7", Say: "hi"})
		time.Sleep(32 * time.Hour)
		if r := b.List()[0]; r.Runs != 2 || r.Outcome != Failed || r.Why != "it crashed" {
			t.Errorf("it is %+v", r.State)
		}
	})
}

// TestBounds: there are only so many routines, and only so many by voice on a device; those of a device go with it.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := opened(t, &kept{all: map[string]Routine{}}, &doer{})
		set := func(device string) error {
			_, _, err := b.Add(t.Context(), Routine{Source: ByVoice, Device: device, Definition: Definition{To: device, On: &On{Hook: true}, Say: "hi"}})
			return err
		}
		for range maxDevice {
			if err := set("hall"); err != nil {
				t.Fatal(err)
			}
		}
		if err := set("hall"); !errors.Is(err, ErrMany) {
			t.Error(err)
		}
		for len(b.List()) < maxAll {
			add(t, b, Definition{To: "hall", On: &On{Hook: true}, Say: "hi"})
		}
		if err := set("kitchen"); !errors.Is(err, ErrMany) {
			t.Error(err)
		}
		if err := b.Forget(t.Context(), "hall"); err != nil || len(b.List()) != maxAll-maxDevice {
			t.Error(err, len(b.List()))
		}
	})
}

// TestMistakes: what is wrong with a definition is said with the key at which it stands, in both languages.
func TestMistakes(t *testing.T) {
	hook, tool := &On{Hook: true}, &On{Tool: "self.*"}
	long := strings.Repeat("x", maxWords+1)
	for key, all := range map[string][]Definition{
		"to":             {{When: "every day at 7", Say: "x"}, {To: "here", When: "every day at 7", Say: "x"}, {To: "here", On: hook, Say: "x"}},
		"when":           {{To: "all", Say: "x"}, {To: "all", When: "soonish", Say: "x"}, {To: "all", When: "every 2 minutes", Say: "x"}, {To: "all", When: "every day at 7", On: hook, Say: "x"}, {To: "all", When: "1999-01-01T00:00:00Z", Say: "x"}},
		"repeat":         {{To: "all", Repeat: "FREQ=SECONDLY", Say: "x"}, {To: "all", When: "every day at 7", Repeat: "FREQ=DAILY", Say: "x"}},
		"prompt":         {{To: "all", When: "every day at 7"}, {To: "all", When: "every day at 7", Say: "x", Play: "y"}, {To: "all", When: "every day at 7", Prompt: long}},
		"say":            {{To: "all", When: "every day at 7", Say: long}},
		"tool":           {{To: "all", When: "every day at 7", Say: "x", Tool: &Tool{Name: "t"}}},
		"tool.name":      {{To: "all", When: "every day at 7", Tool: &Tool{}}},
		"tool.arguments": {{To: "all", When: "every day at 7", Tool: &Tool{Name: "t", Arguments: map[string]any{"x": strings.Repeat("x", maxArgs)}}}},
		"on":             {{To: "all", On: &On{}, Say: "x"}, {To: "all", On: &On{Hook: true, Tool: "x"}, Say: "x"}},
		"on.resource":    {{To: "all", On: &On{Server: "x"}, Say: "x"}},
		"on.token":       {{To: "all", On: &On{Tool: "x", Token: "y"}, Say: "x"}},
		"zone":           {{To: "all", When: "every day at 7", Zone: "Moon/Base", Say: "x"}, {To: "all", When: "every day at 7", Zone: "Local", Say: "x"}},
		"late":           {{To: "all", On: tool, Say: "x", Late: Span(time.Second)}, {To: "all", On: tool, Say: "x", Late: Span(25 * time.Hour)}},
		"limit":          {{To: "all", On: tool, Say: "x", Limit: 361}},
		"priority":       {{To: "all", On: tool, Say: "x", Priority: "huge"}},
		"language":       {{To: "all", On: tool, Say: "x", Language: "!"}},
	} {
		for _, d := range all {
			err := d.check()
			if err == nil {
				_, err = d.schedule(State{}, time.UTC, time.Now(), false)
			}
			m, ok := errors.AsType[*Mistake](err)
			if !ok || m.Key != key || text.Of(m.In(text.Chinese)) != text.Chinese {
				t.Errorf("%+v: %v, want one of %s", d, err, key)
			}
		}
	}
}
