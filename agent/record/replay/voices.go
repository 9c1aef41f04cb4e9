package replay

import (
	"context"
	"sync"
	"time"

	"xiaozhi/agent/record"
	voicebook "xiaozhi/voices"
)

// voices say again who was taken to be speaking.
type voices struct {
	*player

	mu      sync.Mutex
	certain map[voicebook.Speaker]bool
}

// On reports whether anybody could be known at this time.
func (v *voices) On() bool {
	on, _ := latest(v.known, v.now()+v.o.Within)
	return on
}

// Identify returns who was taken to be speaking, when that was found out.
func (v *voices) Identify(ctx context.Context, _ []int16) voicebook.Speaker {
	said := v.voice.next()
	if len(said) == 0 || v.until(ctx, said[0].at) != nil {
		return voicebook.Speaker{}
	}
	who := said[0].v
	v.mu.Lock()
	defer v.mu.Unlock()
	v.certain[who.Speaker] = who.Certain
	return who.Speaker
}

// Certain reports what was said of a speaker that it has returned.
func (v *voices) Certain(s voicebook.Speaker) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.certain[s]
}

// agentOf names the agent that a person talked to at this time.
func (p *player) agentOf(person string) string {
	agent, _ := latest(p.agents[person], p.now()+p.o.Within)
	return agent
}

// sortVoice puts what was known of voices where it is looked for.
func (p *player) sortVoice(at time.Duration, e record.Voice) {
	switch {
	case e.N > 0:
		p.voice.add(e.N, at, e)
	case e.Person != "":
		p.agents[e.Person] = append(p.agents[e.Person], step[string]{at, e.Agent})
	default:
		p.known = append(p.known, step[bool]{at, e.On})
	}
}
