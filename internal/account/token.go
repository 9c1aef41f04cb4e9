package account

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/store"
)

// Tokens of programs begin so, and people know one again by so many of its first characters.
const (
	tokenPrefix = "xz_"
	tokenHead   = len(tokenPrefix) + 6
	tokenLength = len(tokenPrefix) + 43 // of 256 bits
	maxLabel    = 64                    // characters
	maxRate     = 30                    // requests in a second: a person may send no more
	maxTokens   = 100                   // of one account that are in use
)

// MaxTokenDays bounds the life of a token that ends.
const MaxTokenDays = 3650

// NewToken is a token that is to be made for a program.
type NewToken struct {
	Label   string
	Scopes  []Scope
	Streams []string  // patterns of the groups of tools that it is shown; none: all
	Rate    int       // requests in a second; 0: as many as its person may send
	Ends    time.Time // zero: never
}

// check says what is wrong with a token that is to be made.
func (n NewToken) check(now time.Time) error {
	bad := func(stream string) bool {
		return stream == "" || strings.ContainsAny(stream, " \t\n") || len(stream) > maxLabel
	}
	switch {
	case len(n.Scopes) == 0:
		return ErrScopeUnknown
	case n.Label == "" || len([]rune(n.Label)) > maxLabel || strings.ContainsFunc(n.Label, func(r rune) bool { return r < ' ' }):
		return ErrNameBad
	case n.Rate < 0 || n.Rate > maxRate || len(n.Streams) > maxLabel || slices.ContainsFunc(n.Streams, bad) || !n.Ends.IsZero() && !n.Ends.After(now):
		return ErrTokenBad
	}
	return nil
}

// programs knows the tokens of programs, and whose the devices are that they reach. Its methods may be called at the
// same time.
type programs struct {
	db   *store.Store
	now  func() time.Time
	acts *journal
	uses *uses

	handed func(deviceID string) // nil: nobody is told
}

// NewToken makes a token for a program that acts for somebody, and returns its secret, which nobody can read again.
func (s *programs) NewToken(ctx context.Context, by Actor, name string, n NewToken) (secret string, err error) {
	u, err := named(ctx, s.db.Users, name)
	if err != nil {
		return "", err
	}
	if err := n.check(s.now()); err != nil {
		return "", err
	}
	if old, err := s.db.APITokens.Of(ctx, u.ID); err != nil || used(old, s.now()) >= maxTokens {
		return "", cmpError(err, ErrTokensMany)
	}
	secret, kept := newSecret(tokenPrefix)
	var scopes []string
	for _, scope := range n.Scopes {
		scopes = append(scopes, string(scope))
	}
	err = s.db.APITokens.Add(ctx, store.APIToken{
		ID: store.NewID(), UserID: u.ID, Name: n.Label, Head: secret[:tokenHead], Hash: kept, Scopes: strings.Join(scopes, " "),
		Streams: strings.Join(n.Streams, " "), Rate: n.Rate, CreatedAt: s.now(), EndsAt: n.Ends,
	})
	s.acts.did(ctx, by, "token.add", u.Name+" "+secret[:tokenHead], err)
	return secret, err
}

// cmpError returns err, or else why something is refused.
func cmpError(err, why error) error {
	if err != nil {
		return err
	}
	return why
}

// used counts tokens that are neither revoked nor over.
func used(all []store.APIToken, now time.Time) (n int) {
	for _, t := range all {
		if t.RevokedAt.IsZero() && (t.EndsAt.IsZero() || t.EndsAt.After(now)) {
			n++
		}
	}
	return n
}

// Bearer is a program that acts for a person, by a token.
type Bearer struct {
	Person
	Head    string   // first characters of the token, by which people know it
	Streams []string // patterns of the groups of tools that it is shown; none: all
	Rate    int      // requests in a second; 0: as many as its person may send
	Devices []string // ids of the person's devices, in order

	hash string
}

// Bearer returns who shows the secret of a token, or [ErrNoToken].
func (s *programs) Bearer(ctx context.Context, secret string) (Bearer, error) {
	if !strings.HasPrefix(secret, tokenPrefix) || len(secret) != tokenLength {
		return Bearer{}, ErrNoToken
	}
	b, err := s.bearer(ctx, keep(secret))
	if err == nil {
		s.uses.note(b.id, s.now())
	}
	return b, err
}

// Again returns what the bearer of a token is now, or [ErrNoToken].
func (s *programs) Again(ctx context.Context, b Bearer) (Bearer, error) { return s.bearer(ctx, b.hash) }

