package connection

import (
	"cmp"
	"strings"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
)

// rememberedLanguages is how many devices' languages are kept: a device tells its
// own only in the OTA request, once per boot. One entry is about 100 bytes.
const rememberedLanguages = 4096

// languages remembers the languages that devices have named. Its methods may be called at the same time.
type languages struct {
	named *lru.Cache[string, string] // by Device-Id
}

func newLanguages() languages { return languages{lru.New[string, string](rememberedLanguages, 0)} }

// of returns the first of the languages that are given, and of the one that a device has named, that is a tag of BCP 47;
// without any it is Chinese.
func (l languages) of(deviceID string, given ...string) string {
	named, _ := l.named.Get(deviceID)
	for _, one := range append(given, named) {
		if lang := text.TagOf(one); lang != "" {
			return string(lang)
		}
	}
	return string(text.Chinese)
}

// remember keeps the language that a device has named; "" is none.
func (l languages) remember(deviceID, language string) {
	if deviceID != "" && language != "" {
		l.named.Put(deviceID, language, 1)
	}
}

// forget drops the language of a device.
func (l languages) forget(deviceID string) { l.named.Remove(deviceID) }

// LanguageOf makes a tag of BCP 47, as [text.ParseLang] does, of a language tag or an Accept-Language
// value, of which the first entry counts. What is none is served in English. Nothing (or "*") gives "".
func LanguageOf(tag string) string {
	tag, _, _ = strings.Cut(tag, ",")
	tag, _, _ = strings.Cut(tag, ";")
	tag = strings.TrimSpace(tag)
	if tag == "" || tag == "*" {
		return ""
	}
	return string(cmp.Or(text.TagOf(tag), text.English))
}
