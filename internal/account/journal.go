package account

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/text"
	"xiaozhi/store"
)

// journal keeps what people and programs did, in the audit and in the log. Its methods may be called at the same time.
type journal struct {
	audit *store.Audit
	now   func() time.Time
	log   *slog.Logger
	noise noise

	mu      sync.Mutex
	quiet   int       // acts that were not kept since the last one that was
	trimmed time.Time // the audit was looked at
}

// Did keeps in the audit, and in the log, what somebody did elsewhere, and whether it was done.
func (j *journal) Did(ctx context.Context, by Actor, act, object string, outcome error) {
	j.did(ctx, by, act, object, outcome)
}

// did keeps what somebody did, and whether it was done, in the audit and in the log. What was done stays done if that
// cannot be kept.
func (j *journal) did(ctx context.Context, by Actor, act, object string, outcome error) {
	by.Name, object = text.Cut(by.Name, maxObject), text.Cut(object, maxObject)
	e := store.Act{At: j.now(), Who: by.Name, Via: by.Via, Remote: by.Remote, Act: act, Object: object, OK: outcome == nil}
	if outcome != nil {
		e.Detail = string(reasonOf(outcome))
	}
	quiet, ok := j.tells(outcome)
	if !ok {
		return
	}
	if quiet > 0 {
		e.Detail = strings.TrimSpace(e.Detail + " suppressed=" + strconv.Itoa(quiet))
	}
	j.log.Info("account", "act", act, "who", by.Name, "via", by.Via, "remote", by.Remote, "object", object, "ok", e.OK, "why", e.Detail)
	if err := j.audit.Add(context.WithoutCancel(ctx), e); err != nil {
		j.log.Error("the audit cannot be written", "act", act, "err", err)
	}
	j.trim(context.WithoutCancel(ctx))
}

// maxObject limits what is kept of names that somebody has typed, in bytes. Names of accounts and ids of devices fit.
const maxObject = 300

// What was not done is kept so often, so that nobody fills the disk with it; the next line says how many were left out.
const (
	noiseRate  = rate.Limit(0.1)
	noiseBurst = 20  // guesses that were not looked at
	failBurst  = 200 // those that were wrong, and what is not for who asks, each
)

// noise limits what is kept of acts that were not done.
type noise struct{ unseen, wrong, refused *rate.Limiter }

func newNoise() noise {
	return noise{rate.NewLimiter(noiseRate, noiseBurst), rate.NewLimiter(noiseRate, failBurst), rate.NewLimiter(noiseRate, failBurst)}
}

// of returns the limit of an outcome; nil: there is none.
func (n noise) of(outcome error) *rate.Limiter {
	if _, often := errors.AsType[*TooOftenError](outcome); often || errors.Is(outcome, ErrBusy) {
		return n.unseen
	}
	switch reasonOf(outcome) {
	case ErrBadLogin, ErrCodeNeeded, ErrNoInvite, ErrNoToken:
		return n.wrong
	case ErrForbidden:
		return n.refused
	default:
		return nil
	}
}

// tells reports whether an act is to be kept, and how many were not since the last one.
func (j *journal) tells(outcome error) (quiet int, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if limit := j.noise.of(outcome); limit != nil && !limit.AllowN(j.now(), 1) {
		j.quiet++
		return 0, false
	}
	quiet, j.quiet = j.quiet, 0
	return quiet, true
}

// The audit is kept for a year. It is looked at once a day, when something is added.
const (
	auditTime = 365 * 24 * time.Hour
	trimEvery = 24 * time.Hour
)

// trim deletes what is too old of the audit.
func (j *journal) trim(ctx context.Context) {
	j.mu.Lock()
	now := j.now()
	due := now.Sub(j.trimmed) >= trimEvery
	if due {
		j.trimmed = now
	}
	j.mu.Unlock()
	if !due {
		return
	}
	if _, err := j.audit.Trim(ctx, now.Add(-auditTime)); err != nil {
		j.log.Warn("the audit keeps what is too old", "err", err)
	}
}
