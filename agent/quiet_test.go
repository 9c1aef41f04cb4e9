package agent

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/agent/turn"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// switched is a quiet mode that a test switches.
type switched struct {
	mu   sync.Mutex
	on   bool
	told map[int]func()
}

func (h *switched) On() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on
}

func (h *switched) Follow(told func()) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told == nil {
		h.told = map[int]func(){}
	}
	n := len(h.told)
	h.told[n] = told
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.told[n] = func() {}
	}
}

// set switches, and lets all that comes of it happen.
func (h *switched) set(on bool) {
	h.mu.Lock()
	h.on = on
	for _, told := range h.told {
		told()
	}
	h.mu.Unlock()
	synctest.Wait()
}

// quietTalk is a conversation that can be made quiet, with letters, timers and jobs.
func quietTalk(t *testing.T, llm []string, f func(t *testing.T, o Options, q *switched, office *mail.Office, connect func() *visit)) {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		ids, q := 0, &switched{}
		office := mail.New(t.Context(), mail.Options{Store: mail.NewMemory(), NewID: func() string { ids++; return strconv.Itoa(ids) }})
		o := Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, TTS: &toneTTS{rate: 16000}, LLM: &scriptLLM{lines: llm}, Prompts: set,
			Devices: NewDevices(), Zone: time.UTC, Quiet: q, Features: append(allFeatures(nil), office),
		}
		source := newScriptSource("local", []string{
			`set query 0s !handler mcp_handler_timer {"action":"set","due":"60s","text":"Bread"}`, "dig@external:x query 20s !say Gold!",
		})
		f(t, o, q, office, func() *visit { return connect(t, o, router.Options{Jobs: []string{"dig"}}, source) })
		office.Close()
		o.Devices.Close()
		detectors.Wait()
	})
}

func fatesOf(t *testing.T, office *mail.Office) (fates []string) {
	t.Helper()
	all, err := office.Last(t.Context(), "d", 9)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		fates = append([]string{string(l.Fate) + " " + strconv.Itoa(l.Tries)}, fates...)
	}
	return fates
}

