package account

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"xiaozhi/store"
)

// sealer seals by a key of the test.
type sealer struct{ cipher.AEAD }

func testSealer() sealer {
	block, err := aes.NewCipher([]byte("0123456789abcdef"))
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return sealer{gcm}
}

func (s sealer) Seal(_ context.Context, name, value string) (string, error) {
	return hex.EncodeToString(s.AEAD.Seal(nil, nil, []byte(value), []byte(name))), nil
}

func (s sealer) Unseal(name, text string) (string, error) {
	raw, err := hex.DecodeString(text)
	if err != nil {
		return "", err
	}
	value, err := s.Open(nil, nil, raw, []byte(name))
	return string(value), err
}

// TestCodes: the vectors of RFC 6238 appendix B, for SHA-1, with eight digits as there.
func TestCodes(t *testing.T) {
	secret := []byte("12345678901234567890")
	for at, want := range map[int64]string{
		59: "94287082", 1111111109: "07081804", 1111111111: "14050471", 1234567890: "89005924", 2000000000: "69279037", 20000000000: "65353130",
	} {
		if got := codeAt(secret, stepOf(time.Unix(at, 0)), 8); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}

// TestCodeOnce: a code counts for its step and the ones beside it, once, and none that is older than one that was used.
func TestCodeOnce(t *testing.T) {
	now := time.Unix(2000000000, 0)
	for _, c := range []struct {
		name   string
		used   int64 // steps from now that were used before
		of     int64 // whose code is shown
		digits int
		want   bool
	}{
		{"its own", -9, 0, 6, true}, {"one late", -9, -1, 6, true}, {"one early", -9, 1, 6, true}, {"two late", -9, -2, 6, false}, {"two early", -9, 2, 6, false},
		{"twice", 0, 0, 6, false}, {"an older one", 0, -1, 6, false}, {"the next one", 0, 1, 6, true}, {"after an early one", 1, 0, 6, false},
		{"too long", -9, 0, 8, false}, {"too short", -9, 0, 5, false},
	} {
		f, _ := newFactor()
		f.Step = stepOf(now) + c.used
		if got := f.use(codeAt(f.Secret, stepOf(now)+c.of, c.digits), now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	f, recovery := newFactor()
	if len(recovery) != recoveryCodes || f.use("", now) || f.use("aaaa-aaaa-aaaa-aaaa-aaaa-aaaa", now) {
		t.Error("recovery codes")
	}
	if !f.use(strings.ToUpper(recovery[3]), now) || f.use(recovery[3], now) || !f.use(recovery[4], now) {
		t.Error("a recovery code counts once")
	}
}

// enrolled is a rig whose owner has a second factor.
func enrolled(t *testing.T) (r *rig, f factor, recovery []string) {
	t.Helper()
	r = newRig(t).owner()
	ann, err := r.Session(t.Context(), r.login("ann"))
	r.must(err)
	r.want(r.Confirm(t.Context(), ann, "000000", r.from), ErrBadLogin)
	e, err := r.Enrol(t.Context(), ann)
	r.must(err)
	f.Secret, err = plainBase32().DecodeString(e.Secret)
	r.must(err)
	if !strings.HasPrefix(e.Address, "otpauth://totp/xiaozhi:ann?secret="+e.Secret) {
		t.Error(e.Address)
	}
	r.must(func() error { _, err := r.Login(t.Context(), "ann", Proof{Password: good}, r.from); return err }()) // it does not count yet
	r.want(r.Confirm(t.Context(), ann, e.Recovery[0], r.from), ErrBadLogin)
	if again, ok := r.Enrolling(ann); !ok || again.Secret != e.Secret || len(again.Recovery) != len(e.Recovery) {
		t.Error("after a wrong code the phone must be set up anew")
	}
	code := r.code(f, 0)
	r.must(r.Confirm(t.Context(), ann, code[:3]+" "+code[3:], r.from)) // as apps show it
	if _, ok := r.Enrolling(ann); ok {
		t.Error("it is shown although it counts")
	}
	_, err = r.Enrol(t.Context(), ann)
	r.want(err, ErrHasFactor)
	return r, f, e.Recovery
}

func (r *rig) code(f factor, later int64) string {
	return codeAt(f.Secret, stepOf(r.clock)+later, codeDigits)
}

// TestSecondFactor: who has one shows a code beside the password, at login and when the password is asked again, each
// once; nobody learns of it without the password.
func TestSecondFactor(t *testing.T) {
	r, f, recovery := enrolled(t)
	ctx := t.Context()
	login := func(password, code string) (string, error) {
		return r.Login(ctx, "ann", Proof{password, code}, r.from)
	}
	_, err := login("wrong password", "")
	r.want(err, ErrBadLogin)
	_, err = login(good, "")
	r.want(err, ErrCodeNeeded)
	_, err = login(good, r.code(f, 0)) // it was used to confirm
	r.want(err, ErrBadLogin)
	r.clock = r.clock.Add(codeStep)
	code := r.code(f, 0)
	secret, err := login(good, code)
	r.must(err)
	_, err = login(good, code)
	r.want(err, ErrBadLogin)
	_, err = login(good, recovery[0])
	r.must(err)
	_, err = login(good, recovery[0])
	r.want(err, ErrBadLogin)
	p, err := r.Session(ctx, secret)
	r.must(err)
	_, err = r.Prove(ctx, p, Proof{Password: good}, r.from)
	r.want(err, ErrCodeNeeded)
	r.clock = r.clock.Add(codeStep)
	_, err = r.Prove(ctx, p, Proof{good, r.code(f, 0)}, r.from)
	r.must(err)
	r.must(r.Unfactor(ctx, command(), "ann"))
	_, err = login(good, "")
	r.must(err)
}

// TestCodeGuesses: who has the password guesses few codes, from however many addresses.
func TestCodeGuesses(t *testing.T) {
	r, f, _ := enrolled(t)
	looked := 0
	for i := range 100 {
		from := r.from
		for range i {
			from.Remote = from.Remote.Next()
		}
		_, err := r.Login(t.Context(), "ann", Proof{good, fmt.Sprintf("%06d", i)}, from)
		if errors.Is(err, ErrBadLogin) {
			looked++
		} else if _, ok := errors.AsType[*TooOftenError](err); !ok {
			t.Fatal(err)
		}
		r.clock = r.clock.Add(600 * time.Millisecond)
	}
	if looked > 11 {
		t.Errorf("%d codes were looked at in a minute", looked)
	}
	r.clock = r.clock.Add(2 * time.Minute)
	_, err := r.Login(t.Context(), "ann", Proof{good, r.code(f, 0)}, r.from)
	r.must(err)
}

// TestFactorIsSealed: neither what the phone has nor a recovery code stands in the store, a log, or the audit.
func TestFactorIsSealed(t *testing.T) {
	r, f, recovery := enrolled(t)
	u, err := r.db.Users.Named(t.Context(), "ann")
	r.must(err)
	acts, err := r.db.Audit.List(t.Context(), store.Page{})
	r.must(err)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "factor", f, "user", fmt.Sprintf("%v %+v", f, &f))
	kept := u.TOTP + log.String() + fmt.Sprint(acts)
	for _, planted := range append(recovery, string(f.Secret), plainBase32().EncodeToString(f.Secret), keep(recovery[0])) {
		if strings.Contains(kept, planted) || strings.Contains(kept, fmt.Sprintf("%d", []byte(planted))) {
			t.Errorf("%q is to be read in %s", planted, kept)
		}
	}
	other := New(Options{Store: r.db, Now: r.now, Cost: testCost()})
	if _, err := other.Login(t.Context(), "ann", Proof{good, r.code(f, 1)}, r.from); !errors.Is(err, ErrNoSealer) {
		t.Errorf("without the key: %v", err)
	}
}
