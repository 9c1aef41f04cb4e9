// Package perform has devices do what routines are for.
package perform

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/account"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/routine"
	"xiaozhi/internal/sender"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// Sender has devices say or play something: a [sender.Sender].
type Sender interface {
	Meant(ctx context.Context, to string, may func(d fleet.Device) bool) ([]fleet.Device, error)
	SendTo(ctx context.Context, o sender.Order, devices []fleet.Device) ([]sender.Sent, error)
}

// Device is one that is connected.
type Device interface {
	Offers() []router.Offer
	Call(ctx context.Context, call mcp.Call) (response mcp.ActionResponse, invalid string)
}

// Options say what a [Performer] uses. All must be set.
type Options struct {
	Sender Sender
	Texts  func() *prompts.Set
	People func(ctx context.Context) ([]account.Person, error) // who may use the server now; nil: there are no accounts
	Find   func(id string) (Device, error)                     // a connected device
	Here   func() *router.Router                               // makes a router of the tools that need no device
	Told   func(device, key string, over bool)                 // [routine.Book.Told]
}

// Performer is the [routine.Doer] of the program. Its methods may be called at the same time.
type Performer struct{ o Options }

var _ routine.Doer = Performer{}

// New makes a performer.
func New(o Options) Performer { return Performer{o} }

// What a run may hold.
const (
	eventMark      = "{event}" // in words: what has happened
	maxPromptEvent = 1500      // characters of that in a prompt
	callsAtOnce    = 8         // of one run, on several devices
)

// Do implements [routine.Doer].
func (p Performer) Do(ctx context.Context, r routine.Routine, run routine.Run) error {
	to := r.To
	if to == routine.Here {
		to = run.Device
	}
	may, err := p.may(ctx, r)
	if err != nil {
		return err
	}
	devices, err := p.o.Sender.Meant(ctx, to, may)
	if errors.Is(err, fleet.ErrNobody) {
		return errors.New(message.Both("routine/nobody"))
	}
	if err != nil {
		return err
	}
	if r.Tool != nil {
		return p.call(ctx, r, run, devices)
	}
	return p.tell(ctx, r, run, devices, letterOf(p.o.Texts(), r, run))
}

// may returns to which devices somebody may speak who has made a routine, as it is now: an account that is gone may no more.
func (p Performer) may(ctx context.Context, r routine.Routine) (func(fleet.Device) bool, error) {
	if r.Source != routine.ByAPI || r.ByID == "" || p.o.People == nil {
		return func(fleet.Device) bool { return true }, nil
	}
	all, err := p.o.People(ctx)
	if err != nil {
		return nil, err
	}
	maker := account.Person{}
	for _, one := range all {
		if one.ID == r.ByID {
			maker = one
		}
	}
	if !maker.Is(account.Owner) && (r.Tool != nil || r.On != nil && !r.On.Hook) { // which are for owners
		return nil, errors.New(message.Both("routine/nobody"))
	}
	return func(d fleet.Device) bool {
		return maker.May(account.Need{Role: account.Member, Scope: account.Say, Own: true}, d.Owner, time.Time{}) == nil
	}, nil
}

// letterOf returns what devices are told.
func letterOf(texts *prompts.Set, r routine.Routine, run routine.Run) sender.Order {
	o := sender.Order{Kind: mail.Say, Lang: r.Language}
	fill := func(words, event string) string { return strings.ReplaceAll(words, eventMark, event) }
	switch {
	case r.Play != "":
		o.Kind, o.Song = mail.Play, r.Play
	case r.Say != "":
		o.Text = fill(r.Say, run.Event)
	default:
		event := []rune(run.Event)
		quoted, _ := json.Marshal(string(event[:min(len(event), maxPromptEvent)])) // a text can always be encoded
		lang := string(text.Resolve(r.Prompt, r.Lang(), ""))
		o.Prompt = texts.Phrase(prompts.RoutineNote, lang, "prompt", fill(r.Prompt, string(quoted)))
		o.Text = texts.Phrase(prompts.RoutineFailed, lang, "what", strings.TrimRight(r.Name, " .。"))
	}
	return o
}

