package rules

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

var (
	//go:embed patterns.zh.yaml
	chineseFile string
	//go:embed patterns.en.yaml
	englishFile string

	chinese = sync.OnceValue(func() *phrasebook { return readPhrasebook(chineseFile) })
	english = sync.OnceValue(func() *phrasebook { return readPhrasebook(englishFile) })
)

// phrasebook holds the words of one language: the files patterns.*.yaml say what
// each list is for. It is read-only.
type phrasebook struct {
	Names  map[string]string   `yaml:"names"`
	Ways   patterns            `yaml:"ways"`
	Typed  patterns            `yaml:"typed"`
	Before []string            `yaml:"before"`
	After  []string            `yaml:"after"`
	Short  map[string]string   `yaml:"short"`
	Verbs  []string            `yaml:"verbs"`
	Things map[string][]string `yaml:"things"`
}

// patterns are ways of saying things, in their order.
type patterns []pattern

// UnmarshalYAML reads a list of intents with their ways.
func (p *patterns) UnmarshalYAML(node *yaml.Node) error {
	var entries []struct {
		Act   act      `yaml:"act"`
		Level level    `yaml:"level"`
		Ways  []string `yaml:"ways"`
	}
	if err := node.Decode(&entries); err != nil {
		return err
	}
	for _, e := range entries {
		for _, way := range e.Ways {
			*p = append(*p, pattern{way, intent{act: e.Act, level: e.Level}})
		}
	}
	return nil
}

// readPhrasebook reads an embedded file, in which an error is a bug.
func readPhrasebook(file string) *phrasebook {
	b := new(phrasebook)
	d := yaml.NewDecoder(strings.NewReader(file))
	d.KnownFields(true)
	if err := d.Decode(b); err != nil {
		panic(fmt.Sprintf("rules: embedded patterns: %v", err))
	}
	for name, text := range b.Names {
		for _, list := range []patterns{b.Ways, b.Typed} {
			for i := range list {
				list[i].text = strings.ReplaceAll(list[i].text, name, text)
			}
		}
	}
	return b
}
