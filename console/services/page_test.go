package services

import (
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/console/ui"
	kit "xiaozhi/internal/services"
	"xiaozhi/providers/service"
)

// TestLastFailure: a service that works again is not said to fail: its last failure has its time. One that is left alone says why.
func TestLastFailure(t *testing.T) {
	site, err := ui.New(ui.Options{Files: []fs.FS{Files}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/console/services", nil)
	for _, test := range []struct {
		condition kit.Condition
		past      bool
		says      string
	}{
		{kit.Ready, true, "last failure · <time"},
		{kit.Resting, false, `<p class="small">The key is wrong</p>`},
	} {
		m := member{Member: kit.Member{Name: "cloud", Condition: test.condition, Failed: time.Now().Add(-5 * time.Minute)}, Why: "The key is wrong", Past: past(test.condition)}
		html, err := site.Fragment(r, "services-chains", state{Chains: []chain{{Chain: kit.Chain{Role: service.TTS}, Members: []member{m}}}})
		if err != nil || !strings.Contains(html, test.says) || strings.Contains(html, "last failure") != test.past {
			t.Errorf("%s: %v\n%s", test.condition, err, html)
		}
	}
}
