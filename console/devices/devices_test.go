package devices

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/fleet"
)

// folk is a fleet of given devices.
type folk []fleet.Device

func (f folk) List(context.Context) ([]fleet.Device, error) { return f, nil }

func (f folk) Get(context.Context, string) (fleet.Device, bool, error) {
	return fleet.Device{}, false, nil
}

// TestWhoKnowsDevices: owners see all devices by name and address, members their own, viewers how many there are in each
// state and nothing else: what the routes for programs tell, too.
func TestWhoKnowsDevices(t *testing.T) {
	const annas, bens, waits = "aa:00:00:00:00:01", "bb:00:00:00:00:02", "cc:00:00:00:00:03"
	site, err := ui.New(ui.Options{Files: []fs.FS{Files}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p := New(site, access.Door{}, Options{ID: strings.ToLower, Fleet: folk{
		{ID: annas, Name: "annas room", Owner: "a", State: fleet.Asleep, From: "192.168.1.7"},
		{ID: bens, Name: "bens room", Owner: "b", State: fleet.Asleep},
		{ID: waits, Board: "a box", State: fleet.Waiting, Code: "123456"},
	}})
	for _, one := range []struct {
		who         account.Person
		sees, lacks []string
	}{
		{account.Person{ID: "o", Name: "olga", Role: account.Owner}, []string{annas, "annas room", bens, waits, "123456"}, []string{"by state"}},
		{account.Person{ID: "a", Name: "anna", Role: account.Member}, []string{annas, "annas room"}, []string{bens, "bens", waits, "123456"}},
		{account.Person{ID: "v", Name: "vera", Role: account.Viewer}, []string{"by state", `<span class="num">2</span>`, "Asleep", "Waiting for pairing"}, []string{annas, "annas", bens, "bens", waits, "a box", "123456", "192.168.1.7", "search"}},
		{account.Person{ID: "a", Name: "anna", Role: account.Viewer}, []string{"by state"}, []string{annas, "annas"}},
	} {
		for _, query := range []string{"", "?q=" + annas, "?q=room"} {
			r := httptest.NewRequest(http.MethodGet, "/console/devices"+query, nil)
			w := httptest.NewRecorder()
			p.list(w, access.As(r, one.who), nil)
			_, body, _ := strings.Cut(w.Body.String(), "<main")
			for _, want := range one.sees {
				if query == "" && !strings.Contains(body, want) {
					t.Errorf("%s does not see %q:\n%s", one.who.Name, want, body)
				}
			}
			for _, never := range one.lacks {
				if strings.Contains(body, never) && !(query != "" && one.who.Role == account.Owner) {
					t.Errorf("%s sees %q at %q:\n%s", one.who.Name, never, query, body)
				}
			}
		}
	}
}
