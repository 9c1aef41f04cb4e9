package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/dnd"
	"xiaozhi/agent/feature/enrol"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/identify"
	"xiaozhi/connection/identity"
	papers "xiaozhi/console/documents"
	memorypages "xiaozhi/console/memories"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/alarms"
	"xiaozhi/internal/config"
	"xiaozhi/internal/documents"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/hours"
	"xiaozhi/internal/letters"
	"xiaozhi/internal/memories"
	"xiaozhi/internal/persons"
	"xiaozhi/internal/quiet"
	"xiaozhi/internal/routine"
	"xiaozhi/internal/routine/perform"
	"xiaozhi/internal/routine/stored"
	"xiaozhi/internal/sender"
	"xiaozhi/internal/services"
	"xiaozhi/internal/songs"
	"xiaozhi/internal/uptime"
	"xiaozhi/internal/wire"
	"xiaozhi/knowledge"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/store"
	"xiaozhi/voices"
)

// reminders makes the book of all timers and reminders. They are kept in a database, or
// in memory if there is none.
func (a *App) reminders(ctx context.Context, kept *store.Store) *alarm.Book {
	o := alarm.Options{Most: a.cfg.Reminders.PerDevice, KeepOpen: a.cfg.Reminders.KeepOpen, Up: uptime.Clock(), Owner: owner, Log: a.log}
	if kept != nil {
		o.Store = alarms.New(kept.Reminders)
	}
	book := alarm.New(ctx, o)
	a.life.atEnd(book.Close)
	a.forgetting.also(book.Forget)
	book.Start()
	return book
}

// officeOf makes the office of what devices are to be told. Letters are kept in a database, or in memory if there is none.
func officeOf(ctx context.Context, kept *store.Store, life *lifecycle, o mail.Options) (*mail.Office, error) {
	if o.Store, o.NewID = mail.NewMemory(), store.NewID; kept != nil {
		o.Store = letters.New(kept.Outbox)
	}
	office := mail.New(ctx, o)
	life.atEnd(office.Close)
	return office, office.Start(ctx)
}

// senderOf makes what has several devices say, ask or play something.
func senderOf(a *App, library songs.Library) *sender.Sender {
	return sender.New(sender.Options{
		Letters: a.outside.letters, Fleet: a.seen.fleet, HasSong: library.Has,
		Groups: func(id string) []string { return a.cfg.Devices.ByID[id].Groups },
		Zone:   func(id string) *time.Location { return zoneOf(a, id) },
	})
}

// memoriesOf makes the book of what is remembered of the people at devices; nil without a database: nothing outlives the program then.
func memoriesOf(ctx context.Context, a *App) (*memory.Book, error) {
	if a.stored == nil {
		return nil, nil
	}
	service, err := memories.ServiceOf(a.cfg.Memory)
	if err != nil {
		return nil, err
	}
	return memoryBook(ctx, a, service), nil
}

// memoryBook makes a book whose facts a service keeps; nil: the store does.
func memoryBook(ctx context.Context, a *App, service hosted.Service) *memory.Book {
	book := memories.Open(ctx, memories.Options{
		Store: a.stored, Service: service, Embedder: func() providers.Embedder { return a.cast.main.Load().Embed }, Log: a.log,
		Mode: func(o memory.Owner) memory.Mode {
			p, _ := a.cast.Of(o.Device, o.Agent)
			return p.memory
		},
		Model: func(o memory.Owner) providers.LLM {
			p, _ := a.cast.Of(o.Device, o.Agent)
			return cmp.Or(p.LLM, a.forces.now.Load().options.LLM)
		},
		Zone:  func(o memory.Owner) *time.Location { return zoneOf(a, o.Device) },
		Price: func(name string) (config.Price, bool) { return services.PriceOf(a.base(), name) },
	})
	a.life.atEnd(book.Close)
	a.forgetting.also(book.Drop)
	a.life.later(book.Start)
	return book.Book
}

