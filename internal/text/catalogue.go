package text

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Catalogue holds the texts of a part of the program by id, in each language. It
// does not change, so its methods may be called at the same time.
type Catalogue struct {
	texts map[Lang]map[string]string
}

// ReadCatalogue reads NAME.zh.yaml and NAME.en.yaml of files: lines of the form
// "id: text". It is an error if one of them lacks an id of the other.
func ReadCatalogue(files fs.FS, name string) (*Catalogue, error) {
	c := &Catalogue{map[Lang]map[string]string{}}
	for _, l := range []Lang{Chinese, English} {
		file := name + "." + string(l) + ".yaml"
		data, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, fmt.Errorf("read texts: %w", err)
		}
		texts := map[string]string{}
		if err := yaml.Unmarshal(data, &texts); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		c.texts[l] = texts
	}
	var errs []error
	for _, l := range []Lang{Chinese, English} {
		other := c.texts[map[Lang]Lang{Chinese: English, English: Chinese}[l]]
		for _, id := range slices.Sorted(maps.Keys(c.texts[l])) {
			if _, ok := other[id]; !ok {
				errs = append(errs, fmt.Errorf("text %s is in %s only", id, l))
			}
		}
	}
	return c, errors.Join(errs...)
}

// MustCatalogue is [ReadCatalogue] for files that are built in. It panics where
// those are wrong.
func MustCatalogue(files fs.FS, name string) *Catalogue {
	c, err := ReadCatalogue(files, name)
	if err != nil {
		panic(err)
	}
	return c
}

// Text returns a text in a language, English unless l is Chinese. Each {name} in it
// is replaced by its value: args are pairs of name and value. An unknown id is
// returned as it is.
func (c *Catalogue) Text(l Lang, id string, args ...string) string {
	text, ok := c.texts[Lang(l.Pick(string(Chinese), string(English)))][id]
	switch {
	case !ok:
		return id
	case len(args) == 0:
		return text
	}
	pairs := make([]string, 0, len(args))
	for i := 0; i+1 < len(args); i += 2 {
		pairs = append(pairs, "{"+args[i]+"}", args[i+1])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
