package providertest

import (
	"context"
	"testing"
	"time"
)

// watchdog ends a test whose provider does not come back. It is far above any
// bound of the contracts: a slow machine must not fail, a stuck one must.
const watchdog = 30 * time.Second

// within runs do and fails the test if it does not come back. Inside a synctest
// bubble the time is the bubble's.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	timer := time.NewTimer(watchdog)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s did not come back", what)
	}
}

// ended returns a context that has ended already.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// wantContextError checks that err is the context's own error, unchanged.
func wantContextError(t *testing.T, err error) {
	t.Helper()
	if err != context.Canceled { //nolint:errorlint // the contract says unchanged
		t.Errorf("after the context has ended: got error %v, want %v", err, context.Canceled)
	}
}
