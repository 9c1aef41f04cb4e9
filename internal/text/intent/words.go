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

// zhWords are the lists of words.zh.yaml. The words of a list are separated by
// spaces.
type zhWords struct {
	Whole     string `yaml:"whole"`
	Unclear   string `yaml:"unclear"`
	Answers   string `yaml:"answers"`
	Opening   string `yaml:"opening"`
	Verbs     string `yaml:"verbs"`
	Nouns     string `yaml:"nouns"`
	More      string `yaml:"more"`
	Particles string `yaml:"particles"`
	Questions string `yaml:"questions"`
	Settings  string `yaml:"settings"`
	Commands  string `yaml:"commands"`
	Sounds    string `yaml:"sounds"`
	Listening string `yaml:"listening"`
	Stops     string `yaml:"stops"`
	Beside    string `yaml:"beside"`
	Turns     string `yaml:"turns"`
	Refusals  string `yaml:"refusals"`
	Assents   string `yaml:"assents"`
	Fillers   string `yaml:"fillers"`
	Signs     string `yaml:"signs"`
}

// enWords are the lists of words.en.yaml, as [zhWords].
type enWords struct {
	Lead      string `yaml:"lead"`
	Whole     string `yaml:"whole"`
	Begun     string `yaml:"begun"`
	Pleas     string `yaml:"pleas"`
	Commands  string `yaml:"commands"`
	Sounds    string `yaml:"sounds"`
	Listening string `yaml:"listening"`
	Stops     string `yaml:"stops"`
	Beside    string `yaml:"beside"`
	Turns     string `yaml:"turns"`
	Refusals  string `yaml:"refusals"`
	Assents   string `yaml:"assents"`
	Phrases   string `yaml:"phrases"`
	Fillers   string `yaml:"fillers"`
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
