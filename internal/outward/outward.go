// Package outward is the devices of a server as programs of others ask for them: who is there, what they can do, and having them do it.
package outward

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/router"
)

// Letters keeps what devices are to be told, connected or not: a [mail.Office].
type Letters interface {
	Send(ctx context.Context, l mail.Letter) (mail.Letter, error)
	Find(ctx context.Context, id string) (mail.Letter, error)
	Await(ctx context.Context, id string) (mail.Letter, error)
	Withdraw(ctx context.Context, id string) (mail.Letter, error)
	There(device string) bool
}

// Options say what [Devices] use. Directory and Journal must be set.
type Options struct {
	Directory *directory.Devices
	Journal   *router.Journal          // of the calls of all devices, connected or not
	Letters   func() Letters           // nil, or one that returns nil: only devices that are connected are told anything
	Quiet     func(device string) bool // says nothing that nobody has asked for; nil: none does
	Known     func() []identity.Known  // devices, connected or not; nil: nobody knows any
	Named     func(id string) string   // what a device is called now, which may be another name than when it connected; nil: as then
	Given     func(name string) bool   // whether a device, connected or not, is called so; nil: none is
}

// Devices are the devices of a server for the gateway: errors are told in the language of the caller. The methods may be called at the
// same time.
type Devices struct{ o Options }

// New returns devices.
func New(o Options) Devices {
	if o.Letters == nil {
		o.Letters = func() Letters { return nil }
	}
	if o.Quiet == nil {
		o.Quiet = func(string) bool { return false }
	}
	if o.Known == nil {
		o.Known = func() []identity.Known { return nil }
	}
	if o.Named == nil {
		o.Named = func(string) string { return "" }
	}
	if o.Given == nil {
		o.Given = func(string) bool { return false }
	}
	return Devices{o}
}

// Name returns what a device is called now; "": nothing else than when it connected.
func (d Devices) Name(id string) string { return d.o.Named(id) }

// Named reports whether a device, connected or not, is called so.
func (d Devices) Named(name string) bool { return d.o.Given(strings.TrimSpace(name)) }

// List describes the connected devices.
func (d Devices) List() []offer.Device {
	list := d.o.Directory.List()
	out := make([]offer.Device, len(list))
	for i, one := range list {
		info := one.Info()
		out[i] = offer.Device{
			ID: info.DeviceID, Name: cmp.Or(d.o.Named(info.DeviceID), info.Name), SessionID: info.SessionID,
			Language: info.Language, Since: info.Since, Tools: len(one.Offers()),
		}
	}
	return out
}

// Offers lists the tools of a connected device.
func (d Devices) Offers(id string) ([]router.Offer, bool) {
	one, err := d.o.Directory.Find(id)
	if err != nil {
		return nil, false
	}
	return one.Offers(), true
}

// Survey lists the tools of a connected device with those that its model is not offered.
func (d Devices) Survey(id string) ([]router.Listed, bool) {
	one, err := d.o.Directory.Find(id)
	if err != nil {
		return nil, false
	}
	return one.Survey(), true
}

// Call runs a tool of a device.
func (d Devices) Call(ctx context.Context, id string, call mcp.Call) (mcp.ActionResponse, string) {
	one, err := d.o.Directory.Find(id)
	if err != nil {
		err := InLanguage(mcp.WithInfo(ctx, mcp.Info{Language: call.Language}), err)
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}, ""
	}
	return one.Call(ctx, call)
}

// Calls lists the last tool calls of a device.
func (d Devices) Calls(id string) []router.Record { return d.o.Journal.Calls(id) }

// Acts returns the functions by which programs have devices do something. What is said and asked goes by the office of letters; a
// device that is not known has none there, and is spoken to directly while it is connected.
func (d Devices) Acts() offer.Acts {
	return offer.Acts{Say: d.Say, Ask: d.Ask, Listen: d.Listen, Abort: d.Abort, Letter: d.Letter, Sleeping: d.Sleeping}
}

// Sleeping lists the known devices that are not connected.
func (d Devices) Sleeping() (all []offer.Device) {
	for _, k := range d.o.Known() {
		if k.State != identity.Paired.String() {
			continue
		}
		if _, err := d.o.Directory.Find(k.ID); err != nil {
			all = append(all, offer.Device{ID: k.ID, Name: d.o.Named(k.ID)})
		}
	}
	return all
}

