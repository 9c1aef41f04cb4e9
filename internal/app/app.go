// Package app builds, starts and stops the program: it joins connections,
// conversations, tools and engines as the settings ask.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/routines"
	"xiaozhi/agent/record"
	"xiaozhi/connection"
	"xiaozhi/connection/camera"
	"xiaozhi/connection/identity"
	"xiaozhi/connection/provision"
	"xiaozhi/connection/request"
	"xiaozhi/connection/websocket"
	"xiaozhi/console"
	papers "xiaozhi/console/documents"
	"xiaozhi/console/talk"
	"xiaozhi/console/talks"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/contact/excerpt"
	"xiaozhi/internal/contact/watch"
	"xiaozhi/internal/doctor"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/garbage"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/lazylog"
	"xiaozhi/internal/outward"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/songs"
	"xiaozhi/internal/systemd"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/timezone"
	"xiaozhi/internal/version"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/mcp/secret"
	"xiaozhi/prompts"
	"xiaozhi/store"
)

// Options configure the program beside its settings.
type Options struct {
	Data     string       // folder of prompts, tools, music and what is stored
	Profiles string       // loopback address of the runtime's profiles, for developers; "": none
	Banner   io.Writer    // takes what was found and the addresses, for people
	Terminal bool         // Banner is read by people only, so it may show the admin token
	Log      *slog.Logger // takes everything else
	Check    bool         // only the settings are looked at: nothing is opened that a running server has

	Program string // file of this program, which is started to read documents; "": the server reads them itself

	NoConsoleSettings bool               // what people have set in the console does not count
	PasswordCost      account.Cost       // of passwords' hashes; zero: as much as account takes
	Collector         *garbage.Collector // is told while pages are followed; may be nil
	Manager           *systemd.Manager   // is told when devices can connect, and when it ends; may be nil
}

// App is the program: it owns everything that is built once and shared by all
// devices. Run may be called once.
type App struct {
	cfg     *config.Config
	options Options
	log     *slog.Logger // that of the options, and the tail
	seen    seen
	report  *engines.Report
	life    *lifecycle

	book     *identity.Book
	stored   *store.Store     // nil: nothing outlives the program
	accounts *account.Service // of stored; nil without

	forgetting forgetting
	devices    *connection.Registry
	load       load
	web        web
	outside    outside
	gateway    *gateway.Gateway
	forces     forces
	cast       *cast
	crew       *crew
	recorders  recorders
	settings   *settings.Settings // nil: they cannot be changed while the program runs
}

// seen collects what was noticed lately.
type seen struct {
	tail    *logTail
	devices watch.Devices // their contacts
	fleet   *fleet.Fleet  // what they do
	dates   dates
	open    []string       // addresses at which the server listens; set before it serves
	safe    []string       // the same of HTTPS
	dangers []string       // of the way in which it was started
	doctor  *doctor.Doctor // that looks at all of it
}

// load measures how busy the process is while Watch runs.
type load interface {
	connection.Load
	Watch(ctx context.Context, devices func() int)
	Beats() uint64
}

