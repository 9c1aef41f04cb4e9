package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/speak"
	"xiaozhi/audio"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/timezone"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
	"xiaozhi/providers/rules"
	"xiaozhi/providers/service"
)

// inForce holds options and limits for turns that begin, as the settings give them. It does not change.
type inForce struct {
	options agent.Options // of all conversations
	limits  router.Limits // of the tools of all devices
}

// forces hold what is in force, and the parts of the program that have to be told when the settings change.
type forces struct {
	now       atomic.Pointer[inForce] // set before devices connect
	zone      *timezone.Zone          // of all times, but of devices that have their own
	maker     *engines.Maker
	over      bool // nothing is built any more; guarded by crew.changing
	reminders *alarm.Book
	servers   *external.Set
	endpoint  http.Handler // where tool servers dial in; nil: nowhere
	tally     turnTally
}

// limitsOf are the limits that settings set for the tools of all devices.
func limitsOf(cfg *config.Config) router.Limits {
	return router.Limits{Rules: rulesOf(cfg), Kinds: cfg.Tools.Kinds, Jobs: cfg.Tools.Jobs, Times: cfg.Tools.Timeouts}
}

// rulesOf are the rules of the gate for all tools.
func rulesOf(cfg *config.Config) router.Rules {
	return router.Rules{Deny: cfg.Tools.Deny, Confirm: cfg.Tools.Confirm, ConfirmBy: cfg.Tools.ConfirmBy}
}

// gateOf is the gate of what is offered to programs.
func gateOf(cfg *config.Config) router.Gate {
	return router.NewGate(rulesOf(cfg))
}

// machine changes the settings of the running program.
type machine struct{ *App }

var _ settings.Machine = machine{}

