package e2e

import (
	"strings"
	"testing"

	"xiaozhi/internal/browsertest"
)

// focused says what the keys go to, and what is wrong with that: it cannot be seen, has no mark, lies under something, or comes
// before what had the keys before it.
const focused = `(() => {
	const e = document.activeElement, box = e.getClientRects()[0] ?? e.getBoundingClientRect(), last = window.__last;
	window.__last = e;
	if (e === document.body || e === document.documentElement) { return ""; }
	const called = e.tagName.toLowerCase() + " " + (e.getAttribute("aria-label") || e.innerText || e.labels?.[0]?.innerText || e.name || e.id || "").trim().replace(/\s+/g, " ").slice(0, 40);
	if (e === last) { return called; } // a part of it, such as the month of a date
	const style = getComputedStyle(e), wrong = [];
	if (box.width < 1 || box.height < 1) { wrong.push("cannot be seen"); }
	if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) { wrong.push("has no mark"); }
	const at = document.elementFromPoint(Math.min(box.x + Math.min(box.width, 80) / 2, innerWidth - 1), box.y + Math.min(box.height, 20) / 2);
	if (!at || !(e.contains(at) || at.contains(e) || [...(e.labels ?? [])].some((l) => l.contains(at)))) { wrong.push("lies under " + (at?.className || at?.tagName || "nothing")); }
	if (last?.isConnected && last !== document.body && !(last.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) { wrong.push("comes before what had the keys before"); }
	return called + (wrong.length ? " !! " + wrong.join(", ") : "");
})()`

const (
	tabKey   = 9
	mostKeys = 60 // of a page, which the first ones are enough of
)

// keyed goes through a page with the Tab key: what has the keys is marked, not under anything, and in the order of the page, the
// first of all leads to the content, and the last one out of the page.
func keyed(t *testing.T, tab *browsertest.Tab, path string) {
	t.Helper()
	var way []string
	for range mostKeys {
		tab.Press("Tab", tabKey)
		at := tab.Text(focused)
		if at == "" {
			break
		}
		if way = append(way, at); strings.Contains(at, "!!") {
			t.Errorf("%s: %s", path, at)
		}
	}
	if len(way) < 4 || !strings.HasPrefix(way[0], "a ") {
		t.Errorf("%s: the keys go to %q", path, way)
	}
	t.Logf("%s: %s", path, strings.Join(way, " → "))
}
