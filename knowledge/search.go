package knowledge

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/search"
)

// Bounds of a search.
const (
	maxQuery    = 600 // bytes
	maxTerms    = 64
	candidates  = 40               // pieces that are looked at closer
	lengthPart  = 0.6              // of BM25: pieces differ little in length
	least       = 0.2              // of what a query asks for that a piece must have, by rarity among
	usualPieces = 1000             // pieces at least: where there are few, each term is in many of them
	loadingTime = 5 * time.Second  // that a search waits for indexes that are being made
	fetchTime   = 10 * time.Second // for the store
)

// Found is a piece that answers a query.
type Found struct {
	Document Document
	Piece    Piece
	Score    float64 // of the query; it can only be compared with others of the same
}

// ErrLoading says that the documents of an agent are not there yet, since the program has just begun.
var ErrLoading = errors.New("the documents are still being loaded")

// Search finds what the documents of an agent say, the best first, until they have so many characters. It finds nothing
// rather than what has little to do with the query.
func (l *Library) Search(ctx context.Context, agent, query string, chars int) ([]Found, error) {
	query = text.Cut(strings.Join(strings.Fields(query), " "), maxQuery)
	volumes, err := l.volumes(ctx, agent)
	if err != nil || len(volumes) == 0 {
		return nil, err
	}
	hits := byWords(l.seed, query, volumes)
	hits = l.byMeaning(ctx, query, volumes, hits)
	return l.fetch(ctx, agent, hits, chars)
}

// volume is a document with its index, as a search sees both.
type volume struct {
	id    string
	index *index
}

// hit is a piece that was found.
type hit struct {
	volume *volume
	piece  int
	score  float64
}

// better sorts hits, the best first.
func better(a, b hit) int {
	return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.volume.id, b.volume.id), cmp.Compare(a.piece, b.piece))
}

// asked is a term of a query.
type asked struct {
	hash   uint32
	weight float64
	rarity float64
	part   float64 // of what the query asks for
}

// askedOf returns the terms of a query, without those that only ask if it has others.
func askedOf(seed maphash.Seed, query string) []asked {
	asks := search.Asking()
	if all := termsAsked(seed, query, func(term string) bool { return idle(term) || asks(term) }); len(all) > 0 {
		return all
	}
	return termsAsked(seed, query, idle)
}

func termsAsked(seed maphash.Seed, query string, skip func(term string) bool) (all []asked) {
	search.Each(query, skip, func(term string, weight float64) {
		a := asked{hash: hashOf(seed, term), weight: weight}
		if len(all) < maxTerms && !slices.ContainsFunc(all, func(b asked) bool { return b.hash == a.hash }) {
			all = append(all, a)
		}
	})
	return all
}

// byWords finds pieces by BM25.
func byWords(seed maphash.Seed, query string, volumes []volume) []hit {
	terms := askedOf(seed, query)
	pieces, length := 0, 0
	lists := make([][]byte, len(volumes)*len(terms))
	in := make([]int, len(terms))
	for v := range volumes {
		x := volumes[v].index
		pieces, length = pieces+len(x.lengths), length+x.total
		for t := range terms {
			list, n := x.list(terms[t].hash)
			lists[v*len(terms)+t] = list
			in[t] += n
		}
	}
	mean, whole := float64(max(length, 1))/float64(max(pieces, 1)), 0.0
	for t := range terms {
		terms[t].rarity = search.Rarity(in[t], pieces)
		terms[t].part = search.Rarity(in[t], max(pieces, usualPieces)) * terms[t].weight
		whole += terms[t].part
	}
	var hits []hit
	var scores, parts []float64
	for v := range volumes {
		x := volumes[v].index
		scores, parts = zeros(scores, len(x.lengths)), zeros(parts, len(x.lengths))
		for t, a := range terms {
			unpack(lists[v*len(terms)+t], func(piece, often int) {
				scores[piece] += search.Weight(a.rarity, a.weight, float64(often), float64(x.lengths[piece])/mean, lengthPart)
				parts[piece] += a.part
			})
		}
		for piece, score := range scores {
			if parts[piece] >= least*whole && score > 0 {
				hits = append(hits, hit{&volumes[v], piece, score})
			}
		}
		if len(hits) > 4*candidates {
			slices.SortFunc(hits, better)
			hits = hits[:candidates]
		}
	}
	slices.SortFunc(hits, better)
	return hits[:min(len(hits), candidates)]
}

// zeros returns a list of n zeros, in the room of another one.
func zeros(room []float64, n int) []float64 {
	if cap(room) < n {
		return make([]float64, n)
	}
	room = room[:n]
	clear(room)
	return room
}

// fetch reads the text of hits until they have so many characters. A text that is in several documents comes once.
func (l *Library) fetch(ctx context.Context, agent string, hits []hit, chars int) (found []Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	seen := map[string]bool{}
	for _, h := range hits {
		if chars <= 0 {
			break
		}
		d, ok := l.kept.document(agent, h.volume.id)
		if !ok {
			continue // it has just been deleted
		}
		pieces, err := l.o.Store.Pieces(ctx, h.volume.id, h.piece)
		if err != nil {
			return nil, err
		}
		for _, p := range pieces {
			if seen[p.Text] {
				continue
			}
			seen[p.Text] = true
			if n := utf8.RuneCountInString(p.Text); n > chars && len(found) > 0 {
				return found, nil
			} else if n > chars {
				p.Text = string([]rune(p.Text)[:chars])
			}
			chars -= utf8.RuneCountInString(p.Text)
			found = append(found, Found{d, p, h.score})
		}
	}
	return found, nil
}
