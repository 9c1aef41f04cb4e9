package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers/service"
)

// Plan is a change that was checked, built and tested, and waits for a yes.
type Plan struct {
	ID       string
	Changes  []Change
	Warnings []string
	Checks   []Check
}

// Translate leaves of what was said in both languages the one of a reader, without the place of what is not saved yet.
func (p *Plan) Translate(lang text.Lang) {
	for i, w := range p.Warnings {
		if place, words, ok := strings.Cut(w, ": "); ok && strings.HasPrefix(place, "console#") {
			w = words
		}
		p.Warnings[i] = message.Part(w, lang)
	}
	for i, c := range p.Checks {
		p.Checks[i].Why = message.Part(c.Why, lang)
	}
}

// OK reports whether all services that would change work.
func (p *Plan) OK() bool {
	return !slices.ContainsFunc(p.Checks, func(c Check) bool { return !c.OK })
}

// Change is a key that holds another value than before.
type Change struct {
	Key      string
	Old, New string // "": nothing
	Secret   bool
}

// Check is a service that would change, asked once.
type Check struct {
	Name, Role   string
	OK           bool
	First, Total time.Duration
	Why          string
}

// Plan makes a change of the settings of a draft. The error is a [MistakesError], or one of the settings, which seal what
// is secret.
func (s *Services) Plan(ctx context.Context, by account.Person, d Draft) (*Plan, error) {
	edits, err := s.edits(d)
	if err != nil {
		return nil, err
	}
	if settings.TypeSecrets(edits) {
		if err := by.Proven(time.Now()); err != nil {
			return nil, err
		}
	}
	if _, err := s.drafted(ctx, d.Name, edits); err != nil { // it says of a key that it can be none; one that is sealed cannot be looked at
		return nil, err
	}
	plan, err := s.plan(ctx, by, d.Base, edits, d.Name)
	if err != nil {
		return nil, err
	}
	return planOf(plan), nil
}

// plan has the settings check edits.
func (s *Services) plan(ctx context.Context, by account.Person, base int, edits []settings.Edit, name string) (*settings.Plan, error) {
	plan, err := s.o.Settings.Plan(ctx, by, base, edits)
	if wrong := mistakesOf(name, err); wrong != nil {
		return nil, wrong
	}
	return plan, err
}

func planOf(p *settings.Plan) *Plan {
	out := &Plan{ID: p.ID}
	for _, c := range p.Changes {
		one := Change{Key: c.Key(), Old: Written(c.Old), New: Written(c.New), Secret: c.Secret}
		if c.Old == nil && isNothing(one.New) || c.New == nil && isNothing(one.Old) { // a section comes or goes with all of its keys
			continue
		}
		out.Changes = append(out.Changes, one)
	}
	for _, w := range p.Warnings {
		out.Warnings = append(out.Warnings, string(w))
	}
	for _, t := range p.Tests {
		out.Checks = append(out.Checks, Check{Name: t.Section, Role: t.Role, OK: t.OK, First: t.First, Total: t.Total, Why: t.Why})
	}
	return out
}

// isNothing reports whether a value is that of a key which nobody has set.
func isNothing(written string) bool {
	return slices.Contains([]string{"", "0", "0s", "false"}, written)
}

// Written is a value of the settings as people read it.
func Written(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, Written(one))
		}
		return strings.Join(all, ", ")
	case []string:
		return strings.Join(v, ", ")
	case map[string]any:
		return object(v)
	}
	return fmt.Sprint(v)
}

// Apply puts a plan in force, and returns its revision.
func (s *Services) Apply(ctx context.Context, by account.Person, plan string) (int, error) {
	r, err := s.o.Settings.Apply(ctx, by, plan)
	return r.N, err
}

// Undo takes back what a revision has changed.
func (s *Services) Undo(ctx context.Context, by account.Person, n int) error {
	_, err := s.o.Settings.Undo(ctx, by, n)
	return err
}

// ErrLast says that a chain keeps one member.
var ErrLast = errors.New(message.Both("services/last"))

