package app

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// TestAuditExport: an owner takes the audit out as the search has it, all pages of it, and the audit tells of it. What
// strangers have typed is no formula of a spreadsheet.
func TestAuditExport(t *testing.T) {
	t.Parallel()
	a, h := changeable(t)
	c := owned(t, a, h)
	typed := []string{`=HYPERLINK("http://evil.example","x")`, "+1", "-2", "@SUM(1)", "\t=1", "＝1", "a;=1+1", "小智, \"quoted\"", "plain"}
	began := time.Now().Add(-time.Hour)
	for i := range store.MaxPage + 30 {
		if err := a.stored.Audit.Add(t.Context(), store.Act{At: began.Add(time.Duration(i) * time.Second), Who: "robot", Via: "token", Act: "lamp", Object: typed[i%len(typed)], OK: true}); err != nil {
			t.Fatal(err)
		}
	}

	w := c.ask("/console/log/export?form=jsonl&q=ROBOT", nil)
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Disposition"), `attachment; filename="xiaozhi-audit-`) || !strings.HasPrefix(w.Header().Get("Content-Type"), "application/jsonl") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	var last time.Time
	n := 0
	for line := range strings.Lines(w.Body.String()) {
		var got struct {
			At          time.Time
			Who, Object string
			OK          bool
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil || got.Who != "robot" || !got.OK || got.Object != typed[(store.MaxPage+29-n)%len(typed)] || n > 0 && !got.At.Before(last) {
			t.Fatalf("line %d: %v %+v", n, err, got)
		}
		n, last = n+1, got.At
	}
	if n != store.MaxPage+30 {
		t.Errorf("%d lines", n)
	}

	w = c.ask("/console/log/export?form=csv&q=lamp", nil)
	text, marked := strings.CutPrefix(w.Body.String(), "\ufeff")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || !marked || len(rows) != store.MaxPage+31 || strings.Join(rows[0], " ") != "at who via remote act object detail ok" {
		t.Fatalf("%d rows, %v: %.200s", len(rows), err, text)
	}
	for i, want := range []string{`'=HYPERLINK("http://evil.example","x")`, "'+1", "'-2", "'@SUM(1)", "'\t=1", "'＝1", "a;'=1+1", "小智, \"quoted\"", "plain"} {
		if got := rows[len(rows)-1-i][5]; got != want {
			t.Errorf("%q is written as %q", typed[i], got)
		}
	}
	if all := c.ask("/console/log/export", nil).Body.String(); !strings.Contains(all, ",login,") || !strings.Contains(all, ",audit.export,ROBOT,") {
		t.Errorf("the whole of it: %.300s", all)
	}
	c.expect("/console/log?q=robot", nil, 200, `href="/console/log/export?form=csv&amp;q=robot"`)
	c.expect("/console/log/export?form=xls", nil, 400, "csv, jsonl")

	aged(t, a)
	const page = "/console/log/export?form=csv&q=robot"
	c.expect(page, nil, 303, "/console/prove?to="+url.QueryEscape(page))
	c.expect("/console/prove", url.Values{"password": {"correct horse battery"}, "to": {page}}, 303, page)
	c.expect(page, nil, 200, "robot")

	by := account.Actor{Name: "test", Via: account.ViaCommand}
	if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: "mia", Role: account.Member, Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	c.expect("/console/login", url.Values{"name": {"mia"}, "password": {"correct horse battery"}}, 303, "/console/overview")
	c.expect(page, nil, 403, "")
}
