package roster

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// StaleError says that somebody has changed an agent since what was changed of it was read.
type StaleError struct{ Now Revision }

// Error says so in both languages.
func (*StaleError) Error() string { return message.Both("agents/conflict") }

// In returns the text in one language.
func (*StaleError) In(lang text.Lang) string { return message.In(lang, "agents/conflict") }

// Save makes an agent's revision of the settings that somebody has made of its revision base; 0: it was not kept here before,
// and may not be somebody else's. A [*StaleError] says that base is not the newest.
func (r *Roster) Save(ctx context.Context, by Author, name string, base int, doc []byte) (Revision, error) {
	return r.change(ctx, by, name, func(string) ([]byte, error) {
		now, there := r.Get(name)
		if there && now.Rev != base {
			return nil, &StaleError{now}
		}
		if there {
			return doc, nil
		}
		past, err := r.o.Records.Revisions(ctx, name)
		if err == nil && len(past) > 0 && past[0].Owner != by.ID {
			err = refuse(Conflict, "agents/taken", name)
		}
		return doc, err
	})
}

// All lists the agents that the one who asks may know of, by name, among them those of the settings and of prompts.
func (a *API) All(r *http.Request) (all []Agent) {
	names, devices := slices.Clone(a.Roster.o.Users.Names()), a.devices(r)
	for _, kept := range a.Roster.List() {
		names = append(names, kept.Agent) // one that cannot be used too
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if agent, ok := a.describe(name, devices); ok && a.private(r, name) == nil {
			all = append(all, agent)
		}
	}
	return all
}

// One describes an agent to the one who asks, if they may know of it.
func (a *API) One(r *http.Request, name string) (Agent, error) {
	if err := a.private(r, name); err != nil {
		return Agent{}, err
	}
	agent, ok := a.describe(name, a.devices(r))
	if !ok {
		return agent, a.Roster.unknown(name)
	}
	return agent, nil
}

// Past lists what an agent was, the newest first, also of one that was deleted.
func (a *API) Past(r *http.Request, name string) (all []Agent, err error) {
	if err := a.private(r, name); err != nil {
		return nil, err
	}
	past, err := a.Roster.Revisions(r.Context(), name)
	for _, one := range past {
		all = append(all, revision(one))
	}
	return all, err
}

// OwnerOf returns whose an agent is, or was when it was deleted; "": everybody's.
func (a *API) OwnerOf(ctx context.Context, name string) (string, error) { return a.ownerOf(ctx, name) }

// Save is [Roster.Save] for the one who asks. A new agent of an owner is everybody's, that of a member their own; fresh says
// that the name may not be another agent's, be it of the settings or of a prompt.
func (a *API) Save(r *http.Request, name string, base int, doc []byte, note string, fresh bool) error {
	person := access.PersonOf(r)
	by := Author{Name: person.Name, Note: note}
	if !person.Is(account.Owner) {
		by.ID = person.ID
	}
	var err error
	if fresh && slices.ContainsFunc(a.Roster.o.Users.Names(), func(known string) bool { return strings.EqualFold(known, name) }) {
		err = refuse(Conflict, "agents/taken", name)
	} else {
		_, err = a.Roster.Save(r.Context(), by, name, base, doc)
	}
	a.Guard.Did(r, "agent.set", name, err)
	return err
}

// Change is [Roster.Patch] for the one who asks.
func (a *API) Change(r *http.Request, name string, patch []byte) error {
	_, err := a.Roster.Patch(r.Context(), Author{Name: access.PersonOf(r).Name}, name, patch)
	a.Guard.Did(r, "agent.set", name, err)
	return err
}

// Restore is [Roster.Restore] for the one who asks.
func (a *API) Restore(r *http.Request, name string, rev int) error {
	_, err := a.Roster.Restore(r.Context(), Author{Name: access.PersonOf(r).Name}, name, rev)
	a.Guard.Did(r, "agent.restore", name, err)
	return err
}

// Delete is [Roster.Delete] for the one who asks.
func (a *API) Delete(r *http.Request, name string) error {
	err := a.Roster.Delete(r.Context(), name)
	a.Guard.Did(r, "agent.delete", name, err)
	return err
}
