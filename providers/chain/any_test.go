package chain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

// anyStep is what a member might do. answers says that text or a call comes
// from it, if it is given time; stuck that it hangs after it was seen thinking,
// for which a chain has no cure but its members' own time-outs.
func anyStep(dice *rand.Rand, label string) (step pt.Step, answers, stuck bool) {
	thinks := false
	for range dice.IntN(5) {
		part := pt.Part{Delay: time.Duration(dice.IntN(4)) * 700 * time.Millisecond}
		switch dice.IntN(8) {
		case 0:
			part.Err = unavailable(label)
			return append(step, part), answers, false
		case 1:
			part.Hang = true
			return append(step, part), answers, thinks && !answers
		case 2:
			part.Delta.Thought = "hm"
			thinks = true
		case 3: // an empty delta
		case 4:
			part.Delta.ToolCalls = []providers.ToolCall{{ID: label, Name: label}}
			answers = true
		default:
			part.Delta.Text = label
			answers = true
		}
		step = append(step, part)
	}
	return step, answers, false
}

// TestLLMRandomMembers plays chains of members that answer, think, call,
// fail, hang or say nothing, at any pace. Whoever listens hears one of them, or
// one error; nobody is left running; and the last resort speaks for nobody who
// is only late.
func TestLLMRandomMembers(t *testing.T) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 3))
			var members []providers.LLM
			var fakes []*pt.LLM
			anyAnswers, anyStuck := false, false
			for i := range 1 + dice.IntN(4) {
				label := string(rune('a' + i))
				step, answers, stuck := anyStep(dice, label)
				anyAnswers, anyStuck = anyAnswers || answers, anyStuck || stuck
				fakes = append(fakes, &pt.LLM{Label: label, Script: []pt.Step{step}})
				members = append(members, fakes[i])
			}
			last := &pt.LLM{Label: "z", Last: true, Script: []pt.Step{pt.Say("z")}}
			withLast := dice.IntN(2) == 0
			if withLast {
				members = append([]providers.LLM{last}, members...) // wherever it stands
			}
			chain := newLLM(t, Options{}, members...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			leaveAfter := -1
			if dice.IntN(4) == 0 {
				leaveAfter = dice.IntN(3)
			}
			said, who, failed, n := "", map[string]bool{}, error(nil), 0
			for d, err := range chain.Generate(ctx, providers.LLMRequest{}) {
				if failed != nil {
					t.Errorf("seed %d: something comes after the error %v", seed, failed)
				}
				if failed = err; err == nil {
					said += d.Text
					for _, c := range d.ToolCalls {
						said += c.Name
					}
					if d.Text != "" || len(d.ToolCalls) > 0 {
						who[d.Provider] = true
					}
				}
				if n++; n-1 == leaveAfter {
					break
				}
			}
			left := leaveAfter >= 0 && n > leaveAfter
			story := fmt.Sprintf("seed %d: said %q by %v, error %v", seed, said, who, failed)
			if len(who) > 1 || len(strings.Trim(said, said[:min(1, len(said))])) > 0 || said != "" && !who[said[:1]] {
				t.Errorf("%s: more than one speaks", story)
			}
			if anyAnswers && !anyStuck && said == "" && !left {
				t.Errorf("%s: a model that would have answered was not heard", story)
			}
			if said == "" && failed == nil && !left {
				t.Errorf("%s: neither an answer nor an error", story)
			}
			synctest.Wait()
			for _, f := range append(fakes, last) {
				for _, a := range f.Asked() {
					if !a.Ended {
						t.Errorf("%s: the request of %s is open", story, f.Name())
					}
				}
			}
			if len(last.Asked()) > 0 {
				for _, f := range fakes {
					if len(f.Asked()) != 1 || f.Asked()[0].Cancelled {
						t.Errorf("%s: the last resort was asked while %s was not done", story, f.Name())
					}
				}
			}
			if withLast && said == "" && !left && !errors.Is(failed, context.DeadlineExceeded) {
				t.Errorf("%s: the last resort did not speak", story)
			}
		})
	}
}
