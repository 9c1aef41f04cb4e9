// Package roster keeps the agents that people make beside the settings, with all that they were, and which agent
// each device was given. What an agent is made of it does not know: whoever uses the agents says whether they can be.
package roster

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"xiaozhi/prompts"
)

// Bounds of what people make.
const (
	maxAgents = 256
	maxName   = 64        // bytes
	maxDoc    = 256 << 10 // bytes
	maxNote   = 500       // bytes
	queueTime = time.Minute
)

// Users use the agents. Their methods are called one at a time.
type Users interface {
	// Stage makes ready what agents need, from their names to their settings as JSON, so that apply, which cannot fail,
	// has them count from the next turn on. drop gives all of it up; one of the two is called. The error says for
	// people what is wrong with changed; what is wrong with others is their own trouble.
	Stage(ctx context.Context, docs map[string]string, changed string) (apply, drop func(), err error)
	// Names lists all agents that there are, be they in the settings, prompts, or here.
	Names() []string
	// Agent describes the agent of a name to people; the zero value: there is none.
	Agent(name string) Seen
	// Pinned says where the settings give a device its agent; "": nowhere.
	Pinned(device string) (place string)
	// Given is called when a device was given another agent.
	Given()
}

// Seen describes an agent as its users see it.
type Seen struct {
	Place   string          // where the settings hold it; "": nowhere
	Doc     json.RawMessage // what they set
	Trouble string          // why the one that people have made is not used; "": nothing
}

// Options make a [Roster]. Records and Users must be set.
type Options struct {
	Records Records
	Users   Users
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: discarded
}

// Roster owns the agents that people have made. Its methods may be called at the same time.
type Roster struct {
	o        Options
	changing chan struct{} // one change at a time

	mu      sync.RWMutex
	agents  map[string]Revision // the newest ones
	devices map[string]Given    // by their ids
	changes int                 // of the records, when they were read last
	forgot  map[string]bool     // devices that were forgotten while a change goes on
}

// Open reads what is kept. Users are not asked.
func Open(ctx context.Context, o Options) (*Roster, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	kept, err := o.Records.Load(ctx)
	if err != nil {
		return nil, err
	}
	r := &Roster{o: o, changing: make(chan struct{}, 1), agents: map[string]Revision{}, devices: kept.Devices, changes: kept.Changes}
	for _, a := range kept.Agents {
		r.agents[a.Agent] = a
	}
	if r.devices == nil {
		r.devices = map[string]Given{}
	}
	return r, nil
}

// List returns all agents by name.
func (r *Roster) List() []Revision {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Values(r.agents), func(a, b Revision) int { return strings.Compare(a.Agent, b.Agent) })
}

// Get returns an agent.
func (r *Roster) Get(name string) (Revision, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	a, ok := r.agents[name]
	return a, ok
}

// Docs returns the settings of all agents, by name.
func (r *Roster) Docs() map[string]string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	docs := map[string]string{}
	for name, a := range r.agents {
		docs[name] = a.Doc
	}
	return docs
}

// Assigned returns the agent that a device was given; the zero value: none, and never one.
func (r *Roster) Assigned(device string) Given {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.devices[device]
}

// Devices returns whom which device was given, by the names of agents.
func (r *Roster) Devices() map[string][]string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := map[string][]string{}
	for _, device := range slices.Sorted(maps.Keys(r.devices)) {
		if name := r.devices[device].Agent; name != "" {
			all[name] = append(all[name], device)
		}
	}
	return all
}

// Close waits for the change that goes on; there are no others from then on.
func (r *Roster) Close() { r.changing <- struct{}{} }

// Forget drops what is known of a device, which is gone from the records.
func (r *Roster) Forget(device string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.devices, device)
	if r.forgot != nil {
		r.forgot[device] = true
	}
}

// Author makes a change.
type Author struct {
	Name string
	ID   string // of the account whose agent it will be, if it is new; "": everybody's
	Note string
}

// Set makes an agent, or puts other settings in the place of its own.
func (r *Roster) Set(ctx context.Context, by Author, name string, doc []byte) (Revision, error) {
	return r.change(ctx, by, name, func(string) ([]byte, error) { return doc, nil })
}

// Patch changes settings of an agent, by a merge patch (RFC 7396), or makes it.
func (r *Roster) Patch(ctx context.Context, by Author, name string, patch []byte) (Revision, error) {
	return r.change(ctx, by, name, func(old string) ([]byte, error) { return merge(old, patch) })
}

// Restore makes what an agent was the newest that it is. It brings back one that was deleted.
func (r *Roster) Restore(ctx context.Context, by Author, name string, rev int) (Revision, error) {
	return r.change(ctx, by, name, func(string) ([]byte, error) {
		all, err := r.o.Records.Revisions(ctx, name)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(old Revision) bool { return old.Rev == rev })
		switch {
		case len(all) == 0:
			return nil, r.unknown(name)
		case i < 0:
			return nil, refuse(Missing, "agents/no-revision", name, rev, all[len(all)-1].Rev, all[0].Rev)
		}
		return []byte(all[i].Doc), nil
	})
}

