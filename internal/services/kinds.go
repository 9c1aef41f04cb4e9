package services

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"sync"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/service"
)

// Group says where the services of a kind run.
type Group string

// The groups, in the order in which people are shown them.
const (
	Cloud   Group = "cloud"   // in the Internet, most of them with a key
	Home    Group = "home"    // programs of one's own, on this machine or in its network
	Offline Group = "offline" // in this program, without a network
)

// Groups are all of them.
func Groups() []Group { return []Group{Cloud, Home, Offline} }

// Kind is a sort of service that can be added.
type Kind struct {
	service.Kind

	Group Group
	Does  []service.Role // what it can do
}

// Types of the engines that are in the program and in no catalogue.
const (
	english  = "pocketsphinx" // hears simple English
	commands = "rules"        // answers what needs no model
	plain    = "local"        // the plain voice
)

// builtIn are the kinds of those.
func builtIn() []Kind {
	return []Kind{
		{service.Kind{Type: english, Title: "PocketSphinx", Free: true, More: []service.Setting{{Name: "decoders", Type: service.Number}}}, Offline, []service.Role{service.ASR}},
		{service.Kind{Type: commands, Title: "Rules", Free: true}, Offline, []service.Role{service.LLM}},
		{service.Kind{Type: plain, Title: "eSpeak NG, Flite", Free: true}, Offline, []service.Role{service.TTS}},
	}
}

// Kinds lists all kinds, those of the program last. Nobody changes what a kind holds.
func Kinds() []Kind { return slices.Clone(kinds()) }

// kinds makes them once, for each member of each chain asks for its own whenever a page shows it.
var kinds = sync.OnceValue(func() []Kind {
	var all []Kind
	for _, k := range catalog.Kinds() {
		all = append(all, Kind{k, groupOf(k), k.Roles()})
	}
	return append(all, builtIn()...)
})

// KindOf returns the kind of a type.
func KindOf(name string) (Kind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k Kind) bool { return k.Type == name })
	if i < 0 {
		return Kind{}, false
	}
	return all[i], true
}

// Addable lists the kinds for people who add one and read a language: each once, though some have a second name. Those that
// have a name in Chinese, and are best known where that is read, come last for others.
func Addable(lang text.Lang) []Kind {
	var all []Kind
	for _, k := range Kinds() {
		if k.Group == Offline && k.Here == nil { // it is there: a chain names it
			continue
		}
		again := func(o Kind) bool {
			return o.Title == k.Title && o.Address == k.Address && slices.Contains(o.Does, k.Does[0])
		}
		if !slices.ContainsFunc(all, again) {
			all = append(all, k)
		}
	}
	if !lang.IsChinese() {
		slices.SortStableFunc(all, func(a, b Kind) int { return cmp.Compare(a.native(), b.native()) })
	}
	return all
}

// native is 1 for kinds that have a name in Chinese.
func (k Kind) native() int {
	if called(text.Chinese, k.Type) != "" {
		return 1
	}
	return 0
}

func groupOf(k service.Kind) Group {
	switch {
	case k.Here != nil:
		return Offline
	case len(k.Needs) > 0 || len(k.Regions) > 0:
		return Cloud
	}
	u, err := url.Parse(k.Address)
	if err != nil || k.Address == "" || u.Hostname() == "127.0.0.1" || u.Hostname() == "homeassistant.local" {
		return Home
	}
	return Cloud
}

// called says what people call the kind of a type in a language; "": as its maker does.
func called(lang text.Lang, kind string) string { return told(lang, "services/kinds", kind) }

// told returns what a list of messages says of a kind.
func told(lang text.Lang, list, kind string) string {
	for _, one := range message.List(lang, list) {
		if words, ok := strings.CutPrefix(one, kind+": "); ok {
			return words
		}
	}
	return ""
}

// Keys is the host, and perhaps a path, at which its maker gives keys; "": there are none, or nobody knows.
func (k Kind) Keys() string { return told(text.English, "services/key-pages", k.Type) }

// Called is the name of the kind in a language.
func (k Kind) Called(lang text.Lang) string { return cmp.Or(called(lang, k.Type), k.Title) }

// Called is the name of its kind in a language.
func (m Member) Called(lang text.Lang) string { return cmp.Or(called(lang, m.Type), m.Title) }

// Called is the name of its kind in a language.
func (s Section) Called(lang text.Lang) string { return cmp.Or(called(lang, s.Type), s.Title) }

// Can reports whether the kind does a role. Pictures are understood by models.
func (k Kind) Can(r service.Role) bool {
	if r == service.Vision {
		r = service.LLM
	}
	return slices.Contains(k.Does, r)
}
