package ui

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"xiaozhi/internal/text"
)

//go:embed words
var wordFiles embed.FS

// languages are those of the pages. The first is that of who asks for another one.
var languages = []text.Lang{text.English, text.Chinese}

// lexicon holds the texts of all pages in one language, by id.
type lexicon map[string]string

// readWords reads the files of one language: an id and its text a line, and a line that begins with a tab goes on. An id
// begins with the name of its file, so that no two files have the same.
func readWords(files fs.FS, lang text.Lang) (lexicon, error) {
	all := lexicon{}
	paths, err := fs.Glob(files, "words/"+string(lang)+"/*.txt")
	if err != nil {
		return nil, err
	}
	for _, name := range paths {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		topic := strings.TrimSuffix(path.Base(name), ".txt")
		if err := all.read(topic, string(raw)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// read takes the texts of one file.
func (l lexicon) read(topic, raw string) error {
	last := ""
	for n, line := range strings.Split(raw, "\n") {
		id, words, isText := strings.Cut(line, " = ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t") && last != "":
			l[last] += "\n" + line[1:]
		case !isText || !strings.HasPrefix(id, topic+"/"):
			return fmt.Errorf("line %d is no text of %s/", n+1, topic)
		case l[id] != "":
			return fmt.Errorf("line %d: %s is there twice", n+1, id)
		default:
			last, l[id] = id, words
		}
	}
	return nil
}

// say returns a text. Its verbs are those of [fmt.Sprintf]. An id that is not there is returned as it is.
func (l lexicon) say(id string, args ...any) string {
	words, ok := l[id]
	switch {
	case !ok:
		return id
	case len(args) == 0 || !strings.Contains(words, "%"):
		return words
	}
	return fmt.Sprintf(words, args...)
}
