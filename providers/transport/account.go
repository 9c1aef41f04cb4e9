// Package transport holds what all clients of services share below their own protocols:
// the HTTP client, WebSockets, time limits, refusals, the clock that requests are signed
// with, and the errors that leave a provider.
package transport

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// ErrStalled is the cause of a request that was ended because the server gave nothing in time.
var ErrStalled = errors.New("the server gave nothing in time")

// Account is the name of a provider and the secrets that none of its errors may show. It
// may be used by any number of goroutines at once.
type Account struct {
	Name    string
	Secrets []providers.Secret
	Careful bool // no address is asked at which machines find their own settings: people typed where the service is
}

// Wrap makes the error that leaves a provider: ctx's own error unchanged when ctx has
// ended, else a [*providers.Error]. reqCtx is the request's own context, whose cause
// tells a stall from a hang-up; it may be ctx.
func (a Account) Wrap(ctx, reqCtx context.Context, op string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if failed, ok := errors.AsType[*providers.Error](err); ok {
		return failed
	}
	if errors.Is(context.Cause(reqCtx), ErrStalled) {
		err = ErrStalled
	}
	kind := providers.Unavailable
	if errors.Is(err, providers.ErrLanguage) || errors.Is(err, errNotAsked) {
		kind = providers.BadRequest
	}
	if refused, ok := errors.AsType[*Refusal](err); ok {
		kind = refused.Kind
		clean := *refused
		clean.Text, clean.Code, clean.LogID = a.Clean(refused.Text), a.Clean(refused.Code), a.Clean(refused.LogID)
		err = &clean
	} else if dialed, ok := errors.AsType[*url.Error](err); ok {
		err = dialed.Err // the URL may hold a key
	}
	if clean := a.Clean(err.Error()); clean != err.Error() { // it shows a secret or is too long
		err = errors.New(clean)
	}
	return &providers.Error{Provider: a.Name, Op: op, Kind: kind, Err: err}
}

// errNotAsked is a part of errors that say why nothing can be asked at all.
var errNotAsked = errors.New("the request cannot be made")

// NotAsked makes the error of a request that cannot be made from what is asked and set; nil is none.
func NotAsked(err error) error {
	if providers.LacksLanguage(err) {
		return err // which says it all, and is not to be taken for another failure
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotAsked, err)
}

// MayPass reports whether a failure may be over soon: it is no refusal for good, and no time
// limit that is used up.
func MayPass(err error) bool {
	if refused, ok := errors.AsType[*Refusal](err); ok {
		return refused.Kind == providers.Unavailable
	}
	return err != nil && !errors.Is(err, ErrStalled) && !errors.Is(err, errNotAsked)
}

// Wait waits for d. It reports false if the context ends before.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Again makes a request up to so many times, at least once, as long as another try may do better: not after a refusal
// for a reason, nor when time is over.
func Again[T any](ctx context.Context, tries int, ask func() (T, error)) (got T, err error) {
	for {
		if got, err = ask(); err == nil {
			return got, nil
		}
		refused, ok := errors.AsType[*Refusal](err)
		if tries--; tries < 1 || ctx.Err() != nil || errors.Is(err, ErrStalled) || ok && refused.Kind != providers.Unavailable {
			return got, err
		}
	}
}

// Clean returns words as one line of valid text, without secrets and not too long.
func (a Account) Clean(words string) string {
	var shown []string
	for _, secret := range a.Secrets {
		if plain := secret.Reveal(); plain != "" {
			shown = append(shown, plain, url.QueryEscape(plain), url.PathEscape(plain))
		}
	}
	slices.SortFunc(shown, func(a, b string) int { return len(b) - len(a) }) // one may begin another
	for _, s := range shown {
		words = strings.ReplaceAll(words, s, "***")
	}
	return text.Cut(strings.Join(strings.Fields(strings.ToValidUTF8(words, "?")), " "), MaxErrorText)
}
