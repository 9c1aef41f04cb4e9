// Package app builds, starts and stops the program: it joins connections,
// conversations, tools and engines as the settings ask. It is the only package that
// knows providers by name.
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/record"
	"xiaozhi/audio"
	"xiaozhi/connection"
	"xiaozhi/internal/config"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/light"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers/rules"
	"xiaozhi/providers/silero"

	"xiaozhi/internal/directory"
)

// Version is the version that the server reports to devices, tools and people.
const Version = "0.1.0"

// Options are what the program needs beside its settings.
type Options struct {
	Data     string       // folder of prompts, tools, music and what is stored
	Profiles string       // loopback address of the runtime's profiles, for developers; "": none
	Banner   io.Writer    // takes what was found and the addresses, for people
	Log      *slog.Logger // takes everything else
}

// App is everything that is built once and shared by all devices.
type App struct {
	cfg      *config.Config
	options  Options
	devices  *connection.Server
	outside  outside
	access   gateway.Access
	gateway  *gateway.Gateway
	tail     *logTail
	endpoint http.Handler                  // where tool servers dial in; nil: nowhere
	lines    []string                      // what was found, for people
	warmers  []func(context.Context) error // load what the first turn needs
	later    []func(context.Context) error // make the first turns faster, and can wait
	dials    []func(context.Context) error // open connections to services
	closers  []func()                      // run in reverse order at the end
	recorder *record.Recorder              // set before devices connect; nil: nothing is recorded
	log      *slog.Logger
}

