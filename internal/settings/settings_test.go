package settings

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text"
	"xiaozhi/store"
)

func pathOf(key string) []string { return strings.Split(key, ".") }

func keys(changes []config.Change) (all []string) {
	for _, c := range changes {
		all = append(all, c.Key())
	}
	return all
}

func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "voice: {idle_close: 50s}\n", "")
		defer b.end()
		told := 0
		b.Follow(func() { told++ })
		b.machine.tests = []Test{{Section: "mine", Role: "llm", OK: true}}
		p, err := b.Plan(t.Context(), anna(), 0, []Edit{set("voice.idle_close", "70s"), set("agent.name", "Momo")})
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"agent.name", "voice.idle_close"}; !slices.Equal(keys(p.Changes), want) || p.Changes[1].Old != "50s" || p.Changes[1].New != "1m10s" {
			t.Errorf("changes %+v", p.Changes)
		}
		if len(p.Tests) != 1 || b.Current().Agent.Name == "Momo" || b.Revision() != 0 {
			t.Errorf("%+v: a plan is not in force yet", p)
		}
		if _, err := b.Apply(t.Context(), bert(), p.ID); !errors.Is(err, ErrNoPlan) {
			t.Error("somebody else has applied it:", err)
		}
		r, err := b.Apply(t.Context(), anna(), p.ID)
		if err != nil || r.N != 1 || r.By != "anna" || r.Kind != KindEdit || !r.At.Equal(time.Now()) {
			t.Fatalf("%+v %v", r, err)
		}
		if c := b.Current(); c.Agent.Name != "Momo" || c != b.machine.inUse || c.OriginOf(pathOf("agent.name")).Place != "console#1" || told == 0 {
			t.Errorf("%q of %+v, told %d times", c.Agent.Name, c.OriginOf(pathOf("agent.name")), told)
		}
		if _, err := b.Apply(t.Context(), anna(), p.ID); !errors.Is(err, ErrNoPlan) {
			t.Error("it was applied twice:", err)
		}
		b.restart(b.sources, false)
		if b.Current().Agent.Name != "Momo" || b.Revision() != 1 {
			t.Error("it is gone after a restart:", b.Current().Agent.Name)
		}
		b.change(anna(), 1, Edit{Path: pathOf("agent.name"), Remove: true})
		if b.Current().Agent.Name == "Momo" || b.Current().Voice.IdleClose != 70*time.Second {
			t.Errorf("%q %v", b.Current().Agent.Name, b.Current().Voice.IdleClose)
		}
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "voice: {barge_in: 400ms}\ntts: [local]\n", "XIAOZHI_AGENT__NAME=Env")
		defer b.end()
		for key, want := range map[string]struct {
			value any
			says  string
		}{
			"voice.idle_close":  {"no time", "voice.idle_close"},
			"voice.idle_closed": {"1s", "voice.idle_close"},
			"voice.barge_in":    {"300ms", "config.yaml:1"},
			"agent.name":        {"Momo", "XIAOZHI_AGENT__NAME"},
			"tts":               {[]any{"nobody"}, "config.yaml:2"},
			"server.listen":     {[]any{":1"}, "server.listen"},
			"llm":               {[]any{"nobody"}, "nobody"},
			"voice.vad.start":   {math.NaN(), "voice.vad.start must be a number"},
			"voice.vad.end":     {math.Inf(1), "voice.vad.end must be a number"},
			"":                  {"x", ""},
		} {
			_, err := b.Plan(t.Context(), anna(), 0, []Edit{set(key, want.value)})
			if err == nil || !strings.Contains(err.Error(), want.says) {
				t.Errorf("%s: %v", key, err)
			}
			for _, lang := range []text.Lang{text.English, text.Chinese} {
				if said := Explain(lang, err); said == "" || key == "tts" && !strings.Contains(text.Sentence(said), "tts") {
					t.Errorf("%s: nothing is said of %v", key, err)
				}
			}
			invalid, _ := errors.AsType[*InvalidError](err)
			if pinned, _ := errors.AsType[*PinnedError](err); pinned == nil && invalid == nil {
				t.Errorf("%s: %T", key, err)
			}
			if key == "voice.idle_close" && (len(invalid.Problems) != 1 || keyName(invalid.Problems[0].Path) != key || strings.Contains(err.Error(), "console")) {
				t.Errorf("%s: %+v", key, invalid.Problems)
			}
		}
		b.machine.fails(errors.New("no room"))
		_, err := b.Plan(t.Context(), anna(), 0, []Edit{set("llm", []any{"rules"})})
		if e, ok := errors.AsType[*MachineError](err); !ok || e.Err != b.machine.fail {
			t.Error(err)
		}
		if b.Revision() != 0 || len(b.records.all) != 0 {
			t.Error("something was kept")
		}
	})
}

