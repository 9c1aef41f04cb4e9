package app

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/basics"
	"xiaozhi/agent/feature/dnd"
	"xiaozhi/agent/feature/job"
	"xiaozhi/agent/feature/lookup"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/music"
	"xiaozhi/agent/feature/recall"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/agent/record"
	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/contact/watch"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/keeper"
	"xiaozhi/internal/letters"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/light"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/memory"
	"xiaozhi/providers/transport"
)

// factory makes what a device gets when it connects: its conversation and the
// sources of its tools. Its methods may be called at the same time.
type factory struct {
	app      *App
	calls    router.Options // of the tools of all devices, without limits
	own      *local.Source
	files    *offer.Files
	home     mcp.Source // nil: there is none
	external *external.Set
	lists    *device.ListCache
	things   *iot.Cache

	strangers strangers
}

// conversation makes the conversation of a session, with the router that it alone uses.
func (f *factory) conversation(s wire.Session, out wire.Outbox, devices []mcp.Source) (connection.Conversation, error) {
	a, limits := f.app, f.calls
	sources := append(f.shared(f.external.For(s.DeviceID)), devices...)
	if s.Unknown {
		sources = append([]mcp.Source{f.own}, devices...)
	}
	now := a.forces.now.Load()
	options := f.optionsOf(now, s)
	options.Latest, options.Renewed = f.latest(s, now), f.renewed(s, devices)
	limits.Rules, limits.Kinds, limits.Jobs, limits.Times = options.Limits.Rules, options.Limits.Kinds, options.Limits.Jobs, options.Limits.Times
	kept := a.keeper(s, devices...)
	options.Keeper = kept.OrNone()
	limits.Record = func(rec router.Record) {
		a.outside.counts.Note(rec)
		if !s.Private {
			a.outside.calls.Add(s.DeviceID, rec)
			kept.Call(rec)
		}
	}
	if !s.Private {
		limits.Ended = ran(a, s.DeviceID)
	}
	limits.Log = a.log.With("device_id", s.DeviceID, "session_id", s.SessionID)
	seen, talk := watched(a, s), a.seen.fleet.Talk(s.DeviceID)
	options = seen.Options(options)
	options.Phase = talk.Phase
	options.Report = a.forces.tally.reports(options.Report)
	tape := a.recorders.tape(s)
	o, limits := tape.Wrap(options, limits)
	tools := router.New(limits, tape.Sources(sources...)...)
	c := &conversation{devices: a.outside.devices, info: directory.Info{Session: s, Since: time.Now()}, tape: tape, tools: tools, sources: devices, zone: func() *time.Location { return zoneOf(a, s.DeviceID) }, seen: seen, talk: talk, dates: a.seen.dates.note}
	if a.cfg.MCP.Transcripts || a.web.console != nil { // each of them shows it to whom it may
		out = c.devices.Transcribe(s.DeviceID, &c.words, out)
	}
	if s.Private {
		records := options.Devices
		c.forget = func() { records.Forget(s.DeviceID) }
	}
	c.Conversation = agent.New(o, s, seen.Outbox(tape.Outbox(out)), tools)
	c.Device = remote.New(c.Conversation, s.DeviceID, tools)
	return c, nil
}

// shared are the sources of tools that all known devices have, with other people's servers last.
func (f *factory) shared(servers mcp.Source) []mcp.Source {
	if f.home == nil {
		return []mcp.Source{f.own, f.files, servers}
	}
	return []mcp.Source{f.own, f.files, f.home, servers}
}

// watched watches the contact of a device. Its sound is kept where that of its turns is, or for a person who asks for it; never that of
// an unknown one.
func watched(a *App, s wire.Session) *watch.Talk {
	if s.Private || s.Unknown {
		return a.seen.devices.PrivateTalk(s.DeviceID)
	}
	return a.seen.devices.Talk(s.DeviceID, func() bool { return keepsSound(a, s.DeviceID) })
}

// optionsOf returns the options of the conversations of a device at a time.
func (f *factory) optionsOf(now *inForce, s wire.Session) agent.Options {
	o, own, limit := now.options, deviceSettings(f.app.cfg, s), func(*agent.Persona) {}
	if s.Unknown {
		o, limit = f.strangers.limit(o), f.strangers.spareOwn
		o.Voices = nil
	}
	o = f.app.cast.options(o, s, limit)
	o.Zone = cmp.Or(f.app.cfg.ZoneOf(s.DeviceID), o.Zone)
	o.Quiet = f.app.outside.quiet.Device(s.DeviceID)
	limits := now.limits
	limits.Allow, limits.Deny = own.Allow, slices.Concat(limits.Deny, own.Deny)
	o.Limits = &limits
	return o
}

// latest returns what a conversation asks for other options than those of a time. It is for one goroutine at a time.
func (f *factory) latest(s wire.Session, of *inForce) func() *agent.Options {
	return func() *agent.Options {
		now := f.app.forces.now.Load()
		if now == of {
			return nil
		}
		of = now
		o := f.optionsOf(now, s)
		return &o
	}
}

// renewed returns what is done when other settings count for a device, with the sources of its tools.
func (f *factory) renewed(s wire.Session, devices []mcp.Source) func() {
	changed := f.changed(s)
	return func() {
		for _, source := range devices {
			if things, is := source.(*iot.Source); is {
				things.SetKinds(f.app.forces.now.Load().limits.Kinds)
			}
		}
		changed()
	}
}