// Arrange changes the order of a chain at once, and returns the revision. What "auto" stands for is written out.
func (s *Services) Arrange(ctx context.Context, by account.Person, base int, o Order) (int, error) {
	chains := s.Chains()
	i := slices.IndexFunc(chains, func(c Chain) bool { return c.Role == o.Role && len(c.Agents) == 0 })
	if i < 0 {
		return 0, &MistakesError{[]Mistake{{ID: "services/no-role"}}}
	}
	names := chains[i].names()
	at := slices.Index(names, o.Name)
	e := settings.Edit{Path: []string{string(o.Role)}}
	switch {
	case o.Do == Auto:
		e.Remove = true
	case o.Do == Add && at < 0 && slices.Contains(chains[i].More, o.Name):
		e.Value = slices.Insert(names, 0, o.Name)
	case at < 0:
		return 0, &MistakesError{[]Mistake{{ID: "services/not-in-chain", Args: []any{o.Name}}}}
	case o.Do == Up && at > 0:
		names[at-1], names[at] = names[at], names[at-1]
		e.Value = names
	case o.Do == Down && at+1 < len(names):
		names[at+1], names[at] = names[at], names[at+1]
		e.Value = names
	case o.Do == To && o.At >= 0 && o.At < len(names):
		e.Value = slices.Insert(slices.Delete(names, at, at+1), o.At, o.Name)
	case o.Do == Leave && len(names) == 1 && o.Role != service.Realtime && o.Role != service.Vision && o.Role != service.Embed:
		return 0, ErrLast
	case o.Do == Leave:
		e.Value = slices.Delete(names, at, at+1)
	default:
		return 0, settings.ErrNoChange
	}
	plan, err := s.plan(ctx, by, base, []settings.Edit{e}, "")
	if err != nil {
		return 0, err
	}
	return s.Apply(ctx, by, plan.ID)
}

// Order says what becomes of a member of a chain.
type Order struct {
	Role service.Role
	Name string
	Do   Do
	At   int // place of To, from 0
}

// Do names a change of a member of a chain.
type Do string

// What can be done.
const (
	Up    Do = "up"
	Down  Do = "down"
	To    Do = "to"
	Add   Do = "join"
	Leave Do = "leave"
	Auto  Do = "auto" // the chain is what files or defaults say again
)

// Remove makes a plan of taking a section away, from all chains too.
func (s *Services) Remove(ctx context.Context, by account.Person, base int, name string) (*Plan, error) {
	cfg := s.o.Settings.Current()
	if _, ok := cfg.Providers[name]; !ok || inFile(cfg, name) {
		return nil, &MistakesError{[]Mistake{{ID: "services/in-file", Args: []any{cfg.Providers[name].Place}}}}
	}
	edits := []settings.Edit{{Path: []string{"providers", name}, Remove: true}}
	for _, r := range Roles() {
		names := chainOf(cfg, r)
		if !slices.Contains(names, name) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
		e := settings.Edit{Path: []string{string(r)}, Value: rest}
		if len(rest) == 0 {
			e = settings.Edit{Path: e.Path, Remove: true}
		}
		edits = append(edits, e)
	}
	plan, err := s.plan(ctx, by, base, edits, name)
	if err != nil {
		return nil, err
	}
	return planOf(plan), nil
}

// Voices lists the voices of a service. asked says that the service itself was asked.
func (s *Services) Voices(ctx context.Context, by account.Person, name string) (all []service.Voice, asked bool, err error) {
	end, err := s.tests.begin(by.ID)
	if err != nil {
		return nil, false, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, s.o.Limit)
	defer cancel()
	made := engines.OpenServices(s.o.Settings.Current(), s.o.Log)
	defer made.Close()
	all, asked, err = made.Voices(ctx, name)
	return all, asked, wrapped(err, made.Free(name))
}

// Sample has a voice of a service say the sentence, and returns the sound as an outcome.
func (s *Services) Sample(ctx context.Context, by account.Person, name, voice string, lang text.Lang) Outcome {
	out := Outcome{Role: service.TTS}
	end, err := s.tests.begin(by.ID)
	if err != nil {
		out.Fault = faultOf(err, false)
		return out
	}
	defer end()
	if s.o.Audit != nil {
		s.o.Audit(ctx, by, "service.sample", name+" "+voice, nil)
	}
	made := engines.OpenServices(s.o.Settings.Current(), s.o.Log)
	defer made.Close()
	t := &trial{s, made, name, by.ID, lang, made.Price(name), made.Free(name), s.o.Settings.Current().Secrets()}
	t.part(ctx, made.Try(ctx, name, service.TTS), &out, func(ctx context.Context, one engines.Tried, out *Outcome) error {
		_, err := t.speak(ctx, named{one.TTS, voice}, out)
		return err
	})
	return out
}

// FaultError is a [Fault] as an error.
type FaultError struct {
	*Fault
	err error
}

// Error is that of the service.
func (e *FaultError) Error() string { return e.err.Error() }

// Unwrap returns that of the service.
func (e *FaultError) Unwrap() error { return e.err }

func wrapped(err error, free bool) error {
	if err == nil {
		return nil
	}
	return &FaultError{faultOf(err, free), err}
}
