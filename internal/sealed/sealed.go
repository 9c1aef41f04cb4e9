// Package sealed keeps secrets in the store, sealed by a key that lies beside it. That protects copies and backups of
// the database, not a data folder that was stolen whole. A secret is opened only for the purpose that it was entered for:
// a host that it is sent to, a program that gets it, or this server, to which others show it.
package sealed

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/crypto/chacha20poly1305"

	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/store"
)

const (
	maxName  = 64
	maxValue = 8 << 10 // bytes
	minTail  = 16      // bytes of a secret of which the last ones may be shown
	tailSize = 4
	version  = "1:" // begins what is sealed; the mark of the key follows, and what it sealed
)

// Purposes that are no host. They are no addresses either, so no host has these names.
const (
	ThisServer = "this-server" // others show the secret to this server, which sends it nowhere
	Program    = "program:"    // begins the purpose of what a program gets; its name follows
	server     = "server:this" // ThisServer as it is kept
	plain      = "http://"     // begins a host that is asked without TLS
)

// Keeper is the table of sealed secrets; [store.Secrets] is one.
type Keeper interface {
	Put(ctx context.Context, s store.Secret) error
	Get(ctx context.Context, name string) (store.Secret, error)
	List(ctx context.Context) ([]store.Secret, error)
	Delete(ctx context.Context, name string) error
}

// Vault keeps secrets, each for one purpose. Its methods may be called at the same time.
type Vault struct {
	Keeper  Keeper
	KeyFile string // made by the first [Vault.Put]
	// Audit keeps who has set or deleted a secret, and why it was not done. nil: nobody does.
	Audit func(ctx context.Context, by, act, name string, outcome error)
}

func (v *Vault) did(ctx context.Context, by, act, name string, outcome error) {
	if v.Audit != nil && goodName(name) {
		v.Audit(ctx, by, act, name, outcome)
	}
}

// Put seals a secret for the host of an address, for [ThisServer] or for a [Program], in the place of the one of its name.
func (v *Vault) Put(ctx context.Context, name, purpose, value, by string) error {
	err := v.put(ctx, name, purpose, value, by)
	v.did(ctx, by, "secret.set", name, err)
	return err
}

func (v *Vault) put(ctx context.Context, name, purpose, value, by string) error {
	bound, err := bind(purpose)
	if err != nil {
		return err
	}
	if !goodName(name) {
		return errors.New(message.Both("sealed/name", name, maxName))
	}
	if value == "" || len(value) > maxValue || strings.ContainsAny(value, "\r\n\x00") {
		return errors.New(message.Both("sealed/value", name, maxValue))
	}
	k, err := v.key()
	if errors.Is(err, fs.ErrNotExist) {
		k, err = v.newKey(ctx)
	}
	if err != nil {
		return err
	}
	s := store.Secret{Name: name, Bound: bound, Sealed: k.seal(name, bound, value), ByID: by}
	if len(value) >= minTail {
		s.Tail = value[len(value)-tailSize:]
	}
	return v.Keeper.Put(ctx, s)
}

// newKey makes the key, unless there are secrets that were sealed with one that is lost.
func (v *Vault) newKey(ctx context.Context) (k key, err error) {
	all, err := v.Keeper.List(ctx)
	if err != nil {
		return k, err
	}
	if len(all) > 0 {
		return k, errors.New(message.Both("sealed/lost-key", v.KeyFile, len(all)))
	}
	err = private.CreateSecret(v.KeyFile, []byte(hex.EncodeToString(random(chacha20poly1305.KeySize))+"\n"))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return k, err
	}
	return v.key()
}

// Open returns a secret for a purpose: for an address that it is sent to, for [ThisServer] or for a [Program]. Another
// one than that it was entered for is refused.
func (v *Vault) Open(ctx context.Context, name, purpose string) (string, error) {
	s, err := v.get(ctx, name)
	if err != nil {
		return "", err
	}
	bound, err := bind(purpose)
	if err != nil {
		return "", err
	}
	if bound != s.Bound {
		return "", errors.New(message.Both("sealed/host", name, Shown(s.Bound), Shown(bound)))
	}
	return v.open(s)
}

// OpenAddress returns a secret that is an address itself. If its host is not that it was entered for, it is refused.
func (v *Vault) OpenAddress(ctx context.Context, name string) (string, error) {
	s, err := v.get(ctx, name)
	if err != nil {
		return "", err
	}
	value, err := v.open(s)
	if err != nil {
		return "", err
	}
	host, err := bind(value)
	if err != nil || !strings.Contains(value, "://") {
		return "", errors.New(message.Both("sealed/no-address", name))
	}
	if host != s.Bound {
		return "", errors.New(message.Both("sealed/host", name, Shown(s.Bound), Shown(host)))
	}
	return value, nil
}

