package service

import (
	"cmp"
	"context"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// VoiceLister asks a service for the voices that a section may use. It returns within
// the time limits of the section.
type VoiceLister func(ctx context.Context, s Section) ([]Voice, error)

// Voice returns the voice for a request: the one that it names, else that of the
// settings for its language, else theirs for all languages, else what is meant otherwise.
func (s Section) Voice(req providers.TTSRequest, otherwise string) string {
	fit, _ := text.Find(s.Voices, text.TagOf(req.Language))
	return cmp.Or(req.Voice, fit, s.Voices[""], otherwise)
}

// Speaking returns the name of the first voice that speaks a language, or "" if none does.
func Speaking(voices []Voice, language string) string {
	byTag := map[string]string{}
	for _, v := range voices {
		for _, tag := range v.Language {
			if byTag[tag] == "" {
				byTag[tag] = v.Name
			}
		}
	}
	name, _ := text.Find(byTag, text.TagOf(language))
	return name
}

// Fitting returns the name of the first voice that speaks a language, else of the first
// of all, or "" if there is none.
func Fitting(voices []Voice, language string) string {
	if name := Speaking(voices, language); name != "" || len(voices) == 0 {
		return name
	}
	return voices[0].Name
}