// Build makes everything that the settings ask for, and starts nothing that listens.
// It waits for nothing but a short question to a local Ollama. Close ends what it made.
func Build(ctx context.Context, cfg *config.Config, o Options) (*App, error) {
	a := newApp(cfg, o)
	if err := a.assemble(ctx); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// newApp makes an App without any part.
func newApp(cfg *config.Config, o Options) *App {
	tail := &logTail{}
	log := slog.New(lazylog.New(slog.NewMultiHandler(o.Log.Handler(), slog.NewTextHandler(tail, tailOptions(cfg)))))
	zone := timezone.New(cfg.Server.Zone())
	contacts := contact.New(func() time.Time { return time.Now().In(zone.Location()) })
	a := &App{
		cfg: cfg, options: o, log: log, seen: seen{tail: tail, devices: watch.Devices{Log: contacts, Sound: excerpt.New()}, fleet: fleet.New()}, forces: forces{zone: zone}, report: engines.NewReport(log), life: &lifecycle{log: log}, outside: newOutside(),
		forgetting: forgetting{times: map[string]int{}}, load: connection.NewSchedulerLag(cfg.Server.MaxLateness, log),
	}
	a.seen.doctor = doctor.New(doctor.Options{Check: examiner{a}.examine, Contacts: a.seen.devices.Log})
	// Before anybody has a copy of outside.
	a.outside.Devices = outward.New(outward.Options{
		Directory: a.outside.devices, Journal: a.outside.calls,
		Letters: func() outward.Letters {
			if a.outside.letters == nil {
				return nil
			}
			return a.outside.letters
		},
		Quiet: func(device string) bool { return a.outside.quiet.Of(device).On },
		Known: func() []identity.Known { return a.book.List() },
		Named: func(id string) string { return cmp.Or(cfg.Devices.ByID[id].Name, a.book.Name(id)) },
		Given: func(name string) bool {
			called := func(d config.Device) bool { return d.Name != "" && strings.EqualFold(d.Name, name) }
			return slices.ContainsFunc(slices.Collect(maps.Values(cfg.Devices.ByID)), called) ||
				slices.ContainsFunc(a.book.List(), func(k identity.Known) bool { return k.Name != "" && strings.EqualFold(k.Name, name) })
		},
	})
	return a
}

// base returns the settings that count now, without the agents that people have made.
func (a *App) base() *config.Config {
	if a.crew == nil { // they cannot have changed yet
		return a.cfg
	}
	return a.crew.base()
}

// zoneOf returns the time zone of a device now, by its id.
func zoneOf(a *App, device string) *time.Location {
	return cmp.Or(a.cfg.ZoneOf(device), a.forces.zone.Location())
}

// assemble makes all parts and joins them.
func (a *App) assemble(ctx context.Context) error {
	cfg, folder := a.cfg, filepath.Join(a.options.Data, "prompts")
	texts, err := prompts.Load(folder)
	if err != nil {
		return err
	}
	if err := newHTTPS(cfg, a.options.Data, a.log).look(a.report); err != nil {
		return err
	}
	if err := a.openStore(ctx); err != nil {
		return err
	}
	kept, err := a.keeps(ctx)
	if err != nil {
		return err
	}
	if err := openSettings(ctx, a, kept); err != nil {
		return err
	}
	cfg = a.cfg
	a.forces.zone.Set(cfg.Server.Zone())
	if a.crew, err = openCrew(ctx, cfg, kept, texts, a.log); err != nil {
		return err
	}
	if err := a.crew.unusable(); err != nil && a.options.Check {
		return err
	}
	cfg = a.crew.settings()
	prompt, err := mainPrompt(cfg, texts, a.options.Data)
	if err != nil {
		return err
	}
	maker := engines.New(a.log)
	a.life.atEnd(maker.Close)
	e, err := maker.Make(ctx, cfg, texts, a.report)
	if err != nil {
		return err
	}
	a.life.engines(e.Start())
	a.life.atEnd(a.crew.roster.Close) // before the engines
	players := castOf(cfg, texts, e.Agents)
	tools, err := localTools(cfg, a.crew.roles(players))
	if err != nil {
		return err
	}
	reportWorld(a, cfg, tools.World)
	heard := musicOf(ctx, a, cfg)
	tools.Music, tools.Streams, tools.URLs = heard.Folder, heard, cfg.Tools.Music.URLs
	o := conversationOptions(cfg, e, texts, a.log)
	o.Prompt, a.cast, a.crew.shop = prompt, newCast(players), maker
	a.cast.main.Store(&e.Main)
	a.crew.engines, a.forces.maker = e, maker
	book := a.reminders(ctx, a.stored)
	a.forces.reminders = book
	library := songs.Library{Folder: heard.Folder, Rest: heard, Fetched: songs.New(filepath.Join(a.options.Data, "cache", "songs"), false)}
	letters := mail.Options{
		Songs: library, Changed: letterChanged(a), Log: a.log,
		KeepOpen: func() time.Duration { return a.base().Reminders.KeepOpen },
	}
	if a.outside.letters, err = officeOf(ctx, a.stored, a.life, letters); err != nil {
		return fmt.Errorf("take up what devices are to be told: %w", err)
	}
	a.outside.sender = senderOf(a, library)
	if a.outside.known, err = memoriesOf(ctx, a); err != nil {
		return err
	}
	if err := openLibrary(ctx, a, &tools); err != nil {
		return err
	}
	if err := openVoices(ctx, a); err != nil {
		return err
	}
	o.Voices = tellsApart(a.outside.voices, cfg)
	tools.Voices = func() bool { return a.outside.voices != nil && a.outside.voices.Engine() != "" }
	if err := openQuiet(ctx, a); err != nil {
		return err
	}
	a.outside.routines = routinesOf(ctx, a)
	all := append(features(book, a.outside.letters, library, a.outside.known, quietSwitch{a}), routines.Feature{Book: a.outside.routines})
	o.Features = learnsVoices(ctx, a, all)
	a.life.atEnd(o.Devices.Close)
	if err := o.Devices.Punctual(); err != nil {
		a.log.Debug("frames are sent by Go's timers", "err", err)
	}
	a.life.later(func(context.Context) error { return agent.Preload(o) })
	a.crew.ahead = func(ctx context.Context) error {
		now := a.forces.now.Load().options
		return errors.Join(agent.Prewarm(ctx, now, phrasesAhead(), languagesAhead(cfg.Server.Language), ""), a.crew.warm(ctx, now, phrasesAhead()))
	}
	a.life.later(a.crew.ahead)
	if err := a.join(ctx, o, tools, a.opener(kept).sources(), &pictures{of: a.vision, texts: texts, log: a.log}); err != nil {
		return err
	}
	a.life.atEnd(func() { machine{a}.stop() }) // before the engines
	a.settings.Run(machine{a})
	return nil
}

// join makes the tools, the gateway and the server of the devices.
func (a *App) join(ctx context.Context, o agent.Options, tools local.Options, from secret.Sources, seen *pictures) error {
	cfg := a.cfg
	tools.Log = a.log
	own := local.New(tools)
	a.crew.own, a.crew.cast, a.cast.assigned = own, a.cast, a.crew.roster.Assigned
	a.cast.revision = a.crew.revision
	if err := own.Start(ctx); err != nil {
		return err
	}
	a.life.atEnd(func() { own.Stop() })
	fleet := a.external(ctx, from)
	a.forces.servers = fleet
	a.forces.now.Store(&inForce{options: o, limits: limitsOf(cfg)})
	files := offer.NewFiles(filepath.Join(a.options.Data, "tools"), from, a.log)
	a.outward(own, fleet, o.Prompts, files)
	if err := a.offers(ctx); err != nil {
		return err
	}
	if err := a.openBook(ctx, a.records()); err != nil {
		return err
	}
	a.seen.devices.Knows, a.seen.devices.Ours = a.book.Knows, examiner{a}.asksItself
	a.seen.fleet.SetSources(fleetSources(a))
	f := &factory{app: a, own: own, files: files, home: homeOf(ctx, a), external: fleet, lists: device.NewListCache(version.Number()), things: iot.NewCache(cfg.Server.MaxDevices), strangers: newStrangers()}
	seen.spare, a.outside.here = f.strangers.spare, toolsOf{a, f}.here
	f.calls = router.Options{Words: cfg.MCP.Transcripts, Describe: seen.Describe, Log: a.log}
	for _, drop := range []func(string){o.Devices.Forget, f.lists.Forget, f.things.Forget, a.outside.calls.Forget, func(id string) { a.devices.Forget(id) }, a.crew.roster.Forget, a.seen.devices.Log.Forget, a.seen.devices.Sound.Drop, a.seen.fleet.Forget} {
		a.forgetting.also(atOnce(drop))
	}
	a.devices = connection.New(connection.Options{
		Identify: a.book.Arrive, NewConversation: f.conversation, NewTools: f.tools, NewThings: f.thingsOf, NewLight: f.light, Settings: f.settings,
		NewFarewell: f.farewell, Asked: askedOf(a.stored), Report: a.seen.devices.Met, VisionPath: request.VisionPath, Load: a.load,
		MaxDevices: cfg.Server.MaxDevices, Language: cfg.Server.Language, Log: a.log,
	})
	if err := languages(ctx, a.stored, a.devices); err != nil {
		return err
	}
	var err error
	if a.web, err = a.paths(seen); err != nil {
		return err
	}
	a.web.lab = labOf(ctx, a, f)
	if a.web.talks = talksOf(a); a.web.talks != nil {
		a.life.atEnd(a.web.talks.Bin.Close)
	}
	desk, household := deskOf(a, f), voiceDesk(a)
	if err := openConsole(ctx, a, f, desk, household); err != nil {
		return err
	}
	a.web.more = slices.Concat(a.web.lab.Routes(), desk.Programs(a.web.guard), household.Programs(a.web.guard), papers.Programs(papersOf(a)), pages(a))
	return nil
}

// web lets requests in: those of devices, which no mux may clean, and all others.
type web struct {
	front     func(next http.Handler) http.Handler // the paths of devices
	told      func(next http.Handler) http.Handler // for handlers that count by address: a trusted proxy says it
	guard     *access.Guard
	from      func(r *http.Request) netip.Addr // whoever asks, as a trusted proxy says it
	names     []string                         // of this server
	https     *https
	desk      *talk.Desk         // of pages that talk
	more      []access.Route     // of parts that know the program by small interfaces
	lab       *lab.API           // what is tried beside the talks; nil without a store
	talks     *talks.Talks       // what was said, for pages and programs; nil without a store
	documents func(agent string) // is told of other documents; nil: nobody is, since there are no pages
	stock     agentStock         // what agents can be made of, where there is a store

	console *console.Console // nil: there are no pages
}

// paths makes the handlers of all paths that devices ask.
func (a *App) paths(seen *pictures) (w web, err error) {
	cfg := a.cfg
	auth := request.Auth{Enabled: cfg.Auth.Enabled, Token: string(cfg.Auth.Token)}
	requests, err := request.New(request.Options{
		Auth: auth, PublicURL: cfg.Server.PublicURL, TrustProxy: cfg.Server.TrustProxy, Nameless: true,
		Origins: cfg.Server.Origins, Hosts: cfg.MCP.Hosts, Insecure: cfg.Auth.InsecureOTA,
	})
	if err != nil {
		return w, err
	}
	ota, err := provision.New(provision.Options{
		Registry: a.devices, Requests: requests, PlainPort: plainPort(cfg.Server), Auth: auth, Book: a.book, ZoneOf: func(id string) *time.Location { return zoneOf(a, id) }, Report: a.seen.devices.Asked, Log: a.log,
	})
	if err != nil {
		return w, err
	}
	look := camera.New(camera.Options{Registry: a.devices, Requests: requests, Explainer: seen, Log: a.log})
	w.from = requests.Remote
	w.told, w.names, w.https = requests.Told, requests.Names(), newHTTPS(cfg, a.options.Data, a.log)
	w.guard = access.New(access.Options{Accounts: a.accounts, Remote: requests.Remote, Secure: requests.Secure, OwnHost: requests.OwnHost, Device: identity.ParseID, PublicName: publicName(cfg.Server.PublicURL), At: cfg.Console.Listen, Log: a.log})
	w.desk = talkDesk(a, w.guard)
	sockets := websocket.New(websocket.Options{Registry: a.devices, Requests: requests, Tickets: w.desk, Report: a.seen.devices.Arrived, Log: a.log})
	w.front = func(next http.Handler) http.Handler { return sockets.Wrap(ota.Wrap(look.Wrap(next))) }
	return w, nil
}

// publicName returns the name in the public URL of a server that is reached by https from the Internet; "" if it is not.
func publicName(publicURL string) string {
	u, err := url.Parse(publicURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "wss" || !request.IsPublic(publicURL) {
		return ""
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil {
		return ""
	}
	return u.Hostname()
}

// Report writes what was found, for people.
func (a *App) Report(w io.Writer) { a.report.Write(w) }

// Close ends all that Build made, in reverse order. Run must have returned.
func (a *App) Close() { a.life.end() }

// record has all conversations recorded into a folder; "" is none. It says so
// where people look, for what they say is kept.
func (a *App) record(dir string) error {
	if dir == "" {
		return nil
	}
	recorder, err := record.New(record.Options{Dir: dir, Log: a.log})
	if err != nil {
		return fmt.Errorf("log.record: %w / %s", err, message.In(text.Chinese, "app/cannot-record"))
	}
	a.recorders.talks = recorder
	a.report.Line("  REC  " + message.Both("app/recorded", dir))
	a.log.Warn("conversations are recorded", "folder", dir)
	return nil
}
