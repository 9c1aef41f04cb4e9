package app

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
)

// TestQuietPage: owners switch quiet mode on the overview, where everybody sees it; it stays so through a restart, and is in the audit.
func TestQuietPage(t *testing.T) {
	data := t.TempDir()
	a, h := builtApp(t, data, "{}")
	people := enter(t, a, h, map[string]account.Role{"olga": account.Owner, "max": account.Member})
	olga, hall := people["olga"], people["max"]
	const page = "/console/overview/quiet"
	if body := hall.ask("/console/overview", nil).Body.String(); strings.Contains(body, "Quiet mode") {
		t.Error("a member is shown a switch that is off")
	}
	hall.expect(page, url.Values{"do": {"on"}}, 403, "")
	olga.expect(page, url.Values{"do": {"loud"}}, 404, "")
	olga.expect(page, url.Values{"do": {"night"}}, 303, "/console/overview#quiet")
	if s := a.outside.quiet.State(); !s.On || s.By != "olga" || time.Until(s.Until) > 8*time.Hour || time.Until(s.Until) < 7*time.Hour {
		t.Errorf("%+v", s)
	}
	hall.expect("/console/overview", nil, 200, "switched on by olga")
	olga.expect("/console/log", nil, 200, "Quiet mode switched on")
	a.Close()
	a, h = builtApp(t, data, "{}")
	defer a.Close()
	if !a.outside.quiet.State().On {
		t.Error("after the restart it is off")
	}
	olga.handler = h
	olga.expect(page, url.Values{"do": {"off"}}, 303, "/console/overview#quiet")
	if a.outside.quiet.State().On {
		t.Error("it is on")
	}
}