// TestQuiet: in quiet mode nothing is told that nobody has asked for, and it keeps no connection open; a timer rings, and
// a person is asked. All that was held back is told once, in its order, when quiet mode ends.
func TestQuiet(t *testing.T) {
	script := []string{"call dig {}", "end", "text I dig.", "end", "call set {}", "end", "text I do.", "end"}
	quietTalk(t, script, func(t *testing.T, o Options, q *switched, office *mail.Office, connect func() *visit) {
		q.set(true)
		for _, l := range []mail.Letter{{Text: "Dinner is ready."}, {Text: "Now come down.", Now: true}, {Text: "It gets cold."}} {
			l.Device = "d"
			if _, err := office.Send(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		v := connect()
		v.types(t, "dig")
		time.Sleep(10 * time.Second)
		v.types(t, "bread")
		time.Sleep(2 * time.Minute)
		said := v.box.String()
		if !strings.Contains(said, "This is a reminder: Bread.") || !strings.Contains(said, "final I dig.") {
			t.Errorf("a timer does not ring, or an answer is missing:\n%s", said)
		}
		if _, err := v.d.Say(t.Context(), "By a program.", true); !errors.Is(err, feature.ErrQuiet) {
			t.Errorf("say: %v", err)
		}
		if _, err := v.d.Ask(t.Context(), "By a program?"); !errors.Is(err, feature.ErrQuiet) {
			t.Errorf("ask: %v", err)
		}
		time.AfterFunc(4*time.Second, func() { v.types(t, "with milk") })
		if answer, err := v.d.Ask(remote.ByHand(t.Context()), "How do you take your tea?"); answer != "with milk" || err != nil {
			t.Errorf("a person asks: %q %v", answer, err)
		}
		before := strings.Count(v.box.String(), "keep alive")
		time.Sleep(3 * time.Minute)
		said = v.box.String()
		if !errors.Is(v.box.hungUp, turn.ErrIdle) || strings.Count(said, "keep alive") != before {
			t.Errorf("the connection is kept open (%v):\n%s", v.box.hungUp, said)
		}
		for _, held := range []string{"Dinner", "Now come", "cold", "Gold", "program"} {
			if strings.Contains(said, held) {
				t.Errorf("%q is told in quiet mode:\n%s", held, said)
			}
		}
		v.bye()

		v = connect()
		time.Sleep(time.Minute)
		if said := v.box.String(); strings.Contains(said, "tts start") {
			t.Errorf("it speaks in quiet mode:\n%s", said)
		}
		if fates := fatesOf(t, office); strings.Join(fates, ", ") != "queued 0, queued 0, queued 0" {
			t.Errorf("letters: %q", fates)
		}
		q.set(false)
		time.Sleep(time.Minute)
		said = v.box.String()
		for _, held := range []string{"sentence Dinner is ready.", "sentence Now come down.", "sentence It gets cold.", "sentence Gold!"} {
			if strings.Count(said, held) != 1 {
				t.Errorf("%q is not told once:\n%s", held, said)
			}
		}
		if first, last := strings.Index(said, "Dinner"), strings.Index(said, "cold"); first > strings.Index(said, "Now come") || last < strings.Index(said, "Now come") {
			t.Errorf("the order is another one:\n%s", said)
		}
		if fates := fatesOf(t, office); strings.Join(fates, ", ") != "heard 1, heard 1, heard 1" {
			t.Errorf("letters: %q", fates)
		}
		v.bye()
	})
}

// TestQuietBegins: what waits for a pause when quiet mode begins is not told: whoever has sent it is told so, and a letter
// goes back. What is being said is said to its end.
func TestQuietBegins(t *testing.T) {
	quietTalk(t, []string{"text Let me tell you a story that takes quite a while.", "end"}, func(t *testing.T, o Options, q *switched, office *mail.Office, connect func() *visit) {
		v := connect()
		v.types(t, "tell me a story")
		time.Sleep(time.Second)
		said := make(chan error, 1)
		go func() {
			_, err := v.d.Say(t.Context(), "Later.", false)
			said <- err
		}()
		if _, err := office.Send(t.Context(), mail.Letter{Device: "d", Text: "Dinner is ready."}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if fates := fatesOf(t, office); fates[0] != "delivered 1" {
			t.Fatalf("the letter is %q", fates)
		}
		q.set(true)
		if err := <-said; !errors.Is(err, feature.ErrQuiet) {
			t.Errorf("say: %v", err)
		}
		if fates := fatesOf(t, office); fates[0] != "queued 0" {
			t.Errorf("the letter is %q", fates)
		}
		time.Sleep(4 * time.Minute)
		if got := v.box.String(); !strings.Contains(got, "final Let me tell you a story that takes quite a while.") || strings.Contains(got, "Dinner") || !errors.Is(v.box.hungUp, turn.ErrIdle) {
			t.Errorf("hung up: %v\n%s", v.box.hungUp, got)
		}
		v.bye()
		q.set(false)
		v = connect()
		time.Sleep(10 * time.Second)
		if got := v.box.String(); strings.Count(got, "sentence Dinner is ready.") != 1 || strings.Contains(got, "Later") {
			t.Errorf("after quiet mode:\n%s", got)
		}
		v.bye()
	})
}

// TestQuietPlace: what is held back takes no place from what is told.
func TestQuietPlace(t *testing.T) {
	var q announcements
	q.setQuiet(true)
	for range maxOwed {
		if _, ok := q.add(feature.Announcement{Text: "Held.", Owed: true}); !ok {
			t.Fatal("it is refused")
		}
	}
	bell, ok := q.add(feature.Announcement{Text: "Bell.", Asked: true})
	if v := q.view(); !ok || v.Len != 1 || v.Head != bell {
		t.Errorf("%+v", v)
	}
	if n := q.take(bell); n.Text != "Bell." || len(q.waiting) != maxOwed || q.view().Len != 0 {
		t.Errorf("%+v, %d wait", n, len(q.waiting))
	}
	q.setQuiet(false)
	if n := q.take(q.view().Head); len(n.parts) != maxOwed || len(q.waiting) != 0 {
		t.Errorf("%+v, %d wait", n, len(q.waiting))
	}
}