// TestTimeZone: it is the one key of the server that people can choose, by its name; one that a file sets is pinned.
func TestTimeZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "server: {timezone: Asia/Tokyo}\n", "")
		defer b.end()
		for typed, want := range map[string][2]string{
			"Mars/Olympus":            {`"Mars/Olympus" is no known time zone`, "没有名为“Mars/Olympus”的时区"},
			"Berlin":                  {"did you mean Europe/Berlin?", "Europe/Berlin？"},
			"Local":                   {"is no known time zone", "时区"},
			strings.Repeat("x", 9000): {"xxx…\" is no known time zone", "xxx…”的时区"},
		} {
			_, err := b.Plan(t.Context(), anna(), 0, []Edit{set("server.timezone", typed)})
			if en, zh := Explain(text.English, err), Explain(text.Chinese, err); !strings.Contains(en, want[0]) || !strings.Contains(zh, want[1]) {
				t.Errorf("%.20s: %s / %s", typed, en, zh)
			}
		}
		b.change(anna(), 0, set("server.timezone", "Europe/Berlin"))
		if got := b.Current().Server.Zone().String(); got != "Europe/Berlin" {
			t.Errorf("in force is %s", got)
		}
		b.change(anna(), 1, set("server.timezone", ""))
		if got := b.Current().Server; got.Timezone != "" || got.Zone().String() == "Local" && time.Local.String() != "Local" {
			t.Errorf("the machine's own is %s", got.Zone())
		}
		pinned := start(t, "", "server: {timezone: Asia/Tokyo}\n")
		defer pinned.end()
		_, err := pinned.Plan(t.Context(), anna(), 0, []Edit{set("server.timezone", "Europe/Berlin")})
		if e, ok := errors.AsType[*PinnedError](err); !ok || !strings.HasSuffix(e.Origin.Place, "config.yaml:1") {
			t.Error(err)
		}
	})
}

func TestReadOnly(t *testing.T) {
	b := start(t, "console: {edit: false}\n", "")
	if _, err := b.Plan(t.Context(), anna(), 0, []Edit{set("agent.name", "x")}); !errors.Is(err, ErrReadOnly) || !errors.Is(b.Changeable(), ErrReadOnly) {
		t.Error(err)
	}
	b.records = nil
	s, _, err := Open(t.Context(), Options{Sources: b.sources})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Plan(t.Context(), anna(), 0, []Edit{set("agent.name", "x")}); !errors.Is(err, ErrNoStore) {
		t.Error(err)
	}
}

