package provision

import (
	"log/slog"
	"net"
	"sync"
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
	lineEvery  = 10 * time.Second
	maxLines   = 20 // at once; after that one line of the log every lineEvery
)

// limits counts the requests. Its methods may be called at the same time.
type limits struct {
	devices   *lru.Cache[string, *rate.Limiter]
	addresses *lru.Cache[string, *rate.Limiter]
}

func newLimits() limits {
	return limits{lru.New[string, *rate.Limiter](maxCounted, 0), lru.New[string, *rate.Limiter](maxCounted, 0)}
}

// allow reports whether a request is to be looked at. A known pair is counted by
// itself: those that share its address cannot spend what is its own. Without its
// Client-Id nobody counts as it.
func (l limits) allow(who connection.Peer, known bool) bool {
	if who.Address != "" && !take(l.devices, who.Address+"\x00"+who.ClientID, perDevice) {
		return false
	}
	return known || take(l.addresses, lockout.Address(net.JoinHostPort(who.From, "0")), perAddress)
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

// lines writes what strangers do into the log, but not all of it. Its method may be
// called at the same time.
type lines struct {
	mu         sync.Mutex
	allowed    *rate.Limiter
	suppressed int
}

func newLines() *lines {
	return &lines{allowed: rate.NewLimiter(rate.Every(lineEvery), maxLines)}
}

// log writes a line, or counts it; the next one says how many there were.
func (l *lines) log(write func(msg string, args ...any), msg string, args ...any) {
	l.mu.Lock()
	if !l.allowed.Allow() {
		l.suppressed++
		l.mu.Unlock()
		return
	}
	if l.suppressed > 0 {
		args = append(args, slog.Int("suppressed", l.suppressed))
	}
	l.suppressed = 0
	l.mu.Unlock()
	write(msg, args...)
}
