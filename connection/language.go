package connection

import "strings"

// rememberedLanguages is how many devices' languages are kept: a device tells its
// own only in the OTA request, once per boot. One entry is about 100 bytes.
const rememberedLanguages = 4096

// LanguageOf makes "zh" or "en" of a language tag or an Accept-Language value,
// of which the first entry counts. Other languages than Chinese are served in
// English. Nothing (or "*") gives "".
func LanguageOf(tag string) string {
	tag, _, _ = strings.Cut(tag, ",")
	tag, _, _ = strings.Cut(tag, ";")
	tag = strings.ToLower(strings.TrimSpace(tag))
	if tag == "" || tag == "*" {
		return ""
	}
	primary, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	switch primary {
	case "zh", "cmn", "yue":
		return "zh"
	default:
		return "en"
	}
}

// Language returns the language of a device, "zh" or "en": that of its settings,
// else the server's, else that of its OTA request, else Chinese.
func (r *Registry) Language(deviceID string) string {
	asked, _ := r.languages.Get(deviceID)
	for _, l := range []string{r.opts.Settings(deviceID).Language, r.opts.Language, asked} {
		if l == "zh" || l == "en" {
			return l
		}
	}
	return "zh"
}

// SetLanguage remembers the language that a device's OTA request named.
func (r *Registry) SetLanguage(deviceID, language string) {
	if deviceID != "" && language != "" {
		r.languages.Put(deviceID, language, 1)
	}
}