// TestTwoEditors has two people change things at the same time.
func TestTwoEditors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		b.change(anna(), 0, set("agent.name", "One"))
		mine, err := b.Plan(t.Context(), anna(), 1, []Edit{set("agent.name", "Two"), set("voice.loudness", false)})
		if err != nil {
			t.Fatal(err)
		}
		b.change(bert(), 1, set("voice.idle_close", "77s"))
		other, err := b.Plan(t.Context(), bert(), 1, []Edit{set("agent.max_steps", 3)}) // of the revision before
		if err != nil || other.Base != 2 {
			t.Fatal(other, err)
		}
		if r, err := b.Apply(t.Context(), anna(), mine.ID); err != nil || r.N != 3 {
			t.Fatal(r, err)
		}
		if c := b.Current(); c.Agent.Name != "Two" || c.Voice.IdleClose != 77*time.Second || c.Voice.Loudness {
			t.Errorf("%+v", c.Voice)
		}
		_, err = b.Plan(t.Context(), bert(), 2, []Edit{set("agent.name", "Three")})
		stale, ok := errors.AsType[*StaleError](err)
		if !ok || stale.Now != 3 || stale.By != "anna" || stale.Mine[0].New != "Three" || stale.Mine[0].Old != "One" || stale.Others[0].New != "Two" {
			t.Fatalf("%+v %v", stale, err)
		}
		if _, err := b.Plan(t.Context(), bert(), 2, []Edit{set("agent.name", "Two"), set("agent.max_steps", 4)}); err != nil {
			t.Error("both want the same:", err)
		}
		// Between a plan and its use.
		third, err := b.Plan(t.Context(), bert(), 3, []Edit{set("agent.name", "Three")})
		if err != nil {
			t.Fatal(err)
		}
		b.change(anna(), 3, set("agent.name", "Four"))
		if _, err = b.Apply(t.Context(), bert(), third.ID); !errors.As(err, &stale) || b.Current().Agent.Name != "Four" {
			t.Error(err)
		}
		if again, err := b.Planned(bert(), third.ID); err != nil || len(again.Changes) != 1 {
			t.Error("what was typed is gone:", err)
		}
		if again, err := b.Again(t.Context(), bert(), third.ID); err != nil || again.Base != 4 || again.Changes[0].Old != "Four" {
			t.Error(again, err)
		} else if _, err := b.Apply(t.Context(), bert(), again.ID); err != nil || b.Current().Agent.Name != "Three" {
			t.Error(err)
		}
		if _, err := b.Plan(t.Context(), anna(), 9, []Edit{set("agent.name", "x")}); !errors.Is(err, ErrNoneSuch) {
			t.Error(err)
		}
	})
}

// TestOldRevisionsAreGone: what was dropped is neither listed nor undone, and all that is listed can be undone.
func TestOldRevisionsAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		for i, name := range []string{"One", "Two", "Three", "Four", "Five"} {
			b.change(anna(), i, set("agent.name", name))
		}
		b.records.mu.Lock()
		b.records.gone = 2
		b.records.mu.Unlock()
		all, err := b.Revisions(t.Context(), 0, 10)
		if err != nil || len(all) != 2 || all[1].N != 4 || len(all[1].Changes) != 1 || all[1].Changes[0].Old != "Three" {
			t.Fatalf("%+v %v", all, err)
		}
		if _, err := b.Undo(t.Context(), anna(), 3); !errors.Is(err, ErrNoneSuch) {
			t.Errorf("one whose ground is dropped: %v", err)
		}
		if _, err := b.Undo(t.Context(), anna(), 5); err != nil || b.Current().Agent.Name != "Four" {
			t.Errorf("the one in force: %v, %q", err, b.Current().Agent.Name)
		}
	})
}

func TestPlansEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		var first *Plan
		for i := range maxPlans + 1 {
			p, err := b.Plan(t.Context(), anna(), 0, []Edit{set("voice.idle_close", (time.Duration(i) + time.Minute).String())})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = p
			}
			time.Sleep(time.Second)
		}
		if _, err := b.Planned(anna(), first.ID); !errors.Is(err, ErrNoPlan) || b.machine.open() != maxPlans {
			t.Errorf("%v, and %d plans", err, b.machine.open())
		}
		time.Sleep(planTime)
		synctest.Wait()
		if b.machine.open() != 0 {
			t.Errorf("%d plans wait for ever", b.machine.open())
		}
		b.Close()
		b.Close()
		if _, err := b.Plan(t.Context(), anna(), 0, []Edit{set("agent.name", "x")}); !errors.Is(err, ErrNotReady) {
			t.Error(err)
		}
	})
}

