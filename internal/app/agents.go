package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"xiaozhi/agent"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/access"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/roster"
	rosterstored "xiaozhi/internal/roster/stored"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/local"
	"xiaozhi/prompts"
	"xiaozhi/store"
)

// workshop makes the engines of agents while devices talk; an [engines.Maker] does.
type workshop interface {
	Remake(ctx context.Context, cfg *config.Config, texts *prompts.Set, changed string) (engines.Set, error)
}

// crew owns the agents that people have made, as the cast plays them: beside those of the settings, which win where
// both have one of a name.
type crew struct {
	texts  *prompts.Set
	roster *roster.Roster
	cast   *cast         // set before devices connect, as what follows
	own    *local.Source // the server's own tools, with the one that changes roles
	shop   workshop
	ahead  func(ctx context.Context) error // speaks phrases ahead in the voices of agents; nil: nobody does
	log    *slog.Logger

	changing sync.Mutex        // held while agents or settings change, from what is made for them to its use
	docs     map[string]string // of the agents that people have made, by name

	mu      sync.RWMutex
	engines engines.Set       // of now
	cfg     *config.Config    // of files, environment and console
	now     *config.Config    // with the agents that people have made
	trouble map[string]string // why one of them is not used, by name

	wasDeleted func(ctx context.Context, name string) (bool, error) // whether people have deleted the agent of a name that is not there

	changed chan struct{} // room for one: phrases are to be spoken ahead
	look    func()        // at the documents of agents, which may be others; nil: nobody does
	told    func()        // of pages, when agents or whom devices have may be others; nil: nobody is
}

var _ roster.Users = (*crew)(nil)

// openCrew reads the agents that people have made; a nil store has none. They can be changed once the crew has its cast
// and its shop.
func openCrew(ctx context.Context, cfg *config.Config, stored *store.Store, texts *prompts.Set, log *slog.Logger) (*crew, error) {
	var records roster.Records = roster.NewMemory()
	if stored != nil {
		records = rosterstored.New(stored)
	}
	c := &crew{cfg: cfg, texts: texts, log: log, changed: make(chan struct{}, 1)}
	c.wasDeleted = func(context.Context, string) (bool, error) { return true, nil }
	if stored != nil {
		c.wasDeleted = stored.Agents.Deleted
	}
	var err error
	if c.roster, err = roster.Open(ctx, roster.Options{Records: records, Users: c, Log: log}); err != nil {
		return nil, err
	}
	c.docs = c.roster.Docs()
	c.now, c.trouble = c.with(cfg, c.docs)
	for _, name := range slices.Sorted(maps.Keys(c.trouble)) {
		log.Warn("an agent cannot be used", "agent", name, "why", c.trouble[name])
	}
	return c, nil
}

// unusable says which agents that people have made cannot be used, and why.
func (c *crew) unusable() error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(c.trouble)) {
		all = append(all, fmt.Errorf("agent %s: %s", name, c.trouble[name]))
	}
	return errors.Join(all...)
}

// with returns settings with agents that people have made, and why some of those cannot be used.
func (c *crew) with(cfg *config.Config, docs map[string]string) (*config.Config, map[string]string) {
	all, trouble := *cfg, map[string]string{}
	all.Agents = maps.Clone(cfg.Agents)
	if all.Agents == nil {
		all.Agents = map[string]config.Persona{}
	}
	for name, doc := range docs {
		if _, fixed := cfg.Agents[name]; fixed {
			continue
		}
		p, err := cfg.ReadAgent(name, []byte(doc), c.texts.Names())
		if err != nil {
			trouble[name] = err.Error()
			continue
		}
		all.Agents[name] = p
	}
	return &all, trouble
}

// agentOf names whom a device talks to, unless it has changed its role.
func (c *crew) agentOf(device string) string {
	p, _ := c.cast.Of(device, "")
	return p.Name
}

// revision is that of an agent that people have made and that is used; 0: the settings or a prompt make it.
func (c *crew) revision(name string) int {
	if _, fixed := c.base().Agents[name]; fixed {
		return 0
	}
	c.mu.RLock()
	_, unused := c.trouble[name]
	c.mu.RUnlock()
	a, _ := c.roster.Get(name)
	if unused {
		return 0
	}
	return a.Rev
}

// Stage implements [roster.Users].
func (c *crew) Stage(ctx context.Context, docs map[string]string, changed string) (apply, drop func(), err error) {
	c.changing.Lock()
	defer func() {
		if err != nil {
			c.changing.Unlock()
		}
	}()
	all, trouble := c.with(c.base(), docs)
	if why, ok := trouble[changed]; ok {
		return nil, nil, errors.New(why)
	}
	if _, err := mainPrompt(all, c.texts, ""); err != nil {
		return nil, nil, errors.New(message.Both("agents/first", changed))
	}
	made, err := c.shop.Remake(ctx, all, c.texts, changed)
	if err != nil {
		return nil, nil, err
	}
	apply = func() {
		defer c.changing.Unlock()
		c.take(c.base(), all, trouble, docs, made)
	}
	drop = func() {
		defer c.changing.Unlock()
		made.Release()
	}
	return apply, drop, nil
}

