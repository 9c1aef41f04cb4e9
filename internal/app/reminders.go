package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/dnd"
	"xiaozhi/agent/feature/enrol"
	"xiaozhi/agent/feature/job"
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
	"xiaozhi/internal/songs"
	"xiaozhi/internal/uptime"
	"xiaozhi/internal/wire"
	"xiaozhi/knowledge"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/memory/mem0"
	"xiaozhi/memory/memobase"
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

// notices are kept by the office of letters until devices have heard them.
type notices struct{ office *mail.Office }

var _ job.Outbox = notices{}

// letter is a notice as a letter.
func (notices) letter(n job.Notice) mail.Letter {
	l := mail.Letter{Device: n.Device, Lang: n.Lang, Text: n.Text, Prompt: n.Instruction, Source: "job"}
	if n.Asked {
		l.Priority = mail.Urgent
	}
	return l
}

// Tell implements [job.Outbox].
func (o notices) Tell(n job.Notice) error {
	_, err := o.office.Post(o.letter(n))
	return err
}

// Promise implements [job.Outbox].
func (o notices) Promise(n job.Notice) (id string, err error) {
	l := o.letter(n)
	l.Held = true
	return o.office.Post(l)
}

// Keep implements [job.Outbox].
func (o notices) Keep(id string, n job.Notice) error {
	return o.office.Amend(id, n.Text, n.Instruction)
}

// memoriesOf makes the book of what is remembered of the people at devices; nil without a database: nothing outlives the program then.
func memoriesOf(ctx context.Context, a *App) (*memory.Book, error) {
	if a.stored == nil {
		return nil, nil
	}
	service, err := memoryService(a.cfg.Memory)
	if err != nil {
		return nil, err
	}
	return memoryBook(ctx, a, service), nil
}

// memoryBook makes a book whose facts a service keeps; nil: the store does.
func memoryBook(ctx context.Context, a *App, service hosted.Service) *memory.Book {
	kept := memories.New(a.stored.Memories, func(r memory.Run) *int { return costOf(a, r) })
	o := memory.Options{
		Store: kept, Vectors: kept, Embedder: func() providers.Embedder { return a.cast.main.Load().Embed }, NewID: store.NewID, Flush: a.stored.Log.Flush, Log: a.log,
		Mode: func(o memory.Owner) memory.Mode {
			p, _ := a.cast.Of(o.Device, o.Agent)
			return p.memory
		},
		Model: func(o memory.Owner) providers.LLM {
			p, _ := a.cast.Of(o.Device, o.Agent)
			return cmp.Or(p.LLM, a.forces.now.Load().options.LLM)
		},
		Zone: func(o memory.Owner) *time.Location { return zoneOf(a, o.Device) },
	}
	var book *memory.Book
	if service != nil {
		at := hosted.New(ctx, hosted.Options{Desk: kept, Service: service, Mode: o.Mode, Log: a.log, Changed: func(o memory.Owner) { book.Reread(o) }})
		o.Store, o.Vectors, o.Embedder = at, nil, nil
		o.Find, o.Warm, o.Fresh, o.Erased, o.Elsewhere = at.Finder(), at.Warm, at.Fresh, at.Wake, true
		a.life.atEnd(at.Close)
		a.forgetting.also(func(ctx context.Context, id string) error {
			if err := at.Forgotten(ctx, id); !errors.Is(err, memory.ErrLater) {
				return err
			}
			return nil // the log tells it, and it is asked until it has
		})
		a.life.later(at.Start)
	}
	book = memory.New(ctx, o)
	a.life.atEnd(book.Close)
	a.forgetting.also(atOnce(book.Refresh))
	a.life.later(func(context.Context) error { book.Start(); return nil })
	return book
}

// memoryRoutes are those by which programs see and delete what is remembered; without a store there are none.
func memoryRoutes(a *App, owner func(ctx context.Context, id string) (string, error)) []access.Route {
	if a.outside.known == nil {
		return nil
	}
	return memorypages.Routes(memorypages.Options{Book: a.outside.known, Guard: a.web.guard, Agents: a.stored.Memories.Agents, ID: identity.ParseID, Owner: owner})
}

// costOf tells what reading a talk, or making vectors, has cost, in millionths of the currency; nil: it is not known.
func costOf(a *App, r memory.Run) *int {
	p, known := priceOf(a.base(), r.Provider)
	money := p.Tokens(providers.Usage{Prompt: r.Prompt, Completion: r.Answer})
	if r.Vectors {
		money = p.Embedding(r.Prompt)
	}
	cost := int(money*1e6 + 0.5)
	if !known || cost == 0 && p != (config.Price{}) {
		return nil
	}
	return &cost
}

// memoryService makes the memory service of the settings; nil: there is none.
func memoryService(c config.Memory) (service hosted.Service, err error) {
	account := hosted.Account{Name: c.Engine, BaseURL: c.BaseURL, Key: c.APIKey, Proxy: c.Proxy}
	own := c.BaseURL != ""
	for _, cloud := range []string{mem0.Cloud, memobase.Cloud} {
		own = own && !sameHost(c.BaseURL, cloud)
	}
	switch c.Engine {
	case config.Mem0:
		service, err = mem0.New(mem0.Options{Account: account, Own: own})
	case config.Memobase:
		service, err = memobase.New(memobase.Options{Account: account, Own: own})
	}
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return service, nil
}

