// Package sealed keeps secrets of services in the store, sealed by a key that lies beside it. That protects copies and
// backups of the database, not a data folder that was stolen whole.
package sealed

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"

	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

const (
	maxName  = 64
	maxValue = 8 << 10 // bytes
	minTail  = 16      // bytes of a secret of which the last ones may be shown
	tailSize = 4
	version  = "1:" // begins what is sealed
)

// Keeper is the table of sealed secrets; [store.Secrets] is one.
type Keeper interface {
	Put(ctx context.Context, s store.Secret) error
	Get(ctx context.Context, name string) (store.Secret, error)
	List(ctx context.Context) ([]store.Secret, error)
	Delete(ctx context.Context, name string) error
}

// Vault keeps secrets, each for one host. Its methods may be called at the same time.
type Vault struct {
	Keeper  Keeper
	KeyFile string // made by the first [Vault.Put]
	// Audit keeps who has put or forgotten a secret, and why it was not done. nil: nobody does.
	Audit func(ctx context.Context, by, act, name string, outcome error)
}

func (v *Vault) did(ctx context.Context, by, act, name string, outcome error) {
	if v.Audit != nil && goodName(name) {
		v.Audit(ctx, by, act, name, outcome)
	}
}

// Put seals a secret for the host of an address, in the place of the one of its name.
func (v *Vault) Put(ctx context.Context, name, address, value, by string) error {
	err := v.put(ctx, name, address, value, by)
	v.did(ctx, by, "secret.put", name, err)
	return err
}

func (v *Vault) put(ctx context.Context, name, address, value, by string) error {
	host, err := Host(address)
	if err != nil {
		return err
	}
	if !goodName(name) {
		return errors.New(message.Both("sealed/name", name, maxName))
	}
	if value == "" || len(value) > maxValue || strings.ContainsAny(value, "\r\n\x00") {
		return errors.New(message.Both("sealed/value", name, maxValue))
	}
	key, err := v.key()
	if errors.Is(err, fs.ErrNotExist) {
		if err := private.CreateSecret(v.KeyFile, []byte(hex.EncodeToString(random(chacha20poly1305.KeySize))+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		key, err = v.key()
	}
	if err != nil {
		return err
	}
	s := store.Secret{Name: name, Bound: host, Sealed: seal(key, name, host, value), ByID: by}
	if len(value) >= minTail {
		s.Tail = value[len(value)-tailSize:]
	}
	return v.Keeper.Put(ctx, s)
}

// Open returns a secret that is to be sent to an address. Another host than that it was entered for is refused.
func (v *Vault) Open(ctx context.Context, name, address string) (string, error) {
	s, err := v.Keeper.Get(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return "", errors.New(message.Both("sealed/unknown", name))
	}
	if err != nil {
		return "", err
	}
	host, err := Host(address)
	if err != nil {
		return "", err
	}
	if host != s.Bound {
		return "", errors.New(message.Both("sealed/host", name, s.Bound, host))
	}
	key, err := v.key()
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New(message.Both("sealed/no-key", v.KeyFile, name))
	}
	if err != nil {
		return "", err
	}
	value, err := unseal(key, name, host, s.Sealed)
	if err != nil {
		return "", errors.New(message.Both("sealed/broken", name, v.KeyFile))
	}
	return value, nil
}

// List tells of all secrets what people may see.
func (v *Vault) List(ctx context.Context) ([]store.Secret, error) {
	all, err := v.Keeper.List(ctx)
	for i := range all {
		all[i].Sealed = ""
	}
	return all, err
}

// Forget deletes a secret.
func (v *Vault) Forget(ctx context.Context, name, by string) error {
	err := v.Keeper.Delete(ctx, name)
	v.did(ctx, by, "secret.forget", name, err)
	if errors.Is(err, store.ErrNotFound) {
		return errors.New(message.Both("sealed/unknown", name))
	}
	return err
}

// key reads the key: [fs.ErrNotExist] if none was made.
func (v *Vault) key() (cipher.AEAD, error) {
	text, err := private.ReadSecret(v.KeyFile)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, errors.New(message.Both("sealed/bad-key", v.KeyFile))
	}
	return chacha20poly1305.NewX(key)
}

// Host returns the host, and its port unless it is the usual one of HTTPS, of an address or of a bare host.
func Host(address string) (string, error) {
	full := address
	if !strings.Contains(full, "://") {
		full = "https://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Hostname() == "" {
		return "", errors.New(message.Both("sealed/no-host"))
	}
	return strings.TrimSuffix(strings.ToLower(u.Host), ":443"), nil
}

func goodName(name string) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r) {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// bind binds a sealed value: it opens under this name and for this host only.
func bind(name, host string) []byte { return []byte(version + name + "\x00" + host) }

func seal(key cipher.AEAD, name, host, value string) string {
	nonce := random(key.NonceSize())
	return version + base64.RawStdEncoding.EncodeToString(key.Seal(nonce, nonce, []byte(value), bind(name, host)))
}

var errBroken = errors.New("it cannot be opened")

func unseal(key cipher.AEAD, name, host, text string) (string, error) {
	text, ok := strings.CutPrefix(text, version)
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if !ok || err != nil || len(raw) < key.NonceSize() {
		return "", errBroken
	}
	value, err := key.Open(nil, raw[:key.NonceSize()], raw[key.NonceSize():], bind(name, host))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBroken, err)
	}
	return string(value), nil
}
