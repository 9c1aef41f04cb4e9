package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"xiaozhi/agent"
	"xiaozhi/agent/history"
	thinking "xiaozhi/agent/think"
	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/keeper"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/services"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// draft is the name of an agent that is tried and not saved.
const draft = "draft"

// stage makes what trials need of the running program. Nothing that it makes is used by devices.
type stage struct {
	app *App
	f   *factory
}

var _ lab.Stage = stage{}

// labOf makes what is tried beside the talks; nil without a store, which has the turns.
func labOf(ctx context.Context, a *App, f *factory) *lab.API {
	if a.stored == nil {
		return nil
	}
	l := lab.New(ctx, lab.Options{
		Stage: stage{a, f}, Turns: a.stored.Turns, Agents: a.stored.Agents.Names, Read: keeper.ReadMessage, Zone: a.forces.zone.Location, Sound: soundsOf(a.stored.Recordings, filepath.Join(a.options.Data, recordingsFolder)),
		Currency: func() string { return a.cfg.Console.Currency },
		Prices:   func(name string) (config.Price, bool) { return services.PriceOf(a.crew.settings(), name) },
	})
	a.life.atEnd(l.Close)
	book := a.crew.api(a.web.guard, a.stored)
	a.web.stock = agentStock{stage{a, f}}
	return &lab.API{Lab: l, Guard: a.web.guard, Device: book.Device, DeviceOwner: book.DeviceOwner, MayUse: func(r *http.Request, name string) error {
		if _, ok := a.cast.Of("", name); !ok {
			return lab.Refuse(lab.Missing, "agents/none", name)
		}
		return book.MayKnow(r, name)
	}}
}

