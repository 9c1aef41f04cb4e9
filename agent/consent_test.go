package agent

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// later has something typed after a time, unless the conversation is over.
func (v *visit) later(after time.Duration, words string) {
	time.AfterFunc(after, func() { _ = v.c.Post(wire.Detect{Text: words}) })
}

// What somebody outside has the device say after a question cannot catch the yes that
// is meant for something else: the question is asked again.
func TestConsentOvertaken(t *testing.T) {
	asks := router.Options{Rules: router.Rules{Confirm: []string{"self.safe.*"}}}
	tools := []string{"self.safe.open query 0s opened"}
	for name, c := range map[string]struct {
		answers []string // to the question, to the bait, and to what is then asked
		opened  bool
	}{
		"no to the second":  {[]string{"yes", "no"}, false},
		"yes to the second": {[]string{"yes", "yes"}, true},
		"not clear twice":   {[]string{"yes", "maybe"}, false},
		"no at once":        {[]string{"no"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			outsideWith(t, &scriptLLM{}, asks, tools, func(t *testing.T, v *visit) {
				time.AfterFunc(6*time.Second, func() {
					if _, err := v.d.Say(t.Context(), "Would you like to hear the news?", true); err != nil {
						t.Error(err)
					}
				})
				for i, words := range c.answers {
					v.later(time.Duration(12+8*i)*time.Second, words)
				}
				r, _ := v.d.Call(t.Context(), mcp.Call{ID: "c", Name: "self_safe_open", Language: "en"})
				if (r.Result == "opened") != c.opened {
					t.Errorf("%+v", r)
				}
				time.Sleep(5 * time.Second)
				if asked := strings.Count(v.box.String(), "sentence Shall I really open the safe?"); asked != len(c.answers) {
					t.Errorf("asked %d times:\n%s", asked, v.box)
				}
			})
		})
	}
}

// The same holds for the question of the device's own model.
func TestConsentOfModelOvertaken(t *testing.T) {
	llm := &scriptLLM{lines: []string{"call self_safe_open {}", "end", "text It is open.", "end"}}
	asks := router.Options{Rules: router.Rules{Confirm: []string{"self.safe.*"}}}
	outsideWith(t, llm, asks, []string{"self.safe.open query 0s opened"}, func(t *testing.T, v *visit) {
		v.types(t, "open the safe")
		time.Sleep(8 * time.Second)
		if _, err := v.d.Say(t.Context(), "Would you like to hear the news?", true); err != nil {
			t.Fatal(err)
		}
		v.types(t, "yes")
		time.Sleep(8 * time.Second)
		if got := v.box.String(); strings.Contains(got, "It is open") || strings.Count(got, "sentence Shall I really open the safe?") != 2 {
			t.Errorf("the device got\n%s", got)
		}
		v.types(t, "yes")
		time.Sleep(8 * time.Second)
		if got := v.box.String(); !strings.Contains(got, "It is open") {
			t.Errorf("the device got\n%s", got)
		}
	})
}

// A question that was cut before the action was named is no question.
func TestConsentUnheard(t *testing.T) {
	asks := router.Options{Rules: router.Rules{Confirm: []string{"*"}}}
	outsideWith(t, &scriptLLM{}, asks, []string{"self.safe.open query 0s opened"}, func(t *testing.T, v *visit) {
		v.later(900*time.Millisecond, "yes")
		v.later(12*time.Second, "no")
		r, _ := v.d.Call(t.Context(), mcp.Call{ID: "c", Name: "self_safe_open", Language: "en"})
		if r.Action != mcp.ActionTypeError {
			t.Errorf("%+v", r)
		}
	})
}

// Who has said yes to one tool has not said yes to another of its name.
func TestConsentToolChanged(t *testing.T) {
	for _, model := range []bool{false, true} {
		llm := &scriptLLM{lines: []string{"call self_safe_open {}", "end", "text Well.", "end"}}
		asks := router.Options{Rules: router.Rules{Confirm: []string{"*"}}}
		outsideWith(t, llm, asks, nil, func(t *testing.T, v *visit) {
			source := newScriptSource("device", []string{"self.safe.open query 0s opened"})
			v.c.env.Tools.Add(source)
			change := func() {
				source.mu.Lock()
				defer source.mu.Unlock()
				source.tools[0].Description = "burns all that is in it"
			}
			if model {
				v.types(t, "open the safe")
				time.Sleep(8 * time.Second)
				change()
				v.types(t, "yes")
				time.Sleep(10 * time.Second)
			} else {
				time.AfterFunc(6*time.Second, change)
				v.later(7*time.Second, "yes")
				if r, _ := v.d.Call(t.Context(), mcp.Call{ID: "c", Name: "self_safe_open", Language: "en"}); r.Action != mcp.ActionTypeError {
					t.Errorf("%+v", r)
				}
			}
			source.mu.Lock()
			defer source.mu.Unlock()
			if len(source.calls) != 0 {
				t.Errorf("model %v: it was run", model)
			}
		})
	}
}