// Build implements [settings.Machine].
func (a machine) Build(ctx context.Context, next *config.Config) (settings.Stage, error) {
	a.crew.changing.Lock()
	defer a.crew.changing.Unlock()
	if a.forces.over {
		return nil, context.Canceled
	}
	s := &staged{app: a.App, next: next}
	if err := s.build(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// stop has nothing be built any more.
func (a machine) stop() {
	a.crew.changing.Lock()
	defer a.crew.changing.Unlock()
	a.forces.over = true
}

// Health implements [settings.Machine].
func (a machine) Health() settings.Health {
	h := a.forces.tally.health()
	if h.Ready = a.life.ready.Load(); !h.Ready {
		h.Why = message.Both("app/loading")
	}
	return h
}

// staged are settings that are not in force: what they need is there, and nothing uses it.
type staged struct {
	app  *App
	next *config.Config
	docs map[string]string // of the agents that people have made, that it was built with

	all     *config.Config // next with those agents
	trouble map[string]string
	made    engines.Set
	force   *inForce
	tools   local.Options
	servers map[string]external.Config
}

var _ settings.Stage = (*staged)(nil)

// build makes all that the settings need. Whoever calls it changes alone.
func (s *staged) build(ctx context.Context) (err error) {
	a, c := s.app, s.app.crew
	s.docs = c.docs
	s.all, s.trouble = c.with(s.next, s.docs)
	for _, name := range slices.Sorted(maps.Keys(s.trouble)) {
		if _, known := c.trouble[name]; !known {
			return fmt.Errorf("agents.%s: %s", name, s.trouble[name])
		}
	}
	prompt, err := mainPrompt(s.all, c.texts, a.options.Data)
	if err != nil {
		return err
	}
	if s.tools, err = localTools(s.next, nil); err != nil {
		return err
	}
	found := engines.NewReport(slog.New(slog.DiscardHandler))
	s.servers = externalServers(s.next, found)
	for name, why := range found.Left() {
		if name = name[4:]; !reflect.DeepEqual(s.next.Tools.External.MCPServers[name], a.base().Tools.External.MCPServers[name]) {
			return fmt.Errorf("tools.external.mcpServers.%s: %w", name, why)
		}
	}
	if s.made, err = a.forces.maker.Renew(ctx, c.settings(), s.all, c.texts); err != nil {
		return err
	}
	o := conversationOptions(s.all, s.made, c.texts, a.log)
	was := a.forces.now.Load().options
	o.Prompt, o.Devices, o.Features, o.Voices = prompt, was.Devices, was.Features, tellsApart(a.outside.voices, s.all)
	if o.Levels != nil {
		o.Levels = cmp.Or(was.Levels, o.Levels)
	}
	if o.Sounds = was.Sounds; s.speaksOtherwise() {
		o.Sounds = speak.NewCache(c.texts)
		err = agent.Preload(o)
	}
	if err != nil {
		s.made.Release()
		return err
	}
	s.force = &inForce{options: o, limits: limitsOf(s.next)}
	return nil
}

// speaksOtherwise reports whether any voice is another one than it was: what was spoken ahead is not to be heard then.
func (s *staged) speaksOtherwise() bool {
	return slices.ContainsFunc(engines.Changed(s.app.crew.settings(), s.all), func(r engines.Role) bool { return r.Role == service.TTS })
}

// Apply implements [settings.Stage].
func (s *staged) Apply(ctx context.Context) error {
	a, c := s.app, s.app.crew
	c.changing.Lock()
	defer c.changing.Unlock()
	if a.forces.over {
		return context.Canceled
	}
	if !maps.Equal(s.docs, c.docs) { // an agent was changed since
		old := s.made
		if err := s.build(ctx); err != nil {
			old.Release()
			return err
		}
		old.Release()
	}
	main := s.made.Main
	a.forces.tally.change()
	a.forces.now.Store(s.force)
	a.forces.zone.Set(s.force.options.Zone)
	a.cast.main.Store(&main)
	if a.outside.known != nil {
		a.outside.known.EmbedderChanged()
	}
	c.take(s.next, s.all, s.trouble, s.docs, s.made)
	a.gateway.Renew(gateOf(s.next), s.next.Tools.Timeouts)
	c.own.SetWorld(s.tools.World)
	a.forces.servers.SetServers(s.servers)
	a.forces.reminders.SetLimits(s.next.Reminders.PerDevice, s.next.Reminders.KeepOpen)
	a.outside.quiet.Renew()
	a.recorders.turns.SetLimits(keptFor(s.next.Recording), int64(s.next.Recording.Quota))
	for _, d := range a.outside.devices.List() {
		if talk, ok := d.(*conversation); ok {
			talk.Renew()
		}
	}
	return nil
}

// Drop implements [settings.Stage].
func (s *staged) Drop() { s.made.Release() }

// keptFor returns the time for which the sound of turns is kept.
func keptFor(r config.Recording) time.Duration { return time.Duration(r.Days) * 24 * time.Hour }

// testTime limits how long services are tried.
const testTime = 10 * time.Second

// Tests implements [settings.Stage].
func (s *staged) Tests(ctx context.Context) []settings.Test {
	ctx, cancel := context.WithTimeout(ctx, testTime)
	defer cancel()
	services := engines.OpenServices(s.all, s.app.log)
	defer services.Close()
	roles := engines.Changed(s.app.crew.settings(), s.all)
	all, made := make([]settings.Test, len(roles)), make([]engines.Tried, len(roles))
	for i, r := range roles {
		var there bool
		if made[i], there = s.made.Has(r); !there {
			made[i] = services.Try(ctx, r.Name, r.Role)
		}
	}
	said := sync.OnceValue(func() []int16 { return sentence(ctx, services) })
	var wg sync.WaitGroup
	for i, r := range roles {
		one := made[i]
		wg.Go(func() {
			t := settings.Test{Section: r.Name, Role: string(r.Role)}
			begun := time.Now()
			err := one.Err
			if err == nil {
				t.First, err = try(ctx, one, services.Language(r.Name), said)
			}
			t.Total = time.Since(begun)
			if t.OK = err == nil; !t.OK {
				t.Why = engines.Why(err, services.Free(r.Name))
			}
			all[i] = t
		})
	}
	wg.Wait()
	return all
}

// try asks a service once, and returns how long it took to the first of its answer.
func try(ctx context.Context, one engines.Tried, language string, said func() []int16) (first time.Duration, err error) {
	words, lang := message.In(text.Lang(language), "services/sentence"), language
	switch {
	case one.TTS != nil:
		spoken, err := probe.Speak(ctx, one.TTS, providers.TTSRequest{Text: words, Language: lang})
		return spoken.First, err
	case one.ASR != nil:
		heard, err := probe.Hear(ctx, one.ASR, said(), lang, words)
		return cmp.Or(heard.Partial, heard.Final), err
	case one.Duplex != nil:
		question := message.In(text.Lang(language), "services/question")
		all, err := probe.Converse(ctx, one.Duplex, probe.Thermometer(question, lang), probe.Utterance{Said: words, PCM: said()})
		if len(all) > 0 {
			first = all[0].First
		}
		return first, err
	case one.LLM != nil:
		thought, err := probe.Think(ctx, one.LLM, probe.Thermometer(message.In(text.Lang(language), "services/question"), lang))
		return thought.First, err
	}
	return 0, errors.ErrUnsupported
}

// sentence has the voice of this machine say something; where there is none, nothing is said for a second.
func sentence(ctx context.Context, services *engines.Services) []int16 {
	if voice := services.Try(ctx, "local", service.TTS); voice.Err == nil {
		spoken, err := probe.Speak(ctx, voice.TTS, providers.TTSRequest{Text: message.In(text.English, "services/sentence"), Language: string(text.English)})
		if err == nil {
			return spoken.PCM
		}
	}
	return make([]int16, audio.Recognition.Rate)
}

// turnTally counts how turns end that began with the settings in force.
type turnTally struct {
	mu     sync.Mutex
	times  int // how often the settings have changed
	turns  int
	streak int    // of the last ones that failed
	fault  string // of the last one that did
}

// change notes that other settings are in force: turns that have begun say nothing of them.
func (t *turnTally) change() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.times++
}

// reports counts the turns of one conversation that somebody is told of. A nil one is nobody.
func (t *turnTally) reports(to func(agent.Report)) func(agent.Report) {
	began := -1 // with which settings the turn did
	return func(r agent.Report) {
		t.mu.Lock()
		if r.Stage == agent.StageWords {
			began = t.times
		}
		if began == t.times {
			t.note(r)
		}
		t.mu.Unlock()
		if to != nil {
			to(r)
		}
	}
}

// note counts a turn that has ended, with the lock held. One of which nothing came, and for which nobody is to blame, does not count.
func (t *turnTally) note(r agent.Report) {
	fault := excused(r.Figures)
	if r.Err != nil {
		fault = engines.Why(r.Err, false)
	}
	if r.Stage != agent.StageEnd || fault == "" && r.Heard == 0 {
		return
	}
	t.turns++
	if fault == "" {
		t.streak = 0
		return
	}
	t.streak++
	t.fault = fault
}

// excused says why no model has answered a turn, and the rules have excused it; "": one has, or nothing was asked.
func excused(f timeline.Figures) string {
	if f.LLMName != rules.Name {
		return ""
	}
	for _, a := range slices.Backward(f.Attempts) {
		if a.Op == "think" && a.Outcome == timeline.Failed && a.Provider != rules.Name {
			return a.Provider + ": " + a.Fault
		}
	}
	return ""
}

// health tells the count.
func (t *turnTally) health() settings.Health {
	t.mu.Lock()
	defer t.mu.Unlock()
	return settings.Health{Turns: t.turns, Streak: t.streak, Fault: t.fault}
}
