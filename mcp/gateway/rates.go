package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/lockout"
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
	bodyTime       = 10 * time.Second // for the body of a request to come
	writeTime      = 10 * time.Second // for one write to get through
	sessionIdle    = 30 * time.Minute // without a request or an open stream
	placeTime      = time.Second      // for such a request to be over
	pingEvery      = 30 * time.Second // on streams and sockets
)

// rates counts the requests of tokens, and the wrong tokens from each address. Its
// methods may be called at the same time.
type rates struct {
	guesses *lockout.Guesses

	mu     sync.Mutex
	tokens map[string]*rate.Limiter // by name
}

func newRates() *rates { return &rates{guesses: lockout.New(), tokens: map[string]*rate.Limiter{}} }

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
