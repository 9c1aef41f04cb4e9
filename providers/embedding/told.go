package embedding

import "strings"

// families are models that are told, in words of their own, whether a text looks for something or is what is looked for, as
// their cards on Hugging Face say. All others take texts as they are.
var families = []struct{ in, query, stored string }{
	{"qwen3-embedding", "Instruct: Given what somebody says, find what is known about them that has to do with it\nQuery:", ""},
	{"nomic-embed", "search_query: ", "search_document: "},
	{"multilingual-e5-large-instruct", "Instruct: Given what somebody says, find what is known about them that has to do with it\nQuery: ", ""},
	{"e5-", "query: ", "passage: "},
	{"embeddinggemma", "task: search result | query: ", "title: none | text: "},
	{"mxbai-embed", "Represent this sentence for searching relevant passages: ", ""},
	{"snowflake-arctic-embed2", "query: ", ""},
	{"snowflake-arctic-embed", "Represent this sentence for searching relevant passages: ", ""},
}

// told is a text as its model wants it.
func told(model, text string, query bool) string {
	model = strings.ToLower(model)
	for _, f := range families {
		if !strings.Contains(model, f.in) {
			continue
		}
		if query {
			return f.query + text
		}
		return f.stored + text
	}
	return text
}
