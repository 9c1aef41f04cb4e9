package ui

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
)

// TestRows: a list is walked in pages of fifty from its beginning to its end, each row once, also where rows come and go meanwhile; what
// is searched for and the pages of other lists stay in the address.
func TestRows(t *testing.T) {
	var names []string
	for i := range 120 {
		names = append(names, fmt.Sprintf("Row %03d", 119-i))
	}
	of := List[string]{Path: "/console/x", Name: "rows", Key: strings.Clone, Text: strings.Clone}
	seen, pages := []string{}, 0
	for address := "/console/x?other-after=7"; address != ""; pages++ {
		rows, err := of.Page(httptest.NewRequest("GET", address, nil), names, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, rows.Rows...)
		if pages == 0 {
			names = append([]string{"Row 000 and a half"}, names[:100]...) // those from 000 to 019 go
		}
		if address = rows.Next; address != "" && !strings.Contains(address, "other-after=7") {
			t.Errorf("the other list begins again: %s", address)
		}
	}
	if pages != 3 || len(seen) != 120 || seen[0] != "Row 000" || seen[119] != "Row 119" {
		t.Errorf("%d rows on %d pages, from %q", len(seen), pages, seen[0])
	}
	for address, want := range map[string]int{"/?rows-q=row+01": 0, "/?rows-q=row+11": 10, "/?rows-q=row+11&rows-after=Row+115": 4, "/?q=nothing": 50} {
		if rows, err := of.Page(httptest.NewRequest("GET", address, nil), names, nil); err != nil || len(rows.Rows) != want {
			t.Errorf("%s: %d rows, %v, not %d", address, len(rows.Rows), err, want)
		}
	}
	if rows, err := of.Page(httptest.NewRequest("GET", "/?rows-q=a+lamp", nil), nil, errors.New("disk")); err == nil || rows.Search != "a lamp" || !rows.Many {
		t.Errorf("of rows that cannot be read: %+v, %v", rows, err)
	}
}

// TestRowsNewest: the newest stand first; a place that no row can have is refused.
func TestRowsNewest(t *testing.T) {
	at := time.UnixMilli(1790000000000)
	of := List[int]{Path: "/", Newest: true, Key: func(i int) string { return access.Before(at.Add(time.Duration(i/2)*time.Second), fmt.Sprint(i)) }, Text: func(int) string { return "" }}
	all := make([]int, 60)
	for i := range all {
		all[i] = i
	}
	rows, err := of.Page(httptest.NewRequest("GET", "/", nil), all, nil)
	if err != nil || len(rows.Rows) != 50 || rows.Rows[0] != 59 || rows.Rows[49] != 10 {
		t.Fatal(rows, err)
	}
	if rows, err = of.Page(httptest.NewRequest("GET", rows.Next, nil), all, nil); err != nil || len(rows.Rows) != 10 || rows.Rows[0] != 9 || rows.Next != "" {
		t.Error(rows, err)
	}
	for _, after := range []string{"soon", "1.", "x.7", "17." + strings.Repeat("a", 65)} {
		if _, err := of.Page(httptest.NewRequest("GET", "/?after="+after, nil), all, nil); !errors.Is(err, account.ErrPageBad) {
			t.Errorf("%s: %v", after, err)
		}
	}
	named := List[int]{Path: "/", Key: func(int) string { return "" }, Text: func(int) string { return "" }}
	for _, after := range []string{"a%00b", "%ff", strings.Repeat("a", 300)} {
		if _, err := named.Page(httptest.NewRequest("GET", "/?after="+after, nil), all, nil); !errors.Is(err, account.ErrPageBad) {
			t.Errorf("%q: %v", after, err)
		}
	}
}

// TestFailed: a list that cannot be read says so in the place of its rows: the cause if it is for people, else a number that is in the
// log too; what was typed is kept. Who must come in again is led there.
func TestFailed(t *testing.T) {
	var log strings.Builder
	page := fstest.MapFS{"x.html": {Data: []byte(`{{define "x"}}{{template "open" .}}{{template "find" (dict "Rows" .Data "Label" "Search")}}{{template "trouble" (dict "Text" .Trouble "Path" .Data.Path)}}{{template "close" .}}{{end}}`)}}
	s, err := New(Options{Files: []fs.FS{page}, Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return time.Unix(1790000000, 7) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		err    error
		lang   string
		status int
		want   []string
	}{
		{errors.New("disk on fire"), "en", 500, []string{"The log says more under dll21jtdksuf", `value="a lamp"`}},
		{account.ErrPageBad, "en", 400, []string{"There is no such place in the list", `href="/console/x"`, `value="a lamp"`}},
		{account.ErrPageBad, "zh", 400, []string{"列表里没有这个位置"}},
		{account.ErrNoSession, "en", 303, nil},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/console/x?q=a+lamp&lang="+test.lang, nil)
		rows, err := List[string]{Path: "/console/x"}.Page(r, nil, test.err)
		s.Failed(w, r, "x", Content{Data: rows}, err)
		for _, want := range test.want {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%v: %q is missing in\n%s", test.err, want, w.Body)
			}
		}
		if w.Code != test.status || strings.Contains(w.Body.String(), "on fire") {
			t.Errorf("%v: %d\n%s", test.err, w.Code, w.Body)
		}
	}
	if !strings.Contains(log.String(), "dll21jtdksuf") || !strings.Contains(log.String(), "disk on fire") {
		t.Errorf("the log: %s", log.String())
	}
}
