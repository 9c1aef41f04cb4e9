package memory

import (
	"context"
	"slices"
	"strings"
	"sync"

	"xiaozhi/mcp/rawjson"
)

// Profile is what is known of one owner, while conversations use it. Its methods may be called at the same time.
type Profile struct {
	owner Owner
	users int           // guarded by Book.mu
	ready chan struct{} // closed when it was read

	mu    sync.Mutex
	known Known
	index *index // of known.Facts; nil: not made yet
}

const (
	// alwaysBytes is how much of facts a model is always given; what does not fit is looked for with each turn.
	alwaysBytes = 1600
	// foundFacts is how many of the others a turn is given at most.
	foundFacts = 8
)

// set replaces what is known.
func (p *Profile) set(k Known) {
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortStableFunc(k.Facts, func(a, b Fact) int { // what matters most first
		if a.Told != b.Told {
			if a.Told {
				return -1
			}
			return 1
		}
		return b.At.Compare(a.At)
	})
	p.known, p.index = k, nil
}

// wait waits until the profile was read, or ctx ends. What was read is there for a ctx that has ended, too.
func (p *Profile) wait(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	default:
	}
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Known returns what is known; it waits until that was read, or ctx ends.
func (p *Profile) Known(ctx context.Context) (Known, error) {
	if err := p.wait(ctx); err != nil {
		return Known{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Known{slices.Clone(p.known.Facts), p.known.Summary}, nil
}

// Find returns the facts that have to do with words, the best first.
func (p *Profile) Find(ctx context.Context, words string, most int) ([]Fact, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.find(words, most), nil
}

func (p *Profile) find(words string, most int) (found []Fact) {
	if p.index == nil {
		texts := make([]string, len(p.known.Facts))
		for i, f := range p.known.Facts {
			texts[i] = f.Text + " " + f.Keys + " " + f.Person
		}
		p.index = newIndex(texts)
	}
	for _, h := range p.index.find(words, most) {
		found = append(found, p.known.Facts[h.place])
	}
	return found
}

// Notes are what a model is told. Each text is JSON, so that nothing in it can look like a message.
type Notes struct {
	Always string // the same from turn to turn, while nothing is learned; "": nothing
	Found  string // what else has to do with the words; "": nothing
}

// Notes returns what a model should know before it answers words. What was not read in time is left out: ctx bounds it.
// facts: false gives the summary alone.
func (p *Profile) Notes(ctx context.Context, words string, facts bool) (n Notes) {
	if err := p.wait(ctx); err != nil {
		return n
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var always, found []string
	if facts {
		size, given := 0, map[string]bool{}
		for _, f := range p.known.Facts {
			if size += len(f.Text); size > alwaysBytes {
				break
			}
			always, given[f.ID] = append(always, f.line()), true
		}
		if len(given) < len(p.known.Facts) {
			for _, f := range p.find(words, foundFacts+len(given)) {
				if !given[f.ID] && len(found) < foundFacts {
					found = append(found, f.line())
				}
			}
		}
	}
	n.Always, n.Found = encode(p.known.Summary.Text, always), encode("", found)
	return n
}

// line is a fact as a model sees it.
func (f *Fact) line() string {
	if f.Person == "" {
		return f.Text
	}
	return f.Person + ": " + f.Text
}

// encode writes notes as one line of JSON; "": there is nothing.
func encode(before string, facts []string) string {
	if before == "" && len(facts) == 0 {
		return ""
	}
	data, err := rawjson.Marshal(struct {
		Before string   `json:"before,omitempty"`
		Facts  []string `json:"facts,omitempty"`
	}{before, facts})
	if err != nil {
		return "" // texts always have a form
	}
	return strings.TrimSpace(string(data))
}
