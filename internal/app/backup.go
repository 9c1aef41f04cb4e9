package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	settingspage "xiaozhi/console/settings"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/private"
	"xiaozhi/internal/recording"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

const (
	databaseFile  = "xiaozhi.db" // in the data folder
	backupsFolder = "backups"
	keyFile       = "key" // what seals secrets
)

// ours lists what people have written into the data folder, without secrets, sound and what can be made again.
func ours() []string { return []string{"config.yaml", "mcp_servers.json", "prompts", "tools"} }

// BackupOptions say what a backup holds beside the database and what people have written.
type BackupOptions struct {
	Data  string // folder
	File  string // that is made; "": one in the folder of those of each night, and counted among them
	Sound bool   // music and recordings
	Key   bool   // the key of the secrets
}

// Backup makes a backup while a server may run, and returns its file.
func Backup(ctx context.Context, cfg *config.Config, o BackupOptions) (string, error) {
	path := filepath.Join(o.Data, databaseFile)
	if cfg.Store.Driver == "none" {
		return "", errors.New(message.Both("backup/none"))
	}
	if _, err := os.Stat(path); cfg.Store.URL == "" && errors.Is(err, fs.ErrNotExist) {
		return "", errors.New(message.Both("backup/nothing", path))
	}
	if _, err := os.Lstat(o.File); o.File != "" && err == nil {
		return "", errors.New(message.Both("backup/exists", o.File))
	}
	log := slog.New(slog.DiscardHandler)
	opening := storeOptions(cfg, o.Data, log)
	opening.Tool = true
	s, err := openChecked(ctx, o.Data, opening)
	if err != nil {
		return "", err
	}
	defer s.Close()
	top := ours()
	if o.Sound {
		top = append(top, "music", recordingsFolder)
	}
	key := ""
	if o.Key {
		key = keyPath(cfg, o.Data)
	}
	if o.File == "" {
		b := &store.Backups{
			Store: s, Dir: filepath.Join(o.Data, backupsFolder), Keep: cfg.Store.Backup, Log: log,
			Files: func() ([]store.File, error) { return backupFiles(o.Data, top, key, refuse) },
		}
		return b.Make(ctx, store.ByHand)
	}
	files, err := backupFiles(o.Data, top, key, refuse)
	if err != nil {
		return "", err
	}
	return o.File, s.Backup(ctx, o.File, files)
}

// Restore puts a backup into the place of what a data folder holds, and returns where that lies from then on, "" if
// there was nothing. It refuses while a server uses the folder, a folder with other people's files or that they may write, and what
// is no whole backup: nothing has changed then.
func Restore(ctx context.Context, data, file string, now time.Time) (aside string, err error) {
	if _, err := os.Stat(file); err != nil {
		return "", errors.New(message.Both("backup/no-file", file, err))
	}
	if err := checkOurs(data); err != nil {
		return "", err
	}
	if err := checkDataDir(data); err != nil {
		return "", err
	}
	aside, err = store.Restore(ctx, file, data, filepath.Join(data, databaseFile), now)
	err = lockedError(data, err)
	_, broken := errors.AsType[*store.BrokenError](err)
	newer, isNewer := errors.AsType[*store.NewerError](err)
	switch {
	case broken || errors.Is(err, store.ErrArchive):
		return aside, errors.New(message.Both("backup/broken", file, strings.TrimPrefix(err.Error(), file+": "+store.ErrArchive.Error()+": ")))
	case isNewer:
		return aside, errors.New(message.Both("backup/newer", file, newer.Has, newer.Knows))
	case err != nil:
		return aside, storeError(err)
	}
	return aside, nil
}

// backups makes backups of the store, which there must be.
func (a *App) backups() *store.Backups {
	return backupsOf(a, func(err error) error {
		a.log.Warn("file left out of the backup", "err", err)
		return nil
	})
}

// backupsOf makes backups of the store. Of a file that others may write open returns why there is no backup; nil: it is left out.
func backupsOf(a *App, open func(error) error) *store.Backups {
	return &store.Backups{
		Store: a.stored, Dir: filepath.Join(a.options.Data, backupsFolder), Keep: a.cfg.Store.Backup, Zone: a.forces.zone.Location,
		Files: func() ([]store.File, error) {
			return backupFiles(a.options.Data, ours(), "", open)
		}, Log: a.log,
	}
}

