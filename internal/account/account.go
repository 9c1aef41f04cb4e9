// Package account knows the people who use the server, and the programs that act for them: accounts, logins, tokens,
// invitations, and the record of what they did.
//
// What people may do is decided by pure functions; what they are is read from the store at each request. So a change
// by another process, such as the command xiaozhi user, counts at once.
package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

// ReasonError says why something is refused. Its value is the id of the message for people.
type ReasonError string

// The reasons.
const (
	ErrBadLogin      ReasonError = "account/bad-login" // unknown name, wrong password, disabled account, wrong code
	ErrBusy          ReasonError = "account/busy"
	ErrNoSession     ReasonError = "account/no-session"
	ErrForbidden     ReasonError = "account/forbidden"
	ErrOrigin        ReasonError = "account/origin" // with the cookie of a session
	ErrProveAgain    ReasonError = "account/prove-again"
	ErrLastOwner     ReasonError = "account/last-owner"
	ErrNoUser        ReasonError = "account/no-user"
	ErrNameTaken     ReasonError = "account/name-taken"
	ErrNameBad       ReasonError = "account/name-bad"
	ErrRoleUnknown   ReasonError = "account/role-unknown"
	ErrScopeUnknown  ReasonError = "account/scope-unknown"
	ErrPasswordShort ReasonError = "account/password-short"
	ErrPasswordLong  ReasonError = "account/password-long"
	ErrPasswordKnown ReasonError = "account/password-known"
	ErrHasOwner      ReasonError = "account/has-owner"
	ErrNoInvite      ReasonError = "account/no-invite"
	ErrNoToken       ReasonError = "account/no-token"
	ErrNoDevice      ReasonError = "account/no-device"
	ErrNoTalk        ReasonError = "account/no-talk"
	ErrTokenBad      ReasonError = "account/token-bad"
	ErrTokensMany    ReasonError = "account/tokens-many"
	ErrCodeNeeded    ReasonError = "account/code-needed" // the password was right
	ErrHasFactor     ReasonError = "account/has-factor"
	ErrNoSealer      ReasonError = "account/no-sealer"
	ErrPageBad       ReasonError = "account/page-bad"
	ErrOwnAccount    ReasonError = "account/own-account"
)

// Error says it in both languages.
func (r ReasonError) Error() string { return message.Both(string(r)) }

// TooOftenError says how long to wait before the next guess.
type TooOftenError struct{ Wait time.Duration }

// Error says it in both languages.
func (e *TooOftenError) Error() string {
	return message.Both("account/too-often", e.Wait.Round(time.Second)/time.Second+1)
}

// Actor does something that the audit keeps.
type Actor struct {
	Name   string
	Via    string // console, token, command
	Remote string
}

// Options configure a [Service].
type Options struct {
	Store *store.Store
	Cost  Cost             // of passwords' hashes; zero: 19 MiB, two passes
	Seal  Sealer           // of second factors; nil: none can be added or used
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: nothing is logged
	// Handed is called with the id of a device that has become somebody else's, or nobody's. nil: nobody is told.
	Handed func(deviceID string)
}

// Service lets people in. Its methods may be called at the same time, beside those of other processes.
type Service struct {
	*journal
	*programs
	*factors

	db      *store.Store
	now     func() time.Time
	log     *slog.Logger
	hasher  *hasher
	guesses *guesses
	setup   string // code that makes the first owner

	mu    sync.Mutex
	owned bool      // somebody owns the server, which stays so
	asked time.Time // owned was read
}

// New returns a service with a new setup code.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	j := &journal{audit: o.Store.Audit, now: o.Now, log: o.Log, noise: newNoise()}
	g := newGuesses(o.Now)
	return &Service{
		journal: j, programs: &programs{db: o.Store, now: o.Now, acts: j, uses: newUses(), handed: o.Handed},
		factors: &factors{users: o.Store.Users, now: o.Now, acts: j, guesses: g, seal: o.Seal, enrolled: lru.New[string, enrolling](maxEnrols, 0)},
		db:      o.Store, now: o.Now, log: o.Log, hasher: newHasher(o.Cost), guesses: g, setup: setupCode(),
	}
}

// setupBytes are the 40 bits of a setup code.
const setupBytes = 5

func setupCode() string {
	var b [setupBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// SetupCode is the code by which somebody becomes the first owner; "" once there is one.
func (s *Service) SetupCode(ctx context.Context) string {
	if s.HasOwner(ctx) {
		return ""
	}
	return s.setup
}

// ownerAge is how old the answer of [Service.HasOwner] may be.
const ownerAge = time.Second

// ownerWait limits how long a device waits for a disk.
const ownerWait = time.Second

// HasOwner reports whether somebody owns the server, as of a second ago at most. If the store does not answer, what
// was known last holds.
func (s *Service) HasOwner(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.owned || !s.asked.IsZero() && now.Sub(s.asked) < ownerAge && !now.Before(s.asked) {
		return s.owned
	}
	ctx, stop := context.WithTimeout(ctx, ownerWait)
	defer stop()
	owned, err := s.db.Users.HasOwner(ctx)
	if err != nil {
		s.log.Warn("accounts cannot be read", "err", err)
		s.asked = now
		return s.owned
	}
	s.owned, s.asked = owned, now
	return s.owned
}

// secretBytes are the 256 bits of a cookie, token or invitation.
const secretBytes = 32

// newSecret returns what somebody is given, and what is kept of it.
func newSecret(prefix string) (secret, kept string) {
	var b [secretBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	secret = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	return secret, keep(secret)
}

// keep hashes a secret for the store. A secret has too many bits to be guessed, so its hash needs no salt.
func keep(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// reasonOf returns why something was refused; "" if it failed.
func reasonOf(err error) ReasonError {
	r, _ := errors.AsType[ReasonError](err)
	return r
}

// orReason puts a reason in the place of an error of the store.
func orReason(err, of error, why ReasonError) error {
	if errors.Is(err, of) {
		return why
	}
	return err
}
