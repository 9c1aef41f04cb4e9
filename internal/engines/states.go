package engines

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// StatesPath is where a running server tells its owner how its services are.
const StatesPath = "/api/services"

// States is the answer to GET /api/services.
type States struct {
	Chains []ChainState `json:"chains"`
}

// ChainState is a chain, with its members in the order in which they are asked.
type ChainState struct {
	Role    service.Role  `json:"role"`
	Agents  []string      `json:"agents,omitempty"` // that have it for themselves; none: it is that of all
	Members []MemberState `json:"members"`
}

// MemberState is a member of a chain in a running server. It holds no key, and no address but its host and path.
type MemberState struct {
	Name      string          `json:"name"`
	About     string          `json:"about,omitempty"`
	Condition chain.Condition `json:"condition"` // "left_out": it could not be made
	Failures  int             `json:"failures,omitempty"`
	Rest      int64           `json:"rest_ms,omitempty"`  // until it is tried again
	First     float64         `json:"first_ms,omitempty"` // of its last result
	Given     time.Time       `json:"given,omitzero"`
	Fault     string          `json:"fault,omitempty"` // of its last failure, in both languages, or why it is left out
	Failed    time.Time       `json:"failed,omitzero"`

	Cause error `json:"-"` // of Fault; nil: there is none
	Free  bool  `json:"-"` // it has no keys
}

// LeftOut is the condition of a member that could not be made.
const LeftOut chain.Condition = "left_out"

// stater is a chain that knows how its members are.
type stater interface{ States() []chain.State }

// StatesOf lists the chains of all, then those of agents; one that several agents have stands once. left tells what could
// not be made, by role and name.
func StatesOf(cfg *config.Config, main Chains, agents iter.Seq2[string, Chains], left map[string]error) States {
	kinds, all := catalog.Kinds(), States{}
	seen := map[stater]int{}
	add := func(role service.Role, agent string, provider any) {
		s, ok := provider.(stater)
		if i, again := seen[s]; ok && again {
			if of := &all.Chains[i]; agent != "" && len(of.Agents) > 0 {
				of.Agents = append(of.Agents, agent)
			}
			return
		}
		c := ChainState{Role: role, Members: []MemberState{}}
		if agent != "" {
			c.Agents = []string{agent}
		}
		if ok {
			seen[s] = len(all.Chains)
			for _, m := range s.States() {
				c.Members = append(c.Members, memberState(m, IsFree(cfg, kinds, m.Name)))
			}
		}
		if agent == "" {
			c.Members = append(c.Members, leftOut(left, role)...)
		}
		if agent == "" || ok {
			all.Chains = append(all.Chains, c)
		}
	}
	each := func(agent string, e Chains) {
		add(service.ASR, agent, e.ASR)
		add(service.LLM, agent, e.LLM)
		add(service.TTS, agent, e.TTS)
		add(service.Vision, agent, e.Vision)
		add(service.Realtime, agent, e.Duplex)
		if agent == "" {
			add(service.Embed, agent, e.Embed)
		}
		add(service.Voiceprint, agent, e.Voiceprint)
	}
	each("", main)
	for name, e := range agents {
		each(name, e)
	}
	return all
}

// leftOut lists what could not be made for a role.
func leftOut(left map[string]error, role service.Role) (all []MemberState) {
	as := map[service.Role]string{
		service.ASR: "ASR ", service.LLM: "LLM ", service.TTS: "TTS ", service.Vision: "VLM ", service.Realtime: "S2S ",
		service.Embed: "VEC ", service.Voiceprint: "VPR ",
	}[role]
	for key, why := range left {
		if name, ok := strings.CutPrefix(key, as); ok {
			all = append(all, MemberState{Name: name, Condition: LeftOut, Fault: Readable(why), Cause: why})
		}
	}
	slices.SortFunc(all, func(a, b MemberState) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// IsFree reports whether the service of a name is used without a key.
func IsFree(cfg *config.Config, kinds []service.Kind, name string) bool {
	kind, key := name, false
	if p, ok := cfg.Providers[name]; ok {
		kind, key = p.Type, p.APIKey != ""
	}
	k, known := catalog.Find(kinds, kind)
	return known && k.Free && !key
}

// memberState makes a member of the answer.
func memberState(m chain.State, free bool) MemberState {
	s := MemberState{
		Name: m.Name, About: m.About, Condition: m.Condition, Failures: m.Failures, Rest: m.Rest.Milliseconds(),
		First: float64(m.First.Microseconds()) / 1000, Given: m.Given, Failed: m.Failed,
		Cause: m.Fault, Free: free,
	}
	switch {
	case errors.Is(m.Fault, chain.ErrLate):
		s.Fault = message.Both("services/overtaken")
	case m.Fault != nil:
		s.Fault = Why(m.Fault, free)
	}
	return s
}

// Why says in both languages what is wrong with a service that has failed, and then what the service said. free says that
// it has no keys that could be wrong.
func Why(err error, free bool) string {
	cause := transport.CauseOf(err, free)
	if cause == "" {
		return said(err)
	}
	words := said(err)
	if cause == transport.CauseLanguage { // the words begin with the same
		words = strings.TrimPrefix(strings.TrimPrefix(words, providers.ErrLanguage.Error()), ": ")
	}
	return strings.TrimSuffix(message.Both(string(cause))+": "+words, ": ")
}

// said returns a provider's words for its failure, without its name.
func said(err error) string {
	if failed, ok := err.(*providers.Error); ok { //nolint:errorlint // one that is wrapped says more
		return transport.Plain(failed.Err)
	}
	return transport.Plain(err)
}
