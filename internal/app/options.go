package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/music"
	"xiaozhi/agent/history"
	"xiaozhi/agent/speak"
	"xiaozhi/audio"
	"xiaozhi/audio/track"
	"xiaozhi/internal/config"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/local"
	"xiaozhi/prompts"
	"xiaozhi/providers/service"
)

func conversationOptions(cfg *config.Config, e engines, texts *prompts.Set, log *slog.Logger) agent.Options {
	o := agent.Options{
		VAD: e.vad, ASR: e.asr, LLM: e.llm, TTS: e.tts, Realtime: e.duplex, Phrases: e.brain.Phrases, NoChinese: !e.chinese,
		Prompts: texts, Devices: agent.NewDevices(), Tokens: history.Tokens,
		Name: cfg.Agent.Name, Prompt: cfg.Agent.Prompt, MaxSteps: cfg.Agent.MaxSteps, HistoryTokens: cfg.Agent.HistoryTokens,
		WakeWords: cfg.Agent.WakeWords, ExitWords: cfg.Agent.ExitWords, StopWords: append(agent.StopWords(), cfg.Agent.StopWords...), Zone: cfg.Server.Zone(),
		MaxCalls: cfg.Tools.MaxPerTurn, MaxDaily: cfg.Tools.MaxPerDay,
		IdleClose: cfg.Voice.IdleClose, Endpoint: endpointOptions(cfg.Voice), Lead: leadFrames(cfg.Voice), Coding: audio.Coding(cfg.Voice.Opus), Log: log,
		Drafts: orNever(cfg.Voice.Endpointing.Trials), BargeIn: cfg.Voice.BargeIn, NoEchoGuard: !cfg.Voice.EchoGuard, SlowAfter: orNever(cfg.Voice.SlowNotice),
		Sounds: speak.NewCache(texts),
	}
	if cfg.Voice.Loudness {
		o.Levels = audio.NewLevels()
	}
	if e.models {
		o.FastPath = e.brain
	}
	return o
}

func endpointOptions(v config.Voice) audio.EndpointOptions {
	return audio.EndpointOptions{
		Start: float32(v.VAD.Start), End: float32(v.VAD.End),
		PreRoll: v.Endpointing.PreRoll, MinSpeech: v.Endpointing.MinSpeech, Trigger: v.Endpointing.Trigger,
		Commit: v.Endpointing.Commit, MaxSpeech: v.Endpointing.MaxSpeech,
	}
}

// orNever is a setting of which zero means never, for options of which zero
// means the default.
func orNever[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

func leadFrames(v config.Voice) int {
	return int((v.Pacing.Lead + audio.Reply.Frame/2) / audio.Reply.Frame)
}

// languagesAhead are the languages that devices are likely to be spoken to in.
func languagesAhead(configured string) []text.Lang {
	if lang := text.TagOf(configured); lang != "" {
		return []text.Lang{lang}
	}
	return []text.Lang{text.Chinese, text.English}
}

// localTools are the options of the server's own tools. roles are the agents
// that can be changed to. config.Load has seen that the pages can be made.
func localTools(cfg *config.Config, data string, roles []string) (local.Options, error) {
	weather, err := cfg.Tools.Weather.Page()
	if err != nil {
		return local.Options{}, fmt.Errorf("tools.weather: %w", err)
	}
	news, err := cfg.Tools.News.Page()
	if err != nil {
		return local.Options{}, fmt.Errorf("tools.news: %w", err)
	}
	return local.Options{
		Roles:   roles,
		Weather: local.Outside{Page: weather, City: cfg.Tools.Weather.City},
		News:    local.Outside{Page: news},
		Music:   local.NewMusic(musicDir(cfg, data)),
	}, nil
}

func musicDir(cfg *config.Config, data string) string {
	return cmp.Or(cfg.Tools.Music.Dir, filepath.Join(data, "music"))
}

// musicLibrary is the music folder as a conversation plays it.
type musicLibrary struct{ folder *local.Music }

// Open opens a song by the id that a tool gave.
func (m musicLibrary) Open(id string) (music.Song, error) {
	file, err := m.folder.Open(id)
	if err != nil {
		return nil, err
	}
	track, err := track.Open(file)
	if err != nil {
		return nil, err
	}
	return track, nil
}

// Next names the song after the one of that id.
func (m musicLibrary) Next(id string) (next, title string, err error) {
	song, err := m.folder.Next(id)
	return song.ID, song.Title, err
}

// tellLanguages reports the languages that the settings name and that no voice, or no recogniser, of
// their chains knows: all that is known of others is that the built-in ones are not among them.
func (f *resolver) tellLanguages() {
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
func (f *resolver) tellLanguage(key, tag string, p config.Persona) {
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
		if m, there := f.made["S2S "+name]; there && m.err == nil {
			return
		}
	}
	name := lang.Name(text.English) + " (" + key + ")"
	if f.allOf("ASR", or(p.ASR, f.cfg.ASR, service.ASR), "pocketsphinx") {
		f.report.found("ASR", message.Both("app/no-ears-for", name))
	}
	if f.allOf("TTS", or(p.TTS, f.cfg.TTS, service.TTS), "local") {
		f.report.found("TTS", message.Both("app/no-voice-for", name))
	}
}

// allOf reports whether no member of a chain that is there is of another type.
func (f *resolver) allOf(role string, names []string, kind string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		m, there := f.made[role+" "+name]
		return there && m.err == nil && f.typeOf(name) != kind
	})
}