// memoryRoutes are those by which programs see and delete what is remembered; without a store there are none.
func memoryRoutes(a *App, owner func(ctx context.Context, id string) (string, error)) []access.Route {
	if a.outside.known == nil {
		return nil
	}
	return memorypages.Routes(memorypages.Options{Book: a.outside.known, Guard: a.web.guard, Agents: a.stored.Memories.Agents, ID: identity.ParseID, Owner: owner})
}

// openLibrary makes the library of the documents of agents, with the tool that looks into them. What they say is kept in a database, or
// in memory if there is none: then nothing can be uploaded.
func openLibrary(ctx context.Context, a *App, tools *local.Options) error {
	data, err := filepath.Abs(a.options.Data)
	if err != nil {
		return err
	}
	o := knowledge.Options{
		Store: knowledge.NewMemory(), NewID: store.NewID, Read: documents.Reader(a.options.Program, filepath.Join(data, "cache", "pdf")), Log: a.log,
		Folders: func() map[string][]string {
			cfg := a.crew.settings()
			return documents.FoldersOf(a.crew.Names(), func(agent string) []string { return cfg.Agents[agent].Knowledge }, data)
		},
		Gone: a.crew.deleted,
		Changed: func(agent string) {
			if a.web.documents != nil {
				a.web.documents(agent)
			}
		},
	}
	if a.stored != nil {
		o.Store, o.Incoming = documents.New(a.stored.Documents), documents.Incoming(data)
	}
	library, err := knowledge.Open(ctx, o)
	if err != nil {
		return err
	}
	a.crew.look, a.outside.library = library.Look, library
	tools.Documents, a.cast.papers = documents.Passages{Library: library}, library.Has
	a.life.atEnd(library.Close)
	a.life.later(func(context.Context) error { library.Start(); return nil })
	return nil
}

// papersOf are the documents of agents, as pages and programs ask for them.
func papersOf(a *App) papers.Options {
	return papers.Options{Library: a.outside.library, Book: a.crew.api(a.web.guard, a.stored), Guard: a.web.guard}
}

// deleted reports whether an agent is not there because people have deleted it: its documents go with it. One that the settings do not
// name any more may come back.
func (c *crew) deleted(ctx context.Context, name string) (bool, error) {
	if _, there := c.roster.Get(name); there || slices.Contains(c.Names(), name) {
		return false, nil
	}
	return c.wasDeleted(ctx, name)
}

// openVoices opens the book of the people who are known by their voices; nil without a database: nobody is.
func openVoices(ctx context.Context, a *App) (err error) {
	if a.stored == nil {
		return nil
	}
	a.outside.voices, err = voices.Open(ctx, voices.Options{
		Store: persons.New(a.stored.People), NewID: store.NewID, Shared: a.base().Store.URL != "", Log: a.log,
		Engine: func() providers.Voiceprint { return a.cast.main.Load().Voiceprint },
		Service: func(ctx context.Context, name string) (providers.Voiceprint, func(), error) {
			services := engines.OpenServices(a.base(), a.log)
			made := services.Try(ctx, name, service.Voiceprint)
			if made.Err != nil {
				services.Close()
				return nil, nil, made.Err
			}
			return made.Voiceprint, services.Close, nil
		},
	})
	if err != nil {
		return fmt.Errorf("read the people who are known by their voices: %w", err)
	}
	a.life.atEnd(a.outside.voices.Close)
	return nil
}

// tellsApart returns the book by which conversations know people, as settings have it; nil: they do not.
func tellsApart(book *voices.Book, cfg *config.Config) identify.Book {
	if book == nil || !cfg.Identifies() {
		return nil
	}
	return book
}

// learnsVoices adds what learns voices in conversations.
func learnsVoices(ctx context.Context, a *App, to []feature.Feature) []feature.Feature {
	if a.outside.voices == nil {
		return to
	}
	return append(to, enrol.New(ctx, a.outside.voices, func(name string) bool { return a.crew.settings().GivesRights(name) }))
}

