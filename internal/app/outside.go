package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/connection/identity"
	"xiaozhi/console/api"
	"xiaozhi/internal/access"
	"xiaozhi/internal/config"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/quiet"
	"xiaozhi/internal/routine"
	"xiaozhi/internal/sender"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/toolcount"
	"xiaozhi/internal/version"
	"xiaozhi/knowledge"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/external/library"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/router"
	"xiaozhi/memory"
	"xiaozhi/prompts"
	"xiaozhi/voices"
)

// outside is the directory as the gateway uses it: errors are told in the language
// of the caller. Its methods may be called at the same time.
type outside struct {
	devices *directory.Devices
	calls   *router.Journal         // of all devices, connected or not
	counts  *toolcount.Tally        // of all calls
	named   func(id string) string  // what a device is called now, which may be another name than when it connected
	quiet   *quiet.Mode             // whether devices say what nobody has asked for; set before devices connect
	known   *memory.Book            // what is remembered of people; nil: nothing is
	voices  *voices.Book            // the people who are known by their voices; nil: nobody is
	library *knowledge.Library      // of the documents of agents; set before devices connect
	letters *mail.Office            // what devices are to be told, connected or not; set before devices connect
	sender  *sender.Sender          // by which several devices are told something; set before devices connect
	given   func(name string) bool  // whether a device, connected or not, is called so
	all     func() []identity.Known // devices, connected or not
	here    func() *router.Router   // makes a router of the tools that need no device; set before devices connect

	routines *routine.Book // what is done at times and after events; set before devices connect
}

func newOutside() outside {
	silence, _ := quiet.Open(context.Background(), quiet.Options{Log: slog.New(slog.DiscardHandler)}) // of no table: nothing can fail
	return outside{
		quiet:   silence,
		devices: directory.New(), calls: router.NewJournal(), counts: toolcount.New(), named: func(string) string { return "" }, given: func(string) bool { return false },
		all: func() []identity.Known { return nil },
	}
}

// Named reports whether a device, connected or not, is called so.
func (o outside) Named(name string) bool { return o.given(strings.TrimSpace(name)) }

// List describes the connected devices.
func (o outside) List() []offer.Device {
	list := o.devices.List()
	out := make([]offer.Device, len(list))
	for i, d := range list {
		info := d.Info()
		out[i] = offer.Device{
			ID: info.DeviceID, Name: cmp.Or(o.named(info.DeviceID), info.Name), SessionID: info.SessionID,
			Language: info.Language, Since: info.Since, Tools: len(d.Offers()),
		}
	}
	return out
}

// Offers lists the tools of a connected device.
func (o outside) Offers(id string) ([]router.Offer, bool) {
	d, err := o.devices.Find(id)
	if err != nil {
		return nil, false
	}
	return d.Offers(), true
}

// Survey lists the tools of a connected device with those that its model is not offered.
func (o outside) Survey(id string) ([]router.Listed, bool) {
	d, err := o.devices.Find(id)
	if err != nil {
		return nil, false
	}
	return d.Survey(), true
}

// Call runs a tool of a device.
func (o outside) Call(ctx context.Context, id string, call mcp.Call) (mcp.ActionResponse, string) {
	d, err := o.devices.Find(id)
	if err != nil {
		err := inLanguage(mcp.WithInfo(ctx, mcp.Info{Language: call.Language}), err)
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}, ""
	}
	return d.Call(ctx, call)
}

// Calls lists the last tool calls of a device.
func (o outside) Calls(id string) []router.Record { return o.calls.Calls(id) }

// acts returns the functions by which programs have devices do something. What is said and asked goes by the office of letters; a device that is not known has none
// there, and is spoken to directly while it is connected.
func (o outside) acts() offer.Acts {
	return offer.Acts{Say: o.say, Ask: o.ask, Listen: o.listen, Abort: o.abort, Letter: o.letter, Sleeping: o.sleeping}
}

