package sealed

import (
	"context"
	"errors"
	"io/fs"

	"xiaozhi/store"
)

// accounts is the purpose of what accounts keep sealed in rows of their own. No host has this name.
const accounts = "server:accounts"

// Seal seals what others keep, under a name.
func (v *Vault) Seal(ctx context.Context, name, value string) (string, error) {
	k, err := v.key()
	if errors.Is(err, fs.ErrNotExist) {
		k, err = v.newKey(ctx)
	}
	if err != nil {
		return "", err
	}
	return k.seal(name, accounts, value), nil
}

// Unseal opens what [Vault.Seal] has sealed under the same name.
func (v *Vault) Unseal(name, text string) (string, error) {
	return v.open(store.Secret{Name: name, Bound: accounts, Sealed: text})
}
