package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/lockout"
	"xiaozhi/internal/lru"
	"xiaozhi/mcp/gateway/catalog"
)

// Limits on what others may send and hold.
const (
	maxDrain          = 16 << 20         // bytes of a body that is too long which are taken in, and thrown away
	maxBatch          = 50               // messages of one batch
	maxSessions       = 4096             // sessions, streams and sockets that are open
	maxOwnSessions    = 1024             // of them, of one token
	maxPersonSessions = 20               // of them, of all tokens of an account
	personRate        = 30               // requests in a second, of all tokens of an account
	maxCalls          = 256              // calls of one stream or socket that are under way
	maxAsks           = 16               // its other requests
	maxNews           = 64               // notifications that wait for one client
	bodyTime          = 10 * time.Second // for the body of a request to come
	writeTime         = 10 * time.Second // for one write to get through
	sessionIdle       = 30 * time.Minute // without a request or an open stream
	placeTime         = time.Second      // for such a request to be over
	pingEvery         = 30 * time.Second // on streams and sockets
)

// rates counts the requests of tokens, and the wrong tokens from each address. Its
// methods may be called at the same time.
type rates struct {
	guesses *lockout.Guesses

	mu     sync.Mutex
	counts *lru.Cache[counted, *rate.Limiter]
}

// maxCounted bounds the tokens and accounts whose requests are counted.
const maxCounted = 4096

// counted names a holder whose requests are counted, and their number in a second.
type counted struct {
	catalog.Holder
	rate int
}

func newRates() *rates {
	return &rates{guesses: lockout.New(), counts: lru.New[counted, *rate.Limiter](maxCounted, 0)}
}

// allow counts one request of a caller who has shown a token.
func (r *rates) allow(c catalog.Caller) bool {
	if by := c.Holder(); by.Person && !r.one(counted{by, personRate}) {
		return false
	}
	return c.Token.Rate <= 0 || r.one(counted{catalog.Holder{Name: c.Name()}, c.Token.Rate})
}

func (r *rates) one(of counted) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter, ok := r.counts.Get(of)
	if !ok {
		limiter = rate.NewLimiter(rate.Limit(of.rate), 2*of.rate)
		r.counts.Put(of, limiter, 0)
	}
	return limiter.Allow()
}
