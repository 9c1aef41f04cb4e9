package gateway

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/lru"
	"xiaozhi/mcp/gateway/catalog"
)

// Limits on what others may send and hold.
const (
	maxDrain       = 16 << 20         // bytes of a body that is too long which are taken in, and thrown away
	maxBatch       = 50               // messages of one batch
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
)

// rates counts the requests of tokens, and the wrong tokens from each address. Its
// methods may be called at the same time.
type rates struct {
	guesses *lru.Cache[string, guesses]   // by address
	known   *lru.Cache[visitor, struct{}] // the right tokens from each address

	mu     sync.Mutex
	tokens map[string]*rate.Limiter // by name
}

// visitor is a token that was shown, rightly, from an address.
type visitor struct{ address, token string }

// guesses are the wrong tokens from one address.
type guesses struct {
	count int
	since time.Time
}

func newRates() *rates {
	return &rates{guesses: lru.New[string, guesses](maxGuessers, 0), known: lru.New[visitor, struct{}](maxGuessers, 0), tokens: map[string]*rate.Limiter{}}
}

func (r *rates) allow(t catalog.Token) bool {
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

func (r *rates) guessed(remote string) {
	r.guesses.Update(addressOf(remote), func(g guesses) (guesses, int) {
		if time.Since(g.since) > guessTime {
			g = guesses{since: time.Now()}
		}
		g.count++
		return g, 1
	})
}

// listens reports whether a token from an address is to be looked at, right (then
// with its name) or wrong (""). Where too many wrong ones came from, only those are
// that were right there before: clients behind a proxy are not locked out by one of
// them that guesses.
func (r *rates) listens(remote, right string) bool {
	key := addressOf(remote)
	if g, _ := r.guesses.Peek(key); g.count >= maxGuesses && time.Since(g.since) <= guessTime {
		_, known := r.known.Get(visitor{key, right})
		return known
	}
	if right != "" {
		r.known.Put(visitor{key, right}, struct{}{}, 1)
	}
	return true
}

// addressOf returns an address without its port. Of IPv6 it returns the network: a
// client with one address there has them all.
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
