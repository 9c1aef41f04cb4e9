package agents

import (
	"embed"
	"strings"

	"xiaozhi/internal/text"
)

//go:embed gallery/*.md
var galleryFiles embed.FS

// template is an agent to begin with.
type template struct{ ID, Title, About, Text string }

// templates are those of the gallery, in its order. The text of one that is named like a prompt of the program is that prompt.
var templates = []string{"friend", "storyteller", "teacher", "bedtime", "quiz", "why", "cook", "elder"}

// gallery lists what people can begin with, in a language. source gives the text of a prompt of the program.
func gallery(lang text.Lang, source func(name, lang string) string) (all []template) {
	if !lang.IsChinese() {
		lang = text.English
	}
	file := func(name string) string {
		raw, err := galleryFiles.ReadFile("gallery/" + name + "." + string(lang) + ".md")
		if err != nil {
			return ""
		}
		return string(raw)
	}
	for _, id := range templates {
		title, rest, _ := strings.Cut(file(id), "\n")
		about, body, _ := strings.Cut(rest, "\n")
		if body = strings.TrimSpace(body); body == "" {
			body = strings.TrimSpace(source(id, string(lang)))
		} else {
			body += "\n\n" + strings.TrimSpace(file("rules"))
		}
		all = append(all, template{id, title, about, body})
	}
	return all
}