// sleeping lists the known devices that are not connected.
func (o outside) sleeping() (all []offer.Device) {
	for _, k := range o.all() {
		if k.State != identity.Paired.String() {
			continue
		}
		if _, err := o.devices.Find(k.ID); err != nil {
			all = append(all, offer.Device{ID: k.ID, Name: o.named(k.ID)})
		}
	}
	return all
}

func (o outside) say(ctx context.Context, id, words string, now bool) (offer.Said, error) {
	l, err := o.send(ctx, mail.Letter{Device: id, Kind: mail.Say, Text: words, Now: now})
	if errors.Is(err, mail.ErrNoDevice) {
		return with(ctx, o, id, func(d directory.Device) (offer.Said, error) {
			spoken, err := d.Say(ctx, words, now)
			return offer.Said{Heard: spoken.Heard, Whole: spoken.Whole}, err
		})
	}
	return fateOf(l), inLanguage(ctx, err)
}

func (o outside) ask(ctx context.Context, id, question string) (offer.Said, error) {
	l, err := o.send(ctx, mail.Letter{Device: id, Kind: mail.Ask, Text: question})
	if errors.Is(err, mail.ErrNoDevice) {
		return with(ctx, o, id, func(d directory.Device) (offer.Said, error) {
			answer, err := d.Ask(ctx, question)
			return offer.Said{Answer: answer}, err
		})
	}
	if err == nil && l.Fate == mail.Heard {
		err = remote.ErrNoAnswer
	}
	return fateOf(l), inLanguage(ctx, err)
}

// letter tells what has become of a letter that a program has sent.
func (o outside) letter(ctx context.Context, id string) (device string, said offer.Said, err error) {
	l, err := o.letters.Find(ctx, id)
	if err != nil {
		return "", said, err
	}
	said = fateOf(l)
	said.ID, said.Fate = l.ID, string(l.Fate)
	return l.Device, said, nil
}

// send sends a letter, and waits for its fate if its device is there and may speak. A caller who has left takes it back.
func (o outside) send(ctx context.Context, l mail.Letter) (mail.Letter, error) {
	if o.letters == nil {
		return mail.Letter{}, mail.ErrNoDevice
	}
	l.Source, l.By = "mcp", catalog.CallerFrom(ctx).Name()
	sent, err := o.letters.Send(ctx, l)
	if err != nil || !o.letters.There(l.Device) || o.quiet.Of(l.Device).On {
		return sent, err
	}
	sent, err = o.letters.Await(ctx, sent.ID)
	if err == nil && !sent.Fate.Over() && ctx.Err() != nil {
		if taken, terr := o.letters.Withdraw(context.WithoutCancel(ctx), sent.ID); terr == nil {
			return taken, context.Cause(ctx)
		}
		return sent, context.Cause(ctx)
	}
	return sent, err
}

// fateOf tells a program what has become of a letter.
func fateOf(l mail.Letter) offer.Said {
	words := []rune(l.Text)
	s := offer.Said{Heard: string(words[:min(l.Heard, len(words))]), Whole: l.Heard > 0 && l.Heard >= len(words), Answer: l.Answer}
	if l.Fate == mail.Heard || l.Fate == mail.Answered || l.Fate == "" {
		return s
	}
	s.Fate, s.Why, s.ID = string(l.Fate), string(l.Why), l.ID
	if !l.Fate.Over() {
		s.Expires = l.Ends.Truncate(time.Second)
	}
	return s
}

func (o outside) listen(ctx context.Context, id string) error {
	_, err := with(ctx, o, id, func(d directory.Device) (struct{}, error) { return struct{}{}, d.Listen(ctx) })
	return err
}

func (o outside) abort(ctx context.Context, id string) (bool, error) {
	return with(ctx, o, id, func(d directory.Device) (bool, error) { return d.Stop(ctx) })
}

// with has a connected device do something. Errors are told in the language of the caller.
func with[T any](ctx context.Context, o outside, id string, do func(directory.Device) (T, error)) (did T, err error) {
	d, err := o.devices.Find(id)
	if err == nil {
		did, err = do(d)
	}
	return did, inLanguage(ctx, err)
}