// TestNoteIn: a reader sees the server's notes in one language, and those of people as they are.
func TestNoteIn(t *testing.T) {
	for want, r := range map[string]Revision{
		"撤销":        {Kind: KindUndo, Note: "takes back / 撤销"},
		"坏了":        {Kind: KindAutomatic, Note: "worse / 坏了"},
		"坏了：no / 否": {Kind: KindAutomatic, Note: "worse: no / 否 / 坏了：no / 否"},
		"a / b":     {Kind: KindEdit, Note: "a / b"},
	} {
		if got := r.NoteIn(text.Chinese); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (Revision{Kind: KindUndo, Note: "takes back / 撤销"}).NoteIn(text.English); got != "takes back" {
		t.Errorf("in English %q", got)
	}
}

func TestUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		b.change(anna(), 0, set("agent.name", "One"), set("agent.max_steps", 3))
		b.change(anna(), 1, set("agent.name", "Two"))
		b.change(bert(), 2, set("voice.loudness", false))
		r, err := b.Undo(t.Context(), anna(), 2)
		if err != nil || r.N != 4 || r.Kind != KindUndo || b.Current().Agent.Name != "One" || b.Current().Voice.Loudness {
			t.Fatalf("%+v %v", r, err)
		}
		if _, err := b.Undo(t.Context(), anna(), 2); !errors.Is(err, ErrNoChange) {
			t.Error("it was undone twice:", err)
		}
		if _, err := b.Undo(t.Context(), anna(), 77); !errors.Is(err, ErrNoneSuch) {
			t.Error(err)
		}
		b.change(bert(), 4, set("agent.max_steps", 5))
		_, err = b.Undo(t.Context(), anna(), 1)
		if stale, ok := errors.AsType[*StaleError](err); !ok || stale.By != "bert" || stale.Others[0].Key() != "agent.max_steps" {
			t.Errorf("%+v %v", stale, err)
		}
		all, err := b.Revisions(t.Context(), 0, 3)
		if err != nil || len(all) != 3 || all[0].N != 5 || all[1].Kind != KindUndo || all[1].Changes[0].New != "One" || all[2].Changes[0].Key() != "voice.loudness" {
			t.Errorf("%+v %v", all, err)
		}
		if older, err := b.Revisions(t.Context(), 2, 10); err != nil || len(older) != 1 || len(older[0].Changes) != 2 {
			t.Errorf("%+v %v", older, err)
		}
	})
}

// TestWatch takes changes back by which the server does worse.
func TestWatch(t *testing.T) {
	fails := func(h *Health) { h.Turns, h.Streak, h.Fault = h.Turns+1, h.Streak+1, "wrong key / 密钥不对: 401" }
	goes := func(h *Health) { h.Turns, h.Streak = h.Turns+1, 0 }
	for name, step := range map[string]struct {
		before, after []func(h *Health)
		later         func(h *Health) // three seconds after
		back          bool
		at            time.Duration // after so long
	}{
		"nothing happens":     {},
		"two turns fail":      {after: []func(*Health){fails, fails}, back: true, at: 4 * time.Second},
		"one turn fails":      {after: []func(*Health){fails}, back: true, at: watchTime + time.Second},
		"one of two fails":    {after: []func(*Health){goes, fails}},
		"failed before":       {before: []func(*Health){fails}, after: []func(*Health){fails, fails, fails}},
		"not ready":           {after: []func(*Health){func(h *Health) { h.Ready, h.Why = false, "no voice" }}, back: true, at: 5 * time.Second},
		"not ready before":    {before: []func(*Health){func(h *Health) { h.Ready = false }}},
		"not ready, for once": {after: []func(*Health){func(h *Health) { h.Ready = false }}, later: func(h *Health) { h.Ready = true }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, "", "")
				defer b.end()
				b.change(anna(), 0, set("agent.name", "Good"))
				time.Sleep(2 * watchTime)
				if b.Watching() != nil {
					t.Error("the watch does not end")
				}
				for _, f := range step.before {
					b.machine.does(f)
				}
				b.change(anna(), 1, set("agent.name", "Bad"))
				if w := b.Watching(); w == nil || w.Revision != 2 {
					t.Fatalf("%+v", w)
				}
				for _, f := range step.after {
					b.machine.does(f)
				}
				if step.later != nil {
					time.Sleep(3 * time.Second)
					b.machine.does(step.later)
				}
				wait := step.at
				if wait == 0 {
					wait = watchTime + time.Second
				}
				time.Sleep(wait)
				synctest.Wait()
				want, n := "Bad", 2
				if step.back {
					want, n = "Good", 3
				}
				if b.Current().Agent.Name != want || b.machine.inUse.Agent.Name != want || b.Revision() != n {
					t.Fatalf("%s is in force, in revision %d", b.Current().Agent.Name, b.Revision())
				}
				if step.back {
					all, _ := b.Revisions(t.Context(), 0, 2)
					if all[0].Kind != KindAutomatic || all[0].Note == "" || all[1].Undone != all[0].Note || b.records.all[1].State != store.SettingsUndone {
						t.Errorf("%+v", all)
					}
					for lang, other := range map[text.Lang]string{text.English: "密", text.Chinese: "wrong"} {
						if said := all[0].NoteIn(lang); strings.Contains(said, other) || strings.Contains(all[0].Note, "401") != strings.Contains(said, "401") {
							t.Errorf("in %s: %s", lang, said)
						}
					}
					if b.Watching() != nil {
						t.Error("what stood its time is watched again")
					}
				}
			})
		})
	}
}