// backupDesk makes the backups that people ask for on their page, one at a time, as the command does. Its methods may be
// called at the same time.
type backupDesk struct {
	app    *App
	told   func()          // of each change; set before anybody can ask
	ctx    context.Context // of what is made
	making sync.WaitGroup

	mu      sync.Mutex
	running bool
	made    string
	failed  error
}

var _ settingspage.Backups = (*backupDesk)(nil)

// newBackupDesk returns a desk that ends, with what it makes, before the store is closed.
func newBackupDesk(ctx context.Context, a *App) *backupDesk {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	d := &backupDesk{app: a, ctx: ctx}
	a.life.atEnd(func() {
		d.mu.Lock()
		cancel() // nothing begins any more
		d.mu.Unlock()
		d.making.Wait()
	})
	return d
}

// Backups implements [settingspage.Backups].
func (d *backupDesk) Backups() settingspage.Backed {
	b := d.app.backups()
	data, err := filepath.Abs(d.app.options.Data)
	if err != nil {
		data = d.app.options.Data
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return settingspage.Backed{
		Copies: b.All(), Data: data, Folder: filepath.Join(data, backupsFolder), Keep: b.Keep, Elsewhere: d.app.cfg.Store.URL != "",
		Running: d.running || b.Running(), Made: d.made, Failed: d.failed,
	}
}

// Begin implements [settingspage.Backups].
func (d *backupDesk) Begin(by account.Person) (<-chan struct{}, error) {
	b := backupsOf(d.app, refuse)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running || b.Running() {
		return nil, store.ErrBackupRuns
	}
	if err := d.ctx.Err(); err != nil {
		return nil, err
	}
	d.running, d.made, d.failed = true, "", nil
	done := make(chan struct{})
	d.making.Go(func() {
		defer close(done)
		name, err := b.Make(d.ctx, store.ByHand)
		file := ""
		if err == nil {
			file = filepath.Base(name)
		} else {
			d.app.log.Error("no backup was made", "err", err)
		}
		d.app.accounts.Did(d.ctx, by.Actor(by.Remote), "backup.make", file, err)
		d.mu.Lock()
		d.running, d.made, d.failed = false, file, err
		d.mu.Unlock()
		d.told()
	})
	d.told()
	return done, nil
}

// checkOurs refuses a folder that holds something and is no data folder: with --data mistyped, files of others would be
// set aside.
func checkOurs(data string) error {
	entries, err := os.ReadDir(data)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, databaseFile) || name == "admin-token" || name == keyFile || name == backupsFolder || slices.Contains(ours(), name) {
			return nil
		}
	}
	return cmp.Or(err, errors.New(message.Both("backup/not-ours", data)))
}

// backUp makes a backup each night until ctx ends.
func (a *App) backUp(ctx context.Context) {
	if a.stored != nil && a.cfg.Store.Backup > 0 {
		a.backups().Run(ctx)
	}
}

// refuse ends a backup for a file that others may write.
func refuse(err error) error { return err }

// backupFiles lists the files below folders of the data folder, and the key of the secrets if it is named. One that
// others may write is not among them: restored it would be the owner's, whoever wrote it. Without an error of open the
// others are listed.
func backupFiles(data string, tops []string, key string, open func(error) error) (files []store.File, err error) {
	if _, err := os.Stat(key); key != "" && err == nil {
		files = append(files, store.File{Name: keyFile, Path: key})
	} else if key != "" && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, top := range tops {
		err := filepath.WalkDir(filepath.Join(data, top), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err != nil || !d.Type().IsRegular() || top == recordingsFolder && recording.Unfinished(path) {
				return err
			}
			if err := private.Check(path); errors.Is(err, os.ErrNotExist) {
				return nil
			} else if err != nil && slices.Contains(ours(), top) {
				return open(err)
			}
			name, err := filepath.Rel(data, path)
			files = append(files, store.File{Name: filepath.ToSlash(name), Path: path})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
