package app

import (
	"context"
	"errors"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/offer"
	"xiaozhi/mcp/router"
)

// outside is the directory as the gateway uses it: errors are told in the language
// of the caller. Its methods may be called at the same time.
type outside struct {
	devices *directory.Devices
	calls   *router.Journal // of all devices, connected or not
}

func newOutside() outside { return outside{directory.New(), router.NewJournal()} }

// List describes the connected devices.
func (o outside) List() []offer.Device {
	list := o.devices.List(directory.Page{})
	out := make([]offer.Device, len(list))
	for i, d := range list {
		info := d.Info()
		out[i] = offer.Device{
			ID: info.DeviceID, Name: info.Name, SessionID: info.SessionID,
			Language: info.Language, Since: info.Since, Tools: len(d.Offers()),
		}
	}
	return out
}

// Offers lists the tools of a connected device.
func (o outside) Offers(id string) ([]router.Offer, bool) {
	d, err := o.devices.Find(id)
	if err != nil {
		return nil, false
	}
	return d.Offers(), true
}

// Call runs a tool of a device.
func (o outside) Call(ctx context.Context, id string, call mcp.Call) (mcp.ActionResponse, string) {
	d, err := o.devices.Find(id)
	if err != nil {
		err := inLanguage(mcp.WithInfo(ctx, mcp.Info{Language: call.Language}), err)
		return mcp.ActionResponse{Action: mcp.ActionTypeError, Result: err.Error()}, ""
	}
	return d.Call(ctx, call)
}

// Calls lists the last tool calls of a device.
func (o outside) Calls(id string) []router.Record { return o.calls.Calls(id) }

// acts are the functions that the gateway has devices do.
func (o outside) acts() offer.Acts {
	return offer.Acts{Say: o.say, Ask: o.ask, Listen: o.listen, Abort: o.abort}
}

func (o outside) say(ctx context.Context, id, words string, now bool) (offer.Said, error) {
	d, err := o.devices.Find(id)
	if err != nil {
		return offer.Said{}, inLanguage(ctx, err)
	}
	spoken, err := d.Say(ctx, words, now)
	return offer.Said(spoken), inLanguage(ctx, err)
}

func (o outside) ask(ctx context.Context, id, question string) (string, error) {
	d, err := o.devices.Find(id)
	if err != nil {
		return "", inLanguage(ctx, err)
	}
	answer, err := d.Ask(ctx, question)
	return answer, inLanguage(ctx, err)
}

func (o outside) listen(ctx context.Context, id string) error {
	d, err := o.devices.Find(id)
	if err != nil {
		return inLanguage(ctx, err)
	}
	return inLanguage(ctx, d.Listen(ctx))
}

func (o outside) abort(ctx context.Context, id string) (bool, error) {
	d, err := o.devices.Find(id)
	if err != nil {
		return false, inLanguage(ctx, err)
	}
	stopped, err := d.Stop(ctx)
	return stopped, inLanguage(ctx, err)
}

// states returns the states of a device's things.
func (o outside) states(id string) (map[string]map[string]any, bool) {
	d, err := o.devices.Find(id)
	if err != nil {
		return nil, false
	}
	return d.States(), true
}

// transcript returns what was said with a device on its present connection.
func (o outside) transcript(id string) ([]offer.Line, bool) {
	d, err := o.devices.Find(id)
	if err != nil {
		return nil, false
	}
	var lines []offer.Line
	for _, line := range d.Transcript() {
		lines = append(lines, offer.Line(line))
	}
	return lines, true
}

// inLanguage returns err in the language of the caller.
func inLanguage(ctx context.Context, err error) error {
	if errors.Is(err, directory.ErrNotConnected) {
		err = feature.ErrOver
	}
	language := text.Lang(mcp.InfoFrom(ctx).Language)
	if err == nil || language == text.English {
		return err
	}
	for known, id := range map[error]string{
		feature.ErrOver:      "app/device-over",
		feature.ErrQueueFull: "app/device-queue-full",
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
