package connection

import (
	"errors"
	"log/slog"
	"net"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/lockout"
)

// Limits of the connections of visitors, so that the others keep their places.
const (
	maxOfAddress  = 50              // of one address, or network of IPv6
	visitorsShare = 2               // one place in so many, of all
	loggedAtOnce  = 100             // connections that the log tells of
	loggedEvery   = 2 * time.Second // and one more so often
)

// ErrCrowded says that there is no room for another device that is not known.
var ErrCrowded = errors.New("too many devices that are not known are connected from this address, or in all")

// visitors counts the connections that have come without being known: of strangers, of
// devices that are turned away, and of those that have not named themselves yet. The
// registry's mu guards it.
type visitors struct {
	most      int            // in all
	all       int            //
	byAddress map[string]int // without zeros
	logged    *rate.Limiter
	unlogged  int
}

func newVisitors(places int) visitors {
	return visitors{
		most: max(1, places/visitorsShare), byAddress: map[string]int{},
		logged: rate.NewLimiter(rate.Every(loggedEvery), loggedAtOnce),
	}
}

// isVisitor reports whether a device is treated as one that is not known.
func (p *Peer) isVisitor() bool {
	return p.Address == "" || p.Guest.Unknown || p.Guest.Away != nil
}

// enter counts one in, if there is room, and returns what leave takes.
func (v *visitors) enter(p *Peer) (address string, err error) {
	address = lockout.Address(net.JoinHostPort(p.From, "0"))
	if v.all >= v.most || v.byAddress[address] >= maxOfAddress {
		return "", ErrCrowded
	}
	v.all++
	v.byAddress[address]++
	return address, nil
}

// leave counts one out that had entered; "" had not.
func (v *visitors) leave(address string) {
	if address == "" {
		return
	}
	v.all--
	if v.byAddress[address]--; v.byAddress[address] == 0 {
		delete(v.byAddress, address)
	}
}

// log returns where the session of a visitor writes its lines: nowhere if the log
// tells of many already, which the next that it tells of says.
func (v *visitors) log(to *slog.Logger) *slog.Logger {
	if !v.logged.Allow() {
		v.unlogged++
		return slog.New(slog.DiscardHandler)
	}
	if v.unlogged > 0 {
		to.Warn("connections of unknown devices are not logged", "suppressed", v.unlogged)
		v.unlogged = 0
	}
	return to
}
