package prompts

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/text"
)

// Phrase returns the phrase id in the language of the tag lang, or in the nearest that there is
// ([text.Lang.Fallbacks]), with its {placeholders} replaced by args, which are pairs of name and
// value. Of a phrase that does not exist it returns the id. A lang that is "" is Chinese.
func (s *Set) Phrase(id, lang string, args ...string) string {
	words, ok := s.phrases[lang][id]
	for _, l := range orChinese(lang).Fallbacks() {
		if ok {
			break
		}
		words, ok = s.phrases[string(l)][id]
	}
	if !ok {
		return id
	}
	pairs := make([]string, 0, len(args))
	for i := 0; i+1 < len(args); i += 2 {
		pairs = append(pairs, "{"+args[i]+"}", args[i+1])
	}
	return strings.NewReplacer(pairs...).Replace(words)
}

// Languages lists the tags of the languages that there are phrases in, sorted.
func (s *Set) Languages() []string { return slices.Sorted(maps.Keys(s.phrases)) }

// orChinese returns the language of a tag, Chinese for none: what nobody has told.
func orChinese(lang string) text.Lang { return cmp.Or(text.Lang(lang), text.Chinese) }

// addPhrases takes in a file of phrases. Unless base is set, an id or a
// placeholder that the embedded phrases do not have is an error.
func (s *Set) addPhrases(path, file, lang string, base bool) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(file), &doc); err != nil {
		return fmt.Errorf("%s: not YAML: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: expected lines of the form id: text", path, root.Line)
	}
	if s.phrases[lang] == nil {
		s.phrases[lang] = map[string]string{}
	}
	known := s.phrases[lang]
	if !base {
		known = s.phrases[string(text.English)] // which has all of them
	}
	seen := map[string]bool{}
	var errs []error
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Value == wordLists && !seen[wordLists] {
			seen[wordLists] = true
			errs = append(errs, s.addWords(path, value, lang))
			continue
		}
		problem := checkPhrase(key.Value, value, known, base)
		if seen[key.Value] {
			problem = fmt.Sprintf("phrase %s is there twice", key.Value)
		}
		seen[key.Value] = true
		if problem != "" {
			errs = append(errs, fmt.Errorf("%s:%d: %s", path, key.Line, problem))
			continue
		}
		s.phrases[lang][key.Value] = value.Value
	}
	return errors.Join(errs...)
}

// checkPhrase says what is wrong with one line, or "".
func checkPhrase(id string, value *yaml.Node, known map[string]string, base bool) string {
	if value.Kind != yaml.ScalarNode || cmp.Or(value.Tag, "!!str") != "!!str" || strings.TrimSpace(value.Value) == "" {
		return fmt.Sprintf("phrase %s must be a text", id)
	}
	if base {
		return ""
	}
	old, ok := known[id]
	if !ok {
		return fmt.Sprintf("unknown phrase %s (did you mean %s?)", id, Nearest(id, slices.Sorted(maps.Keys(known))))
	}
	offered := placeholders(old)
	for _, p := range placeholders(value.Value) {
		if !slices.Contains(offered, p) {
			return fmt.Sprintf("phrase %s has no {%s} (it has: %s)", id, p, strings.Join(offered, ", "))
		}
	}
	return ""
}

// placeholders lists the {names} in text, sorted.
func placeholders(text string) []string {
	var names []string
	for {
		_, after, found := strings.Cut(text, "{")
		if !found {
			break
		}
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			break
		}
		names, text = append(names, name), rest
	}
	slices.Sort(names)
	return slices.Compact(names)
}