// Build makes everything that the settings ask for, and starts nothing. It waits for
// nothing but a short question to a local Ollama. Close ends what it made.
func Build(ctx context.Context, cfg *config.Config, o Options) (*App, error) {
	tail := &logTail{}
	log := slog.New(slog.NewMultiHandler(o.Log.Handler(), slog.NewTextHandler(tail, tailOptions(cfg))))
	r := &App{cfg: cfg, options: o, log: log, outside: newOutside(), access: gatewayAccess(cfg, log), tail: tail}
	if err := r.assemble(ctx, cfg, o.Data, log); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// assemble joins all parts.
func (r *App) assemble(ctx context.Context, cfg *config.Config, data string, log *slog.Logger) error {
	set, err := prompts.Load(filepath.Join(data, "prompts"))
	if err != nil {
		return err
	}
	if names := set.Names(); !slices.Contains(names, cfg.Agent.Prompt) {
		return fmt.Errorf("agent.prompt: there is no prompt %q (there are: %s); put %[1]s.zh.md or %[1]s.en.md into %[3]s / 没有这个提示词",
			cfg.Agent.Prompt, strings.Join(names, ", "), filepath.Join(data, "prompts"))
	}
	vad, err := silero.New()
	if err != nil {
		return err
	}
	r.found("VAD", "Silero v6 (embedded / 内置)")
	f := &resolver{cfg: cfg, log: log, app: r}
	asr, chinese, err := f.recognizers(ctx)
	if err != nil {
		return err
	}
	members, err := f.models(ctx)
	if err != nil {
		return err
	}
	models := len(members) > 0
	brain := rules.New(rules.Options{
		Prompts: set.Phrase, Name: cfg.Agent.Name, Zone: cfg.Server.Zone(), ModelConfigured: models,
	})
	llm, err := f.thinker(members, brain)
	if err != nil {
		return err
	}
	seers, err := f.seers(ctx)
	if err != nil {
		return err
	}
	tts, err := f.voices(ctx)
	if err != nil {
		return err
	}
	tokens := &agent.TokenCounter{}
	r.later = append(r.later, func(context.Context) error { return tokens.Load() })
	records := agent.NewDevices()
	r.closers = append(r.closers, records.Close)
	o := agent.Options{
		VAD: vad, ASR: asr, LLM: llm, TTS: tts, Phrases: brain.Phrases, NoChinese: !chinese,
		Prompts: set, Devices: records, Tokens: tokens,
		Name: cfg.Agent.Name, Prompt: cfg.Agent.Prompt, MaxSteps: cfg.Agent.MaxSteps, HistoryTokens: cfg.Agent.HistoryTokens,
		WakeWords: cfg.Agent.WakeWords, ExitWords: cfg.Agent.ExitWords, StopWords: stopWords(cfg.Agent), Zone: cfg.Server.Zone(),
		MaxCalls: cfg.Tools.MaxPerTurn, MaxDaily: cfg.Tools.MaxPerDay,
		IdleClose: cfg.Voice.IdleClose, Endpoint: endpointOptions(cfg.Voice), Lead: leadFrames(cfg.Voice), Log: log,
		Drafts: orNever(cfg.Voice.Endpointing.Trials), BargeIn: cfg.Voice.BargeIn, NoEchoGuard: !cfg.Voice.EchoGuard, SlowAfter: orNever(cfg.Voice.SlowNotice),
		Sounds: agent.NewSoundCache(set),
	}
	if cfg.Voice.Loudness {
		o.Levels = audio.NewLevels()
	}
	if models {
		o.FastPath = brain
	}
	r.later = append(r.later, func(ctx context.Context) error {
		return agent.RenderPhrases(ctx, o, phrasesAhead(), languagesAhead(cfg.Server.Language))
	})
	own, err := localTools(cfg, data, set.Names())
	if err != nil {
		return err
	}
	o.Music = musicLibrary{own.Music}
	r.devices, err = r.server(ctx, cfg, data, o, own, &eyes{llm: seers, texts: set, log: log}, set)
	return err
}

// server is the door of the devices.
func (r *App) server(ctx context.Context, cfg *config.Config, data string, o agent.Options, tools local.Options, eyes *eyes, set *prompts.Set) (*connection.Server, error) {
	tools.Log = r.log
	own := local.New(tools)
	if err := own.Start(ctx); err != nil {
		return nil, err
	}
	r.closers = append(r.closers, func() { own.Stop() })
	fleet, err := r.external(ctx, cfg, data, own)
	if err != nil {
		return nil, err
	}
	r.outward(cfg, data, own, fleet, set, r.log)
	shelf := device.NewListCache()
	limits := router.Options{Kinds: cfg.Tools.Kinds, Deny: cfg.Tools.Deny, Jobs: cfg.Tools.Jobs, Confirm: cfg.Tools.Confirm, Describe: eyes.Look, Log: r.log}
	things := iot.NewCache(cfg.Server.MaxDevices)
	notice, err := notices(o.Prompts)
	if err != nil {
		return nil, err
	}
	return connection.NewServer(connection.Options{
		NewTalk: func(s wire.Session, out wire.Outbox, sources []mcp.Source) (connection.Talk, error) {
			limits := limits
			limits.Allow = cfg.Devices[s.DeviceID].Tools.Allow
			limits.Deny = slices.Concat(limits.Deny, cfg.Devices[s.DeviceID].Tools.Deny)
			limits.Record = func(rec router.Record) { r.outside.calls.Add(s.DeviceID, rec) }
			limits.Log = r.log.With("device_id", s.DeviceID, "session_id", s.SessionID)
			tape := r.recorder.Tape(s)
			o, limits := tape.Wrap(o, limits)
			box := router.New(limits, tape.Sources(append([]mcp.Source{own, fleet.For(s.DeviceID)}, sources...)...)...)
			c := &conversation{devices: r.outside.devices, info: directory.Info{Session: s, Since: time.Now()}, tape: tape, tools: box, sources: sources}
			if cfg.MCP.Transcripts {
				out = c.devices.Transcribe(s.DeviceID, &c.words, out)
			}
			c.Conversation = agent.New(o, s, tape.Outbox(out), box)
			return c, nil
		},
		NewTools: func(s wire.Session, link connection.Link) connection.Tools {
			return device.New(device.Options{
				Send:    func(p json.RawMessage) error { return link.Send(p) },
				Version: Version, Vision: link.Vision, Lists: shelf, Device: s.DeviceID, OnTools: func() { r.outside.devices.Changed(s.DeviceID) }, Log: link.Log,
			})
		},
		NewThings: func(s wire.Session, link connection.Link) connection.Things {
			return iot.New(iot.Options{
				Send: link.Send, Cache: things, DeviceID: s.DeviceID, Kinds: limits.Kinds, OnChange: func() { r.outside.devices.Changed(s.DeviceID) },
				Log: link.Log,
			})
		},
		NewLight: func(s wire.Session, link connection.Link) connection.Light {
			return light.New(light.Options{
				Send: link.Send, DeviceID: s.DeviceID, HasLocal: own.HasTool, OnTools: func() { r.outside.devices.Changed(s.DeviceID) },
				Log: link.Log,
			})
		},
		Settings: func(id string) connection.Settings {
			d := cfg.Devices[id]
			return connection.Settings{Name: d.Name, Language: d.Language, Voice: d.Voice}
		},
		Explainer: eyes,
		Notice:    notice, MaxLateness: cfg.Server.MaxLateness,
		Auth:      connection.Auth{Enabled: cfg.Auth.Enabled, Token: string(cfg.Auth.Token)},
		PublicURL: cfg.Server.PublicURL, TrustProxy: cfg.Server.TrustProxy, MaxDevices: cfg.Server.MaxDevices,
		Zone: cfg.Server.Zone(), Language: cfg.Server.Language, Log: r.log,
	})
}

// phrasesAhead are the phrases that have to be there at once when they are needed.
func phrasesAhead() []string {
	return []string{prompts.Greeting, prompts.Filler, prompts.FillerLong, prompts.OK, prompts.Pardon, prompts.Goodbye}
}

// languagesAhead are the languages that devices are likely to be spoken to in.
func languagesAhead(configured string) []string {
	if configured == "zh" || configured == "en" {
		return []string{configured}
	}
	return []string{"zh", "en"}
}

// found notes what was found, for the banner and the log.
func (r *App) found(role, what string) {
	r.lines = append(r.lines, fmt.Sprintf("  %-4s %s", role, what))
	r.log.Info("engine", "role", role, "found", what)
}

// missing notes what was left out, and why.
func (r *App) missing(role, name string, why error) {
	r.lines = append(r.lines, fmt.Sprintf("  %-4s - %s: left out / 未启用: %v", role, name, why))
	r.log.Warn("engine left out", "role", role, "provider", name, "err", why)
}

// Report writes what was found, for people.
func (r *App) Report(w io.Writer) {
	for _, line := range r.lines {
		fmt.Fprintln(w, line)
	}
}

// warm loads what the first turns need. A service that is out of reach keeps
// nothing else waiting.
func (r *App) warm(ctx context.Context) {
	var dials sync.WaitGroup
	defer dials.Wait()
	for _, f := range r.dials {
		dials.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("service not reached", "err", err)
			}
		})
	}
	r.runAll(ctx, r.warmers)
}

// runAll runs functions one after the other; what fails is only logged.
func (r *App) runAll(ctx context.Context, all []func(context.Context) error) {
	for _, f := range all {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("engine did not load", "err", err)
		}
	}
}

// Close ends all that Build made, in reverse order. Run must have returned.
func (r *App) Close() {
	for _, end := range slices.Backward(r.closers) {
		end()
	}
}
