package knowledge

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sort"

	"xiaozhi/internal/text/search"
	"xiaozhi/knowledge/reader"
)

// index finds the pieces of one document by their terms. It is made once and does not change, so that searches need no lock.
//
// Terms are kept as hashes of 32 bits: of a document with 5,000 terms one in a million others is taken for one of them.
type index struct {
	terms    []uint32 // hashes, sorted
	at       []uint32 // where the list of each begins in lists, and the end of the last
	lists    []byte   // for each term the number of pieces that have it, then for each piece, from the one before, twice the distance, and one more if how often follows
	lengths  []uint16 // of the pieces, in terms
	total    int      // of the lengths
	vectors  []byte   // of the pieces, quantised, one after the other; nil: none were made
	distance int      // from a vector to the next, in bytes
}

// size returns how much memory the index takes, in bytes.
func (x *index) size() int {
	return 4*len(x.terms) + 4*len(x.at) + len(x.lists) + 2*len(x.lengths) + len(x.vectors) + 200
}

// occurrence is a term in a piece.
type occurrence struct {
	term  uint32
	piece uint32
	often uint32
}

const mostOften = 100 // what a term counts at most in one piece

// hashOf returns the term as indexes have it.
func hashOf(seed maphash.Seed, term string) uint32 { return uint32(maphash.String(seed, term)) }

// newIndex makes the index of a document. Its name and its title are found in each of its pieces.
func newIndex(seed maphash.Seed, d *Document, pieces []reader.Piece) *index {
	x := &index{lengths: make([]uint16, len(pieces))}
	named := termsOf(seed, nil, d.Name+"\n"+d.Title)
	named = slices.Compact(named)
	var all []occurrence
	var own []uint32
	for i, p := range pieces {
		own = termsOf(seed, own[:0], p.Heading)
		own = termsOf(seed, own, p.Text)
		x.lengths[i] = uint16(min(len(own), 1<<16-1))
		x.total += int(x.lengths[i])
		own = append(own, named...)
		slices.Sort(own)
		for begin := 0; begin < len(own); {
			end := begin + 1
			for end < len(own) && own[end] == own[begin] {
				end++
			}
			all = append(all, occurrence{own[begin], uint32(i), uint32(min(end-begin, mostOften))})
			begin = end
		}
	}
	slices.SortFunc(all, func(a, b occurrence) int { return cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.piece, b.piece)) })
	x.pack(all)
	return x
}

// pack writes the lists of all terms.
func (x *index) pack(all []occurrence) {
	distinct := 0
	for i := range all {
		if i == 0 || all[i].term != all[i-1].term {
			distinct++
		}
	}
	x.terms, x.at = make([]uint32, 0, distinct), make([]uint32, 0, distinct+1)
	lists := make([]byte, 0, 2*len(all))
	for begin := 0; begin < len(all); {
		end := begin + 1
		for end < len(all) && all[end].term == all[begin].term {
			end++
		}
		x.terms, x.at = append(x.terms, all[begin].term), append(x.at, uint32(len(lists)))
		lists = binary.AppendUvarint(lists, uint64(end-begin))
		before := uint32(0)
		for _, o := range all[begin:end] {
			distance := uint64(o.piece-before) << 1
			if o.often > 1 {
				lists = binary.AppendUvarint(lists, distance|1)
				lists = append(lists, byte(o.often))
			} else {
				lists = binary.AppendUvarint(lists, distance)
			}
			before = o.piece
		}
		begin = end
	}
	x.at = append(x.at, uint32(len(lists)))
	x.lists = slices.Clip(lists)
}

// list returns the list of a term with the number of pieces in it; 0: no piece has it.
func (x *index) list(term uint32) (list []byte, n int) {
	i := sort.Search(len(x.terms), func(i int) bool { return x.terms[i] >= term })
	if i == len(x.terms) || x.terms[i] != term {
		return nil, 0
	}
	list = x.lists[x.at[i]:x.at[i+1]]
	count, used := binary.Uvarint(list)
	return list[used:], int(count)
}

// unpack gives the pieces of a list.
func unpack(list []byte, give func(piece, often int)) {
	piece := 0
	for len(list) > 0 {
		v, used := binary.Uvarint(list)
		if used <= 0 {
			return
		}
		list = list[used:]
		piece += int(v >> 1)
		often := 1
		if v&1 != 0 && len(list) > 0 {
			often, list = int(list[0]), list[1:]
		}
		give(piece, often)
	}
}

// termsOf appends the terms of a text to a list.
func termsOf(seed maphash.Seed, all []uint32, s string) []uint32 {
	search.Each(s, idle, func(term string, _ float64) { all = append(all, hashOf(seed, term)) })
	return all
}

// idle reports whether a term is one by which nothing is found in a document. Those of Chinese are in so many pieces that
// their rarity says so.
func idle(term string) bool {
	switch term {
	case "a", "an", "the", "of", "to", "in", "and", "or", "is", "are", "be", "it", "on", "at", "by", "as", "s", "t":
		return true
	}
	return false
}
