package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Account holds the rights of a token of an account. It does not change: a token whose
// rights change is another one to the gateway.
type Account struct {
	Person  string   // id of the account, whose tokens share its rate and its places
	Whole   bool     // it reaches every device, and what is the server's own: its person owns the server
	Devices []string // ids of the devices that it reaches else, in lower case and in order
	Read    bool     // it may look, and call what changes nothing
	Say     bool     // it may speak from a device, and listen to the answer
	Tools   bool     // it may call all tools
	Admin   bool     // all of these, and what the owner alone may do else

	// Holds reports whether the token may still do just this. It may wait for a disk.
	Holds func(ctx context.Context) bool
}

// reaches reports whether the account may have to do with a device; nil may.
func (a *Account) reaches(deviceID string) bool {
	return a == nil || a.Whole || slices.Contains(a.Devices, strings.ToLower(deviceID))
}

// sees reports whether the account may be shown a stream; nil may. The server's own is
// for its owner.
func (a *Account) sees(stream string) bool {
	switch {
	case a == nil || a.Whole:
		return true
	case strings.HasPrefix(stream, "device-"):
		return slices.ContainsFunc(a.Devices, func(id string) bool { return StreamOf(id) == stream })
	}
	return stream != "system"
}

// rights spells what an account may do; "" for nil.
func (a *Account) rights() string {
	if a == nil {
		return ""
	}
	return fmt.Sprint(a.Person, a.Whole, a.Read, a.Say, a.Tools, a.Admin, a.Devices)
}

// Holder names a token, or a person with all of theirs, whose sessions, streams and sockets are counted.
type Holder struct {
	Name   string
	Person bool
}

// Holder returns who holds what the caller opens.
func (c Caller) Holder() Holder {
	if a := c.account(); a != nil {
		return Holder{a.Person, true}
	}
	return Holder{Name: c.Name()}
}

// account returns what the caller may do by an account; nil: it comes without one.
func (c Caller) account() *Account {
	if c.Token == nil {
		return nil
	}
	return c.Token.Account
}

// Lasts reports whether the caller may still do what it could when it came. It may wait
// for a disk.
func (c Caller) Lasts(ctx context.Context) bool {
	a := c.account()
	return a == nil || a.Holds == nil || a.Holds(ctx)
}

// Administers reports whether the caller may do what is the owner's alone.
func (c Caller) Administers() bool {
	a := c.account()
	return c.Owner || a != nil && a.Whole && a.Admin
}

// Reads reports whether the caller may be told what is known of devices.
func (c Caller) Reads() bool {
	a := c.account()
	return c.Owner || c.Token != nil && (a == nil || a.Read || a.Admin)
}

// calls reports whether the caller may call a tool that it is shown.
func (c Caller) calls(e *Entry) bool {
	a := c.account()
	switch {
	case !c.ReadOnly():
		return true
	case e.readOnly():
		return a == nil || c.Reads()
	}
	return a != nil && a.Say && e.says && !c.Token.ReadOnly
}

// shows reports whether the caller is shown something in its place.
func (c Caller) shows(p place) bool { return c.Sees(p.stream) && (p.kind == kindTool || c.Reads()) }