// Say has a device say words: at once, or at the next pause. It waits until they were heard, if the device is there and may speak.
func (d Devices) Say(ctx context.Context, id, words string, now bool) (offer.Said, error) {
	l, err := d.send(ctx, mail.Letter{Device: id, Kind: mail.Say, Text: words, Now: now})
	if errors.Is(err, mail.ErrNoDevice) {
		return with(ctx, d, id, func(to directory.Device) (offer.Said, error) {
			spoken, err := to.Say(ctx, words, now)
			return offer.Said{Heard: spoken.Heard, Whole: spoken.Whole}, err
		})
	}
	return fateOf(l), InLanguage(ctx, err)
}

// Ask has a device ask its user a question, and waits for the answer.
func (d Devices) Ask(ctx context.Context, id, question string) (offer.Said, error) {
	l, err := d.send(ctx, mail.Letter{Device: id, Kind: mail.Ask, Text: question})
	if errors.Is(err, mail.ErrNoDevice) {
		return with(ctx, d, id, func(to directory.Device) (offer.Said, error) {
			answer, err := to.Ask(ctx, question)
			return offer.Said{Answer: answer}, err
		})
	}
	if err == nil && l.Fate == mail.Heard {
		err = remote.ErrNoAnswer
	}
	return fateOf(l), InLanguage(ctx, err)
}

// Letter tells what has become of a letter that a program has sent.
func (d Devices) Letter(ctx context.Context, id string) (device string, said offer.Said, err error) {
	letters := d.o.Letters()
	if letters == nil {
		return "", said, mail.ErrNoLetter
	}
	l, err := letters.Find(ctx, id)
	if err != nil {
		return "", said, err
	}
	said = fateOf(l)
	said.ID, said.Fate = l.ID, string(l.Fate)
	return l.Device, said, nil
}

// send sends a letter, and waits for its fate if its device is there and may speak. A caller who has left takes it back.
func (d Devices) send(ctx context.Context, l mail.Letter) (mail.Letter, error) {
	letters := d.o.Letters()
	if letters == nil {
		return mail.Letter{}, mail.ErrNoDevice
	}
	l.Source, l.By = "mcp", catalog.CallerFrom(ctx).Name()
	sent, err := letters.Send(ctx, l)
	if err != nil || !letters.There(l.Device) || d.o.Quiet(l.Device) {
		return sent, err
	}
	sent, err = letters.Await(ctx, sent.ID)
	if err == nil && !sent.Fate.Over() && ctx.Err() != nil {
		if taken, terr := letters.Withdraw(context.WithoutCancel(ctx), sent.ID); terr == nil {
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

// Listen has a connected device listen.
func (d Devices) Listen(ctx context.Context, id string) error {
	_, err := with(ctx, d, id, func(to directory.Device) (struct{}, error) { return struct{}{}, to.Listen(ctx) })
	return err
}

// Abort ends what a connected device says, and reports whether it said something.
func (d Devices) Abort(ctx context.Context, id string) (bool, error) {
	return with(ctx, d, id, func(to directory.Device) (bool, error) { return to.Stop(ctx) })
}

// with has a connected device do something. Errors are told in the language of the caller.
func with[T any](ctx context.Context, d Devices, id string, do func(directory.Device) (T, error)) (did T, err error) {
	one, err := d.o.Directory.Find(id)
	if err == nil {
		did, err = do(one)
	}
	return did, InLanguage(ctx, err)
}

// States are those of the things of a connected device.
func (d Devices) States(id string) (map[string]map[string]any, bool) {
	one, err := d.o.Directory.Find(id)
	if err != nil {
		return nil, false
	}
	return one.States(), true
}

// Transcript lists what was said with a connected device.
func (d Devices) Transcript(id string) ([]offer.Line, bool) {
	one, err := d.o.Directory.Find(id)
	if err != nil {
		return nil, false
	}
	var lines []offer.Line
	for _, line := range one.Transcript() {
		lines = append(lines, offer.Line(line))
	}
	return lines, true
}

// InLanguage returns err in the language of the caller.
func InLanguage(ctx context.Context, err error) error {
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
