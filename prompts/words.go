package prompts

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"xiaozhi/internal/text"
)

// wordLists is the key of a phrase file that holds [Words].
const wordLists = "words"

// Words are the words by which the server understands people in a language that it has no rules for
// (package intent has them for Chinese and English), and reads what models write in it. They are
// compared without marks and in lower case. A list that is empty tells nothing.
type Words struct {
	Exit []string // end the conversation, beside those of the settings
	Wake []string // call the device
	Stop []string // ask for silence

	Listening []string // signs of listening
	Sounds    []string // say nothing by themselves
	Beside    []string // stand beside a stop-word, or an assent
	Commands  []string // are obeyed although they are but one word
	More      []string // end no sentence: something follows

	Assents   []string // say yes to a question
	Negations []string // say no, whatever else is said

	Abbreviations []string // end with a dot that ends no sentence; "0." stands for the number of a day
}

// Words returns the lists of a language: of its tag, or of the tag without region. It is never nil;
// without a file the lists are empty. They belong to the set.
func (s *Set) Words(lang text.Lang) *Words {
	for tag := string(lang); s != nil && tag != ""; tag = tag[:max(0, strings.LastIndexByte(tag, '-'))] {
		if w := s.words[tag]; w != nil {
			return w
		}
	}
	return &Words{}
}

// addWords takes in the lists of a file, each in place of the one that was there.
func (s *Set) addWords(path string, node *yaml.Node, lang string) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("%s:%d: %s must hold lists by name", path, node.Line, wordLists)
	}
	if s.words[lang] == nil {
		s.words[lang] = &Words{}
	}
	lists := s.words[lang].lists()
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		list, ok := lists[key.Value]
		if !ok {
			names := make([]string, 0, len(lists))
			for name := range lists {
				names = append(names, name)
			}
			slices.Sort(names)
			return fmt.Errorf("%s:%d: unknown list %s (did you mean %s?)", path, key.Line, key.Value, Nearest(key.Value, names))
		}
		if value.Kind != yaml.SequenceNode {
			return fmt.Errorf("%s:%d: %s must be a list of words", path, value.Line, key.Value)
		}
		*list = nil
		for _, word := range value.Content {
			if word.Kind != yaml.ScalarNode || strings.TrimSpace(word.Value) == "" {
				return fmt.Errorf("%s:%d: %s must be a list of words", path, word.Line, key.Value)
			}
			*list = append(*list, word.Value)
		}
	}
	return nil
}

// lists returns the lists by their names in a file.
func (w *Words) lists() map[string]*[]string {
	return map[string]*[]string{
		"exit": &w.Exit, "wake": &w.Wake, "stop": &w.Stop, "listening": &w.Listening, "sounds": &w.Sounds, "beside": &w.Beside, "commands": &w.Commands,
		"more": &w.More, "assents": &w.Assents, "negations": &w.Negations, "abbreviations": &w.Abbreviations,
	}
}