func (o outside) states(id string) (map[string]map[string]any, bool) {
	d, err := o.devices.Find(id)
	if err != nil {
		return nil, false
	}
	return d.States(), true
}

func (o outside) transcript(id string) ([]offer.Line, bool) {
	d, err := o.devices.Find(id)
	if err != nil {
		return nil, false
	}
	var lines []offer.Line
	for _, line := range d.Transcript() {
		lines = append(lines, offer.Line(line))
	}
	return lines, true
}

// inLanguage returns err in the language of the caller.
func inLanguage(ctx context.Context, err error) error {
	if errors.Is(err, directory.ErrNotConnected) {
		err = feature.ErrOver
	}
	language := cmp.Or(text.Lang(mcp.InfoFrom(ctx).Language), text.Chinese)
	if err == nil || !language.IsChinese() {
		return err
	}
	for known, id := range map[error]string{
		feature.ErrOver:      "app/device-over",
		feature.ErrQueueFull: "app/device-queue-full",
		mail.ErrFull:         "app/device-queue-full",
		feature.ErrQuiet:     "app/device-quiet",
		remote.ErrManual:     "app/device-manual",
		remote.ErrNoAnswer:   "app/device-no-answer",
		remote.ErrUnheard:    "app/device-unheard",
	} {
		if errors.Is(err, known) {
			return errors.New(message.In(text.Chinese, id))
		}
	}
	return err
}

// outward makes what is offered to others: the gateway over the devices, our own
// tools, and those of other people's servers that are passed on.
func (a *App) outward(own mcp.Source, fleet *external.Set, set *prompts.Set, files *offer.Files) {
	cfg, who := a.cfg, gatewayAccess(a.cfg)
	who.Account = programs(a.accounts)
	o := gateway.Options{
		Disabled: !cfg.MCP.Enabled, Access: who, Audit: callsOf(a.accounts), Count: a.outside.counts.Note, Gate: gateOf(cfg), Times: cfg.Tools.Timeouts, Version: version.Number(), Log: a.log, Zone: a.forces.zone.Location,
		Offer: offer.Options{Assistant: func() string { return a.base().Agent.Name }, Files: files},
	}
	if cfg.MCP.AutoRegister {
		o.Offer.Devices, o.Offer.Local, o.Offer.Prompts = a.outside, own, set
		o.Offer.Acts, o.Offer.States = a.outside.acts(), a.outside.states
		o.Offer.Config = func() []byte { return a.base().Redacted() }
		o.Offer.LogTail = a.seen.tail.Text
		if cfg.MCP.Transcripts {
			o.Offer.Transcript = a.outside.transcript
		}
		if len(cfg.MCP.PassOn) > 0 {
			shared := sharedTools{fleet, cfg.MCP.PassOn}
			o.Offer.Shared, o.Offer.CallShared = shared.list, shared.call
			o.Offer.Shares = func() []library.Share {
				return fleet.Shares(func(t mcp.Tool) bool { return mcp.FitsServer(cfg.MCP.PassOn, t) })
			}
		}
	}
	a.gateway = gateway.New(o)
	a.outside.devices.Watch(a.gateway)
	a.life.atEnd(a.gateway.Close)
}

// ownAddresses are those that mcp.listen and mcp.port add to server.listen.
func ownAddresses(cfg *config.Config) []string {
	own := slices.Concat(cfg.MCP.Listen, consoleAddresses(cfg))
	for _, address := range cfg.Server.Listen {
		if host, _, err := net.SplitHostPort(address); err == nil && cfg.MCP.Port != 0 {
			own = append(own, net.JoinHostPort(host, strconv.Itoa(cfg.MCP.Port)))
		}
	}
	slices.Sort(own)
	return slices.DeleteFunc(slices.Compact(own), func(a string) bool { return slices.Contains(cfg.Server.Listen, a) })
}

