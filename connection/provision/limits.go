package provision

import (
	"net"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/connection"
	"xiaozhi/internal/lockout"
	"xiaozhi/internal/lru"
)

// Limits of OTA requests. A device asks once when it boots, then a few times while it
// waits to be paired. Whoever asks more often is answered all the same, since firmware
// sounds an alarm for an hour after any other status than 200, but from nothing that
// is kept: without a token, without a code, and nothing is noted.
const (
	perDevice  = 20   // in a minute and at once, of a pair of Device-Id and Client-Id
	perAddress = 120  // the same of an address, with all pairs together that are not known
	maxCounted = 4096 // pairs, and addresses, that are counted; of more, the one that asked longest ago starts anew

	// Of polls, whether a device must go on waiting. Firmware asks every three seconds,
	// ten times in a row.
	pollsOfDevice  = 60
	pollsOfAddress = 600
)

// limits counts the requests. Its methods may be called at the same time.
type limits struct {
	devices   *lru.Cache[string, *rate.Limiter]
	addresses *lru.Cache[string, *rate.Limiter]

	polling      *lru.Cache[string, *rate.Limiter]
	pollingThere *lru.Cache[string, *rate.Limiter] // by address
}

func newLimits() limits {
	counted := func() *lru.Cache[string, *rate.Limiter] { return lru.New[string, *rate.Limiter](maxCounted, 0) }
	return limits{counted(), counted(), counted(), counted()}
}

// allow reports whether a request is to be looked at. A known pair is counted by
// itself: those that share its address cannot spend what is its own. Without its
// Client-Id nobody counts as it.
func (l limits) allow(who connection.Peer, known bool) bool {
	if who.Address != "" && !take(l.devices, who.Address+"\x00"+who.ClientID, perDevice) {
		return false
	}
	return known || take(l.addresses, networkOf(who), perAddress)
}

// allowPoll reports whether a poll is to be looked at.
func (l limits) allowPoll(who connection.Peer) bool {
	return take(l.polling, who.Address+"\x00"+who.ClientID, pollsOfDevice) && take(l.pollingThere, networkOf(who), pollsOfAddress)
}

// networkOf returns the address by which somebody is counted.
func networkOf(who connection.Peer) string {
	return lockout.Address(net.JoinHostPort(who.From, "0"))
}

// take counts one request of so many in a minute.
func take(from *lru.Cache[string, *rate.Limiter], key string, most int) bool {
	var bucket *rate.Limiter
	from.Update(key, func(old *rate.Limiter) (*rate.Limiter, int) {
		if bucket = old; bucket == nil {
			bucket = rate.NewLimiter(rate.Every(time.Minute/time.Duration(most)), most)
		}
		return bucket, 1
	})
	return bucket.Allow()
}