// soundsOf returns what reads the user's sound of a turn from a folder, at 16 kHz; nil if none is kept.
func soundsOf(table *store.Recordings, folder string) func(ctx context.Context, turn string) ([]int16, error) {
	return func(ctx context.Context, turn string) ([]int16, error) {
		all, err := table.Of(ctx, turn)
		i := slices.IndexFunc(all, func(r store.Recording) bool { return r.Side == "user" })
		if err != nil || i < 0 {
			return nil, err
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		data, err := root.ReadFile(all[i].Path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return pcmOf(data)
	}
}

// pcmOf decodes a recording at 16 kHz.
func pcmOf(ogg []byte) ([]int16, error) {
	r, err := file.NewOpusReader(bytes.NewReader(ogg))
	if err != nil {
		return nil, err
	}
	to, err := audio.NewResampler(r.Rate(), audio.Recognition.Rate)
	if err != nil {
		return nil, err
	}
	var out []int16
	for buffer := make([]int16, 4800); ; {
		n, err := r.Read(buffer)
		out = to.Write(out, buffer[:n])
		if errors.Is(err, io.EOF) {
			return to.Flush(out), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Count implements [lab.Stage].
func (s stage) Count(words string) int {
	return history.Tokens(words)
}

// Budget implements [lab.Stage].
func (s stage) Budget() int { return cmp.Or(s.app.forces.now.Load().options.HistoryTokens, 6000) }

// Voice implements [lab.Stage].
func (s stage) Voice(ctx context.Context, name string, speed float64) (providers.TTS, func(), error) {
	cfg := *s.app.crew.settings()
	if speed != 0 {
		all := map[string]config.Provider{}
		for other, p := range cfg.Providers {
			all[other] = p
		}
		p, written := all[name]
		if !written {
			p.Type = name
		}
		if p.Type == "local" {
			return nil, nil, lab.Refuse(lab.Invalid, "lab/no-speed", name)
		}
		p.Speed = speed
		all[name], cfg.Providers = p, all
	}
	e, free, err := s.chains(ctx, &cfg, config.Persona{TTS: []string{name}})
	return e.TTS, free, err
}

// chains makes the chains that an agent has for itself. The error says for people what cannot be made.
func (s stage) chains(ctx context.Context, cfg *config.Config, p config.Persona) (e engines.Chains, free func(), err error) {
	e, free, err = engines.ForAgent(ctx, cfg, p, s.app.crew.texts, s.app.log)
	if err != nil {
		return e, nil, &lab.RefusalError{Kind: lab.Invalid, Text: engines.Readable(err)}
	}
	return e, free, nil
}

// Cast implements [lab.Stage].
func (s stage) Cast(ctx context.Context, id string, setup lab.Setup) (c lab.Cast, err error) {
	live, ok := s.app.cast.Of(id, setup.Agent)
	if !ok {
		return c, lab.Refuse(lab.Missing, "agents/none", setup.Agent)
	}
	p, own, cfg := live.Persona, config.Persona{}, s.app.crew.settings()
	if len(setup.Doc) > 0 {
		if own, err = cfg.ReadAgent(draft, setup.Doc, s.app.crew.texts.Names()); err != nil {
			return c, &lab.RefusalError{Kind: lab.Invalid, Text: engines.Readable(err)}
		}
		p = s.drafted(cfg, id, own)
	}
	for chain, name := range map[*[]string]string{&own.ASR: setup.ASR, &own.LLM: setup.LLM, &own.TTS: setup.TTS} {
		if name != "" {
			*chain = []string{name}
		}
	}
	if setup.Prompt != "" {
		p.Text, p.Prompt = setup.Prompt, ""
	}
	e, free, err := s.chains(ctx, cfg, config.Persona{ASR: own.ASR, LLM: own.LLM, TTS: own.TTS})
	if err != nil {
		return c, err
	}
	o := s.app.forces.now.Load().options
	c = lab.Cast{
		Agent: p.Name, ASR: first(e.ASR, p.ASR, o.ASR), LLM: first(e.LLM, p.LLM, o.LLM), TTS: first(e.TTS, p.TTS, o.TTS), Voice: p.Voice,
		Language: cmp.Or(p.Language, text.TagOf(cfg.Server.Language), text.Chinese), Tools: s.tools(ctx, id, p), Close: free,
		Think: thinking.Options{Prompts: o.Prompts, Name: o.Name, Zone: zoneOf(s.app, id), MaxSteps: cmp.Or(o.MaxSteps, 5)},
	}
	session := wire.Session{DeviceID: id, Name: cmp.Or(cfg.Devices.ByID[id].Name, s.app.book.Name(id)), Language: string(c.Language), Voice: p.Voice}
	c.Turn = thinking.Turn{Role: cmp.Or(p.Prompt, o.Prompt), Text: p.Text, Session: session}
	return c, nil
}

// drafted is an agent that is not saved, as it would be on a device.
func (s stage) drafted(cfg *config.Config, id string, own config.Persona) agent.Persona {
	with := *cfg
	with.Agents = map[string]config.Persona{draft: own}
	if typed, ok := cfg.Agents[cfg.Agent.Prompt]; ok { // whose prompt is that of all
		with.Agents[cfg.Agent.Prompt] = typed
	}
	p := castOf(&with, s.app.crew.texts, nil).byName[draft].Persona
	d := cfg.Devices.ByID[id]
	p.Language, p.Voice = cmp.Or(p.Language, text.TagOf(d.Language)), cmp.Or(p.Voice, d.Voice)
	return p
}

// first returns the first engine that is there.
func first[T comparable](all ...T) (one T) { return cmp.Or(all...) }

// tools are those that a device's model is offered with an agent, also while the device is away: what it offered is kept.
func (s stage) tools(ctx context.Context, id string, p agent.Persona) []providers.ToolSpec {
	tools := s.router(ctx, id)
	defer tools.Close()
	tools.Restrict(router.Rules{Allow: p.Allow, Deny: p.Deny})
	return thinking.Specs(tools, false)
}

// router has the tools of the server and, unless id is "", those that a device has offered.
func (s stage) router(ctx context.Context, id string) *router.Router {
	sources := s.f.shared(s.f.external.For(id))
	if id != "" {
		docs, err := s.app.stored.Devices.Learned(ctx, id)
		if err != nil {
			s.app.log.Warn("the tools of a device are not known", "device_id", id, "err", err)
		}
		client := device.New(device.Options{Lists: s.f.lists, Device: id, Log: s.app.log})
		things := iot.New(iot.Options{Cache: s.f.things, DeviceID: id, Kinds: s.app.forces.now.Load().limits.Kinds, Log: s.app.log})
		if doc := docs[keeper.Tools]; doc != "" && client.Restore(doc) == nil {
			sources = append(sources, client)
		}
		if doc := docs[keeper.Things]; doc != "" && things.Restore(doc) == nil {
			sources = append(sources, things)
		}
	}
	limits, own := s.f.limits(), s.app.cfg.Devices.ByID[id].Tools
	limits.Allow, limits.Deny = own.Allow, slices.Concat(limits.Deny, own.Deny)
	limits.Record, limits.Log = nil, s.app.log
	return router.New(limits, sources...)
}
