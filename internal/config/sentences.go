package config

import (
	"strings"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v3"

	"xiaozhi"
	"xiaozhi/internal/text"
)

// Sentence says what the key at a path means, as config.yaml does, in Chinese or in English; "": nothing is said of it. A
// key of something that has a free name is described with its section.
func Sentence(path []string, lang text.Lang) string {
	all := sentences()
	for n := len(path); n > 0; n-- {
		if said, ok := all[keyName(path[:n])]; ok {
			if lang == text.Chinese {
				return said.chinese
			}
			return said.english
		}
	}
	return ""
}

// sentence is a comment of config.yaml: English, then Chinese.
type sentence struct{ english, chinese string }

// sentences are the comments of config.yaml, by key. They are read once: there are 90.
var sentences = sync.OnceValue(func() map[string]sentence {
	all := map[string]sentence{}
	var doc yaml.Node
	if yaml.Unmarshal(xiaozhi.Settings(), &doc) == nil && len(doc.Content) > 0 {
		describe(doc.Content[0], nil, all)
	}
	return all
})

// describe notes the comments of a section. A key without one has that of the key before it, which is about both.
func describe(section *yaml.Node, path []string, all map[string]sentence) {
	var last sentence
	for i := 0; i+1 < len(section.Content); i += 2 {
		key, value := section.Content[i], section.Content[i+1]
		full := append(append([]string{}, path...), key.Value)
		switch {
		case key.HeadComment != "" && len(path) > 0, value.Kind != yaml.MappingNode && key.HeadComment != "":
			last = parted(key.HeadComment)
		case value.Kind == yaml.MappingNode && (len(value.Content) > 0 || len(path) == 0):
			last = sentence{}
		}
		if last != (sentence{}) {
			all[keyName(full)] = last
		}
		if value.Kind == yaml.MappingNode {
			describe(value, full, all)
		}
	}
}

// parted parts a comment where its Chinese begins. Examples that stand in it are left out.
func parted(comment string) (s sentence) {
	var english, chinese []string
	for line := range strings.SplitSeq(comment, "\n") {
		line, example := strings.CutPrefix(line, "#   ")
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		switch {
		case example || line == "":
		case len(chinese) > 0 || strings.ContainsFunc(line, func(r rune) bool { return unicode.Is(unicode.Han, r) }):
			chinese = append(chinese, line)
		default:
			english = append(english, line)
		}
	}
	return sentence{strings.Join(english, " "), strings.Join(chinese, "")}
}
