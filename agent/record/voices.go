package record

import (
	"context"
	"sync"

	"xiaozhi/agent/identify"
	"xiaozhi/voices"
)

// Voice says who was taken to be speaking, or, where N is 0, what is so from now on: whether anybody can be known, or, with a
// Person, whom they talk to.
type Voice struct {
	N       int            `json:"n"`
	Speaker voices.Speaker `json:"speaker,omitzero"`
	Certain bool           `json:"certain,omitempty"`
	On      bool           `json:"on,omitempty"`
	Person  string         `json:"person,omitempty"`
	Agent   string         `json:"agent,omitempty"`
}

// tapedVoices records who was taken to be speaking, when that was found out.
type tapedVoices struct {
	identify.Book

	tape *Tape
	mu   sync.Mutex
	on   bool
}

// On reports whether there is anybody to be known, and records that where it changes.
func (v *tapedVoices) On() bool {
	on := v.Book.On()
	v.mu.Lock()
	defer v.mu.Unlock()
	if on != v.on {
		v.on = on
		v.tape.add(Entry{Voice: &Voice{On: on}})
	}
	return on
}

// Identify records who is taken to be speaking.
func (v *tapedVoices) Identify(ctx context.Context, pcm []int16) voices.Speaker {
	n := v.tape.count("voice")
	who := v.Book.Identify(ctx, pcm)
	v.tape.add(Entry{Voice: &Voice{N: n, Speaker: who, Certain: v.Certain(who)}})
	return who
}

// agentOf records whom people talk to, where that changes.
func (t *Tape) agentOf(agentOf func(person string) string) func(person string) string {
	var mu sync.Mutex
	told := map[string]string{}
	return func(person string) string {
		agent := agentOf(person)
		mu.Lock()
		defer mu.Unlock()
		if before, known := told[person]; !known && agent != "" || known && before != agent {
			told[person] = agent
			t.add(Entry{Voice: &Voice{Person: person, Agent: agent}})
		}
		return agent
	}
}