// consoleAddresses are those at which people ask that no listener of devices or of HTTPS gets.
func consoleAddresses(cfg *config.Config) (own []string) {
	for _, address := range cfg.Console.Listen {
		host, port, _ := net.SplitHostPort(address) // the config has checked it
		at, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(cmp.Or(host, "0.0.0.0"), port))
		covered := func(listen string) bool { return listen == address || err == nil && access.Covers(listen, at) }
		if !slices.ContainsFunc(append(slices.Clone(cfg.Server.Listen), cfg.Server.TLS.Listen), covered) {
			own = append(own, address)
		}
	}
	return own
}

// sharedTools are the tools of other people's servers that are passed on. The gateway
// asks the gate about them.
type sharedTools struct {
	fleet  mcp.Group
	passOn []string // patterns, as [mcp.FitsServer] reads them
}

func (s sharedTools) list() []mcp.Tool {
	var out []mcp.Tool
	for _, t := range s.fleet.GetAvailableTools() {
		if mcp.FitsServer(s.passOn, t) {
			out = append(out, t)
		}
	}
	return out
}

// call runs one of them, unless another one has taken its name since the gate was asked.
func (s sharedTools) call(ctx context.Context, t mcp.Tool, arguments map[string]any) (any, error) {
	for _, server := range s.fleet.Sources() {
		for _, now := range server.GetAvailableTools() {
			if now.Source == t.Source && now.Name == t.Name && now.Trusted == t.Trusted && reflect.DeepEqual(now.Annotations, t.Annotations) {
				return server.CallTool(ctx, t.Name, arguments)
			}
		}
	}
	return nil, mcp.ErrNoTool
}

func gatewayAccess(c *config.Config) gateway.Access {
	a := gateway.Access{Hosts: slices.Clone(c.MCP.Hosts), Origins: c.MCP.Origins}
	if u, err := url.Parse(c.Server.PublicURL); err == nil && u.Host != "" {
		a.Hosts = append(a.Hosts, u.Hostname())
	}
	for _, t := range c.MCP.Tokens {
		a.Tokens = append(a.Tokens, catalog.Token{Name: t.Name, Token: string(t.Token), ReadOnly: t.ReadOnly, Streams: t.Streams, Rate: t.Rate})
	}
	return a
}

// forPrograms are the routes by which programs see devices and services, and have devices say something.
func forPrograms(a *App, owner func(ctx context.Context, id string) (string, error)) []access.Route {
	now := condition{a}
	routes := api.Routes(api.Options{
		Guard: a.web.guard, Fleet: a.seen.fleet, Letters: a.outside.letters, Sender: a.outside.sender, Routines: a.outside.routines, ID: identity.ParseID, Owner: owner,
		Find: func(id string) (remote.Device, error) { return a.outside.devices.Find(id) },
		Chains: func(_ context.Context, whole bool) (any, error) {
			all := now.chains()
			for _, c := range all.Chains {
				for i := range c.Members {
					if !whole { // what services say may name accounts and addresses
						c.Members[i].Fault, c.Members[i].About = "", ""
					}
				}
			}
			return all, nil
		},
	})
	for i, r := range routes {
		if r.For == access.Bearers {
			routes[i].Handler = a.web.told(r.Handler)
		}
	}
	return routes
}

// fleetSources tell what this server knows of devices.
func fleetSources(a *App) fleet.Sources {
	return fleet.Sources{
		Known: a.book.List, Contacts: a.seen.devices.Log.Heads, Named: a.outside.named, Agent: a.crew.agentOf,
		Details: func(ctx context.Context) (map[string]fleet.Detail, error) {
			if a.stored == nil {
				return nil, nil
			}
			all := map[string]fleet.Detail{}
			rows, err := a.stored.Devices.Presences(ctx)
			for _, r := range rows {
				all[r.DeviceID] = fleet.Detail{Owner: r.OwnerID, Talked: r.TurnAt}
			}
			return all, err
		},
	}
}