// tell has devices told something, each once.
func (p Performer) tell(ctx context.Context, r routine.Routine, run routine.Run, devices []fleet.Device, o sender.Order) (err error) {
	if o.Priority, err = mail.ParsePriority(r.Priority); err != nil {
		return err
	}
	o.Source, o.By, o.Key = "routine", r.Name, run.Key
	if o.Expires = time.Until(run.Ends); o.Expires <= 0 {
		return nil // it has taken too long to be worth it
	}
	sent, err := p.o.Sender.SendTo(ctx, o, devices)
	if errors.Is(err, mail.ErrTwice) {
		return nil // before the program was killed
	}
	kept := 0
	for _, s := range sent {
		if s.Err == nil || errors.Is(s.Err, mail.ErrTwice) {
			kept++
		} else {
			err = s.Err
		}
	}
	if kept > 0 {
		return nil
	}
	return err
}

// call runs a tool: one of this server once, one of devices on each. It fails if it has failed everywhere.
func (p Performer) call(ctx context.Context, r routine.Routine, run routine.Run, devices []fleet.Device) error {
	args, err := json.Marshal(filled(r.Tool.Arguments, run.Event))
	if err != nil {
		return err
	}
	call := mcp.Call{ID: run.Key, Arguments: string(args), Language: string(text.Resolve(r.Name, r.Lang(), "")), By: mcp.ByProgram}
	if result, found, err := p.callHere(ctx, r.Tool.Name, call, run); found {
		if err == nil && r.Tool.Say {
			err = p.tell(ctx, r, run, devices, sender.Order{Kind: mail.Say, Lang: r.Language, Text: result})
		}
		return err
	}
	failed := make([]error, len(devices))
	var all sync.WaitGroup
	room := make(chan struct{}, callsAtOnce)
	for i, d := range devices {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			result, err := p.callOn(ctx, d.ID, r.Tool.Name, call, run)
			if err == nil && r.Tool.Say {
				err = p.tell(ctx, r, run, devices[i:i+1], sender.Order{Kind: mail.Say, Lang: r.Language, Text: result})
			}
			failed[i] = err
		})
	}
	all.Wait()
	for _, err := range failed {
		if err == nil {
			return nil
		}
	}
	return failed[0]
}

// filled returns arguments with what has happened in their texts.
func filled(of any, event string) any {
	switch v := of.(type) {
	case string:
		return strings.ReplaceAll(v, eventMark, event)
	case []any:
		all := make([]any, len(v))
		for i, one := range v {
			all[i] = filled(one, event)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, one := range v {
			all[name] = filled(one, event)
		}
		return all
	}
	return of
}

// callHere runs a tool that needs no device, if there is one of that name.
func (p Performer) callHere(ctx context.Context, name string, call mcp.Call, run routine.Run) (result string, found bool, err error) {
	box := p.o.Here()
	defer box.Close()
	call.Name = ""
	for _, l := range box.Survey() {
		if !l.Tool.NeedsDevice && l.LLMName != "" && (l.Tool.Name == name || l.LLMName == name) {
			call.Name = l.LLMName
		}
	}
	if call.Name == "" {
		return "", false, nil
	}
	p.o.Told("", run.Key, false)
	defer p.o.Told("", run.Key, true)
	prepared, refused := box.Prepare(call)
	if refused != nil {
		return "", true, failureOf(name, *refused)
	}
	response := box.Run(ctx, prepared)
	return mcp.ResultText(response), true, failureOf(name, response)
}

// callOn runs a tool on a device.
func (p Performer) callOn(ctx context.Context, device, name string, call mcp.Call, run routine.Run) (string, error) {
	d, err := p.o.Find(device)
	if errors.Is(err, directory.ErrNotConnected) {
		err = errors.New(message.Both("routine/asleep"))
	}
	if err != nil {
		return "", err
	}
	call.Name = name
	for _, o := range d.Offers() {
		if o.Tool.Name == name {
			call.Name = o.LLMName
		}
	}
	p.o.Told(device, run.Key, false)
	defer p.o.Told(device, run.Key, true)
	response, _ := d.Call(ctx, call)
	return mcp.ResultText(response), failureOf(name, response)
}

// failureOf returns what a call that has failed says.
func failureOf(name string, r mcp.ActionResponse) error {
	if !r.Action.Failed() && r.Action != mcp.ActionTypeNotFound {
		return nil
	}
	return errors.New(message.Both("routine/tool-no", name, text.Shorten(mcp.ResultText(r), 200)))
}
