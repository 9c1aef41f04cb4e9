package app

import (
	"cmp"
	"maps"
	"slices"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// tellLanguages reports the languages that the settings name and that no voice, or no recogniser, of
// their chains knows: all that is known of others is that the built-in ones are not among them.
func (f *resolver) tellLanguages() {
	cfg := f.cfg
	f.tellLanguage("server.language", cfg.Server.Language, cfg.ASR, cfg.TTS)
	chains := func(agent string) (asr, tts []string) {
		p := cfg.Agents[agent]
		asr, tts = cfg.ASR, cfg.TTS
		if len(p.ASR) > 0 {
			asr = p.ASR
		}
		if len(p.TTS) > 0 {
			tts = p.TTS
		}
		return asr, tts
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		asr, tts := chains(name)
		f.tellLanguage("agents."+name+".language", cfg.Agents[name].Language, asr, tts)
	}
	for _, id := range slices.Sorted(maps.Keys(cfg.Devices.ByID)) {
		d := cfg.Devices.ByID[id]
		asr, tts := chains(cmp.Or(d.Agent, cfg.Agent.Prompt))
		f.tellLanguage("devices."+id+".language", d.Language, asr, tts)
	}
}

func (f *resolver) tellLanguage(key, tag string, asr, tts []string) {
	lang := text.TagOf(tag)
	if lang.IsOwn() {
		return
	}
	name := lang.Name(text.English) + " (" + key + ")"
	if f.allOf("ASR", asr, "pocketsphinx") {
		f.report.found("ASR", message.Both("app/no-ears-for", name))
	}
	if f.allOf("TTS", tts, "local") {
		f.report.found("TTS", message.Both("app/no-voice-for", name))
	}
}

// allOf reports whether no member of a chain that is there is of another type.
func (f *resolver) allOf(role string, names []string, kind string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return f.made[role+" "+name].err == nil && f.typeOf(name) != kind })
}
