package gateway

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits on what others may send and hold.
const (
	maxDepth       = 64               // nesting of objects and arrays in a message
	maxDrain       = 16 << 20         // bytes of a body that is too long which are taken in, and thrown away
	maxBatch       = 50               // messages of one batch
	maxSlots       = 512              // calls that run at the same time
	maxOwnSlots    = 256              // of them, of one token
	maxSessions    = 4096             // sessions, streams and sockets that are open
	maxOwnSessions = 1024             // of them, of one token
	maxCalls       = 256              // calls of one stream or socket that are under way
	maxAsks        = 16               // its other requests
	maxNews        = 64               // notifications that wait for one client
	maxGuesses     = 20               // wrong tokens from one address in guessTime
	maxGuessers    = 4096             // addresses that are remembered
	bodyTime       = 10 * time.Second // for the body of a request to come
	writeTime      = 10 * time.Second // for one write to get through
	sessionIdle    = 30 * time.Minute // without a request or an open stream
	placeTime      = time.Second      // for such a request to be over
	pingEvery      = 30 * time.Second // on streams and sockets
	guessTime      = time.Minute
	settleTime     = 100 * time.Millisecond // for a device's further changes, before they are told
	settleLimit    = 500 * time.Millisecond // and no longer than this
	externalPoll   = time.Second            // between two looks at other people's servers
)

// rates are how often tokens ask, and who guesses at them.
type rates struct {
	mu      sync.Mutex
	tokens  map[string]*rate.Limiter
	guesses map[string]*guesses
	known   map[visitor]struct{}
}

// visitor is a token that was shown, rightly, from an address.
type visitor struct{ address, token string }

// guesses are the wrong tokens from one address.
type guesses struct {
	count int
	since time.Time
}

func newRates() *rates {
	return &rates{tokens: map[string]*rate.Limiter{}, guesses: map[string]*guesses{}, known: map[visitor]struct{}{}}
}

// allow counts a request of a token and reports whether it is within its rate.
func (r *rates) allow(t Token) bool {
	if t.Rate <= 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter := r.tokens[t.Name]
	if limiter == nil {
		limiter = rate.NewLimiter(rate.Limit(t.Rate), 2*t.Rate)
		r.tokens[t.Name] = limiter
	}
	return limiter.Allow()
}

// guessed notes a wrong token.
func (r *rates) guessed(remote string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := addressOf(remote)
	g := r.guesses[key]
	if g == nil || time.Since(g.since) > guessTime {
		if len(r.guesses) >= maxGuessers {
			clear(r.guesses)
		}
		g = &guesses{since: time.Now()}
		r.guesses[key] = g
	}
	g.count++
}

// listens reports whether a token from an address is to be looked at, right (then
// with its name) or wrong (""): not where too many wrong ones came from, unless it
// is one that was right there before. So one who guesses behind a proxy does not
// lock out those who are behind it with him.
func (r *rates) listens(remote, right string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := addressOf(remote)
	if g := r.guesses[key]; g != nil && g.count >= maxGuesses && time.Since(g.since) <= guessTime {
		_, known := r.known[visitor{key, right}]
		return known
	}
	if right != "" {
		if len(r.known) >= maxGuessers {
			clear(r.known)
		}
		r.known[visitor{key, right}] = struct{}{}
	}
	return true
}

// addressOf is an address without its port. Of IPv6 it is the network: whoever
// has one address there has them all.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is6() && !ip.Is4In6() {
		if network, err := ip.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return host
}

// slots are places for calls that run.
type slots struct {
	mu     sync.Mutex
	owned  map[string]int // by token
	cancel map[uint64]func()
	number uint64
	closed bool
}

// take takes a place for a call of a token; cancel ends the call, release gives
// the place back.
func (s *slots) take(token string, cancel func()) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.cancel) >= maxSlots || token != "" && s.owned[token] >= maxOwnSlots {
		return nil, false
	}
	if s.owned == nil {
		s.owned, s.cancel = map[string]int{}, map[uint64]func(){}
	}
	s.number++
	number := s.number
	s.cancel[number] = cancel
	s.owned[token]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancel, number)
		if s.owned[token]--; s.owned[token] == 0 {
			delete(s.owned, token)
		}
	}, true
}

// closeAll ends all calls. No more are taken.
func (s *slots) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, cancel := range s.cancel {
		cancel()
	}
}
