package knowledge

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/testall"
	"xiaozhi/knowledge/reader"
)

// generated is a store of documents that are made whenever they are read, as if they were on a disk. Their lengths are those
// of what households have: half of them below 8 KB, one in a hundred above 150 KB, 20 MB in a thousand. Half are Chinese.
// Words are as frequent as Zipf's law has it.
type generated struct {
	Memory

	docs           []Document
	chinese, latin []string
	odds           []float64 // of words by their rank, summed up
}

const vocabulary = 20000

func generate(n int) *generated {
	g := &generated{Memory: *NewMemory()}
	r := rand.New(rand.NewPCG(1, 2))
	sum := 0.0
	for rank := range vocabulary {
		sum += 1 / float64(rank+3)
		g.odds = append(g.odds, sum)
		han := string([]rune{rune(0x4E00 + r.IntN(3500)), rune(0x4E00 + r.IntN(3500))})
		g.chinese = append(g.chinese, han)
		word := ""
		for range 1 + r.IntN(3) {
			word += string("bcdfghklmnprstvw"[r.IntN(16)]) + string("aeiou"[r.IntN(5)]) + string("lmnrstx"[r.IntN(7)])
		}
		g.latin = append(g.latin, word)
	}
	for i := range n {
		g.docs = append(g.docs, Document{ID: fmt.Sprintf("doc-%04d", i), Agent: "home", Name: fmt.Sprintf("paper %d.pdf", i), State: Ready, Pieces: 1, Reader: reader.Version, ReadAt: time.Unix(1, 0)})
	}
	return g
}

func (g *generated) List(context.Context) ([]Document, int, error) { return g.docs, 0, nil }
func (g *generated) Changes(context.Context) (int, error)          { return 0, nil }

func (g *generated) Pieces(_ context.Context, id string, seqs ...int) (all []Piece, err error) {
	var n int
	if _, err := fmt.Sscanf(id, "doc-%d", &n); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(uint64(n), 7))
	size := int(8000 * math.Exp(1.35*r.NormFloat64())) // bytes
	size = min(max(size, 300), 400<<10)
	words, space := g.latin, " "
	if n%2 == 0 {
		words, space = g.chinese, ""
	}
	for at := 0; size > 0; at++ {
		var b strings.Builder
		for b.Len() < min(1100, size) {
			rank, _ := slices.BinarySearch(g.odds, r.Float64()*g.odds[vocabulary-1])
			b.WriteString(words[min(rank, vocabulary-1)] + space)
		}
		if at == 0 {
			b.WriteString(" The code of this paper is " + fact(n) + ".")
		}
		size -= b.Len()
		if len(seqs) == 0 || slices.Contains(seqs, at) {
			all = append(all, Piece{Piece: reader.Piece{Text: b.String(), At: at}, Seq: at})
		}
	}
	return all, nil
}

// fact is a word that is in one document alone.
func fact(n int) string { return fmt.Sprintf("qz%dx", n*7919) }

// TestThousandDocuments measures the memory of the indexes, and the time of searches.
func TestThousandDocuments(t *testing.T) {
	g := generate(testall.Pick(1000, 10))
	before := heap()
	l, err := Open(t.Context(), Options{Store: g, Folders: func() map[string][]string { return nil }, NewID: func() string { return "" }, Every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began, text, pieces := time.Now(), 0, 0
	for _, d := range g.docs { // as load does, without its rests
		if err := l.index(d); err != nil {
			t.Fatal(err)
		}
		all, _ := g.Pieces(t.Context(), d.ID)
		for _, p := range all {
			text += len(p.Text)
		}
		pieces += len(all)
	}
	close(l.loaded)
	took := time.Since(began)
	used := heap() - before
	t.Logf("%d documents, %.1f MB of text, %d pieces: indexes of %.1f MiB, heap %.1f MiB, made in %v", len(g.docs), float64(text)/1e6, pieces, float64(maxIndexes-l.kept.room())/(1<<20), float64(used)/(1<<20), took)
	if used > 100<<20 {
		t.Errorf("the heap has grown by %d MiB", used>>20)
	}
	var times []time.Duration
	r := rand.New(rand.NewPCG(3, 4))
	for i := range testall.Pick(200, 20) {
		n := r.IntN(len(g.docs))
		query := "what is the code " + fact(n)
		if i%2 == 0 {
			query = g.chinese[r.IntN(300)] + "怎么" + fact(n)
		}
		began := time.Now()
		found, err := l.Search(t.Context(), "home", query, 3000)
		times = append(times, time.Since(began))
		if err != nil || len(found) == 0 || i%2 == 1 && found[0].Document.ID != g.docs[n].ID {
			t.Fatalf("%s: found %d, %v", query, len(found), err)
		}
	}
	slices.Sort(times)
	p50, p95, most := times[len(times)/2], times[len(times)*95/100], times[len(times)-1]
	t.Logf("search: p50 %v, p95 %v, most %v", p50, p95, most)
	if p95 > 50*time.Millisecond && testall.Running() && !testall.Race() { // other programs may take the machine
		t.Errorf("a search takes %v", p95)
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
