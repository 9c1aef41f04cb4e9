package account

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/lru"
)

// How often people may guess. Sessions that stand are not asked: a flood of guesses logs nobody out.
const (
	freeGuesses    = 5 // wrong ones of a name from a network, before it waits
	maxGuessWait   = time.Minute
	forgetGuesses  = time.Hour
	perAddress     = 20  // in a minute
	inAll          = 100 // in a minute
	maxKnownRemote = 4096
)

// guesses counts logins. Its methods may be called at the same time.
type guesses struct {
	now func() time.Time

	mu      sync.Mutex
	all     *rate.Limiter
	remotes *lru.Cache[netip.Prefix, *rate.Limiter]
	names   *lru.Cache[guessKey, guessed]
	known   *lru.Cache[guessKey, struct{}] // names with the addresses where they were right
	flying  map[guessKey]int               // those that are being looked at
}

type guessKey struct {
	name    string
	network netip.Prefix
}

type guessed struct {
	wrong int
	next  time.Time // no guess before it counts
	last  time.Time
}

func newGuesses(now func() time.Time) *guesses {
	return &guesses{
		now:     now,
		all:     rate.NewLimiter(rate.Every(time.Minute/inAll), inAll),
		remotes: lru.New[netip.Prefix, *rate.Limiter](maxKnownRemote, 0),
		names:   lru.New[guessKey, guessed](maxKnownRemote, 0),
		known:   lru.New[guessKey, struct{}](maxKnownRemote, 0),
		flying:  map[guessKey]int{},
	}
}

// keyOf joins guesses of a name that count together: from the network of 256 addresses, or of IPv6's least one. An
// address where the name was right counts for itself: strangers beside it do not make it wait.
func (g *guesses) keyOf(name string, remote netip.Addr) (key guessKey, known bool) {
	key = guessKey{name, network(remote, 32)}
	if _, known = g.known.Get(key); !known {
		key.network = network(remote, 24)
	}
	return key, known
}

func network(remote netip.Addr, bits int) netip.Prefix {
	remote = remote.Unmap().WithZone("")
	if remote.Is6() {
		bits = 64
	}
	p, _ := remote.Prefix(bits) // of no address: one network for all
	return p
}

// may reports how long a guess must wait; zero lets it in, and counts it.
func (g *guesses) may(now time.Time, name string, remote netip.Addr) (wait time.Duration) {
	if wait := g.waits(now, name, remote); wait > 0 {
		return wait
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	from := network(remote, 32)
	one, ok := g.remotes.Get(from)
	if !ok {
		one = rate.NewLimiter(rate.Every(time.Minute/perAddress), perAddress)
		g.remotes.Put(from, one, 0)
	}
	if !one.AllowN(now, 1) {
		return time.Minute / perAddress
	}
	if _, known := g.keyOf(name, remote); !known && !g.all.AllowN(now, 1) {
		return time.Minute / inAll
	}
	return 0
}

// guess has right check a guess, if another one is allowed, and returns [ErrBadLogin] if it was wrong.
func (g *guesses) guess(name string, remote netip.Addr, right func() (bool, error)) error {
	if wait := g.may(g.now(), name, remote); wait > 0 {
		return &TooOftenError{wait}
	}
	return g.judge(name, remote, right)
}

// code is guess for a code of somebody's second factor. It does not count from where it comes.
func (g *guesses) code(userID string, right func() (bool, error)) error {
	if wait := g.waits(g.now(), codeName+userID, netip.Addr{}); wait > 0 {
		return &TooOftenError{wait}
	}
	return g.judge(codeName+userID, netip.Addr{}, right)
}

// enter begins to look at a guess, or reports how long it must wait: those that come at once count as wrong ones until it
// is known. leave must be called when it was looked at.
func (g *guesses) enter(now time.Time, name string, remote netip.Addr) (leave func(), wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, _ := g.keyOf(name, remote)
	seen, _ := g.names.Get(key)
	if wait := seen.next.Sub(now); wait > 0 {
		return nil, wait
	}
	if n := g.flying[key]; n > 0 && seen.wrong+n >= freeGuesses {
		return nil, time.Second
	}
	g.flying[key]++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.flying[key]--; g.flying[key] == 0 {
			delete(g.flying, key)
		}
	}, 0
}

// judge has right check a guess and counts how it came out.
func (g *guesses) judge(name string, remote netip.Addr, right func() (bool, error)) error {
	leave, wait := g.enter(g.now(), name, remote)
	if wait > 0 {
		return &TooOftenError{wait}
	}
	defer leave()
	ok, err := right()
	if err != nil {
		return err
	}
	g.was(g.now(), name, remote, ok)
	if !ok {
		return ErrBadLogin
	}
	return nil
}

// waits reports how long a name has to wait from a network.
func (g *guesses) waits(now time.Time, name string, remote netip.Addr) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, _ := g.keyOf(name, remote)
	seen, _ := g.names.Get(key)
	return max(0, seen.next.Sub(now))
}

// was takes how a guess came out.
func (g *guesses) was(now time.Time, name string, remote netip.Addr, right bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, _ := g.keyOf(name, remote)
	if right {
		g.names.Remove(key)
		if remote.IsValid() {
			g.known.Put(guessKey{name, network(remote, 32)}, struct{}{}, 0)
		}
		return
	}
	seen, _ := g.names.Get(key)
	if now.Sub(seen.last) > forgetGuesses {
		seen = guessed{}
	}
	g.names.Put(key, seen.missed(now), 0)
}

// missed counts one more wrong guess: from the fifth on it waits, each time twice as long.
func (s guessed) missed(now time.Time) guessed {
	s.wrong, s.last = s.wrong+1, now
	if over := s.wrong - freeGuesses; over >= 0 {
		s.next = now.Add(min(maxGuessWait, time.Second<<min(over, 6)))
	}
	return s
}