// sameHost reports whether two addresses are of one host.
func sameHost(a, b string) bool {
	first, err := url.Parse(a)
	second, other := url.Parse(b)
	return err == nil && other == nil && first.Hostname() == second.Hostname()
}

// Folders of the data folder that hold documents.
const (
	knowledgeFolder = "knowledge"         // a folder for each agent that people make there
	incomingFolder  = "knowledge-uploads" // what was uploaded, until it is read
)

// openLibrary makes the library of the documents of agents, with the tool that looks into them. What they say is kept in a database, or
// in memory if there is none: then nothing can be uploaded.
func openLibrary(ctx context.Context, a *App, tools *local.Options) error {
	data, err := filepath.Abs(a.options.Data)
	if err != nil {
		return err
	}
	o := knowledge.Options{
		Store: knowledge.NewMemory(), NewID: store.NewID, Read: documents.Reader(a.options.Program, filepath.Join(data, "cache", "pdf")), Log: a.log,
		Folders: func() map[string][]string { return foldersOf(a.crew, data) },
		Gone:    a.crew.deleted,
		Changed: func(agent string) {
			if a.web.documents != nil {
				a.web.documents(agent)
			}
		},
	}
	if a.stored != nil {
		o.Store, o.Incoming = documents.New(a.stored.Documents), filepath.Join(data, incomingFolder)
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

// foldersOf returns the folders of documents of all agents: those that the settings name, else the one in the data folder that is
// called like the agent, if it is there.
func foldersOf(c *crew, data string) map[string][]string {
	all, cfg := map[string][]string{}, c.settings()
	for _, name := range c.Names() {
		for _, folder := range cfg.Agents[name].Knowledge {
			if folder, err := filepath.Abs(folder); err == nil {
				all[name] = append(all[name], folder)
			}
		}
		if len(all[name]) > 0 || !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) {
			continue
		}
		own := filepath.Join(data, knowledgeFolder, name)
		if info, err := os.Stat(own); err == nil && info.IsDir() {
			all[name] = []string{own}
		}
	}
	return all
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
	held := map[string]bool{}
	hold := func() {
		all := a.outside.quiet.Switched()
		all[""] = a.outside.quiet.State()
		for device, s := range all {
			until := s.Until
			if s.On && until.IsZero() {
				until = time.Now().Add(untilSwitchedOff)
			}
			a.outside.letters.Hold(device, until)
		}
		for device := range held {
			if !all[device].On {
				a.outside.letters.Hold(device, time.Time{})
			}
		}
		clear(held)
		for device := range all {
			held[device] = true
		}
	}
	hold()
	var one sync.Mutex
	a.outside.quiet.Follow(func() { // as long as the program runs
		one.Lock()
		defer one.Unlock()
		hold()
	})
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

// untilSwitchedOff is how long letters are kept for a quiet mode that has no end.
const untilSwitchedOff = 30 * 24 * time.Hour

// owner returns the key of a device's reminders. A stranger has none.
func owner(s wire.Session) (key string, known bool) { return s.DeviceID, !s.Unknown }

// routinesOf makes the book of routines. They are kept in a database, or end with the program if there is none.
func routinesOf(ctx context.Context, a *App) *routine.Book {
	var book *routine.Book
	o := routine.Options{
		Waits: func() {
			if a.forces.servers != nil {
				a.forces.servers.Rewatch()
			}
		},
		Folder: filepath.Join(a.options.Data, "routines"), Variable: os.LookupEnv, NewID: store.NewID, Log: a.log,
		Zone: func(to string) *time.Location { return zoneOf(a, idOf(a.cfg, to)) },
		Doer: perform.New(perform.Options{
			Sender: a.outside.sender, Texts: func() *prompts.Set { return a.forces.now.Load().options.Prompts }, People: peopleOf(a.accounts),
			Find: func(id string) (perform.Device, error) { return a.outside.devices.Find(id) },
			Here: func() *router.Router { return a.outside.here() },
			Told: func(device, key string, over bool) { book.Told(device, key, over) },
		}),
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

// peopleOf lists who may use the server now; nil: there are no accounts.
func peopleOf(s *account.Service) func(ctx context.Context) ([]account.Person, error) {
	if s == nil {
		return nil
	}
	return func(ctx context.Context) (people []account.Person, err error) {
		all, err := s.Users(ctx)
		for _, u := range all {
			if u.DisabledAt.IsZero() {
				people = append(people, account.Person{ID: u.ID, Name: u.Name, Role: u.Role})
			}
		}
		return people, err
	}
}

// ran tells the routines that a tool has run on a device, "" none.
func ran(a *App, device string) func(router.Record, string) {
	return func(rec router.Record, result string) {
		if a.outside.routines == nil || rec.Started.IsZero() {
			return
		}
		e := routine.Event{Tool: rec.Tool, Source: rec.Source, Device: device, Failed: rec.Outcome == mcp.ActionTypeError.String(), Text: result}
		if device != "" {
			e.Name = a.outside.named(device)
		}
		a.outside.routines.Happened(e)
	}
}