// TestWatchGoesOn: a change that the program does not see the end of the watch of is watched anew by the next one, which is not
// ready at once; one that has stood its time is not.
func TestWatchGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		then  func(h *Health)
		back  bool
	}{
		"not ready any more": {10 * time.Second, func(h *Health) { h.Ready = false }, true},
		"every turn fails":   {10 * time.Second, func(h *Health) { h.Turns, h.Streak, h.Fault = 2, 2, "401" }, true},
		"all is well":        {10 * time.Second, func(*Health) {}, false},
		"it is an old one":   {2 * watchTime, func(h *Health) { h.Ready = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := start(t, "", "")
				defer b.end()
				b.change(anna(), 0, set("agent.name", "Good"))
				time.Sleep(2 * watchTime)
				b.change(anna(), 1, set("agent.name", "Bad"))
				time.Sleep(test.after)
				b.machine.does(func(h *Health) { h.Ready = false })
				b.restart(b.o.Sources, false)
				if w := b.Watching(); (w == nil) != (test.after > watchTime) || w != nil && w.Revision != 2 {
					t.Errorf("%+v is watched", w)
				}
				time.Sleep(watchTime / 4)
				b.machine.does(func(h *Health) { h.Ready = true })
				time.Sleep(watchTime / 4)
				if b.Current().Agent.Name != "Bad" {
					t.Error("taken back because it was not ready at once")
				}
				b.machine.does(test.then)
				time.Sleep(watchTime)
				synctest.Wait()
				if back := b.Current().Agent.Name == "Good"; back != test.back || b.Watching() != nil {
					t.Errorf("%s is in force, in revision %d", b.Current().Agent.Name, b.Revision())
				}
			})
		})
	}
}

// TestWatchedTwice changes something while the change before is not proven: both are taken back, one after the other.
func TestWatchedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		b.change(anna(), 0, set("agent.name", "Bad"))
		time.Sleep(10 * time.Second)
		b.change(anna(), 1, set("voice.loudness", false))
		b.machine.does(func(h *Health) { h.Ready = false })
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if c := b.Current(); c.Agent.Name == "Bad" || !c.Voice.Loudness || b.Revision() != 4 {
			t.Errorf("%s %v in revision %d", c.Agent.Name, c.Voice.Loudness, b.Revision())
		}
	})
}

