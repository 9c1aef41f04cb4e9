package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// answer is what a model finds in a talk.
type answer struct {
	Summary string `json:"summary"`
	Facts   []struct {
		Text     string  `json:"text"`
		Keys     string  `json:"keys"`
		Who      string  `json:"who"`
		Turn     int     `json:"turn"`
		Sure     float64 `json:"sure"`
		Replaces []int   `json:"replaces"`
	} `json:"facts"`
}

var (
	errNoModel = errors.New("no language model answers")
	errNoUse   = errors.New("the model's answer is no JSON of the form that was asked for")
)

// related is how many facts a model is shown that may be contradicted.
const related = 40

// ask has a model read a piece of a talk.
func ask(ctx context.Context, llm providers.LLM, req providers.LLMRequest, r *Run) (string, error) {
	var words strings.Builder
	for d, err := range llm.Generate(ctx, req) {
		if err != nil {
			return "", err
		}
		if d.Fallback {
			return "", errNoModel
		}
		if d.Provider != "" {
			r.Provider = d.Provider
		}
		r.Prompt, r.Answer = r.Prompt+d.Usage.Prompt, r.Answer+d.Usage.Completion
		if words.WriteString(d.Text); words.Len() > maxAnswer {
			return "", errNoUse
		}
	}
	return words.String(), nil
}

const maxAnswer = 64 << 10

// transcript writes turns as a model reads them.
func transcript(said []Said) string {
	var b strings.Builder
	for _, t := range said {
		if t.Heard != "" {
			user := "user"
			if t.Speaker != "" {
				user = "user (" + t.Speaker + ")"
			}
			fmt.Fprintf(&b, "[%d] %s: %s\n", t.Seq, user, oneLine(t.Heard, maxTurn))
		}
		if t.Reply != "" {
			fmt.Fprintf(&b, "[%d] assistant: %s\n", t.Seq, oneLine(t.Reply, maxTurn/4))
		}
	}
	return b.String()
}

// maxTurn is how many bytes of an utterance are read.
const maxTurn = 2000

// requestFor makes the request to read a piece of a talk.
func requestFor(o Owner, lang text.Lang, zone *time.Location, known []Fact, summary string, said []Said) providers.LLMRequest {
	var facts strings.Builder
	for i, f := range known {
		fmt.Fprintf(&facts, "%d. %s\n", i+1, f.Text)
	}
	at := said[len(said)-1].At.In(zone)
	words := prompts.MemoryLearn.In(lang, "date", at.Format(time.DateOnly), "summary", orDash(summary), "facts", orDash(facts.String()), "talk", transcript(said), "length", strconv.Itoa(MaxSummary/4))
	return providers.LLMRequest{
		Messages: []providers.Message{{Role: providers.RoleUser, Content: words}},
		Language: string(lang), Zone: zone, DeviceID: o.Device, AgentID: o.Agent, Conversation: "memory:" + said[0].ID,
	}
}

func orDash(s string) string {
	if strings.TrimSpace(s) == "" {
		return "-"
	}
	return strings.TrimSpace(s)
}

// parse reads a model's answer, whatever stands around its JSON.
func parse(words string) (a answer, err error) {
	start, end := strings.IndexByte(words, '{'), strings.LastIndexByte(words, '}')
	if start < 0 || end < start {
		return a, errNoUse
	}
	if err := json.Unmarshal([]byte(words[start:end+1]), &a); err != nil {
		return a, fmt.Errorf("%w: %w", errNoUse, err)
	}
	return a, nil
}

