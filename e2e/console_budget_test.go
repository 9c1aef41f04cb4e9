package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"

	"xiaozhi/internal/browsertest"
)

// weight is what a page asks for when nothing of it is in the browser, and when it was looked at before.
type weight struct {
	html, css, script int64    // bytes, unpacked
	cold, warm        int      // requests, without the stream of what changes
	again             []string // what was asked for although it had come before
}

// weigh opens a page twice, and leaves it open.
func weigh(tab *browsertest.Tab, address string) (w weight) {
	count := func(all []browsertest.Asked) (paths []string) {
		for _, a := range all {
			if !a.Cached && a.Kind != network.ResourceTypeEventSource && a.Kind != network.ResourceTypeOther { // the browser's own, such as the icon
				paths = append(paths, a.Path)
			}
		}
		return paths
	}
	tab.Cold(true)
	all := tab.Asks(address)
	w.cold = len(count(all))
	for _, a := range all {
		switch a.Kind { //nolint:exhaustive // the others are not counted
		case network.ResourceTypeDocument:
			w.html += a.Size
		case network.ResourceTypeStylesheet:
			w.css += a.Size
		case network.ResourceTypeScript:
			w.script += a.Size
		}
	}
	tab.Cold(false) // what has come is kept all the same
	for range 2 {   // a busy browser had left the page before a script had asked for another one
		w.again = count(tab.Asks(address))
		if w.warm = len(w.again); w.warm <= 1 {
			break
		}
	}
	return w
}

// heavy are pages that may weigh more: Talk has sound and tools, and a conversation draws each of its turns.
var heavy = map[string]weight{
	"talk":                      {script: 40 << 10, cold: 11},
	"conversations/" + keptTalk: {html: 80 << 10},
}

// weighed opens a page, which is not heavier than its budget, and asks for nothing but itself when it was looked at before.
func weighed(t *testing.T, tab *browsertest.Tab, path, address string) {
	t.Helper()
	w, most := weigh(tab, address), weight{html: 40 << 10, css: 25 << 10, script: 20 << 10, cold: 6, warm: 1}
	if other, ok := heavy[path]; ok {
		most.html, most.script, most.cold = max(most.html, other.html), max(most.script, other.script), max(most.cold, other.cold)
	}
	if w.html > most.html || w.css > most.css || w.script > most.script || w.cold > most.cold || w.warm > most.warm {
		t.Errorf("%s: %+v, at most %+v", path, w, most)
	}
	t.Logf("%-40s HTML %5.1f KiB, CSS %4.1f, script %4.1f, requests %d and %d", path, kib(w.html), kib(w.css), kib(w.script), w.cold, w.warm)
}

func kib(n int64) float64 { return float64(n) / 1024 }

// TestConsoleBudgets measures how fast pages are: the tables of docs/console.md.
func TestConsoleBudgets(t *testing.T) {
	if os.Getenv("BUDGETS") == "" {
		t.Skip("make budgets measures them")
	}
	b := browsertest.Need(t, browser)
	s, cookie := home(t)
	tab := b.Tab(t, 5*time.Minute)
	show(tab, cookie, loopback)
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("load %s\n| page | HTML ready p50 / p99, ms | first paint, ms | usable, ms | HTML, CSS, script, KiB | requests cold, warm |\n|---|---|---|---|---|---|\n", strings.Fields(string(load))[0])
	for _, path := range []string{"overview", "talk", "devices", "devices/" + kitchen, "agents", "agents/default", "conversations", "conversations/" + keptTalk, "tools", "services", "doctor", "settings", "users", "log"} {
		var ready []time.Duration
		turn := time.Tick(50 * time.Millisecond) // a person may ask 30 times a second
		for range 100 {
			<-turn
			begun := time.Now()
			if a := s.http(t.Context(), t, "GET /console/"+path, "", s.with(cookie)); a.status != http.StatusOK {
				t.Fatal(path, a.status)
			}
			ready = append(ready, time.Since(begun))
		}
		slices.Sort(ready)
		var painted, usable []float64
		for range 9 {
			<-turn
			tab.Go(s.base() + "/console/" + path)
			tab.Await(`performance.getEntriesByName("first-contentful-paint").length`)
			painted = append(painted, tab.Number(`performance.getEntriesByName("first-contentful-paint")[0].startTime`))
			usable = append(usable, tab.Number(`performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`))
		}
		slices.Sort(painted)
		slices.Sort(usable)
		w := weigh(tab, s.base()+"/console/"+path)
		fmt.Printf("| %s | %.1f / %.1f | %.0f | %.0f | %.0f, %.0f, %.0f | %d, %d |\n", path, ms(ready[50]), ms(ready[98]), painted[4], usable[4], kib(w.html), kib(w.css), kib(w.script), w.cold, w.warm)
	}
	for _, path := range there(t, s, cookie) {
		weighed(t, tab, path, inLang(s, path, "zh"))
	}
	own := sharedFor(t)
	watching := b.Tab(t, 5*time.Minute)
	show(watching, own.cookie, loopback)
	watching.Go(own.s.base() + "/console/devices")
	watching.Await(`document.querySelector("[data-live-switch]").textContent === document.body.dataset.live`)
	var late []float64
	for n := range 21 {
		watching.Text(fmt.Sprintf(`(() => {
			const name = "named %d", begun = performance.now();
			window.__late = 0;
			new MutationObserver((_, o) => { if (document.getElementById("devices").innerText.includes(name)) { window.__late = performance.now() - begun; o.disconnect(); } }).observe(document.querySelector("main"), { childList: true, subtree: true });
			fetch("/console/devices/%s", { method: "POST", body: new URLSearchParams({ do: "rename", name }) });
		})(), ""`, n, own.device))
		watching.Await("window.__late")
		late = append(late, watching.Number("window.__late"))
	}
	slices.Sort(late)
	fmt.Printf("event to page: p50 %.0f ms, slowest of %d %.0f ms\n", late[len(late)/2], len(late), late[len(late)-1])
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// renamed is a server with a device that is given other names.
type renamed struct {
	s              *server
	cookie, device string
}

func sharedFor(t *testing.T) renamed {
	t.Helper()
	s, owner := onJourney(t)
	id := newDeviceID()
	s.waits(limit(t), t, id)
	s.accepted(t)(id)
	return renamed{s, owner, id}
}
