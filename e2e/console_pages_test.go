package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/browsertest"
)

// homeServer is a server with the data of a home, which nobody changes.
var homeServer = sharedServer{
	setup: func() (setup, error) { return setup{speaks: true, config: "auth: {pairing: ask}\n"}, nil },
	furnish: func(dir string) error {
		return furnish(context.Background(), dir, time.Now()) //nolint:usetesting // for all tests
	},
}

// home is that server with its owner's cookie, and with a speaker that waits.
func home(t *testing.T) (s *server, cookie string) {
	t.Helper()
	s = homeServer.use(t)
	homeServer.owned.Do(func() {
		homeServer.owner = s.own(limit(t), t)
		s.boots(limit(t), t, waiting, "7f0c6a9e-1111-4222-8333-444455556666")
	})
	return s, homeServer.owner
}

// pages are all that the owner of that server can open: those of the navigation, what lists lead to, and the others by name.
var pages = []string{
	"overview", "talk", "devices", "devices/" + kitchen, "devices/" + longNamed, "agents", "agents/default", "agents/default/documents", "agents/-/new", "agents/-/new?template=empty", "trials/voices", "trials/compare", "trials/turns/" + keptTalk + "-1", "costs", "conversations",
	"conversations/" + keptTalk, "tools", "tools/servers", "tools/servers/edit", "tools/calls", "services", "services/add", "services/add/dashscope", "services/of/local", "doctor", "doctor/" + kitchen,
	"settings", "settings/voice", "settings/recording", "settings/-/backups", "settings/-/revisions", "settings/-/import", "users", "users/me", "log", "log/server", "setup/services", "setup/speakers", "setup/address", "login", "prove",
}

// inLang is the address of a page in a language.
func inLang(s *server, path, lang string) string {
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	return s.base() + "/console/" + path + sign + "lang=" + lang
}

// there are those of the pages that the server has.
func there(t *testing.T, s *server, cookie string) (have []string) {
	t.Helper()
	for _, path := range pages {
		if a := s.http(limit(t), t, "GET /console/"+path, "", s.with(cookie)); a.status == 200 {
			have = append(have, path)
		} else {
			t.Logf("NOT TESTED: %s, %d", path, a.status)
		}
	}
	return have
}

// wider says what of a page is wider than it. Half a full-width sign at the end of a line may hang over.
const wider = `(() => {
  const page = document.documentElement;
  const out = page.scrollWidth > page.clientWidth ? ["the page: " + page.scrollWidth + " > " + page.clientWidth] : [];
  for (const e of document.querySelectorAll("button, .button, label, h1, h2, .tag, .state")) {
    if (e.checkVisibility() && e.scrollWidth > e.clientWidth + 8 && e.clientWidth > 1 && getComputedStyle(e).display !== "inline" && getComputedStyle(e).overflowX !== "auto") {
      out.push(e.tagName + " " + e.textContent.trim().slice(0, 40) + ": " + e.scrollWidth + " > " + e.clientWidth);
    }
  }
  if (out.length && page.scrollWidth > page.clientWidth) {
    for (const e of document.querySelectorAll("body *")) {
      if (e.getBoundingClientRect().right > page.clientWidth + 1 && ![...e.children].some((c) => c.getBoundingClientRect().right > page.clientWidth + 1)) {
        out.push(e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 40));
      }
    }
  }
  return out.slice(0, 8);
})()`

// spaced sets letters, words, lines and paragraphs as wide apart as readers may want them (WCAG 1.4.12).
const spaced = `(() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important } p { margin-bottom: 2em !important }");
  document.adoptedStyleSheets = [sheet];
  return "";
})()`

// cutOff says which texts of a page are cut by what they stand in. What is for ears alone, and excerpts, are short on purpose.
const cutOff = `(() => {
  const out = [];
  for (const e of document.querySelectorAll("body *")) {
    const style = getComputedStyle(e), hides = (how) => how === "hidden" || how === "clip";
    if (!e.checkVisibility() || e.closest(".visually, svg, .agent-begin") || style.clipPath !== "none" || !e.textContent.trim()) { continue; }
    if (hides(style.overflowX) && e.scrollWidth > e.clientWidth + 1 || hides(style.overflowY) && e.scrollHeight > e.clientHeight + 1) {
      out.push(e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 40));
    }
  }
  return out.slice(0, 8);
})()`