// accept makes facts of what a model has found: those that a turn of the talk bears out.
func (a *answer) accept(c *Change, owner Owner, lang text.Lang, known []Fact, said []Said, newID func() string) {
	at := map[int]Said{}
	for _, t := range said {
		if t.Heard != "" {
			at[t.Seq] = t
		}
	}
	for _, found := range a.Facts {
		words := oneLine(found.Text, MaxText)
		source, ok := at[found.Turn]
		if len(terms(words)) == 0 || orders(words) || orders(found.Keys) {
			continue
		}
		if !ok || !shares(words+" "+found.Keys, source.Heard) {
			if source, ok = bears(words, said); !ok {
				continue // nobody has said so
			}
		}
		if forgotten(words, source.Seq, said) {
			continue
		}
		f := Fact{
			ID: newID(), Owner: owner, Person: cmp.Or(source.Speaker, person(found.Who)), Text: words, Keys: oneLine(found.Keys, MaxText), Lang: lang,
			Talk: c.Talk, Turn: source.ID, At: source.At, Sure: percent(found.Sure),
		}
		if c.add(f, known) {
			for _, n := range found.Replaces {
				if n >= 1 && n <= len(known) {
					c.Replace[known[n-1].ID] = f.ID
				}
			}
		}
	}
	if s := strings.TrimSpace(a.Summary); s != "" && !orders(s) {
		s = leftOf(s, func(sentence string) bool { return forgotten(sentence, 0, said) })
		c.Summary = &Summary{text.Cut(s, MaxSummary), time.Now()}
	}
}

// add adds a fact, unless it is known already; it reports whether it did.
func (c *Change) add(f Fact, known []Fact) bool {
	for _, other := range known {
		if sameText(other.Text, f.Text) {
			c.Renew = append(c.Renew, other.ID)
			return false
		}
	}
	for _, other := range c.Add {
		if sameText(other.Text, f.Text) {
			return false
		}
	}
	c.Add = slices.DeleteFunc(c.Add, func(other Fact) bool { return len(replaced([]Fact{other}, f)) > 0 }) // said otherwise in the same talk
	c.Add = append(c.Add, f)
	for old, by := range replaced(known, f) {
		c.Replace[old] = by
	}
	return true
}

// forgotten reports whether the user had a fact of a turn forgotten in a later one: the reply to that tells it.
func forgotten(words string, seq int, said []Said) bool {
	return slices.ContainsFunc(said, func(t Said) bool { return t.Forgets && t.Seq >= seq && Tells(t.Reply, words) })
}

// Tells reports whether a text has half of the words of a fact.
func Tells(said, fact string) bool {
	named, all, shared := terms(said), 0.0, 0.0
	for term, weight := range terms(fact) {
		if all += weight; named[term] > 0 {
			shared += weight
		}
	}
	return all > 0 && 2*shared >= all
}

// leftOf returns what is left of a summary without some of its sentences.
func leftOf(summary string, gone func(sentence string) bool) string {
	var lines []string
	for line := range strings.Lines(summary) {
		told := slices.DeleteFunc(sentences.FindAllString(line, -1), gone)
		if line = strings.TrimSpace(strings.Join(told, "")); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// person is a name that a model has found; what stands for anybody is none.
func person(who string) string {
	who = oneLine(who, 64)
	switch strings.ToLower(who) {
	case "unknown", "-", "none", "null", "assistant":
		return ""
	}
	for _, lang := range []text.Lang{text.Chinese, text.English} {
		if text.In(who, message.List(lang, "memory/user")) {
			return ""
		}
	}
	return who
}

// percent reads how sure a model is, of 1 or of 100.
func percent(sure float64) int {
	switch {
	case math.IsNaN(sure) || sure <= 0:
		return 50
	case sure <= 1:
		return int(math.Round(100 * sure))
	}
	return int(min(sure, 100))
}

// shares reports whether two texts have words in common.
func shares(a, b string) bool {
	of := terms(b)
	for term := range terms(a) {
		if of[term] > 0 {
			return true
		}
	}
	return false
}

// bears returns the turn whose words have the most to do with a text; false: none has.
func bears(words string, said []Said) (Said, bool) {
	texts := make([]string, len(said))
	for i, t := range said {
		texts[i] = t.Heard
	}
	if hits := newIndex(texts).find(words, 1); len(hits) > 0 {
		return said[hits[0].place], true
	}
	return Said{}, false
}

// Unforgotten returns the turns in which somebody has said something, without those of which the user has had something forgotten, and
// those in which that was asked. Where nothing was named in that, all before is left out.
func Unforgotten(said []Said) (rest []Said) {
	for _, t := range said {
		switch {
		case t.Forgets && !Names(t.Reply):
			rest = nil
		case t.Forgets:
			rest = slices.DeleteFunc(rest, func(before Said) bool { return Tells(t.Reply, before.Heard) || shares(before.Heard, t.Reply) })
		case t.Heard != "":
			rest = append(rest, t)
		}
	}
	return rest
}
