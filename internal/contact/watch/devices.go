// Package watch joins what the parts of the server report of devices with their contacts: the parts know nothing of it.
package watch

import (
	"cmp"
	"errors"
	"net"
	"net/http"

	"xiaozhi/connection"
	"xiaozhi/connection/identity"
	"xiaozhi/connection/provision"
	"xiaozhi/connection/request"
	"xiaozhi/connection/websocket"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/contact/excerpt"
)

// Devices takes the reports of all devices. Its methods may be called at the same time; none of them waits.
type Devices struct {
	Log   *contact.Log
	Sound *excerpt.Excerpts // of microphones
	// Knows returns what all that is kept of a device is kept under, and whether it is a known one.
	Knows func(v identity.Visit) (id string, known bool)
	// Ours reports whether the server asks itself, which is no contact.
	Ours func(r *http.Request) bool
}

func (d *Devices) caller(p connection.Peer) contact.Caller {
	c := contact.Caller{From: cmp.Or(p.From, host(p.Remote))}
	if p.Address != "" && connection.CheckID("", p.Address) == nil {
		c.Device, c.Known = d.Knows(p.Visit)
	}
	return c
}

// host is an address without its port.
func host(remote string) string {
	if name, _, err := net.SplitHostPort(remote); err == nil {
		return name
	}
	return remote
}

// Asked takes the report of a question where to connect, or whether the device was accepted.
func (d *Devices) Asked(r provision.Report) {
	c := d.caller(r.Peer)
	if r.Poll {
		if c.Device != "" {
			d.Log.Polls(contact.Poll{Caller: c, Waits: r.Waits})
		}
		return
	}
	if r.Papers.ID != "" {
		c.Device, c.Known = r.Papers.ID, !r.Papers.Unknown
	}
	c.Board, c.Firmware = r.Board, r.Version
	token := r.Papers.Token
	a := contact.Answer{
		Caller: c, Host: r.Request.Host, URL: r.URL, Size: len(r.Answer), Signal: r.Signal,
		Request: contact.Dump(r.Request, r.Body), Reply: contact.Plain(r.Answer, token),
	}
	switch away := r.Papers.Away; {
	case errors.Is(r.Err, provision.ErrOften):
		a.Refusal = contact.Often
	case r.Err != nil:
		a.Refusal = contact.Nameless
	case away != nil && away.Code != "":
		a.Code = away.Code
	case away != nil:
		a.Refusal = turnedAway(away, false)
	}
	d.Log.Asks(a)
}

// turnedAway is why a device may not talk. lost says that it has shown a token of its own before.
func turnedAway(away *identity.AwayError, lost bool) contact.Refusal {
	switch {
	case away.Taken:
		return contact.Taken
	case away.Verdict == identity.Denied:
		return contact.Denied
	case lost:
		return contact.BadToken
	case away.Verdict == identity.NoPairing:
		return contact.Closed
	case away.Verdict == identity.AsStranger:
		return contact.Stranger
	default:
		return contact.Unpaired
	}
}

// Arrived takes the report of a request for a socket.
func (d *Devices) Arrived(r websocket.Report) {
	if d.Ours(r.Request) {
		return
	}
	g := r.Peer.Guest
	a := contact.Arrival{Caller: d.caller(r.Peer), Serial: r.Peer.Serial, Request: contact.Dump(r.Request, nil), Proven: g.Proven}
	if r.Peer.Guest.ID != "" {
		a.Device, a.Known, a.Page = g.ID, !g.Unknown, g.Page
	}
	switch {
	case r.Err != nil:
		a.Refusal = refusal(r.Err)
		a.Detail = r.Err.Error()
	case g.Away != nil:
		a.Refusal, a.Code = turnedAway(g.Away, g.Lost), g.Away.Code
	case g.ID != "" && identity.AddressOf(g.ID) != g.ID:
		a.Refusal = contact.Stranger
	}
	d.Log.Arrives(a)
}

// refusal is why a device got no socket.
func refusal(err error) contact.Refusal {
	for _, known := range []struct {
		err error
		is  contact.Refusal
	}{
		{websocket.ErrOrigin, contact.Page}, {websocket.ErrNoUpgrade, contact.NoUpgrade}, {websocket.ErrHandshake, contact.Broken},
		{request.ErrGuessing, contact.Guessing}, {request.ErrNoToken, contact.NoShared}, {request.ErrWrongToken, contact.NoShared},
		{connection.ErrFull, contact.Full}, {connection.ErrCrowded, contact.Full}, {connection.ErrStopping, contact.Stopping},
	} {
		if errors.Is(err, known.err) {
			return known.is
		}
	}
	return contact.Nameless
}

// Met takes the report of a hello, or of the end of a session.
func (d *Devices) Met(r connection.Report) {
	id := cmp.Or(r.DeviceID, contact.NamelessID(host(r.Remote)))
	switch {
	case r.Hello != nil:
		d.Log.Greets(contact.Greeting{Device: id, Message: contact.Plain(r.Raw), Odd: r.Hello.Odd, HasMCP: r.Hello.MCP, Busy: r.Busy})
	case r.End != nil:
		d.Log.Leaves(contact.End{Device: id, Serial: r.Serial, Why: reason(r.End), NoWord: r.End == connection.ErrNoHello, Gone: r.End.Gone})
	}
}