// untidy says what of a page does not begin where all others do, which Chinese sentences stand apart as only English ones do, and
// which rows of a table hide a part of themselves at the side of a narrow screen.
const untidy = `(() => {
  const out = [], main = document.querySelector("main"), begins = main.getBoundingClientRect().top + parseFloat(getComputedStyle(main).paddingTop);
  const low = [...main.children].find((e) => e.checkVisibility()).getBoundingClientRect().top - begins;
  if (low > 1) { out.push("begins " + low + " px too low"); }
  for (const found of main.innerText.matchAll(/.{0,12}[。！？；，：] +\p{Script=Han}.{0,6}/gu)) { out.push("a gap between sentences: " + found[0]); }
  for (const e of document.querySelectorAll("main .scroll")) {
    if (innerWidth < 400 && e.querySelector("table:not(.trial-table)") && e.scrollWidth > e.clientWidth + 1) { out.push("columns out of sight: " + e.textContent.trim().slice(0, 40)); }
  }
  return out;
})()`

// TestConsolePages looks at every page as English, light and wide, or as Chinese, dark and narrow; with both, if each look is asked
// for: it is not heavier than its budget, and asks for nothing but itself when it was looked at before; the keys go through it in
// order; in widths from 320 px on nothing is wider than the window, and no text is cut where letters and lines stand wide apart; no
// rule of WCAG 2.2 A and AA is broken, nothing comes from elsewhere, and the browser complains of nothing.
func TestConsolePages(t *testing.T) {
	t.Parallel()
	b := browsertest.Need(t, browser)
	axe, err := browsertest.Axe(filepath.Join("..", ".tools", "axe", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	if axe == "" {
		t.Log("NOT TESTED: rules of accessibility, without axe-core (scripts/axe.sh fetches it)")
	}
	s, cookie := home(t)
	have := there(t, s, cookie)
	for nth, l := range []look{{"en", 1280, false}, {"zh", 320, true}} {
		t.Run(l.lang, func(t *testing.T) {
			t.Parallel()
			tab := b.Tab(t, pagesTime)
			show(tab, cookie, loopback)
			for i, path := range have {
				if i%2 != nth && !eachLook() {
					continue // the other look has it
				}
				tab.Screen(max(l.width, phone), 800, l.dark)
				weighed(t, tab, path, inLang(s, path, l.lang))
				if got := tab.Text("document.documentElement.lang"); got != l.lang {
					t.Errorf("%s is in %s, not %s", path, got, l.lang)
				}
				keyed(t, tab, path)
				tab.Text(`document.querySelectorAll("details:not(.menu)").forEach((e) => { e.open = true; }), document.activeElement.blur(), scrollTo(0, 0), ""`)
				for _, width := range widths {
					tab.Screen(width, 800, l.dark)
					for _, what := range append(tab.List(wider), tab.List(untidy)...) {
						t.Errorf("%s at %d px: %s", path, width, what)
					}
					if axe == "" || width != l.width {
						continue
					}
					for _, what := range tab.Broken(axe) {
						t.Errorf("%s at %d px: %s", path, width, what)
					}
				}
				tab.Text(spaced)
				for _, width := range []int64{1280, 320} {
					tab.Screen(width, 800, l.dark)
					for _, what := range append(tab.List(wider), tab.List(cutOff)...) {
						t.Errorf("%s at %d px, with letters wide apart: %s", path, width, what)
					}
				}
			}
			tab.Clean()
			tab.Text(`document.querySelector("main").insertAdjacentElement("beforeend", document.createElement("p")).textContent = "cut", ""`)
			tab.Text(`(() => { const e = document.querySelector("main > p:last-child"); e.style.height = "4px"; e.style.overflow = "hidden"; return ""; })()`)
			if found := tab.List(cutOff); len(found) != 1 || !strings.Contains(found[0], "cut") {
				t.Errorf("a text that is cut: %q", found)
			}
			if axe != "" {
				tab.Text(`document.querySelector("main").append(document.createElement("input")), ""`)
				if found := tab.Broken(axe); len(found) != 1 || !strings.Contains(found[0], "label") {
					t.Errorf("a field without a name: %q", found)
				}
			}
		})
	}
}

// widths are those in which pages are looked at, one after the other; 640 px are 1280 px at 200 %.
var widths = []int64{1280, 640, 320}

// phone is the width of a phone, on which the keys are tried.
const phone = 360

// pagesTime is for all pages, one after the other.
const pagesTime = 6 * time.Minute