// TestOneFault takes one change back, and not the one before it, if the turns failed by the second alone.
func TestOneFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		b.change(anna(), 0, set("agent.name", "Berta"))
		time.Sleep(10 * time.Second)
		b.change(anna(), 1, set("voice.loudness", false))
		b.machine.does(func(h *Health) { h.Turns, h.Streak, h.Fault = 2, 2, "no model" })
		time.Sleep(2 * watchTime)
		synctest.Wait()
		if c := b.Current(); c.Agent.Name != "Berta" || !c.Voice.Loudness || b.Revision() != 3 {
			t.Errorf("%s %v in revision %d", c.Agent.Name, c.Voice.Loudness, b.Revision())
		}
	})
}

// TestNotBack tells why a change cannot be taken back.
func TestNotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		b.change(anna(), 0, set("agent.name", "Bad"))
		b.machine.does(func(h *Health) { h.Ready = false })
		b.machine.fails(errors.New("no memory"))
		time.Sleep(watchTime)
		if w := b.Watching(); w == nil || !strings.Contains(w.Stuck, "no memory") || b.Current().Agent.Name != "Bad" {
			t.Errorf("%+v", w)
		}
	})
}

// TestApplyFails keeps what was in force, also for the next start.
func TestApplyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		p, err := b.Plan(t.Context(), anna(), 0, []Edit{set("agent.name", "Bad")})
		if err != nil {
			t.Fatal(err)
		}
		b.machine.apply = errors.New("it is stuck")
		if _, err := b.Apply(t.Context(), anna(), p.ID); err == nil || !strings.Contains(err.Error(), "stuck") || b.Current().Agent.Name == "Bad" {
			t.Error(err)
		}
		b.machine.apply = nil
		b.change(anna(), b.Revision(), set("agent.max_steps", 3))
		b.restart(b.sources, false)
		if b.Current().Agent.Name == "Bad" || b.Current().Agent.MaxSteps != 3 {
			t.Errorf("%+v", b.Current().Agent)
		}
	})
}

// TestNotValidAnyMore starts with files that what people have set does not fit any more.
func TestNotValidAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "providers: {mine: {type: openai, base_url: 'http://127.0.0.1/v1', model: m}}\n", "")
		defer b.end()
		b.change(anna(), 0, set("agent.name", "Momo"))
		b.change(anna(), 1, set("llm", []any{"mine", "rules"}))
		other := start(t, "voice: {idle_close: 40s}\n", "").sources
		b.restart(other, false)
		h := b.Held()
		if h == nil || h.Revision != 2 || h.Instead != 1 || len(h.Problems) != 1 || !strings.Contains(h.Problems[0].Error(), "mine") {
			t.Fatalf("%+v", h)
		}
		if c := b.Current(); c.Agent.Name != "Momo" || c.Voice.IdleClose != 40*time.Second {
			t.Errorf("%+v", c.Agent)
		}
		if _, err := b.Plan(t.Context(), anna(), 2, []Edit{set("agent.max_steps", 3)}); err == nil || !strings.Contains(err.Error(), "mine") {
			t.Error("what is wrong was put in force:", err)
		}
		b.change(anna(), 2, Edit{Path: []string{"llm"}, Remove: true}, set("agent.max_steps", 3))
		if c := b.Current(); b.Held() != nil || c.Agent.Name != "Momo" || c.Agent.MaxSteps != 3 {
			t.Errorf("%+v", c.Agent)
		}
		b.restart(other, true)
		if h := b.Held(); h == nil || len(h.Problems) != 0 || b.Current().Agent.Name == "Momo" {
			t.Errorf("%+v", h)
		}
		b.change(anna(), 3) // as it is
		if b.Held() != nil || b.Current().Agent.Name != "Momo" {
			t.Error("it is not in force again")
		}
	})
}