// openQuiet opens quiet mode as it was left, after the office of letters, which wait for its end.
func openQuiet(ctx context.Context, a *App) (err error) {
	o := quiet.Options{Hours: quietHours{a}, Log: a.log}
	if a.stored != nil {
		o.Table = a.stored.Switches
	}
	if a.outside.quiet, err = quiet.Open(ctx, o); err != nil {
		return fmt.Errorf("read whether quiet mode is on: %w", err)
	}
	a.outside.quiet.HoldBack(a.outside.letters)
	a.forgetting.also(a.outside.quiet.Forget)
	return nil
}

// quietSwitch is quiet mode as users switch it by voice.
type quietSwitch struct{ *App }

var _ dnd.Switch = quietSwitch{}

// Begin implements [dnd.Switch].
func (a quietSwitch) Begin(ctx context.Context, device string, until time.Time) error {
	return a.outside.quiet.Begin(ctx, device, until, "")
}

// End implements [dnd.Switch].
func (a quietSwitch) End(ctx context.Context, device string) (house bool, err error) {
	s, err := a.outside.quiet.End(ctx, device)
	return s.House, err
}

// quietHours are the quiet hours as the settings have them now.
type quietHours struct{ *App }

// Of returns those of a device.
func (a quietHours) Of(device string) quiet.Span {
	cfg := a.base()
	set, _ := hours.Parse(cmp.Or(a.cfg.Devices.ByID[device].Quiet.Hours, cfg.Quiet.Hours)) // they were checked
	return quiet.Span{Hours: set, Zone: zoneOf(a.App, device)}
}

// All returns all that any device has.
func (a quietHours) All() []quiet.Span {
	all := []quiet.Span{a.Of("")}
	for id := range a.cfg.Devices.ByID {
		all = append(all, a.Of(id))
	}
	return slices.DeleteFunc(all, func(s quiet.Span) bool { return s.Hours.None() })
}

// owner returns the key of a device's reminders. A stranger has none.
func owner(s wire.Session) (key string, known bool) { return s.DeviceID, !s.Unknown }

// routinesOf makes the book of routines. They are kept in a database, or end with the program if there is none.
func routinesOf(ctx context.Context, a *App) *routine.Book {
	var book *routine.Book
	done := perform.Options{
		Sender: a.outside.sender, Texts: func() *prompts.Set { return a.forces.now.Load().options.Prompts },
		Find: func(id string) (perform.Device, error) { return a.outside.devices.Find(id) },
		Here: func() *router.Router { return a.outside.here() },
		Told: func(device, key string, over bool) { book.Told(device, key, over) },
	}
	if a.accounts != nil {
		done.People = func(ctx context.Context) ([]account.Person, error) { return account.ActivePeople(ctx, a.accounts) }
	}
	o := routine.Options{
		Waits: func() {
			if a.forces.servers != nil {
				a.forces.servers.Rewatch()
			}
		},
		Folder: filepath.Join(a.options.Data, "routines"), Variable: os.LookupEnv, NewID: store.NewID, Log: a.log,
		Zone: func(to string) *time.Location { return zoneOf(a, idOf(a.cfg, to)) },
		Doer: perform.New(done),
	}
	if a.stored != nil {
		o.Store = stored.New(a.stored.Routines, alarms.OnceKnown)
	}
	book = routine.New(ctx, o)
	a.life.atEnd(book.Close)
	a.forgetting.also(book.Forget)
	a.life.early(func() error { return book.Start(context.WithoutCancel(ctx)) })
	return book
}

// idOf returns the id of the device that an address names, or what it is.
func idOf(cfg *config.Config, to string) string {
	for id, d := range cfg.Devices.ByID {
		if d.Name != "" && strings.EqualFold(d.Name, to) {
			return id
		}
	}
	return identity.ParseID(to)
}

// ran tells the routines that a tool has run on a device, "" none.
func ran(a *App, device string) func(router.Record, string) {
	return func(rec router.Record, result string) {
		if a.outside.routines == nil || rec.Started.IsZero() {
			return
		}
		e := routine.Event{Tool: rec.Tool, Source: rec.Source, Device: device, Failed: rec.Outcome == mcp.ActionTypeError.String(), Text: result}
		if device != "" {
			e.Name = a.outside.Name(device)
		}
		a.outside.routines.Happened(e)
	}
}
