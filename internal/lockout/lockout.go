// Package lockout stops listening to addresses from which secrets are guessed, and keeps
// what strangers do from filling the log.
package lockout

import (
	"net"
	"net/netip"
	"time"

	"xiaozhi/internal/lru"
)

// Limits of guessing.
const (
	MaxGuesses = 20          // wrong secrets from one address in Window
	Window     = time.Minute //
	maxKept    = 4096        // addresses that are remembered
)

// Guesses counts the wrong secrets from each address. Its methods may be called at the
// same time.
type Guesses struct {
	wrong *lru.Cache[string, guesses]   // by address
	known *lru.Cache[visitor, struct{}] // the right secrets from each address
}

// visitor is a secret that was shown, rightly, from an address.
type visitor struct{ address, secret string }

// guesses are the wrong secrets from one address.
type guesses struct {
	count int
	since time.Time
}

// New returns a count of nothing.
func New() *Guesses {
	return &Guesses{wrong: lru.New[string, guesses](maxKept, 0), known: lru.New[visitor, struct{}](maxKept, 0)}
}

// Wrong counts a wrong secret from an address.
func (g *Guesses) Wrong(remote string) {
	g.wrong.Update(Address(remote), func(w guesses) (guesses, int) {
		if time.Since(w.since) > Window {
			w = guesses{since: time.Now()}
		}
		w.count++
		return w, 1
	})
}

// Listens reports whether a secret from an address is to be looked at, right (then with
// its name) or wrong (""). Where too many wrong ones came from, only those are that
// were right there before: clients behind a proxy are not locked out by one of them
// that guesses.
func (g *Guesses) Listens(remote, right string) bool {
	key := Address(remote)
	if w, _ := g.wrong.Peek(key); w.count >= MaxGuesses && time.Since(w.since) <= Window {
		_, known := g.known.Get(visitor{key, right})
		return known
	}
	if right != "" {
		g.known.Put(visitor{key, right}, struct{}{}, 1)
	}
	return true
}

// Address returns an address without its port. Of IPv6 it returns the network: a
// client with one address there has them all.
func Address(remote string) string {
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
