// Package city knows the time zones of cities and countries by their names in Chinese and English. It is pure, but for the database
// of time zones that Go reads. All functions may be called at the same time.
package city

import (
	_ "embed"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/text"
)

// citiesFile has a line for each zone, or for a country of several the ones that are told of: IANA names, English names, Chinese names.
//
//go:embed cities.txt
var citiesFile string

// Place is a city or a country.
type Place struct {
	zones []string
	names [2]string // as they are said: in Chinese, in English
}

// Find returns the place that a name means.
func Find(name string) (Place, bool) {
	p, ok := places()[text.Bare(name)]
	return p, ok
}

// Names lists all names, for those who look for them in what was said: in lower case, with spaces.
func Names() []string {
	var all []string
	for line := range strings.Lines(citiesFile) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		all = append(all, strings.Split(parts[1], ",")...)
		all = append(all, strings.Split(parts[2], ",")...)
	}
	return all
}

var places = sync.OnceValue(func() map[string]Place {
	all := map[string]Place{}
	for line := range strings.Lines(citiesFile) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		english, chinese := strings.Split(parts[1], ","), strings.Split(parts[2], ",")
		for _, name := range english {
			all[text.Bare(name)] = Place{strings.Split(parts[0], ","), [2]string{chinese[min(at(english, name), len(chinese)-1)], title(name)}}
		}
		for _, name := range chinese {
			all[text.Bare(name)] = Place{strings.Split(parts[0], ","), [2]string{name, title(english[min(at(chinese, name), len(english)-1)])}}
		}
	}
	return all
})

// at returns the index of a name in a list that holds it.
func at(list []string, name string) int {
	for i, n := range list {
		if n == name {
			return i
		}
	}
	return 0
}

// title writes a name with capitals.
func title(name string) string {
	words := strings.Fields(name)
	for i, w := range words {
		switch {
		case w == "uk" || w == "usa" || w == "us" || w == "uae" || w == "la" || w == "nyc" || w == "dc":
			words[i] = strings.ToUpper(w)
		case i == 0 || w != "de" && w != "of" && w != "the":
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	if len(words) > 1 && words[0] == "The" {
		words[0] = "the"
	}
	return strings.Join(words, " ")
}

// Name returns the name of a place.
func (p Place) Name(lang text.Lang) string { return lang.Pick(p.names[0], p.names[1]) }

// Local is the time in one of the zones of a place.
type Local struct {
	City string // of the zone, where the place has several; "": it has one
	Time time.Time
}

// Times returns what clocks show at a place at now. A zone that the database does not have is left out.
func (p Place) Times(now time.Time, lang text.Lang) []Local {
	var all []Local
	for _, zone := range p.zones {
		at, err := time.LoadLocation(zone)
		if err != nil {
			continue
		}
		l := Local{Time: now.In(at)}
		if len(p.zones) > 1 {
			name := strings.ReplaceAll(zone[strings.LastIndexByte(zone, '/')+1:], "_", " ")
			if city, ok := Find(name); ok {
				name = city.Name(lang)
			}
			l.City = name
		}
		all = append(all, l)
	}
	return all
}
