package request_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"xiaozhi/connection/request"
	"xiaozhi/internal/lockout"
)

// TestSharedTokenGuesses: whoever guesses the token that all devices share is not
// listened to any more, while those that have shown it go on; a minute later it is.
func TestSharedTokenGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rd, err := request.New(request.Options{Auth: request.Auth{Enabled: true, Token: "the-right-token-of-all"}})
		if err != nil {
			t.Fatal(err)
		}
		show := func(from, token string) error {
			r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", nil)
			r.RemoteAddr = from + ":5000"
			r.Header.Set("Device-Id", "aa:bb:cc:00:11:22")
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			p, err := rd.Identify(r)
			if err != nil || p.Shared != (p.Unauthorized == nil) {
				t.Errorf("%v, shared %v, %v", err, p.Shared, p.Unauthorized)
			}
			return p.Unauthorized
		}
		const speaker, attacker = "192.168.1.40", "192.168.1.66"
		want := func(what string, got, want error) {
			t.Helper()
			if !errors.Is(got, want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}
		want("the right one", show(speaker, "the-right-token-of-all"), nil)
		for range lockout.MaxGuesses {
			want("a guess", show(attacker, "a-guess-of-a-token"), request.ErrWrongToken)
			want("a guess there", show(speaker, "a-guess-of-a-token"), request.ErrWrongToken)
		}
		want("one guess more", show(attacker, "a-guess-of-a-token"), request.ErrGuessing)
		want("the right one among guesses", show(attacker, "the-right-token-of-all"), request.ErrGuessing)
		want("none", show(attacker, ""), request.ErrNoToken)
		want("the right one of who has shown it", show(speaker, "the-right-token-of-all"), nil)
	})
}
