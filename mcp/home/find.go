package home

import (
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// target says which things are meant.
type target struct {
	Name string // of a thing; "": all that fit the rest
	Area string // "": anywhere
	Kind string // a domain; "": any
}

// find returns the entities that a target means, of those that can does something with. Several are meant by an area, by a kind, and by
// a name that several have in one area. which are those that may be meant where that is not clear.
func (inv *inventory) find(t target, can func(entity) bool) (found, which []entity) {
	area := text.Bare(t.Area)
	fits := slices.DeleteFunc(slices.Clone(inv.entities), func(e entity) bool {
		return !can(e) || t.Kind != "" && e.domain() != t.Kind && !(t.Kind == "switch" && e.domain() == "input_boolean") || area != "" && text.Bare(e.Area) != area
	})
	if t.Name == "" {
		return fits, nil
	}
	best := 0
	for _, e := range fits {
		switch score := e.likeness(t.Name); {
		case score == 0:
		case score > best:
			best, found = score, []entity{e}
		case score == best:
			found = append(found, e)
		}
	}
	if len(found) > 1 && area == "" && slices.ContainsFunc(found, func(e entity) bool { return e.Area != found[0].Area }) {
		return nil, found
	}
	return found, nil
}

// likeness says how well a name means an entity: as it is, with its area before or behind it, without that, or a part of it; 0: not at all.
func (e entity) likeness(name string) int {
	said, own, area := singular(text.Bare(name)), singular(text.Bare(e.Name)), text.Bare(e.Area)
	switch {
	case said == own || strings.EqualFold(name, e.ID):
		return 5
	case area != "" && (said == area+own || said == own+area || said == area+message.In(text.Chinese, "home/of")+own):
		return 4
	case area != "" && strings.Contains(own, area) && said == strings.Replace(own, area, "", 1):
		return 3
	case len(said) >= 3 && strings.Contains(own, said):
		return 2
	case len(own) >= 3 && strings.Contains(said, own):
		return 1
	}
	return 0
}

// singular drops the ending of an English plural.
func singular(bare string) string {
	if len(bare) > 3 && strings.HasSuffix(bare, "s") && !strings.HasSuffix(bare, "ss") {
		return bare[:len(bare)-1]
	}
	return bare
}
