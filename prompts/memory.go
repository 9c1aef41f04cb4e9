package prompts

import (
	"embed"
	"strings"

	"xiaozhi/internal/text"
)

//go:embed memory/*.txt
var memoryFiles embed.FS

// MemoryText names a text that a model is given about what is remembered, or can be looked up.
type MemoryText string

// The texts.
const (
	MemoryAlways MemoryText = "always"    // {notes}: what holds for the whole talk
	MemoryFound  MemoryText = "found"     // {notes}: what has to do with the words that follow
	Documents    MemoryText = "documents" // {tool}: that documents can be looked up
	MemoryLearn  MemoryText = "learn"     // {date} {summary} {facts} {talk} {length}: what was learned from a talk
)

// In returns the text in Chinese or, for all other languages, in English, with its {placeholders} replaced by args, which are pairs of
// name and value.
func (t MemoryText) In(lang text.Lang, args ...string) string {
	data, err := memoryFiles.ReadFile("memory/" + string(t) + "." + lang.Pick("zh", "en") + ".txt")
	if err != nil {
		return "" // a test reads all of them
	}
	pairs := make([]string, 0, len(args))
	for i := 0; i+1 < len(args); i += 2 {
		pairs = append(pairs, "{"+args[i]+"}", args[i+1])
	}
	return strings.NewReplacer(pairs...).Replace(strings.TrimSpace(string(data)))
}
