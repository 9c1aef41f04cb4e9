package app

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/console/tools"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/keeper"
	"xiaozhi/internal/toolcount"
	"xiaozhi/internal/version"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/router"
	"xiaozhi/store"
)

// toolsOf tells the pages of tools what there is.
type toolsOf struct {
	*App
	factory *factory
}

var _ tools.Source = toolsOf{}

// deskOf looks at tools and calls them for pages and programs.
func deskOf(a *App, f *factory) *tools.Desk { return tools.NewDesk(toolsOf{a, f}) }

// Devices lists all devices.
func (t toolsOf) Devices(ctx context.Context) ([]fleet.Device, error) { return t.seen.fleet.List(ctx) }

// Survey lists the tools of a device; of one that is not connected those that were kept.
func (t toolsOf) Survey(ctx context.Context, id string) (all []router.Listed, live bool, err error) {
	if d, err := t.outside.devices.Find(id); err == nil {
		return d.Survey(), true, nil
	}
	var docs map[string]string
	if t.stored != nil {
		if docs, err = t.stored.Devices.Learned(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, false, err
		}
	}
	var kept keptTools
	for name, read := range map[string]func(string) ([]mcp.Tool, error){
		keeper.Tools:  device.Kept,
		keeper.Things: func(doc string) ([]mcp.Tool, error) { return iot.Kept(doc, t.forces.now.Load().limits.Kinds) },
	} {
		if doc := docs[name]; doc != "" {
			had, err := read(doc)
			if err != nil {
				t.log.Debug("kept tools are not shown", "device_id", id, "err", err)
			}
			kept.tools = append(kept.tools, had...)
		}
	}
	limits, own := t.factory.limits(), t.cfg.Devices.ByID[id].Tools
	limits.Allow, limits.Deny, limits.Record = own.Allow, slices.Concat(limits.Deny, own.Deny), nil
	box := router.New(limits, append(t.factory.shared(t.factory.external.For(id)), kept)...)
	defer box.Close()
	return box.Survey(), false, nil
}

// keptTools are the tools of a device that is not connected.
type keptTools struct {
	mcp.Source // none: nobody calls one
	tools      []mcp.Tool
}

// GetAvailableTools lists them.
func (k keptTools) GetAvailableTools() []mcp.Tool { return k.tools }

// here makes a router of the tools that need no device. It must be closed.
func (t toolsOf) here() *router.Router {
	limits := t.factory.limits()
	limits.Ended = ran(t.App, "")
	limits.Record = func(rec router.Record) {
		t.outside.counts.Note(rec)
		if t.stored != nil {
			c := keeper.CallOf(&rec)
			c.Caller, c.At = "console", time.Now().Add(-rec.Took)
			t.stored.Log.Call(c)
		}
	}
	return router.New(limits, t.factory.shared(t.factory.external)...)
}

// Here lists the tools that need no device.
func (t toolsOf) Here() []router.Listed {
	box := t.here()
	defer box.Close()
	return box.Survey()
}

// Call runs a tool on a connected device.
func (t toolsOf) Call(ctx context.Context, id string, call mcp.Call) (mcp.ActionResponse, string, error) {
	d, err := t.outside.devices.Find(id)
	if err != nil {
		return mcp.ActionResponse{}, "", err
	}
	response, invalid := d.Call(ctx, call)
	return response, invalid, nil
}

// CallHere runs a tool without a device. A tool that needs a yes is run if who asks is sure.
func (t toolsOf) CallHere(ctx context.Context, call mcp.Call, sure bool) (mcp.ActionResponse, string) {
	box := t.here()
	defer box.Close()
	call.By = mcp.ByOutside
	p, refused := box.Prepare(call)
	if refused != nil {
		return *refused, p.Invalid
	}
	if sure {
		p = box.Consent(p, "") // nobody has spoken
	}
	return box.Run(ctx, p), ""
}

// FindCalls lists the calls that were kept.
func (t toolsOf) FindCalls(ctx context.Context, f store.CallFilter, p store.Page) (store.CallList, error) {
	if t.stored == nil {
		return store.CallList{}, nil
	}
	return t.stored.Turns.FindCalls(ctx, f, p)
}

// Counts tells how many calls there were.
func (t toolsOf) Counts() []toolcount.Count { return t.outside.counts.Counts() }

// Servers lists other people's servers.
func (t toolsOf) Servers() []external.Status { return t.factory.external.Statuses() }

// TestServer asks one for its tools, or tries to connect.
func (t toolsOf) TestServer(ctx context.Context, name string) (time.Duration, int, error) {
	s := t.factory.external.Server(name)
	if s == nil {
		return 0, 0, mcp.ErrClosed
	}
	return s.Test(ctx)
}

// TryServer connects once to a server that is not kept yet.
func (t toolsOf) TryServer(ctx context.Context, name string, e external.Entry) (external.Status, time.Duration, error) {
	c, err := e.Config()
	if err != nil {
		return external.Status{}, 0, err
	}
	return external.Try(ctx, name, c, external.ServerOptions{Version: version.Number(), Log: t.log})
}

// changing are the settings as the pages change them; nil: they cannot be changed.
func changing(a *App) tools.Settings {
	if a.settings == nil {
		return nil
	}
	return a.settings
}

// RestartServer ends the connection to one, and connects again.
func (t toolsOf) RestartServer(name string) error {
	s := t.factory.external.Server(name)
	if s == nil {
		return mcp.ErrClosed
	}
	return s.ResetConnection()
}

// Login begins a login to a server, and returns the link for the browser, which is led back to redirect.
func (t toolsOf) Login(ctx context.Context, name, redirect string) (string, error) {
	return t.factory.external.Login(ctx, name, redirect)
}

// LoggedIn takes the query with which a browser came back.
func (t toolsOf) LoggedIn(ctx context.Context, answer url.Values) (string, error) {
	return t.factory.external.LoggedIn(ctx, answer)
}

// Logout forgets what a server has granted.
func (t toolsOf) Logout(ctx context.Context, name string) error {
	return t.factory.external.Logout(ctx, name)
}

// DeviceID is the one spelling of a device's id.
func (t toolsOf) DeviceID(typed string) string { return identity.ParseID(typed) }

// DeviceOwner is whose a device is.
func (t toolsOf) DeviceOwner(ctx context.Context, id string) (string, error) {
	return deviceOwner(t.stored)(ctx, id)
}
