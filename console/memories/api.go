// Package memories is the routes by which programs see what is remembered of the people at a device, and delete it.
package memories

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text/message"
	"xiaozhi/memory"
)

// Book keeps what is remembered: a [memory.Book].
type Book interface {
	All(ctx context.Context, o memory.Owner) (memory.Known, error)
	Forget(ctx context.Context, o memory.Owner, ids ...string) error
	ForgetAll(ctx context.Context, o memory.Owner) (facts int, err error)
}

// Options say what the routes use.
type Options struct {
	Book   Book
	Guard  *access.Guard
	Agents func(ctx context.Context, device string) ([]string, error) // with which something of a device is remembered
	ID     func(path string) string                                   // the Device-Id of a part of a path
	Owner  func(ctx context.Context, device string) (string, error)   // whose a device is
}

// Fact is something that is remembered.
type Fact struct {
	ID     string     `json:"id"`
	Agent  string     `json:"agent"`
	Text   string     `json:"text"`
	Person string     `json:"person,omitempty"` // who said it
	At     *time.Time `json:"at,omitempty"`
	Sure   int        `json:"sure,omitempty"` // in per cent
	Told   bool       `json:"told,omitempty"` // somebody asked for it to be remembered
	Talk   string     `json:"talk,omitempty"` // that it was learned from
	Turn   string     `json:"turn,omitempty"`
}

// Summary tells what was said in earlier talks with an agent.
type Summary struct {
	Agent string    `json:"agent"`
	Text  string    `json:"text"`
	At    time.Time `json:"at"`
}

// List is the answer to GET /api/v1/devices/ID/memories.
type List struct {
	Memories  []Fact    `json:"memories"`
	Summaries []Summary `json:"summaries"`
}

// Forgotten is the answer to DELETE.
type Forgotten struct {
	Forgotten int  `json:"forgotten"`       // facts
	Later     bool `json:"later,omitempty"` // the service that keeps them has not deleted them yet
}

// Routes are the routes for programs.
func Routes(o Options) []access.Route {
	const path = "/api/v1/devices/{id}/memories"
	of := func(pattern string, scope account.Scope, f http.HandlerFunc) access.Route {
		return access.Route{
			Pattern: pattern, For: access.People, Need: account.Need{Role: account.Member, Scope: scope, Own: true}, Handler: f,
			Owner: func(r *http.Request) (string, error) { return o.Owner(r.Context(), o.device(r)) },
		}
	}
	return []access.Route{
		of("GET "+path, account.Read, o.list), of("DELETE "+path, account.Admin, o.removeAll), of("DELETE "+path+"/{memory}", account.Admin, o.remove),
	}
}

func (o Options) device(r *http.Request) string { return o.ID(r.PathValue("id")) }

// each calls f with what is known with each agent, or the one that is asked for, until it returns true.
func (o Options) each(r *http.Request, f func(owner memory.Owner, k memory.Known) (done bool)) error {
	device, only := o.device(r), r.URL.Query().Get("agent")
	agents, err := o.Agents(r.Context(), device)
	if err != nil {
		return err
	}
	slices.Sort(agents)
	for _, agent := range agents {
		if only != "" && agent != only {
			continue
		}
		owner := memory.Owner{Device: device, Agent: agent}
		k, err := o.Book.All(r.Context(), owner)
		if err != nil || f(owner, k) {
			return err
		}
	}
	return nil
}

func (o Options) list(w http.ResponseWriter, r *http.Request) {
	l := List{Memories: []Fact{}, Summaries: []Summary{}}
	err := o.each(r, func(owner memory.Owner, k memory.Known) bool {
		for _, f := range k.Facts {
			one := Fact{ID: f.ID, Agent: owner.Agent, Text: f.Text, Person: f.Person, Sure: f.Sure, Told: f.Told, Talk: f.Talk, Turn: f.Turn}
			if !f.At.IsZero() {
				one.At = &f.At
			}
			l.Memories = append(l.Memories, one)
		}
		if k.Summary.Text != "" {
			l.Summaries = append(l.Summaries, Summary{owner.Agent, k.Summary.Text, k.Summary.At})
		}
		return false
	})
	if err != nil {
		o.Guard.Fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, l)
}

// remove deletes one fact, wherever it is.
func (o Options) remove(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("memory")
	var of *memory.Owner
	err := o.each(r, func(owner memory.Owner, k memory.Known) bool {
		if slices.ContainsFunc(k.Facts, func(f memory.Fact) bool { return f.ID == id }) {
			of = &owner
		}
		return of != nil
	})
	switch {
	case err != nil:
		o.Guard.Fail(w, r, err)
		return
	case of == nil:
		access.Refuse(w, http.StatusNotFound, "memories/unknown", message.Both("memories/unknown"))
		return
	}
	o.answer(w, r, "memory.delete", 1, o.Book.Forget(r.Context(), *of, id))
}

func (o Options) removeAll(w http.ResponseWriter, r *http.Request) {
	n, err := o.Book.ForgetAll(r.Context(), memory.Owner{Device: o.device(r), Agent: r.URL.Query().Get("agent")})
	o.answer(w, r, "memory.delete-all", n, err)
}

// answer tells what became of a deletion, which the audit keeps. What a service has to delete yet is told to nobody any more.
func (o Options) answer(w http.ResponseWriter, r *http.Request, act string, n int, err error) {
	later := errors.Is(err, memory.ErrLater)
	if later {
		err = nil
	}
	o.Guard.Did(r, act, o.device(r), err)
	switch {
	case errors.Is(err, memory.ErrUnknown):
		access.Refuse(w, http.StatusNotFound, "memories/unknown", message.Both("memories/unknown"))
	case err != nil:
		o.Guard.Fail(w, r, err)
	case later:
		access.Answer(w, http.StatusAccepted, Forgotten{n, true})
	default:
		access.Answer(w, http.StatusOK, Forgotten{Forgotten: n})
	}
}
