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
	book  *Book
	owner Owner
	users int           // guarded by Book.mu
	ready chan struct{} // closed when it was read

	mu    sync.Mutex
	known Known
	index *index         // of known.Facts; nil: not made yet
	at    map[string]int // places in known.Facts by ids; made with index
	last  *question      // that was not answered in time; nil: it was
}

const (
	// alwaysBytes is how much of facts a model is always given; what does not fit is looked for with each turn.
	alwaysBytes = 1600
	// foundFacts is how many of the others a turn is given at most.
	foundFacts = 8
	// lateFacts is how many of these may be such that were meant by what was said before.
	lateFacts = 3
	// searched is how many facts are looked at of those that were found in one way.
	searched = 40
)

// Close gives the profile back to its book.
func (p *Profile) Close() { p.book.leave(p) }

// set replaces what is known. What a service has learned may tell the assistant what to do: that is no fact.
func (p *Profile) set(k Known) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k.Facts = slices.DeleteFunc(k.Facts, func(f Fact) bool { return !f.Told && orders(f.Text) })
	slices.SortStableFunc(k.Facts, func(a, b Fact) int { // what matters most first
		if a.Told != b.Told {
			if a.Told {
				return -1
			}
			return 1
		}
		return b.At.Compare(a.At)
	})
	p.known, p.index, p.at = k, nil, nil
	if p.given() < len(k.Facts) {
		p.makeIndex() // no turn waits for it
	}
}

// given counts the facts that a model is always given: the first ones.
func (p *Profile) given() int {
	size := 0
	for i := range p.known.Facts {
		if size += len(p.known.Facts[i].Text); size > alwaysBytes {
			return i
		}
	}
	return len(p.known.Facts)
}

func (p *Profile) makeIndex() {
	texts := make([]string, len(p.known.Facts))
	p.at = make(map[string]int, len(texts))
	for i, f := range p.known.Facts {
		texts[i], p.at[f.ID] = f.Text+" "+f.Keys+" "+f.Person, i
	}
	p.index = newIndex(texts)
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

// Find returns the facts that have to do with words, the best first: those that share words with them, and those that surely mean
// something alike. It waits for a service no longer than ctx allows.
func (p *Profile) Find(ctx context.Context, words string, most int) ([]Fact, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	meant, _ := p.book.asker.ask(p.owner, words).wait(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	meant = slices.DeleteFunc(slices.Clone(meant), func(n near) bool { return n.out < surely })
	return p.facts(fuse(p.byWords(words), meant, p.at), most), nil
}

// Named returns the facts that share words with some, the best first.
func (p *Profile) Named(ctx context.Context, words string, most int) ([]Fact, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.facts(fuse(p.byWords(words), nil, p.at), most), nil
}

// byWords finds facts by words.
func (p *Profile) byWords(words string) []hit {
	if p.index == nil {
		p.makeIndex()
	}
	return p.index.find(words, searched)
}

// facts are those at places of what is known.
func (p *Profile) facts(places []int, most int) (all []Fact) {
	for _, place := range places[:min(most, len(places))] {
		all = append(all, p.known.Facts[place])
	}
	return all
}

// Notes are what a model is told. Each text is JSON, so that nothing in it can look like a message.
type Notes struct {
	Always string // the same from turn to turn, while nothing is learned; "": nothing
	Found  string // what else has to do with the words; "": nothing
}

// Notes returns what a model should know before it answers words. What was not read in time is left out, and what has to do with them
// by its meaning alone, if that is not known in time: ctx bounds it. facts: false gives the summary alone.
func (p *Profile) Notes(ctx context.Context, words string, facts bool) (n Notes) {
	if err := p.wait(ctx); err != nil {
		return n
	}
	var always, found []string
	p.mu.Lock()
	summary, given, all := p.known.Summary.Text, 0, len(p.known.Facts)
	if facts {
		given = p.given()
		for _, f := range p.known.Facts[:given] {
			always = append(always, f.line())
		}
	}
	p.mu.Unlock()
	if facts && given < all {
		for _, f := range p.others(ctx, words) {
			found = append(found, f.line())
		}
	}
	n.Always, n.Found = encode(summary, always), encode("", found)
	return n
}

// others finds facts beside those that a model is always given.
func (p *Profile) others(ctx context.Context, words string) (found []Fact) {
	q := p.book.asker.ask(p.owner, words) // while words are looked for
	p.mu.Lock()
	hits, last, known := p.byWords(words), p.last, p.index
	p.mu.Unlock()
	meant, answered := q.wait(ctx)
	if !answered {
		late := last.late()
		meant = slices.DeleteFunc(late[:min(lateFacts, len(late))], func(n near) bool { return n.out < surely })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last = nil; !answered {
		p.last = q
	}
	if p.index != known { // something was learned or forgotten meanwhile
		hits = p.byWords(words)
	}
	given := p.given()
	places := slices.DeleteFunc(fuse(hits, meant, p.at), func(place int) bool { return place < given })
	return p.facts(places, foundFacts)
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
