package devices

import (
	"context"
	"fmt"
	"html"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

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

// TestDevicesInPages: fifty devices stand on a page, each on one only, those that are connected first; who waits stands on the first,
// and a page that nobody has offered is refused.
func TestDevicesInPages(t *testing.T) {
	site, err := ui.New(ui.Options{Files: []fs.FS{Files}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	var all folk
	for i := range 130 {
		d := fleet.Device{ID: fmt.Sprintf("aa:%03d", i), State: fleet.Asleep, Seen: at.Add(time.Duration(i%7) * time.Minute)}
		if i%13 == 0 {
			d.State = fleet.Idle
		}
		all = append(all, d)
	}
	for i := range 60 {
		all = append(all, fleet.Device{ID: fmt.Sprintf("bb:%03d", i), State: fleet.Waiting})
	}
	p := New(site, access.Door{}, Options{ID: strings.ToLower, Fleet: all})
	look := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		p.list(w, access.As(httptest.NewRequest(http.MethodGet, path, nil), account.Person{ID: "o", Role: account.Owner}), nil)
		return w
	}
	seen, pages := map[string]bool{}, 0
	for next := "/console/devices"; next != ""; pages++ {
		body := look(next).Body.String()
		if waiting := strings.Count(body, `value="bb:`); waiting != map[bool]int{true: 50, false: 0}[pages == 0] || (pages == 0) != strings.Contains(body, "And 10 more are waiting.") {
			t.Errorf("page %d shows %d that wait", pages, waiting)
		}
		if live := strings.Contains(body, `data-topic="devices"`); live != (pages == 0) {
			t.Errorf("page %d is live: %t", pages, live)
		}
		for n, found := range regexp.MustCompile(`<a href="/console/devices/(aa:\d+)"`).FindAllStringSubmatch(body, -1) {
			var i int
			_, _ = fmt.Sscanf(found[1], "aa:%d", &i)
			if seen[found[1]] || (i%13 == 0) != (pages == 0 && n < 10) {
				t.Errorf("%s is number %d of page %d", found[1], n, pages)
			}
			seen[found[1]] = true
		}
		link := regexp.MustCompile(`href="([^"]*after=[^"]*)"`).FindStringSubmatch(body)
		if next = ""; link != nil {
			next = html.UnescapeString(link[1])
		}
	}
	if len(seen) != 130 || pages != 3 {
		t.Errorf("%d devices on %d pages", len(seen), pages)
	}
	for _, odd := range []string{"x", "c", "c1", "o.aa:001", "cé.1", "%00"} {
		if w := look("/console/devices?after=" + odd); w.Code != http.StatusBadRequest {
			t.Errorf("after=%s: %d", odd, w.Code)
		}
	}
}
