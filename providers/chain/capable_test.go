package chain

import (
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

// alone is a model that is asked beside no other.
func alone(name string, step pt.Step) *pt.LLM {
	return &pt.LLM{Label: name, Script: []pt.Step{step}, Can: providers.Capabilities{NoHedge: true, NoTrials: true, Stateful: true, OwnTools: true}}
}

func TestNoHedge(t *testing.T) {
	late := pt.Say("a").After(5 * time.Second)
	for _, tt := range []struct {
		name          string
		first, second *pt.LLM
		provider      string
		at            time.Duration
		asked         int // the second, how often
	}{
		{"nobody is asked beside it", alone("first", late), &pt.LLM{Label: "second", Script: []pt.Step{pt.Say("b")}}, "first", 5 * time.Second, 0},
		{"it is asked beside nobody", &pt.LLM{Label: "first", Script: []pt.Step{late}}, alone("second", pt.Say("b")), "first", 5 * time.Second, 0},
		{"it takes over", &pt.LLM{Label: "first", Script: []pt.Step{{{Delay: 2 * time.Second, Err: unavailable("first")}}}}, alone("second", pt.Say("b")), "second", 2 * time.Second, 1},
		{"it is taken over", alone("first", pt.Fail(unavailable("first"))), &pt.LLM{Label: "second", Script: []pt.Step{pt.Say("b")}}, "second", 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, provider, at, err := think(t.Context(), newLLM(t, Options{}, tt.first, tt.second))
				if err != nil || provider != tt.provider || at[0] != tt.at || len(tt.second.Asked()) != tt.asked {
					t.Errorf("%s at %v, the second was asked %d times, %v", provider, at, len(tt.second.Asked()), err)
				}
			})
		})
	}
}

// A member that takes no trials waits for the request to be certain, and is told
// nothing if it never is.
func TestTrialWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		member := alone("first", pt.Say("a"))
		l := newLLM(t, Options{}, member)
		if !l.Capabilities().NoTrials {
			t.Error("the chain takes trials")
		}
		certain := make(chan struct{})
		time.AfterFunc(time.Second, func() {
			if len(member.Asked()) != 0 {
				t.Error("it was asked on a guess")
			}
			close(certain)
		})
		req := providers.LLMRequest{Certain: certain, Tools: []providers.ToolSpec{{Name: "f"}}, Messages: []providers.Message{
			{Role: providers.RoleSystem, Content: "prompt"}, {Role: providers.RoleUser, Content: "new"},
		}}
		for _, err := range l.Generate(t.Context(), req) {
			if err != nil {
				t.Error(err)
			}
		}
		if asked := member.Asked(); len(asked) != 1 || len(asked[0].Request.Messages) != 1 || asked[0].Request.Tools != nil {
			t.Errorf("asked %+v", asked)
		}
	})
}

// The echo of a member that gives no answer is not that of the one that does.
func TestEchoOfALoser(t *testing.T) {
	first := &pt.LLM{Label: "first", Script: []pt.Step{{{Delta: providers.Delta{Echo: providers.NewEcho("first", "1")}}, {Err: unavailable("first")}}}}
	second := &pt.LLM{Label: "second", Script: []pt.Step{append(pt.Say("b"), pt.Part{Delta: providers.Delta{Echo: providers.NewEcho("second", "2")}})}}
	var echo providers.Echo
	for d, err := range newLLM(t, Options{}, first, second).Generate(t.Context(), providers.LLMRequest{}) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Echo != (providers.Echo{}) {
			echo = d.Echo
			if echo.For("first") != "" {
				t.Error("the loser's echo was handed on")
			}
		}
	}
	if echo.For("second") != "2" {
		t.Errorf("the winner's echo is %+v", echo)
	}
}
