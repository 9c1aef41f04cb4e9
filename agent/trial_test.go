package agent

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// eggTimer is a feature that no file of the conversation knows of: it has a handler, a
// deadline and a state, announces, and takes the user's next words.
type eggTimer struct{ answers *[]string }

func (eggTimer) Name() string { return "egg" }

func (f eggTimer) Attach(h feature.Host, state feature.State) feature.Instance {
	e := &egg{Host: h, answers: f.answers}
	if s, ok := state.(eggState); ok {
		e.due = time.Time(s)
	}
	return e
}

type eggState time.Time

func (s eggState) Keep(left time.Time) time.Duration { return time.Time(s).Sub(left) + time.Hour }
func (eggState) Close()                              {}

type egg struct {
	feature.Host
	answers *[]string
	due     time.Time
}

func (e *egg) Expects(time.Time) bool { return !e.due.IsZero() }
func (e *egg) Detach() feature.State  { return eggState(e.due) }
func (e *egg) Deadline() time.Time    { return e.due }

func (e *egg) Handler(name string) feature.Handler {
	if name != "boil_egg" {
		return nil
	}
	return func(feature.Caller, any) (think.Handled, error) {
		e.due = time.Now().Add(4 * time.Minute)
		return think.Handled{Say: "Four minutes."}, nil
	}
}

func (e *egg) Tick(now time.Time) {
	e.due = time.Time{}
	_, err := e.Announce(feature.Announcement{Lang: text.English, Text: "Is the egg done?", Answer: func(a feature.Answer) {
		*e.answers = append(*e.answers, a.Words)
		if a.Words == "not yet" {
			e.due = time.Now().Add(time.Minute)
		}
	}})
	if err != nil {
		e.due = now.Add(time.Second)
	}
}

// TestTrialFeature: a new feature needs nothing but its own type and a place in the
// list of features.
func TestTrialFeature(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		var answers []string
		llm := &scriptLLM{lines: []string{"call boil {}", "end"}}
		o := Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, LLM: llm, TTS: &toneTTS{rate: 16000}, Prompts: set,
			Devices: NewDevices(), Features: []feature.Feature{eggTimer{&answers}}, Zone: time.UTC,
		}
		during := func(f func(v *visit)) (got string) {
			v := connect(t, o, router.Options{}, newScriptSource("local", []string{"boil query 0s !handler boil_egg"}))
			f(v)
			v.bye()
			return v.box.String()
		}
		got := during(func(v *visit) {
			v.types(t, "boil an egg")
			time.Sleep(3 * time.Second)
		})
		if !strings.Contains(got, "sentence Four minutes.") {
			t.Errorf("the handler did not run:\n%s", got)
		}
		time.Sleep(time.Minute) // nobody is connected
		got = during(func(v *visit) {
			time.Sleep(3*time.Minute + 10*time.Second)
			v.types(t, "not yet")
			time.Sleep(70 * time.Second)
			v.types(t, "yes")
			synctest.Wait()
		})
		if n := strings.Count(got, "sentence Is the egg done?"); n != 2 || strings.Contains(got, "hang up") {
			t.Errorf("asked %d times:\n%s", n, got)
		}
		if !slices.Equal(answers, []string{"not yet", "yes"}) || len(llm.requests) != 1 {
			t.Errorf("answers %q, and the model was asked %d times", answers, len(llm.requests))
		}
		detectors.Wait()
	})
}

// noter is a feature that says what a model should know, after a while.
type noter struct {
	began time.Time
	asked *[]time.Duration // when
}

func (noter) Name() string                                          { return "noter" }
func (n noter) Attach(feature.Host, feature.State) feature.Instance { return n }
func (noter) Expects(time.Time) bool                                { return false }
func (noter) Detach() feature.State                                 { return nil }

func (n noter) Notes(ctx context.Context, _, _ string, _ text.Lang) think.Notes {
	*n.asked = append(*n.asked, time.Since(n.began))
	time.Sleep(30 * time.Millisecond)
	return think.Notes{Found: "The user likes tea."}
}

// TestNotesAtTheTrial: what a model should know is looked for when an answer is begun on a guess that the user has finished, so that nobody waits for it.
func TestNotesAtTheTrial(t *testing.T) {
	a, err := txtar.ParseFile("testdata/talk/trial.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var asked []time.Duration
	var got string
	synctest.Test(t, func(t *testing.T) {
		s := readScene(a)
		s.more = []feature.Feature{noter{time.Now(), &asked}}
		got = s.run(t).String()
	})
	const commit = 1308 * time.Millisecond // the first line that the device gets, as in the scene
	if len(asked) != 1 || asked[0] >= commit || !strings.HasPrefix(strings.TrimSpace(got), "1308 stt") {
		t.Errorf("asked at %v; the device gets\n%s", asked, got)
	}
}
