// Package routines lets the user of a device set up by voice what is done at times, and end it.
package routines

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/recur"
	"xiaozhi/internal/routine"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// Book owns the routines: a [routine.Book].
type Book interface {
	Add(ctx context.Context, r routine.Routine) (made routine.Routine, token string, err error)
	List() []routine.Routine
	Delete(ctx context.Context, id string) error
}

// Feature completes the tools for routines.
type Feature struct{ Book Book }

// Name is the name of its state, which it does not have.
func (Feature) Name() string { return "routines" }

// Attach makes the instance of a conversation.
func (f Feature) Attach(h feature.Host, _ feature.State) feature.Instance {
	return &routines{h, f.Book}
}

type routines struct {
	feature.Host

	book Book
}

var _ feature.Handling = (*routines)(nil)

// Expects implements [feature.Instance].
func (*routines) Expects(time.Time) bool { return false }

// Detach implements [feature.Instance].
func (*routines) Detach() feature.State { return nil }

// Handler implements [feature.Handling].
func (r *routines) Handler(name string) feature.Handler {
	if name == mcp.HandlerRoutine {
		return r.handle
	}
	return nil
}

// handle takes an order. Nothing is confirmed before it is kept.
func (r *routines) handle(from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.RoutineArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	if r.Env().Session.Unknown {
		return think.Handled{}, errors.New(message.In(from.Lang, "agent/routine-stranger"))
	}
	return think.Handled{Finish: func(ctx context.Context) (think.Handled, error) {
		words, err := r.do(ctx, a, from.Lang)
		return think.Handled{Say: words}, r.explain(ctx, err, from.Lang)
	}}, nil
}

// explain returns an error as people are told it.
func (r *routines) explain(ctx context.Context, err error, lang text.Lang) error {
	mistake, is := errors.AsType[*routine.Mistake](err)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case is:
		return errors.New(mistake.In(lang))
	case errors.Is(err, routine.ErrMany):
		return errors.New(message.In(lang, "routine/full"))
	}
	r.Env().Log.Error("routines cannot be changed", "err", err)
	return errors.New(message.In(lang, "agent/timer-not-kept"))
}

// do carries an order out, and returns what is said about it.
func (r *routines) do(ctx context.Context, a mcp.RoutineArgs, lang text.Lang) (string, error) {
	switch a.Action {
	case mcp.RoutineSet:
		return r.set(ctx, a, lang)
	case mcp.RoutineCancel:
		return r.cancel(ctx, a, lang)
	case mcp.RoutineList:
		return r.name(prompts.RoutineList, r.mine(), lang), nil
	}
	return "", errors.New("there is no such order about routines")
}

func (r *routines) set(ctx context.Context, a mcp.RoutineArgs, lang text.Lang) (string, error) {
	env := r.Env()
	made, _, err := r.book.Add(ctx, routine.Routine{
		Source: routine.ByVoice, Device: env.Session.DeviceID,
		Definition: routine.Definition{
			Name: short(a.Prompt), To: env.Session.DeviceID, When: a.When, Repeat: a.Repeat, Zone: zoneName(env.Zone), Prompt: a.Prompt, Language: string(lang),
		},
	})
	if err != nil {
		return "", err
	}
	words := env.Texts.Phrase(prompts.RoutineSet, string(lang), "when", r.when(made, lang), "what", what(made))
	return text.Join(words, env.Texts.Phrase(prompts.RoutineAsleep, string(lang))), nil
}

// zoneName names a zone that can be found by its name; "": it cannot.
func zoneName(zone *time.Location) string {
	if name := zone.String(); name != "Local" {
		return name
	}
	return ""
}

// maxShort bounds the name that a routine gets of what it does, in characters.
const maxShort = 60

func short(what string) string {
	words := []rune(what)
	return string(words[:min(len(words), maxShort)])
}

// what returns what is done, as it is said in a sentence.
func what(r routine.Routine) string { return strings.TrimRight(r.Prompt, " .。!！") }

// when says when a routine is due, and how it recurs.
func (r *routines) when(of routine.Routine, lang text.Lang) string {
	zone := r.Env().Zone
	if wall, err := time.Parse(recur.Layout, of.Times.Wall); err == nil {
		if said := spoken.SayRepeat(of.Times.Rule, wall, lang); said != "" {
			return said
		}
	}
	return spoken.SayTime(of.Due.In(zone), time.Now().In(zone), lang)
}

// mine returns the routines that were set by voice on this device.
func (r *routines) mine() []routine.Routine {
	return slices.DeleteFunc(r.book.List(), func(one routine.Routine) bool {
		return one.Source != routine.ByVoice || one.Device != r.Env().Session.DeviceID
	})
}

// name says which routines there are, with a phrase.
func (r *routines) name(phrase string, all []routine.Routine, lang text.Lang) string {
	texts := r.Env().Texts
	if len(all) == 0 {
		return texts.Phrase(prompts.RoutineNone, string(lang))
	}
	var said []string
	for _, one := range all {
		said = append(said, r.when(one, lang)+lang.Pick("，", ", ")+what(one))
	}
	return texts.Phrase(phrase, string(lang), "routines", strings.Join(said, lang.Pick("；", "; ")))
}

// cancel ends all routines of the device, those that words mean, or, without words, the only one.
func (r *routines) cancel(ctx context.Context, a mcp.RoutineArgs, lang text.Lang) (string, error) {
	all := r.mine()
	if len(all) == 0 {
		return r.name("", nil, lang), nil
	}
	meant := slices.DeleteFunc(slices.Clone(all), func(one routine.Routine) bool { return !a.All && a.Name != "" && !isMeant(one, a.Name) })
	if len(meant) == 0 || a.Name == "" && !a.All && len(meant) > 1 {
		return r.name(prompts.RoutineWhich, all, lang), nil
	}
	var names []string
	for _, one := range meant {
		if err := r.book.Delete(ctx, one.ID); err != nil && !errors.Is(err, routine.ErrNone) { // it was its only time
			return "", err
		}
		names = append(names, what(one))
	}
	return r.Env().Texts.Phrase(prompts.RoutineCancelled, string(lang), "name", strings.Join(names, lang.Pick("；", "; "))), nil
}

// isMeant reports whether words mean a routine, by what it does or by when.
func isMeant(r routine.Routine, said string) bool {
	words := text.Bare(said)
	for _, own := range []string{text.Bare(r.Prompt), text.Bare(r.When), text.Bare(r.Name)} {
		if words != "" && own != "" && (strings.Contains(own, words) || strings.Contains(words, own)) {
			return true
		}
	}
	return false
}