// change makes a revision of what edit returns, which is given what the agent is; "": it is not there. Without any
// difference nothing is made.
func (r *Roster) change(ctx context.Context, by Author, name string, edit func(old string) ([]byte, error)) (Revision, error) {
	unlock, err := r.lock(ctx)
	if err != nil {
		return Revision{}, err
	}
	defer unlock()
	if err := r.editable(name); err != nil {
		return Revision{}, err
	}
	old, there := r.Get(name)
	changed, err := edit(old.Doc)
	if err != nil {
		return Revision{}, err
	}
	doc, err := compact(changed)
	if err != nil {
		return Revision{}, err
	}
	if there && doc == old.Doc {
		return old, nil
	}
	if !there && len(r.List()) >= maxAgents {
		return Revision{}, refuse(Full, "agents/too-many", maxAgents)
	}
	docs := r.Docs()
	docs[name] = doc
	apply, drop, err := r.o.Users.Stage(ctx, docs, name)
	if err != nil {
		return Revision{}, &RefusalError{Kind: Invalid, Text: err.Error()}
	}
	made, err := r.save(ctx, by, name, doc)
	if err != nil {
		drop()
		return Revision{}, unwritten(err)
	}
	r.mu.Lock()
	r.agents[name] = made
	r.mu.Unlock()
	apply()
	return made, nil
}

// save keeps a revision after the newest one of all, which may be that of an agent that was deleted.
func (r *Roster) save(ctx context.Context, by Author, name, doc string) (Revision, error) {
	past, err := r.o.Records.Revisions(ctx, name)
	if err != nil {
		return Revision{}, err
	}
	made := Revision{Agent: name, Rev: 1, Doc: doc, Note: cut(by.Note, maxNote), By: by.Name, At: r.o.Now(), Owner: by.ID}
	if len(past) > 0 {
		made.Rev, made.Owner = past[0].Rev+1, past[0].Owner
	}
	if old, there := r.Get(name); there && old.Rev != made.Rev-1 {
		return Revision{}, ErrConflict // another server has changed what this change was made of
	}
	return made, r.o.Records.Save(ctx, made)
}

// Delete hides an agent. Devices that have it fall back to that of all until it is there again.
func (r *Roster) Delete(ctx context.Context, name string) error {
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if _, there := r.Get(name); !there {
		if place := r.o.Users.Agent(name).Place; place != "" {
			return refuse(Conflict, "agents/fixed", name, place)
		}
		return r.unknown(name)
	}
	docs := r.Docs()
	delete(docs, name)
	apply, drop, err := r.o.Users.Stage(ctx, docs, name)
	if err != nil {
		return &RefusalError{Kind: Conflict, Text: err.Error()}
	}
	if err := r.o.Records.Delete(ctx, name); err != nil {
		drop()
		return unwritten(err)
	}
	r.mu.Lock()
	delete(r.agents, name)
	r.mu.Unlock()
	apply()
	if !slices.Contains(r.o.Users.Names(), name) {
		for _, device := range r.Devices()[name] {
			r.o.Log.Warn("the agent of a device is gone: it has that of all from now on", "device_id", device, "agent", name)
		}
	}
	return nil
}

// Revisions lists what an agent was, the newest first.
func (r *Roster) Revisions(ctx context.Context, name string) ([]Revision, error) {
	all, err := r.o.Records.Revisions(ctx, name)
	if err == nil && len(all) == 0 {
		err = r.unknown(name)
	}
	return all, err
}

// Assign gives a device an agent; "" gives it that of all.
func (r *Roster) Assign(ctx context.Context, device, name string) error {
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if place := r.o.Users.Pinned(device); place != "" {
		return refuse(Conflict, "agents/pinned", device, place)
	}
	if name != "" && !slices.Contains(r.o.Users.Names(), name) {
		return r.unknown(name)
	}
	switch times, err := r.o.Records.Assign(ctx, device, name); {
	case errors.Is(err, ErrNone):
		return refuse(Missing, "agents/no-device", device)
	case err != nil:
		return unwritten(err)
	default:
		r.give(map[string]Given{device: {name, times}})
	}
	r.o.Users.Given()
	return nil
}

// give remembers whom devices were given, but for those that were forgotten since the change has begun.
func (r *Roster) give(given map[string]Given) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for device, g := range given {
		if !r.forgot[device] {
			r.devices[device] = g
		}
	}
}

// lock waits for the change that goes on.
func (r *Roster) lock(ctx context.Context) (unlock func(), err error) {
	ctx, stop := context.WithTimeout(ctx, queueTime)
	defer stop()
	select {
	case r.changing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.forgets(map[string]bool{})
	return func() {
		r.forgets(nil)
		<-r.changing
	}, nil
}

// forgets has the devices noted that are forgotten from now on, in a set; nil: none are.
func (r *Roster) forgets(set map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgot = set
}

// editable refuses the names that no agent can have here: no path leads to one of dots alone.
func (r *Roster) editable(name string) error {
	strange := func(c rune) bool { return !unicode.IsPrint(c) || strings.ContainsRune("/\\", c) }
	if strings.Trim(name, ".") == "" || len(name) > maxName || !utf8.ValidString(name) || strings.TrimSpace(name) != name || strings.ContainsFunc(name, strange) {
		return refuse(Invalid, "agents/name", maxName)
	}
	if place := r.o.Users.Agent(name).Place; place != "" {
		return refuse(Conflict, "agents/fixed", name, place)
	}
	return nil
}

// unknown says that there is no agent of a name, with the one that was probably meant.
func (r *Roster) unknown(name string) error {
	names := r.o.Users.Names()
	if len(names) == 0 || slices.Contains(names, name) { // what comes of a prompt alone is none of those made here
		return refuse(Missing, "agents/none", name)
	}
	return refuse(Missing, "config/no-agent", name, prompts.Nearest(name, names))
}

func cut(text string, most int) string {
	for len(text) > most {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return text
}
