package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// outcome holds what one try gave, or the medians of several. Times are milliseconds; 0 says that
// there is none.
type outcome struct {
	Run     int     `json:"run,omitempty"` // from 1; 0: medians, or a service that could not be made
	Failure string  `json:"error,omitempty"`
	Heard   string  `json:"heard,omitempty"`
	Text    string  `json:"text,omitempty"`     // of the answer
	First   float64 `json:"first_ms,omitempty"` // to the first sound or word; of a recogniser from the beginning of the speech
	Total   float64 `json:"total_ms,omitempty"` // to the end; of a recogniser from the end of the speech to the final text
	Sound   float64 `json:"sound_ms,omitempty"` // how long the speech of the service is
	Wrong   float64 `json:"wrong,omitempty"`    // the part of the signs that were misheard, 0 to 1
	Tool    tool    `json:"tool,omitempty"`
	Numbers int     `json:"numbers,omitempty"` // in a vector
	Sent    int     `json:"tokens_sent,omitempty"`
	Made    int     `json:"tokens_made,omitempty"`
	Cost    float64 `json:"cost,omitempty"`

	times func(outcome) string // tells the times to people
}

// tool says what became of the tool that a question needs.
type tool string

// What may become of it; a sentence needs none.
const (
	called tool = "called"
	missed tool = "not called"
	silent tool = "not taken" // the service takes no tools of others
)

// String tells it to people.
func (t tool) String() string {
	switch t {
	case called:
		return message.Both("services/tool-called")
	case missed:
		return message.Both("services/tool-not-called")
	default:
		return message.Both("services/no-tools")
	}
}

// toolUse says whether the tool was called.
func toolUse(was bool) tool {
	if was {
		return called
	}
	return missed
}

// used takes what a step of a model has used, and its price.
func (o *outcome) used(u providers.Usage, p config.Price) {
	o.Sent, o.Made, o.Cost = u.Prompt, u.Completion, o.Cost+p.Tokens(u)
}

// String tells an outcome to people, in one line.
func (o outcome) String() string {
	said := ""
	switch {
	case o.Heard != "" && o.Text != "":
		said = fmt.Sprintf("%q → %q: ", plainText(o.Heard), plainText(o.Text))
	case o.Heard != "" || o.Text != "":
		said = fmt.Sprintf("%q: ", plainText(o.Heard+o.Text))
	}
	said += o.times(o)
	if o.Sent > 0 || o.Made > 0 {
		said += "; " + message.Both("services/tokens", o.Sent, o.Made)
	}
	if o.Tool != "" {
		said += "; " + o.Tool.String()
	}
	return said + cost(o.Cost)
}

// tested holds what came of all tries of a service in a role.
type tested struct {
	Role    service.Role `json:"role"`
	About   string       `json:"about,omitempty"`
	Runs    []outcome    `json:"runs"`
	Medians []outcome    `json:"medians,omitempty"` // of speech to speech two: of the sentence, and of the question
}

// add takes the outcomes of one more try.
func (t *tested) add(run int, all []outcome) {
	for i := range all {
		all[i].Run = run
	}
	t.Runs = append(t.Runs, all...)
}

// summarise makes the medians of several tries that worked, each of so many steps.
func (t *tested) summarise(steps int) (of int) {
	var worked []outcome
	for _, o := range t.Runs {
		if o.Failure == "" {
			worked = append(worked, o)
		}
	}
	if of = len(worked) / max(steps, 1); of < 2 {
		return of
	}
	for step := range steps {
		middle := func(get func(outcome) float64) float64 {
			var all []float64
			for i := step; i < len(worked); i += steps {
				all = append(all, get(worked[i]))
			}
			slices.Sort(all)
			return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
		}
		t.Medians = append(t.Medians, outcome{
			First: middle(func(o outcome) float64 { return o.First }), Total: middle(func(o outcome) float64 { return o.Total }),
			Sound: middle(func(o outcome) float64 { return o.Sound }), Wrong: middle(func(o outcome) float64 { return o.Wrong }),
			times: worked[step].times,
		})
	}
	return of
}

// writeJSON writes what programs read.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// inMS returns a time in milliseconds, to the hundredth.
func inMS(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

// ms shows milliseconds, whole.
func ms(f float64) string { return fmt.Sprintf("%.0f ms", f) }
