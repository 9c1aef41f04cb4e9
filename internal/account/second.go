package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"xiaozhi/internal/lru"
	"xiaozhi/store"
)

// Sealer seals what is kept of second factors, each under a name.
type Sealer interface {
	Seal(ctx context.Context, name, value string) (string, error)
	Unseal(name, text string) (string, error)
}

// Proof holds the secrets by which somebody shows who they are.
type Proof struct {
	Password string
	Code     string // of the second factor, or for recovery; "" where there is none
}

// enrolTime limits the wait of a second factor for its first code.
const (
	enrolTime = 10 * time.Minute
	maxEnrols = 256 // that wait
)

// enrolling is a second factor that has not shown a code yet. It is kept in memory only.
type enrolling struct {
	factor factor
	shown  Enrolment
	ends   time.Time
}

// factors knows the second factors of people. Its methods may be called at the same time.
type factors struct {
	users    *store.Users
	now      func() time.Time
	acts     *journal
	guesses  *guesses
	seal     Sealer
	enrolled *lru.Cache[string, enrolling] // to be, by user
}

// Enrolment holds the secrets for a phone and its loss. It is shown until it counts.
type Enrolment struct {
	Address  string   `json:"address"`  // otpauth://…, for a picture
	Secret   string   `json:"secret"`   // the same, to be typed
	Recovery []string `json:"recovery"` // codes for who has lost the phone, each for once
}

func factorName(u string) string { return "totp." + u }

// Enrol begins a second factor for a person, which counts once it has shown a code by [Service.Confirm].
func (s *factors) Enrol(ctx context.Context, p Person) (e Enrolment, err error) {
	u, err := s.users.Get(ctx, p.ID)
	switch {
	case err != nil:
		return e, orReason(err, store.ErrNotFound, ErrNoUser)
	case u.TOTP != "":
		return e, ErrHasFactor
	case s.seal == nil:
		return e, ErrNoSealer
	}
	f, recovery := newFactor()
	e = Enrolment{f.address(u.Name), plainBase32().EncodeToString(f.Secret), recovery}
	s.enrolled.Put(u.ID, enrolling{f, e, s.now().Add(enrolTime)}, 0)
	return e, nil
}

// Enrolling returns the second factor of a person that waits for its first code. false: none does.
func (s *factors) Enrolling(p Person) (Enrolment, bool) {
	e, ok := s.enrolled.Get(p.ID)
	return e.shown, ok && s.now().Before(e.ends)
}

// Confirm makes a second factor count that shows its first code.
func (s *factors) Confirm(ctx context.Context, p Person, code string, from Origin) error {
	code = strings.ReplaceAll(code, " ", "") // as apps show it
	err := s.guesses.code(p.ID, func() (bool, error) {
		e, ok := s.enrolled.Get(p.ID)
		if !ok || !s.now().Before(e.ends) || len(code) != codeDigits || !e.factor.use(code, s.now()) {
			return false, nil
		}
		return true, s.confirm(ctx, p, e.factor)
	})
	s.acts.did(ctx, p.Actor(from.Remote.String()), "totp.on", p.Name, err)
	return err
}

// confirm keeps a second factor, unless there is one.
func (s *factors) confirm(ctx context.Context, p Person, f factor) error {
	sealed, err := s.seal.Seal(ctx, factorName(p.ID), f.encode())
	if err != nil {
		return err
	}
	_, err = s.users.Edit(ctx, p.ID, func(u *store.User) error {
		if u.TOTP != "" {
			return ErrHasFactor
		}
		u.TOTP = sealed
		return nil
	})
	if err == nil {
		s.enrolled.Remove(p.ID)
	}
	return orReason(err, store.ErrNotFound, ErrNoUser)
}

// second checks the second factor of somebody whose password was right, and uses the code up. [ErrCodeNeeded]: they have one,
// and showed no code. Wrong codes count for the account wherever they come from: who tries has its password.
func (s *factors) second(ctx context.Context, u store.User, code string) (bool, error) {
	switch {
	case u.TOTP == "":
		return true, nil
	case code == "":
		return false, ErrCodeNeeded
	case s.seal == nil:
		return false, ErrNoSealer
	}
	err := s.guesses.code(u.ID, func() (bool, error) {
		_, err := s.users.Edit(ctx, u.ID, func(now *store.User) error { return s.use(ctx, now, code) })
		if errors.Is(err, ErrBadLogin) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, ErrBadLogin) {
		return false, nil
	}
	return err == nil, err
}

// use uses a code up in what is kept of a user.
func (s *factors) use(ctx context.Context, u *store.User, code string) error {
	text, err := s.seal.Unseal(factorName(u.ID), u.TOTP)
	if err != nil {
		return err
	}
	f, err := decodeFactor(text)
	if err != nil {
		return err
	}
	if !f.use(code, s.now()) {
		return ErrBadLogin
	}
	u.TOTP, err = s.seal.Seal(ctx, factorName(u.ID), f.encode())
	return err
}
