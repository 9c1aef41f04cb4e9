package engines

import (
	"cmp"
	"maps"
	"slices"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/service"
)

// tellLanguages reports the languages that the settings name and that no voice, or no recogniser, of
// their chains knows: all that is known of others is that the built-in ones are not among them.
func (f *batch) tellLanguages() {
	cfg := f.cfg
	f.tellLanguage("server.language", cfg.Server.Language, config.Persona{})
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		f.tellLanguage("agents."+name+".language", cfg.Agents[name].Language, cfg.Agents[name])
	}
	for _, id := range slices.Sorted(maps.Keys(cfg.Devices.ByID)) {
		d := cfg.Devices.ByID[id]
		f.tellLanguage("devices."+id+".language", d.Language, cfg.Agents[cmp.Or(d.Agent, cfg.Agent.Prompt)])
	}
}

// tellLanguage reports a language that no engine of an agent knows. A service that hears and speaks by itself may know it.
func (f *batch) tellLanguage(key, tag string, p config.Persona) {
	lang := text.TagOf(tag)
	if lang.IsOwn() {
		return
	}
	or := func(own, all []string, r service.Role) []string {
		if len(own) > 0 {
			all = own
		}
		return f.expand(all, r)
	}
	for _, name := range or(p.Realtime, f.cfg.Realtime, service.Realtime) {
		if m, there := f.held["S2S "+name]; there && m.err == nil {
			return
		}
	}
	name := lang.Name(text.English) + " (" + key + ")"
	if f.allOf("ASR", or(p.ASR, f.cfg.ASR, service.ASR), "pocketsphinx") {
		f.report.Found("ASR", message.Both("app/no-ears-for", name))
	}
	if f.allOf("TTS", or(p.TTS, f.cfg.TTS, service.TTS), "local") {
		f.report.Found("TTS", message.Both("app/no-voice-for", name))
	}
}

// allOf reports whether no member of a chain that is there is of another type.
func (f *batch) allOf(role string, names []string, kind string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		m, there := f.held[role+" "+name]
		return there && m.err == nil && f.typeOf(name) != kind
	})
}
