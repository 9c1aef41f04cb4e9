package settings

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/store"
)

// BackupTopic names the live part with the backups.
const BackupTopic = "backups"

const backupPath = path + "/-/backups"

// Backups lists the backups of the server, and makes one when somebody asks for it.
type Backups interface {
	Backups() Backed
	// Begin begins to make one; done is closed when it is made, or was not. While one is being made the error is
	// [store.ErrBackupRuns].
	Begin(by account.Person) (done <-chan struct{}, err error)
}

// Backed says which backups there are, and how the last went that somebody has asked for.
type Backed struct {
	Copies    []store.Copy // the newest first
	Data      string       // folder
	Folder    string       // of backups
	Keep      int          // of those of each night; 0: none is made
	Elsewhere bool         // the database is none of SQLite: files alone are part of backups
	Running   bool         // one is being made
	Made      string       // file; "": none was asked for
	Failed    error        // why it was not made
}

// backed is the page of backups.
type backed struct {
	Backed

	Rows    ui.Rows[copied]
	Why     string // the last that somebody has asked for was not made
	Restore string // command
	Old     bool   // there are copies from before an upgrade
}

// copied is a backup in the list.
type copied struct {
	store.Copy

	Name  string
	Shown string // why it was made
}

// backedUp takes the backups that an address asks for.
func (p *Page) backedUp(r *http.Request) (backed, error) {
	b := backed{Backed: p.backups.Backups()}
	if b.Failed != nil {
		b.Why = p.unmade(r, b.Failed)
	}
	file := filepath.Join(b.Folder, "xiaozhi-….tar.gz")
	var all []copied
	for _, c := range b.Copies {
		one := copied{c, filepath.Base(c.Path), p.site.Say(r, words+"backup-by-"+string(c.Cause))}
		if c.Cause == store.BeforeUpgrade {
			b.Old = true
		} else if c.Bad == nil && strings.Contains(file, "…") {
			file = filepath.Join(b.Folder, filepath.Base(c.Path))
		}
		all = append(all, one)
	}
	b.Restore = "xiaozhi restore --data " + quoted(b.Data) + " " + quoted(file)
	var err error
	b.Rows, err = ui.List[copied]{
		Path: backupPath, Newest: true,
		Key:  func(c copied) string { return access.Before(c.At, c.Name) },
		Text: func(c copied) string { return c.Name + " " + c.Shown },
	}.Page(r, all, nil)
	return b, err
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-…") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// unmade says why no backup was made.
func (p *Page) unmade(r *http.Request, err error) string {
	switch {
	case errors.Is(err, store.ErrBackupRuns):
		return p.site.Say(r, words+"backup-runs")
	case store.NoRoom(err):
		return p.site.Say(r, words+"backup-full")
	}
	return p.site.Say(r, words+"backup-failed", strings.Join(strings.Fields(err.Error()), " "))
}

func (p *Page) listBackups(w http.ResponseWriter, r *http.Request, f *ui.Form) {
	b, err := p.backedUp(r)
	c := ui.Content{Title: p.site.Say(r, words+"backups"), Data: b, Form: f}
	if err != nil {
		p.site.Failed(w, r, "settings-backups", c, err)
		return
	}
	p.site.Show(w, r, "settings-backups", c)
}

// backupWait is how long a browser waits for a backup, which is made at once in most homes.
const backupWait = 3 * time.Second

// backUp makes a backup for who has shown the password lately, or shows it with the form.
func (p *Page) backUp(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	if r = p.site.Again(w, r, f); f.Valid() {
		if errors.Is(access.PersonOf(r).Proven(time.Now()), account.ErrProveAgain) {
			f.Wrong(ui.AgainField, p.site.Say(r, words+"backup-again"))
		}
	}
	if !f.Valid() {
		p.listBackups(w, r, f)
		return
	}
	done, err := p.backups.Begin(access.PersonOf(r))
	if err != nil {
		f.Wrong("", p.unmade(r, err))
		p.listBackups(w, r, f)
		return
	}
	late := time.NewTimer(backupWait)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	case <-r.Context().Done():
	}
	if b := p.backups.Backups(); !b.Running && b.Failed == nil && b.Made != "" {
		p.site.Done(w, r, backupPath, words+"backup-made", filepath.Base(b.Made))
		return
	}
	ui.Redirect(w, r, backupPath) // which says how it goes
}
