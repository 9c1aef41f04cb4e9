package rules

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

var (
	//go:embed patterns.zh.yaml
	chineseFile string
	//go:embed household.zh.yaml
	chineseHousehold string
	//go:embed world.zh.yaml
	chineseWorld string
	//go:embed patterns.en.yaml
	englishFile string
	//go:embed household.en.yaml
	englishHousehold string
	//go:embed world.en.yaml
	englishWorld string
)

// The phrasebooks are read once for all brains: those of the fast path, and the whole ones.
var (
	chineseFast  = sync.OnceValue(func() *phrasebook { return readPhrasebook(chineseExpr, chineseFile) })
	chineseWhole = sync.OnceValue(func() *phrasebook {
		return readPhrasebook(chineseExpr, chineseFile, chineseWorld, chineseHousehold, chineseOutbox).over(chineseFast())
	})
	englishFast  = sync.OnceValue(func() *phrasebook { return readPhrasebook(englishExpr, englishFile) })
	englishWhole = sync.OnceValue(func() *phrasebook {
		return readPhrasebook(englishExpr, englishFile, englishWorld, englishHousehold, englishOutbox).over(englishFast())
	})
)

// chinese returns the phrasebook of a scope.
func chinese(s scope) *phrasebook {
	if s == fastOnly {
		return chineseFast()
	}
	return chineseWhole()
}

// english returns the phrasebook of a scope.
func english(s scope) *phrasebook {
	if s == fastOnly {
		return englishFast()
	}
	return englishWhole()
}

// phrasebook holds the words of one language: the files patterns.*.yaml and household.*.yaml say
// what each list is for. It is read-only.
type phrasebook struct {
	Names  map[string]string   `yaml:"names"`
	Ways   []pattern           `yaml:"ways"`
	Typed  []pattern           `yaml:"typed"`
	Before []string            `yaml:"before"`
	After  []string            `yaml:"after"`
	Short  map[string]string   `yaml:"short"`
	Verbs  []string            `yaml:"verbs"`
	Things map[string][]string `yaml:"things"`
	rules  []rule
	base   *phrasebook // what the fast path has of it; nil: it is that
}

// pattern holds the ways of saying what is wanted, in the notation of its language.
// The first that fits counts.
type pattern struct {
	Act   act      `yaml:"act"`
	Level level    `yaml:"level"`
	By    int      `yaml:"by"`    // how much louder or darker, where no number is said
	As    string   `yaml:"as"`    // of a sum: the expression, with its slots in braces
	About string   `yaml:"about"` // what of the weather is asked for, and the like
	After topic    `yaml:"after"` // it is understood only right after a request about this
	Ways  []string `yaml:"ways"`
}

// rule is a pattern ready for matching: its groups are numbers and slots.
type rule struct {
	expr *regexp.Regexp
	want intent
}

// readPhrasebook reads embedded files, in which an error is a bug, one after the other.
func readPhrasebook(expr func(string) string, files ...string) *phrasebook {
	all := &phrasebook{Short: map[string]string{}, Things: map[string][]string{}}
	for _, file := range files {
		var b phrasebook
		d := yaml.NewDecoder(strings.NewReader(file))
		d.KnownFields(true)
		if err := d.Decode(&b); err != nil {
			panic(fmt.Sprintf("rules: embedded patterns: %v", err))
		}
		names := slices.Sorted(maps.Keys(b.Names))
		for _, name := range append(names, names...) { // a name may stand in another
			text := b.Names[name]
			for _, p := range slices.Concat(b.Ways, b.Typed) {
				for i, way := range p.Ways {
					p.Ways[i] = strings.ReplaceAll(way, name, text)
				}
			}
		}
		all.Ways, all.Typed = append(all.Ways, b.Ways...), append(all.Typed, b.Typed...)
		all.Before, all.After, all.Verbs = append(all.Before, b.Before...), append(all.After, b.After...), append(all.Verbs, b.Verbs...)
		maps.Copy(all.Short, b.Short)
		maps.Copy(all.Things, b.Things)
		slices.SortStableFunc(all.Before, longer) // 那个, then 那
		slices.SortStableFunc(all.After, longer)
		all.rules = append(all.rules, compile(slices.Concat(b.Ways, b.Typed), expr)...)
	}
	return all
}

// compile makes an expression of each way. One for all ways of a pattern would take
// two thirds of the memory, but 0.32 in place of 0.03 ms for words that fit none.
func compile(patterns []pattern, expr func(string) string) []rule {
	var rules []rule
	for _, p := range patterns {
		for _, way := range p.Ways {
			rules = append(rules, rule{regexp.MustCompile(expr(way)), intent{act: p.Act, level: p.Level, by: p.By, as: p.As, about: p.About, after: p.After}})
		}
	}
	return rules
}

// over says what the fast path has of a phrasebook.
func (k *phrasebook) over(base *phrasebook) *phrasebook {
	k.base = base
	return k
}

// with adds forms to those that the fast path knows of a text, each once.
func (k *phrasebook) with(base func(*phrasebook) []string, forms []string) []string {
	if k.base == nil {
		return forms
	}
	all := base(k.base)
	for _, form := range forms {
		if !slices.Contains(all, form) {
			all = append(all, form)
		}
	}
	return all
}

// longer puts the longer of two words first.
func longer(a, b string) int { return len(b) - len(a) }