// take has agents and engines count from the next turn of every device on. Whoever calls it changes alone.
func (c *crew) take(cfg, all *config.Config, trouble, docs map[string]string, made engines.Set) {
	if on := all.Recorded(); !slices.Equal(on, c.settings().Recorded()) {
		c.log.Warn("whose sound of turns is recorded has changed", "by", on)
	}
	before := c.engines
	c.mu.Lock()
	c.cfg, c.now, c.trouble, c.engines = cfg, all, trouble, made
	c.mu.Unlock()
	c.docs = docs
	c.setAgents(castOf(all, c.texts, made.Agents))
	if c.look != nil {
		c.look()
	}
	before.Release()
	c.Given()
}

// Names implements [roster.Users].
func (c *crew) Names() []string { return c.settings().AgentNames(c.texts.Names()) }

// base are the settings without the agents that people have made.
func (c *crew) base() *config.Config {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.cfg
}

// left tells why engines that the settings name could not be made, by role and name.
func (c *crew) left() map[string]error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.engines.Left
}

// settings are those with the agents that people have made.
func (c *crew) settings() *config.Config {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.now
}

// Agent implements [roster.Users].
func (c *crew) Agent(name string) roster.Seen {
	if p, fixed := c.base().Agents[name]; fixed {
		return roster.Seen{Place: cmp.Or(p.Place, "agents."+name), Doc: p.Doc()}
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return roster.Seen{Trouble: c.trouble[name]}
}

// Pinned implements [roster.Users].
func (c *crew) Pinned(device string) string {
	d := c.base().Devices.ByID[device]
	if d.Agent == "" {
		return ""
	}
	return cmp.Or(d.AgentPlace, "devices."+device)
}

// setAgents puts other agents in the place of those there are, from the next turn of every device on. Their names are
// offered for a change of role.
func (c *crew) setAgents(p *personas) {
	c.cast.Replace(p)
	c.own.SetRoles(c.roles(p))
}

// roles are the agents that can be changed to.
func (c *crew) roles(p *personas) []string { return rolesOf(p, len(c.roster.Devices()) > 0) }

// rolesOf are the agents that can be changed to. That of all devices is not among them, unless a device has another
// one; given: one was given another.
func rolesOf(p *personas, given bool) []string {
	names := slices.Sorted(maps.Keys(p.byName))
	for _, d := range p.devices {
		given = given || d.Agent != ""
	}
	if given {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == p.first })
}

// Given implements [roster.Users]: what is said often is to be there in the voices that devices have now.
func (c *crew) Given() {
	c.own.SetRoles(c.roles(c.cast.now.Load()))
	if c.told != nil {
		c.told()
	}
	select {
	case c.changed <- struct{}{}:
	default: // it will be looked at anyway
	}
}

// warmAgents is of how many agents phrases are spoken ahead; the rest speaks them when they are needed.
const warmAgents = 16

// warm speaks phrases ahead in the voices of the agents that devices have, and that differ from that of all.
func (c *crew) warm(ctx context.Context, o agent.Options, ids []string) error {
	var failed error
	for _, p := range c.inUse() {
		own := o
		if p.TTS != nil {
			own.TTS = p.TTS
		}
		languages := languagesAhead(string(cmp.Or(p.Language, text.Lang(c.base().Server.Language))))
		failed = errors.Join(failed, agent.Prewarm(ctx, own, ids, languages, p.Voice))
	}
	return failed
}

// inUse lists the agents of devices that speak in another way than all, as they speak on those devices.
func (c *crew) inUse() (list []persona) {
	devices := map[string]bool{"": true} // one that nobody has given anything
	for _, ids := range c.roster.Devices() {
		for _, id := range ids {
			devices[id] = true
		}
	}
	for id := range c.base().Devices.ByID {
		devices[id] = true
	}
	type way struct{ name, voice, language string }
	known := map[way]bool{}
	for _, id := range slices.Sorted(maps.Keys(devices)) {
		p, ok := c.cast.Of(id, "")
		as := way{p.Name, p.Voice, string(p.Language)}
		if ok && !known[as] && (p.TTS != nil || p.Voice != "") && len(list) < warmAgents {
			known[as] = true
			list = append(list, p)
		}
	}
	return list
}

// rewarm speaks phrases ahead whenever agents have changed, until ctx ends.
func (c *crew) rewarm(ctx context.Context) {
	for {
		select {
		case <-c.changed:
		case <-ctx.Done():
			return
		}
		if c.ahead == nil {
			continue
		}
		if err := c.ahead(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("phrases are not spoken ahead in the voices of agents", "err", err)
		}
	}
}

// phrasesAhead are those that are said at once, and often.
func phrasesAhead() []string {
	return []string{prompts.Greeting, prompts.Filler, prompts.FillerLong, prompts.OK, prompts.Pardon, prompts.Goodbye}
}

// api serves the agents to people and programs. A nil store knows no owners of devices.
func (c *crew) api(guard *access.Guard, stored *store.Store) *roster.API {
	return &roster.API{Roster: c.roster, Guard: guard, Device: identity.ParseID, DeviceOwner: deviceOwner(stored)}
}

// deviceOwner returns what finds the account that a device belongs to; "": nobody's.
func deviceOwner(stored *store.Store) func(ctx context.Context, id string) (string, error) {
	return func(ctx context.Context, id string) (string, error) {
		if stored == nil {
			return "", nil
		}
		d, err := stored.Devices.Get(ctx, id)
		if errors.Is(err, store.ErrNotFound) { // which is told to who may know
			return "", nil
		}
		return d.OwnerID, err
	}
}
