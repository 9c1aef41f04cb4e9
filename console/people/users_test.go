package people

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"xiaozhi/internal/access"
)

// TestBase: who is invited through a proxy that has the certificate gets the address of that.
func TestBase(t *testing.T) {
	proxied := func(r *http.Request) bool { return r.Header.Get("X-Forwarded-Proto") == "https" }
	p := New(nil, access.Door{Guard: access.New(access.Options{Secure: proxied})}, Options{})
	r := httptest.NewRequest(http.MethodPost, "http://xiaozhi.example/console/users", nil)
	if got := p.base(r); got != "http://xiaozhi.example" {
		t.Error(got)
	}
	r.Header.Set("X-Forwarded-Proto", "https")
	if got := p.base(r); got != "https://xiaozhi.example" {
		t.Error(got)
	}
}
