package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// Cost holds the parameters of a hash. It stands in each hash, so that it may grow.
type Cost struct {
	Memory uint32 // KiB
	Passes uint32
	Lanes  uint8
}

// The least that OWASP's Password Storage Cheat Sheet asks of argon2id: 19 MiB, two passes, one lane.
const (
	costMemory = 19456
	costPasses = 2
	costLanes  = 1
	saltBytes  = 16
	keyBytes   = 32
	maxMemory  = 1 << 20 // KiB; more is no hash of ours
	maxPasses  = 64
)

func strong() Cost { return Cost{costMemory, costPasses, costLanes} }

// hash returns the hash of a password as a PHC string.
func (c Cost) hash(password string) string {
	var salt [saltBytes]byte
	_, _ = rand.Read(salt[:]) // never fails
	return c.encode(salt[:], password)
}

func (c Cost) encode(salt []byte, password string) string {
	key := argon2.IDKey([]byte(password), salt, c.Passes, c.Memory, c.Lanes, keyBytes)
	raw := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.Memory, c.Passes, c.Lanes, raw.EncodeToString(salt), raw.EncodeToString(key))
}

// parse takes a PHC string apart.
func parse(phc string) (c Cost, salt []byte, ok bool) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return c, nil, false
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.Memory, &c.Passes, &c.Lanes); n != 3 || err != nil {
		return c, nil, false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	return c, salt, err == nil && c.Memory > 0 && c.Memory <= maxMemory && c.Passes > 0 && c.Passes <= maxPasses && c.Lanes > 0
}

// matches reports whether a password is that of a hash, which is old if it has another cost than today. An unknown hash
// matches nothing, at the same cost: so nobody learns from the time which names there are.
func (today Cost) matches(phc, password string) (ok, old bool) {
	c, salt, known := parse(phc)
	if !known {
		c, salt = today, make([]byte, saltBytes)
	}
	same := subtle.ConstantTimeCompare([]byte(c.encode(salt, password)), []byte(phc)) == 1
	return same && known, c != today
}

// Limits of passwords, in characters.
const (
	minPassword = 8
	maxPassword = 256
)

//go:embed common.txt
var common string

// CheckPassword says what is wrong with a password for the user of a name. All characters are allowed, and none is asked for.
func CheckPassword(name, password string) error {
	n := utf8.RuneCountInString(password)
	switch small := strings.ToLower(password); {
	case n < minPassword:
		return ErrPasswordShort
	case n > maxPassword:
		return ErrPasswordLong
	case isRun(small), strings.Contains("\n"+common, "\n"+small+"\n"), onlyOf(small, append(ownWords(), strings.ToLower(name))...):
		return ErrPasswordKnown
	}
	return nil
}

// ownWords are words of this program, which strangers try first.
func ownWords() []string {
	const id = "account/own-words"
	return slices.Concat(message.List(text.English, id), message.List(text.Chinese, id))
}

// isRun reports whether each character is the one before it, or its next neighbour, always in the same direction.
func isRun(s string) bool {
	all := []rune(s)
	step := all[1] - all[0]
	if step < -1 || step > 1 {
		return false
	}
	for i := 1; i < len(all); i++ {
		if all[i]-all[i-1] != step {
			return false
		}
	}
	return true
}

// onlyOf reports whether nothing but digits and signs is left of s without the words.
func onlyOf(s string, words ...string) bool {
	for _, w := range words {
		if w != "" {
			s = strings.ReplaceAll(s, w, "")
		}
	}
	return strings.Trim(s, "0123456789!?.-_@#$ ") == ""
}

// Passwords are hashed one after the other: each takes 19 MiB.
const maxWaiting = 8

// hasher limits how many passwords are hashed at a time.
type hasher struct {
	cost            Cost
	working, places chan struct{}
	begun           atomic.Int64 // how many there were
}

func newHasher(c Cost) *hasher {
	return &hasher{cost: cmp.Or(c, strong()), working: make(chan struct{}, 1), places: make(chan struct{}, 1+maxWaiting)}
}

// do runs f when it is its turn. [ErrBusy]: too many wait already.
func (h *hasher) do(ctx context.Context, f func()) error {
	select {
	case h.places <- struct{}{}:
		defer func() { <-h.places }()
	default:
		return ErrBusy
	}
	select {
	case h.working <- struct{}{}:
		defer func() { <-h.working }()
	case <-ctx.Done():
		return ctx.Err()
	}
	h.begun.Add(1)
	f()
	return nil
}