// TestSecrets types a key, which is sealed for the host that it goes to and never shown.
func TestSecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		service := map[string]any{"type": "openai", "base_url": "https://one.example/v1", "model": "m", "api_key": "sk-very-secret", "headers": map[string]any{"X-Key": "also-very-secret"}}
		p, err := b.Plan(t.Context(), anna(), 0, []Edit{set("providers.mine", service)})
		if err != nil {
			t.Fatal(err)
		}
		seen := func() string {
			var all strings.Builder
			for _, c := range p.Changes {
				all.WriteString(c.Key() + "=" + asText(c.Old) + asText(c.New) + "\n")
			}
			list, _ := b.Revisions(t.Context(), 0, 10)
			for _, r := range list {
				for _, c := range r.Changes {
					all.WriteString(c.Key() + "=" + asText(c.Old) + asText(c.New) + "\n")
				}
			}
			for _, r := range b.records.all {
				all.WriteString(r.Doc)
			}
			for _, k := range b.Keys() {
				all.WriteString(asText(k.Value.Value))
			}
			doc, _, _ := Document(b.Current(), false)
			return all.String() + string(doc)
		}
		if _, err := b.Apply(t.Context(), anna(), p.ID); err != nil {
			t.Fatal(err)
		}
		if got := b.Current().Providers["mine"]; got.APIKey != "sk-very-secret" || got.Headers["X-Key"] != "also-very-secret" {
			t.Error("the secrets do not count")
		}
		for _, kept := range b.vault.all {
			if kept.use != (config.SecretUse{Kind: config.SecretSent, At: "https://one.example/v1"}) {
				t.Errorf("sealed for %+v", kept.use)
			}
		}
		if all := seen(); strings.Contains(all, "very-secret") || !strings.Contains(all, "sealed:console.mine.api_key-") {
			t.Error(all)
		}
		_, err = b.Plan(t.Context(), anna(), 1, []Edit{set("providers.mine.base_url", "https://evil.example/v1")})
		invalid, ok := errors.AsType[*InvalidError](err)
		if !ok || !slices.ContainsFunc(invalid.Problems, func(p *config.Error) bool { return keyName(p.Path) == "providers.mine.api_key" }) {
			t.Error("a key may go elsewhere:", err)
		}
		if _, err := b.Plan(t.Context(), anna(), 1, []Edit{set("providers.mine.api_key", "••••")}); !errors.As(err, &invalid) {
			t.Error("dots were taken for a key:", err)
		}
		// A key that is not used after all is not kept; one of an earlier revision is.
		p, err = b.Plan(t.Context(), anna(), 1, []Edit{set("providers.mine.api_key", "sk-another-one")})
		if err != nil || len(b.vault.all) != 3 {
			t.Fatal(err, len(b.vault.all))
		}
		if err := b.Drop(anna(), p.ID); err != nil || len(b.vault.all) != 2 {
			t.Error(err, len(b.vault.all))
		}
		b.change(anna(), 1, set("providers.mine.api_key", "sk-another-one"))
		if _, err := b.Undo(t.Context(), anna(), 2); err != nil || b.Current().Providers["mine"].APIKey != "sk-very-secret" {
			t.Error(err)
		}
		_ = b.vault.Seal(t.Context(), account.Person{}, "console.left-over", config.SecretUse{}, "x")
		_ = b.vault.Seal(t.Context(), account.Person{}, "of-somebody", config.SecretUse{}, "x")
		b.restart(b.sources, false)
		if names, _ := b.vault.Names(t.Context()); len(names) != 4 || slices.Contains(names, "console.left-over") {
			t.Error(names)
		}
	})
}

// TestSecretAddress types a secret beside the address that it goes to, which is a secret too: it is sealed for that host, also
// when it is typed later.
func TestSecretAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		at := "tools.external.mcpServers.maps"
		b.change(anna(), 0, set(at+".url", "https://maps.example/mcp?key=very-secret"), set(at+".headers.Authorization", "Bearer one"))
		b.change(anna(), 1, set(at+".headers.X-Other", "two"))
		got := b.Current().Tools.External.MCPServers["maps"]
		if got.URL != "https://maps.example/mcp?key=very-secret" || got.Headers["Authorization"] != "Bearer one" || got.Headers["X-Other"] != "two" {
			t.Errorf("%+v", got)
		}
		sent := 0
		for _, kept := range b.vault.all {
			if kept.use.Kind == config.SecretSent {
				sent++
				if kept.use.At != "https://maps.example/mcp?key=very-secret" {
					t.Errorf("sealed for %+v", kept.use)
				}
			}
		}
		if sent != 2 {
			t.Errorf("%d secrets are sent somewhere", sent)
		}
	})
}

