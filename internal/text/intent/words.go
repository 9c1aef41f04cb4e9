package intent

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

var (
	//go:embed words.zh.yaml
	zhFile string
	//go:embed words.en.yaml
	enFile string

	zh = sync.OnceValue(func() *zhWords { return readWords[zhWords](zhFile) })
	en = sync.OnceValue(func() *enWords { return readWords[enWords](enFile) })

	// signs maps the traditional signs to the simplified ones.
	signs = sync.OnceValue(func() map[rune]rune {
		m := make(map[rune]rune)
		for pair := range strings.FieldsSeq(zh().Signs) {
			both := []rune(pair)
			m[both[0]] = both[1]
		}
		return m
	})
)

// lists are the words that both files have. The words of a list are separated by spaces.
type lists struct {
	Whole, Commands, Sounds, Listening, Stops, Beside, Turns, Negations, Refusals, Assents, Fillers string
}

// zhWords are the lists of words.zh.yaml.
type zhWords struct {
	lists `yaml:",inline"`

	Unclear, Answers, Opening, Affirmed, Verbs, Nouns, More, Particles, Questions, Settings, Signs string

	// EndsAfter are the signs before a word of More with which it ends a sentence.
	EndsAfter map[string]string `yaml:"ends_after"`
}

// enWords are the lists of words.en.yaml.
type enWords struct {
	lists `yaml:",inline"`

	Lead, Begun, Pleas, Phrases string
}

// readWords reads one of the embedded files. A key that is unknown is a bug.
func readWords[T any](file string) *T {
	words := new(T)
	d := yaml.NewDecoder(strings.NewReader(file))
	d.KnownFields(true)
	if err := d.Decode(words); err != nil {
		panic(fmt.Sprintf("intent: embedded words: %v", err))
	}
	return words
}