func (v *Vault) get(ctx context.Context, name string) (store.Secret, error) {
	s, err := v.Keeper.Get(ctx, name)
	if !errors.Is(err, store.ErrNotFound) {
		return s, err
	}
	var names []string
	all, err := v.Keeper.List(ctx)
	for _, other := range all {
		names = append(names, other.Name)
	}
	if err == nil && len(names) > 0 {
		return s, errors.New(message.Both("sealed/unknown-near", name, prompts.Nearest(name, names)))
	}
	return s, errors.New(message.Both("sealed/unknown", name))
}

// open opens a row, as it was sealed.
func (v *Vault) open(s store.Secret) (string, error) {
	k, err := v.key()
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New(message.Both("sealed/no-key", v.KeyFile, s.Name))
	}
	if err != nil {
		return "", err
	}
	value, err := k.unseal(s.Name, s.Bound, s.Sealed)
	if errors.Is(err, errOtherKey) {
		return "", errors.New(message.Both("sealed/other-key", s.Name, v.KeyFile))
	}
	if err != nil {
		return "", errors.New(message.Both("sealed/broken", s.Name))
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

// Delete deletes a secret.
func (v *Vault) Delete(ctx context.Context, name, by string) error {
	err := v.Keeper.Delete(ctx, name)
	v.did(ctx, by, "secret.delete", name, err)
	if errors.Is(err, store.ErrNotFound) {
		return errors.New(message.Both("sealed/unknown", name))
	}
	return err
}

// key seals and opens.
type key struct {
	cipher.AEAD

	mark string // tells keys apart, and nothing of this one
}

// key reads the key: [fs.ErrNotExist] if none was made.
func (v *Vault) key() (k key, err error) {
	text, err := private.ReadSecret(v.KeyFile)
	if err != nil {
		return k, err
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(raw) != chacha20poly1305.KeySize {
		return k, errors.New(message.Both("sealed/bad-key", v.KeyFile))
	}
	sum := sha256.Sum256(append([]byte("mark of a key"), raw...))
	k.mark = hex.EncodeToString(sum[:4])
	k.AEAD, err = chacha20poly1305.NewX(raw)
	return k, err
}

// bind returns a purpose as it is kept. Of an address or a bare host that is the host, with its port unless that is the
// usual one, and with its scheme if that is without TLS.
func bind(purpose string) (string, error) {
	if purpose == ThisServer {
		return server, nil
	}
	if name, ok := strings.CutPrefix(purpose, Program); ok && !strings.HasPrefix(name, "//") {
		if name == "" || len(name) > maxValue || strings.ContainsFunc(name, unicode.IsControl) {
			return "", errors.New(message.Both("sealed/no-program"))
		}
		return purpose, nil
	}
	full := purpose
	if !strings.Contains(full, "://") {
		full = "https://" + full
	}
	u, err := url.Parse(full)
	if err != nil || u.Hostname() == "" {
		return "", errors.New(message.Both("sealed/no-host"))
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "http" || u.Scheme == "ws" { // others can read what is sent: that must be meant
		return plain + strings.TrimSuffix(host, ":80"), nil
	}
	return strings.TrimSuffix(host, ":443"), nil
}

// Shown is a purpose as people write it.
func Shown(bound string) string {
	if bound == server {
		return ThisServer
	}
	return bound
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

// context binds a sealed value: it opens under this name and for this purpose only.
func (k key) context(name, bound string) []byte {
	return []byte(version + k.mark + "\x00" + name + "\x00" + bound)
}

func (k key) seal(name, bound, value string) string {
	nonce := random(k.NonceSize())
	return version + k.mark + ":" + base64.RawStdEncoding.EncodeToString(k.Seal(nonce, nonce, []byte(value), k.context(name, bound)))
}

var (
	errBroken   = errors.New("it cannot be opened")
	errOtherKey = errors.New("it was sealed with another key")
)

func (k key) unseal(name, bound, text string) (string, error) {
	text, ours := strings.CutPrefix(text, version)
	mark, text, marked := strings.Cut(text, ":")
	if !ours || !marked {
		return "", errBroken
	}
	if mark != k.mark && len(mark) == len(k.mark) {
		return "", errOtherKey
	}
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(raw) < k.NonceSize() {
		return "", errBroken
	}
	value, err := k.Open(nil, raw[:k.NonceSize()], raw[k.NonceSize():], k.context(name, bound))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errBroken, err)
	}
	return string(value), nil
}
