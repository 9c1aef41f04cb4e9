package settings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// kept are the backups of a server.
type kept struct {
	Backed

	refused error
}

func (k kept) Backups() Backed { return k.Backed }

func (k kept) Begin(account.Person) (<-chan struct{}, error) {
	done := make(chan struct{})
	close(done)
	return done, k.refused
}

// TestBackupTrouble: what keeps a backup from being made, or its list from being all of it, is said in words.
func TestBackupTrouble(t *testing.T) {
	var many []store.Copy
	for i := range 60 {
		many = append(many, store.Copy{Path: fmt.Sprintf("/b/xiaozhi-%02d.tar.gz", i), At: time.Unix(int64(2e9-i*3600), 0), Size: 2048, Cause: store.Nightly})
	}
	for _, test := range []struct {
		name   string
		kept   kept
		method string
		query  string
		lang   string
		status int
		want   []string
		not    string
	}{
		{"full", kept{Backed: Backed{Failed: &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}}}, "GET", "", "en", 200, []string{"The disk is full, and no backup was made"}, "no space left"},
		{"full, in Chinese", kept{Backed: Backed{Failed: &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}}}, "GET", "", "zh", 200, []string{"磁盘满了，备份没有做成"}, "disk"},
		{"other", kept{Backed: Backed{Failed: errors.New("<img src=x>")}}, "GET", "", "en", 200, []string{"No backup was made: &lt;img"}, "<img src=x>"},
		{"running", kept{Backed: Backed{Running: true}}, "GET", "", "en", 200, []string{"A backup is being made."}, "<img"},
		{"running already", kept{Backed{Running: true}, store.ErrBackupRuns}, "POST", "", "en", 422, []string{"A backup is already being made"}, "<img"},
		{"PostgreSQL", kept{Backed: Backed{Elsewhere: true}}, "GET", "", "en", 200, []string{"The database is PostgreSQL", "pg_dump --format=custom"}, "<img"},
		{"no night", kept{}, "GET", "", "en", 200, []string{"None is made at night"}, "are kept"},
		{"nights", kept{Backed: Backed{Keep: 7}}, "GET", "", "en", 200, []string{"the newest 7 are kept"}, "None is made"},
		{"a damaged one", kept{Backed: Backed{Data: "/my data", Folder: "/b", Copies: []store.Copy{{Path: "b/xiaozhi-new.tar.gz", Bad: errors.New("cut")}, {Path: "b/it's.tar.gz"}}}}, "GET", "", "en", 200, []string{"cannot be read", "reason not recorded", `--data &#39;/my data&#39; &#39;/b/it&#39;\&#39;&#39;s.tar.gz&#39;`}, "<img"},
		{"many", kept{Backed: Backed{Copies: many}}, "GET", "", "en", 200, []string{"xiaozhi-49.tar.gz", "2.0 KiB", "at night", "after="}, "xiaozhi-50.tar.gz"},
		{"found", kept{Backed: Backed{Copies: many}}, "GET", "?q=xiaozhi-59", "en", 200, []string{"xiaozhi-59.tar.gz"}, "xiaozhi-58.tar.gz"},
		{"not found", kept{Backed: Backed{Copies: many}}, "GET", "?q=nothing", "en", 200, []string{"Nothing matches your search"}, "xiaozhi-58.tar.gz"},
		{"no place", kept{}, "GET", "?after=soon", "en", 400, []string{"no such place"}, "There is no backup yet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			site, err := ui.New(ui.Options{Files: []fs.FS{Files, fstest.MapFS{"tabs.html": {Data: []byte(`{{define "people-tabs"}}{{end}}`)}}}, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			for _, r := range New(site, nil, test.kept).Routes() {
				mux.Handle(r.Pattern, r.Handler)
			}
			r := httptest.NewRequestWithContext(context.Background(), test.method, backupPath+test.query, nil)
			r.Header.Set("Accept-Language", test.lang)
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, access.As(r, account.Person{ID: "a", Name: "a", Role: account.Owner, Proved: time.Now()}))
			body := w.Body.String()
			if w.Code != test.status || strings.Contains(body, test.not) {
				t.Errorf("%d, or %q: %s", w.Code, test.not, body)
			}
			for _, want := range test.want {
				if !strings.Contains(body, want) {
					t.Errorf("%q is missing: %s", want, body)
				}
			}
		})
	}
}
