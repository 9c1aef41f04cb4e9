package rules

import (
	"slices"
	"strings"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/search"
	"xiaozhi/providers"
)

// isLibrary reports whether a tool looks something up in documents: the query is all that it needs.
func isLibrary(t tool) bool {
	return t.has("documents") && t.has("search") && t.schema.Properties["query"].is("string") &&
		!slices.ContainsFunc(t.schema.Required, func(name string) bool { return name != "query" })
}

// lookUp asks the documents for what is wanted of them.
func (r request) lookUp(in intent) (providers.Delta, bool) {
	t, ok := find(r.tools, isLibrary)
	if !ok {
		return r.missing(phraseNoDocuments)
	}
	return r.call(t, map[string]any{"query": in.slots["about"]})
}

// quote reads out the best passage that was found, with its source.
func (r request) quote(in intent, data any) (providers.Delta, bool) {
	parts, _ := data.(map[string]any)
	found, _ := parts["found"].([]any)
	if len(found) == 0 {
		return providers.Delta{}, false
	}
	first, _ := found[0].(map[string]any)
	source, _ := first["source"].(string)
	passage, _ := first["text"].(string)
	if source == "" || passage == "" {
		return providers.Delta{}, false
	}
	return r.text(phraseDocumentSays, "source", source, "text", excerpt(passage, in.slots["about"]))
}

// mostRead is how much of a document is read out at once, in characters; of a language with letters three times as much.
const mostRead = 120

// excerpt returns the sentences of a passage that say most about something, in their order.
func excerpt(passage, about string) string {
	wanted := map[string]float64{}
	search.Each(about, nil, func(term string, weight float64) { wanted[term] = max(wanted[term], weight) })
	var all []string
	best, most := 0, -1.0
	for _, s := range strings.FieldsFunc(sentenceEnds.Replace(passage), func(c rune) bool { return c == '\n' }) {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		seen, score := map[string]bool{}, 0.0
		search.Each(s, nil, func(term string, _ float64) {
			if !seen[term] {
				score += wanted[term]
			}
			seen[term] = true
		})
		if score > most {
			best, most = len(all), score
		}
		all = append(all, s)
	}
	room, said := mostRead, ""
	if text.Of(passage) != text.Chinese {
		room *= 3
	}
	for _, s := range all[min(best, len(all)):] {
		if n := utf8.RuneCountInString(s); said != "" && n > room {
			break
		}
		room -= utf8.RuneCountInString(s)
		said = text.Join(said, s)
	}
	return text.Cut(said, 4*3*mostRead)
}

// sentenceEnds puts each sentence into a line of its own.
var sentenceEnds = strings.NewReplacer("。", "。\n", "！", "！\n", "？", "？\n", "；", "；\n", ". ", ".\n", "! ", "!\n", "? ", "?\n")
