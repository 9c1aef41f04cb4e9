package sealed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"xiaozhi/store"
)

// Grants keep what other servers grant to this one by a login, sealed, each for the host of its server. Their methods may
// be called at the same time.
type Grants struct{ Vault *Vault }

// Load returns what was kept of a server; "": nothing was, or its address has another host now.
func (g Grants) Load(ctx context.Context, server, address string) (string, error) {
	s, err := g.Vault.Keeper.Get(ctx, grantName(server))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if bound, err := bind(address); err != nil || bound != s.Bound {
		return "", nil //nolint:nilerr // what was granted is no business of another host
	}
	return g.Vault.open(s)
}

// Save keeps a grant; "" forgets it.
func (g Grants) Save(ctx context.Context, server, address, grant string) error {
	name := grantName(server)
	if grant != "" {
		return g.Vault.put(ctx, name, address, grant, "")
	}
	if err := g.Vault.Keeper.Delete(ctx, name); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// grantName is the name of a grant among the secrets: that of the server as far as one may be so, and what makes it the only one.
func grantName(server string) string {
	plain := strings.Map(func(r rune) rune {
		if goodName(string(r)) {
			return r
		}
		return '-'
	}, strings.ToLower(server))
	sum := sha256.Sum256([]byte(server))
	return "login." + plain[:min(len(plain), 40)] + "." + hex.EncodeToString(sum[:4])
}
