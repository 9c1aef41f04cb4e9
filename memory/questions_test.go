package memory

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/providers/providertest"
)

// household is what is remembered of one, and what it asks, of testdata.
type household struct {
	facts     map[int]Fact
	questions []asking
}

// asking is a question, and the facts that answer it.
type asking struct {
	category, words string
	facts           []int
}

// rows yields the lines of a file that say something.
func rows(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(data), "\n"), func(l string) bool { return l == "" || strings.HasPrefix(l, "#") })
}

func readHousehold(t *testing.T, lang string) (h household) {
	t.Helper()
	h.facts = map[int]Fact{}
	var day time.Time
	number := func(s string) int {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, row := range rows(t, "facts."+lang+".txt") {
		var err error
		if date, ok := strings.CutPrefix(row, "== "); ok {
			if day, err = time.Parse(time.DateOnly, date); err != nil {
				t.Fatal(err)
			}
			continue
		}
		cells := strings.Split(row, "|")
		if len(cells) != 3 {
			t.Fatalf("%q", row)
		}
		id, old, replaces := strings.Cut(cells[0], ">")
		n := number(id)
		day = day.Add(time.Minute)
		if h.facts[n].ID != "" {
			t.Fatalf("%d is there twice", n)
		}
		h.facts[n] = Fact{ID: fmt.Sprintf("%03d", n), Owner: kitchen, Text: strings.TrimSpace(cells[1]), Keys: strings.TrimSpace(cells[2]), At: day, Sure: 90}
		if replaces {
			before, ok := h.facts[number(old)]
			if !ok {
				t.Fatalf("%q replaces nothing", row)
			}
			before.Ended, before.By = day, h.facts[n].ID
			h.facts[number(old)] = before
		}
	}
	for _, row := range rows(t, "questions."+lang+".txt") {
		cells := strings.Split(row, "|")
		if len(cells) != 3 {
			t.Fatalf("%q", row)
		}
		q := asking{category: strings.TrimSpace(cells[0]), words: strings.TrimSpace(cells[1])}
		for n := range strings.FieldsSeq(cells[2]) {
			if f := h.facts[number(n)]; f.ID == "" || !f.Ended.IsZero() {
				t.Fatalf("%q is answered by %s, which does not hold", q.words, n)
			}
			q.facts = append(q.facts, number(n))
		}
		h.questions = append(h.questions, q)
	}
	return h
}

// score counts questions that were answered.
type score struct{ right, of int }

func (s *score) add(right bool) {
	if s.of++; right {
		s.right++
	}
}

func (s score) percent() float64 { return 100 * float64(s.right) / float64(max(s.of, 1)) }

func (s score) String() string { return fmt.Sprintf("%d of %d (%.0f %%)", s.right, s.of, s.percent()) }

// answered is how a book answers the questions of a household.
type answered struct {
	told   score            // the model is told the facts that answer it
	sought score            // of those that are not always told
	by     map[string]score // by category
	old    []string         // facts that hold no more and were told all the same
	missed []string
}

// askAll asks all questions as a turn does.
func askAll(r *rig, h household) (a answered) {
	a.by = map[string]score{}
	p := r.open(kitchen)
	defer p.Close()
	for _, q := range h.questions {
		n := p.Notes(r.Context(), q.words, true)
		told, always := true, true
		for _, f := range q.facts {
			line := h.facts[f].Text
			always = always && strings.Contains(n.Always, line)
			told = told && strings.Contains(n.Always+n.Found, line)
		}
		a.told.add(told)
		if !always {
			a.sought.add(told)
		}
		s := a.by[q.category]
		s.add(told)
		a.by[q.category] = s
		if !told {
			a.missed = append(a.missed, q.words)
		}
		for _, f := range h.facts {
			if !f.Ended.IsZero() && strings.Contains(n.Always+n.Found, f.Text) {
				a.old = append(a.old, q.words+": "+f.Text)
			}
		}
	}
	return a
}

// TestQuestions asks what testdata/README.md describes, by words alone and with vectors beside them: of the questions whose facts a model is not
// always told, nine of ten bring theirs, and a fact that holds no more is never told.
func TestQuestions(t *testing.T) {
	for _, lang := range []string{"en", "zh"} {
		for _, how := range []string{"words", "words without keys", "words and vectors"} {
			t.Run(lang+", "+how, func(t *testing.T) {
				h := readHousehold(t, lang)
				var a answered
				inTime(t, nil, func(r *rig) {
					for _, f := range h.facts {
						if how == "words without keys" {
							f.Keys = ""
						}
						r.shelf.facts[f.ID] = f
					}
					if how == "words and vectors" {
						r.embedder.Store(&providertest.Embedder{Dims: 1024})
						r.EmbedderChanged()
						synctest.Wait()
					}
					a = askAll(r, h)
				})
				t.Logf("%d facts, %d questions: their facts are told for %v, for %v of those whose facts are not told anyway; %v", len(h.facts), len(h.questions), a.told, a.sought, a.by)
				for _, q := range a.missed {
					t.Logf("missed: %s", q)
				}
				if a.told.percent() < 90 || a.sought.percent() < 90 || len(h.questions) < 100 || len(h.facts) < 100 {
					t.Errorf("told for %v, %v of those that are looked for", a.told, a.sought)
				}
				if len(a.old) > 0 {
					t.Errorf("what holds no more is told: %q", a.old)
				}
			})
		}
	}
}
