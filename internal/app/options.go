package app

import (
	"log/slog"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/history"
	"xiaozhi/agent/speak"
	"xiaozhi/audio"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/text"
	"xiaozhi/internal/world"
	"xiaozhi/mcp/local"
	"xiaozhi/prompts"
)

func conversationOptions(cfg *config.Config, e engines.Set, texts *prompts.Set, log *slog.Logger) agent.Options {
	o := agent.Options{
		VAD: e.VAD, ASR: e.Main.ASR, LLM: e.Main.LLM, TTS: e.Main.TTS, Realtime: e.Main.Duplex, Phrases: e.Brain.Phrases, NoChinese: !e.Main.Chinese,
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
	if e.Models {
		o.FastPath = e.Brain
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

// localTools are the options of the server's own tools, but for music. roles are the agents
// that can be changed to. config.Load has seen that the services can be made.
func localTools(cfg *config.Config, roles []string) (local.Options, error) {
	services, _, err := world.Services(cfg.Tools)
	return local.Options{Roles: roles, World: services, Quiet: true, Routines: true, Memory: cfg.Store.Driver != "none"}, err
}
