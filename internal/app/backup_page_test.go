package app

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// TestBackupPage: an owner who shows the password backs up by a button, sees all backups with why each was made and how to
// restore one, and is told in words why none was made.
func TestBackupPage(t *testing.T) {
	t.Parallel()
	a, h := changeable(t)
	c := owned(t, a, h)
	const page, now = "/console/settings/-/backups", "/console/settings/-/backups?lang=en"
	c.expect("/console/settings", nil, 200, `href="`+page+`"`)
	c.expect(now, nil, 200, "There is no backup yet")
	folder := filepath.Join(a.options.Data, backupsFolder)
	files := func() []string { return find(folder, "*") }

	aged(t, a)
	c.expect(now, nil, 200, `name="again-password"`)
	c.expect(page, url.Values{}, 422, "A backup holds everything that was said here")
	c.expect(page, url.Values{"again-password": {"a wrong one"}}, 422, `id="e-again-password"`)
	if all := files(); len(all) > 0 {
		t.Errorf("without a password: %v", all)
	}
	c.expect(page, url.Values{"again-password": {"correct horse battery"}}, 303, page)
	all := files()
	if len(all) != 1 {
		t.Fatalf("%v", all)
	}
	name := filepath.Base(all[0])
	body := c.ask(page, nil).Body.String()
	for _, want := range []string{"Backed up: " + name, ">" + name + "<", "by hand", "xiaozhi restore --data " + a.options.Data + " " + all[0], "They are not sent to browsers"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing: %.4000s", want, regexp.MustCompile(`(?s)^.*<main`).ReplaceAllString(body, ""))
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "schema-7-20260101T030405.000Z.db"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	body = c.ask(page+"?lang=zh", nil).Body.String()
	for _, want := range []string{"手动", "升级之前", "用副本代替数据文件夹里的 xiaozhi.db", "不会发给浏览器"} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing", want)
		}
	}

	// A file in the place of the folder: none can be made.
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.expect(page, url.Values{}, 303, page)
	c.expect(now, nil, 200, "No backup was made: ")
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	c.expect(page, url.Values{}, 303, page)
	if body := c.ask(now, nil).Body.String(); strings.Contains(body, "No backup was made") || len(files()) != 1 {
		t.Errorf("it is made then: %v", files())
	}

	acts, err := a.accounts.Audit(t.Context(), store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var outcomes []string
	for _, act := range acts {
		if act.Act == "backup.make" && act.Who == "ann" && act.Remote == "127.0.0.1" {
			outcomes = append(outcomes, fmt.Sprint(act.OK, " ", strings.HasPrefix(act.Object, "xiaozhi-")))
		}
	}
	if got := strings.Join(outcomes, ", "); got != "true true, false false, true true" {
		t.Errorf("the audit says %q", got)
	}

	by := account.Actor{Name: "test", Via: account.ViaCommand}
	if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: "mia", Role: account.Member, Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	c.expect("/console/login", url.Values{"name": {"mia"}, "password": {"correct horse battery"}}, 303, "/console/overview")
	c.expect(page, nil, http.StatusForbidden, "")
	c.expect(page, url.Values{}, http.StatusForbidden, "")
}

// TestBackupDeskEnds: a program that ends gives up the backup that is being made, and begins none any more.
func TestBackupDeskEnds(t *testing.T) {
	t.Parallel()
	a, _ := startOn(t, t.TempDir(), plainFile, nil)
	d := newBackupDesk(t.Context(), a)
	d.told = func() {}
	done, err := d.Begin(account.Person{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	if _, err := d.Begin(account.Person{Name: "ann"}); err == nil {
		t.Error("another one begins")
	}
}