// TestSecretBehindProxy refuses to show a key that is sent without TLS to a proxy that was named after it was typed.
func TestSecretBehindProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "", "")
		defer b.end()
		at := func(name, address string) Edit {
			return set("providers."+name, map[string]any{"type": "openai", "base_url": address, "model": "m", "api_key": "sk-very-secret"})
		}
		b.change(anna(), 0, at("open", "http://one.example/v1"), at("closed", "https://one.example/v1"))
		proxy := func(name string) Edit { return set("providers."+name+".proxy", "http://evil.example:3128") }
		_, err := b.Plan(t.Context(), anna(), 1, []Edit{proxy("open")})
		if wrong, ok := errors.AsType[*InvalidError](err); !ok || keyName(wrong.Problems[0].Path) != "providers.open.api_key" {
			t.Error("a proxy may read a key:", err)
		}
		if _, err := b.Plan(t.Context(), anna(), 1, []Edit{proxy("closed")}); err != nil {
			t.Error("what is sent by TLS, no proxy reads:", err)
		}
		if _, err := b.Plan(t.Context(), anna(), 1, []Edit{proxy("open"), set("providers.open.api_key", "sk-very-secret")}); err != nil {
			t.Error("typed again:", err)
		}
	})
}

func asText(v any) string {
	text, _ := v.(string)
	return text
}

// TestExportImport carries settings to another server.
func TestExportImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, "providers: {mine: {type: openai, base_url: 'http://127.0.0.1/v1', model: m, api_key: '${KEY}'}}\n", "voice: {barge_in: 400ms}\n", "KEY=k")
		defer b.end()
		b.change(anna(), 0, set("agent.name", "Momo"), set("voice.idle_close", "70s"), set("llm", []any{"mine", "rules"}))
		doc, left, err := Document(b.Current(), false)
		if err != nil || len(left) != 0 {
			t.Fatal(err, left)
		}
		if _, err := b.Import(t.Context(), anna(), 1, doc); !errors.Is(err, ErrNoChange) {
			t.Error("its own export changes it:", err)
		}
		other := start(t, "agent: {max_steps: 4}\n", "voice: {barge_in: 500ms}\n")
		defer other.end()
		p, err := other.Import(t.Context(), anna(), 0, doc)
		if err != nil {
			t.Fatal(err)
		}
		var why []string
		for _, l := range p.Left {
			why = append(why, keyName(l.Path))
		}
		if want := []string{"providers.mine.api_key", "voice.barge_in"}; !slices.Equal(why, want) {
			t.Errorf("left out %v", why)
		}
		r, err := other.Apply(t.Context(), anna(), p.ID)
		if c := other.Current(); err != nil || r.Kind != KindImport || c.Agent.Name != "Momo" || c.Voice.IdleClose != 70*time.Second || c.LLM[0] != "mine" {
			t.Errorf("%+v %v", r, err)
		}
		if p, err := other.Import(t.Context(), anna(), 1, []byte("agent: {name: Mimi}\nservr: {listen: [':1']}\nlog: {level: debug}\n")); err != nil ||
			len(p.Left) != 2 || p.Left[0].Why != ErrFileOnly || p.Left[1].Why != ErrNoKey || Explain(text.Chinese, ErrNoKey) == "" {
			t.Errorf("a key that there is not: %+v %v", p, err)
		}
		if _, err := other.Import(t.Context(), anna(), 1, []byte("- 1\n")); !errors.Is(err, ErrNoDoc) {
			t.Error(err)
		}
		if _, err := other.Import(t.Context(), anna(), 1, []byte("server: {listen: ':1'}\n")); err == nil {
			t.Error("nothing of it can be set")
		}
	})
}