// limits returns the options of the tools of a device that has none of its own.
func (f *factory) limits() router.Options {
	o, now := f.calls, f.app.forces.now.Load().limits
	o.Rules, o.Kinds, o.Jobs, o.Times = now.Rules, now.Kinds, now.Jobs, now.Times
	return o
}

// farewell makes the conversation of a device that is turned away. It is in no directory.
func (f *factory) farewell(s wire.Session, out wire.Outbox, cause error) connection.Conversation {
	o := f.app.forces.now.Load().options
	return agent.NewFarewell(o, s, out, f.strangers.farewell(farewell(cause, o.Prompts, s.Language)))
}

// tools makes the client of a device that speaks the standard dialect.
func (f *factory) tools(s wire.Session, link connection.Link) connection.Tools {
	return device.New(device.Options{
		Send:   func(p json.RawMessage) error { return link.Send(p) },
		Vision: link.Vision, Lists: f.lists, Device: s.DeviceID, OnTools: f.changed(s), OnList: watch.Lists(f.app.seen.devices.Log, s.DeviceID), Keep: f.app.keeping(s, keeper.Tools), Log: link.Log,
	})
}

// thingsOf makes the source of a device with older firmware.
func (f *factory) thingsOf(s wire.Session, link connection.Link) connection.Things {
	return iot.New(iot.Options{
		Send: link.Send, Cache: f.things, DeviceID: s.DeviceID, Keep: f.app.keeping(s, keeper.Things), Kinds: f.app.forces.now.Load().limits.Kinds, OnChange: f.changed(s), Log: link.Log,
	})
}

// light makes the source of a device that speaks the light dialect.
func (f *factory) light(s wire.Session, link connection.Link) connection.Light {
	return light.New(light.Options{
		Send: link.Send, DeviceID: identity.AddressOf(s.DeviceID), HasLocal: f.own.HasTool, OnTools: f.changed(s), Log: link.Log,
	})
}

// settings returns what is configured for a device.
func (f *factory) settings(id string) connection.Settings {
	d := f.app.cfg.Devices.ByID[id]
	return connection.Settings{Name: d.Name, Language: d.Language, Voice: d.Voice}
}

// changed returns a function that tells the directory of other tools or states.
func (f *factory) changed(s wire.Session) func() {
	id := s.DeviceID // alone: the whole session would stay for each of its sources
	return func() { f.app.outside.devices.Changed(id) }
}

// conversation joins an [agent.Conversation] with its recording and the router that
// it alone uses, and is in the directory while it runs.
type conversation struct {
	*agent.Conversation
	remote.Device
	devices *directory.Devices
	info    directory.Info
	tape    *record.Tape // nil: it is not recorded
	tools   *router.Router
	sources []mcp.Source // of the device itself
	words   directory.Transcript
	zone    func() *time.Location                  // of its times now
	seen    *watch.Talk                            // its contact
	talk    *fleet.Talk                            // what it does
	forget  func()                                 // what was said, once it is over; nil: that is kept
	dates   func(host string, ahead time.Duration) // takes the clocks of services
}

var _ directory.Device = (*conversation)(nil)

// Run holds the conversation, then joins the calls that are still running.
func (c *conversation) Run(ctx context.Context) (err error) {
	recorded := c.tape.Run(ctx)
	defer func() { recorded(err) }()
	defer c.tools.Close()
	if c.forget != nil {
		defer c.forget()
	}
	c.devices.Add(c)
	defer c.devices.Remove(c)
	c.talk.Begin()
	defer c.talk.End()
	return c.Conversation.Run(transport.WithDates(ctx, c.dates))
}

// Post hands over what the device did, and records it.
func (c *conversation) Post(ev wire.Event) error {
	c.tape.Event(ev)
	c.seen.Post(ev)
	return c.Conversation.Post(ev)
}

// Hear hands over a microphone packet, and records it.
func (c *conversation) Hear(p wire.Packet) {
	c.tape.Hear(p)
	c.seen.Hear()
	c.Conversation.Hear(p)
}

// Info describes the device.
func (c *conversation) Info() directory.Info { return c.info }

// States returns the states of the device's things.
func (c *conversation) States() map[string]map[string]any {
	for _, s := range c.sources {
		if things, is := s.(*iot.Source); is {
			return things.States()
		}
	}
	return nil
}

// Call runs a tool as a call of the device's model would be, in its time zone.
func (c *conversation) Call(ctx context.Context, call mcp.Call) (mcp.ActionResponse, string) {
	info := mcp.InfoFrom(ctx)
	info.Zone, info.Agent = c.zone(), c.Persona().Name
	return c.Device.Call(mcp.WithInfo(ctx, info), call)
}

// Transcript returns what was said on this connection.
func (c *conversation) Transcript() []directory.Line { return c.words.Lines() }

// features lists what conversations can do beside answering.
func features(reminders *alarm.Book, office *mail.Office, songs music.Library, known *memory.Book, calm dnd.Switch) []feature.Feature {
	all := []feature.Feature{
		reminders,
		office,
		music.Feature{Library: songs},
		job.Feature{Outbox: letters.Notices{Office: office}},
		basics.Feature{},
		dnd.Feature{Switch: calm},
	}
	if known != nil {
		all = append(all, recall.Feature{Engine: known})
	}
	for _, tool := range local.DocumentTools() {
		all = append(all, lookup.Feature{Tool: tool})
	}
	return all
}