func (s *programs) bearer(ctx context.Context, hash string) (b Bearer, err error) {
	t, err := s.db.APITokens.Get(ctx, hash)
	if err != nil {
		return b, orReason(err, store.ErrNotFound, ErrNoToken)
	}
	u, err := s.db.Users.Get(ctx, t.UserID)
	if err != nil || !u.DisabledAt.IsZero() {
		return b, orReason(cmpError(err, ErrNoToken), store.ErrNotFound, ErrNoToken)
	}
	b = Bearer{
		Person: Person{ID: u.ID, Name: u.Name, Shown: u.Shown, Role: u.Role, Scopes: []Scope{}, id: t.ID},
		Head:   t.Head, Streams: strings.Fields(t.Streams), Rate: t.Rate, hash: hash,
	}
	for scope := range strings.FieldsSeq(t.Scopes) {
		b.Scopes = append(b.Scopes, Scope(scope))
	}
	if u.Role == Member {
		b.Devices, err = s.db.Devices.OwnedBy(ctx, u.ID)
	}
	return b, err
}

// Token returns who is acted for by the bearer of a token, or [ErrNoToken].
func (s *programs) Token(ctx context.Context, secret string) (Person, error) {
	b, err := s.Bearer(ctx, secret)
	return b.Person, err
}

// Tokens lists the tokens of somebody, those that have ended too.
func (s *programs) Tokens(ctx context.Context, name string) ([]store.APIToken, error) {
	u, err := named(ctx, s.db.Users, name)
	if err != nil {
		return nil, err
	}
	return s.db.APITokens.Of(ctx, u.ID)
}

// Revoke ends that token of somebody which begins with head.
func (s *programs) Revoke(ctx context.Context, by Actor, name, head string) error {
	all, err := s.Tokens(ctx, name)
	if err != nil {
		return err
	}
	err = ErrNoToken
	for _, t := range all {
		if len(head) >= tokenHead && strings.HasPrefix(head, t.Head) && t.RevokedAt.IsZero() {
			err = orReason(s.db.APITokens.Revoke(ctx, t.ID), store.ErrNotFound, ErrNoToken)
			break
		}
	}
	s.acts.did(ctx, by, "token.revoke", name+" "+head[:min(len(head), tokenHead)], err)
	return err
}

// uses notes when tokens were used, until that is written: requests do not wait for it. Its methods may be called at
// the same time.
type uses struct {
	mu      sync.Mutex
	waiting map[string]time.Time // by id of the token
	written map[string]time.Time
}

// maxUses bounds the tokens whose use is remembered.
const maxUses = 4096

func newUses() *uses { return &uses{waiting: map[string]time.Time{}, written: map[string]time.Time{}} }

// note notes a use. That of a token that was written a moment ago is left out.
func (u *uses) note(id string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.waiting) < maxUses && at.Sub(u.written[id]) >= seenEvery {
		u.waiting[id] = at
	}
}

// take returns what is to be written.
func (u *uses) take() map[string]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.waiting
	u.waiting = map[string]time.Time{}
	if len(u.written)+len(all) > maxUses {
		clear(u.written)
	}
	maps.Copy(u.written, all)
	return all
}

// Run writes when tokens were used, a second later, until ctx ends.
func (s *programs) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.writeUses(ctx)
		case <-ctx.Done():
			s.writeUses(context.WithoutCancel(ctx))
			return
		}
	}
}

func (s *programs) writeUses(ctx context.Context) {
	for id, at := range s.uses.take() {
		if err := s.db.APITokens.Used(ctx, id, at); err != nil {
			s.acts.log.Warn("the use of a token cannot be kept", "err", err)
		}
	}
}

// Give makes a device somebody's.
func (s *programs) Give(ctx context.Context, by Actor, deviceID, name string) error {
	return s.own(ctx, by, "device.give", deviceID, name, func(d *store.Device, userID string) error {
		d.OwnerID = userID
		return nil
	})
}

// Take makes a device of somebody nobody's.
func (s *programs) Take(ctx context.Context, by Actor, deviceID, name string) error {
	return s.own(ctx, by, "device.take", deviceID, name, func(d *store.Device, userID string) error {
		if d.OwnerID != userID {
			return ErrNoDevice
		}
		d.OwnerID = ""
		return nil
	})
}

func (s *programs) own(ctx context.Context, by Actor, act, deviceID, name string, f func(d *store.Device, userID string) error) error {
	u, err := named(ctx, s.db.Users, name)
	if err == nil {
		changed := false
		_, err = s.db.Devices.Edit(ctx, deviceID, func(d *store.Device) error {
			before := d.OwnerID
			err := f(d, u.ID)
			changed = d.OwnerID != before
			return err
		})
		if err == nil && changed && s.handed != nil {
			s.handed(deviceID)
		}
	}
	err = orReason(err, store.ErrNotFound, ErrNoDevice)
	s.acts.did(ctx, by, act, deviceID+" "+name, err)
	return err
}

// Devices lists the ids of somebody's devices, in order.
func (s *programs) Devices(ctx context.Context, name string) ([]string, error) {
	u, err := named(ctx, s.db.Users, name)
	if err != nil {
		return nil, err
	}
	return s.db.Devices.OwnedBy(ctx, u.ID)
}
