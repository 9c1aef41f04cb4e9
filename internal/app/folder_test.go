package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/config"
	"xiaozhi/internal/sealed"
	"xiaozhi/store"
)

// TestOneServerOfAFolder: two servers never use one data folder, nor does restore change that of a running one, whatever
// keeps what outlives them.
func TestOneServerOfAFolder(t *testing.T) {
	drivers := map[string]func(*config.Config){
		"sqlite": nil, "none": func(c *config.Config) { c.Store.Driver = "none" },
		"postgres": func(c *config.Config) { c.Store.URL = "postgres://nobody@127.0.0.1:1/nothing" },
	}
	says := func(err error, data string) bool {
		return err != nil && strings.Contains(err.Error(), data) && strings.Contains(err.Error(), "is used by another server") && strings.Contains(err.Error(), "--data")
	}
	data := filepath.Join(t.TempDir(), "data")
	archive := filepath.Join(t.TempDir(), "mine.tar.gz")
	if err := os.WriteFile(archive, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for first, has := range drivers {
		holds := without(t, data, has)
		if err := holds.openStore(t.Context()); err != nil && first != "postgres" {
			t.Fatal(err)
		}
		for second, wants := range drivers {
			a := without(t, data, wants)
			if err := a.openStore(t.Context()); !says(err, data) {
				t.Errorf("%s, then %s: %v", first, second, err)
			}
			a.Close()
		}
		if _, err := Restore(t.Context(), data, archive, time.Now()); !says(err, data) {
			t.Errorf("restored under a server with %s: %v", first, err)
		}
		holds.Close()
	}
	if _, err := Restore(t.Context(), data, archive, time.Now()); err == nil || strings.Contains(err.Error(), "used by") {
		t.Errorf("after all have ended: %v", err)
	}
}

// TestFolderIsTheOwners: nobody else may read what the program makes in the data folder.
func TestFolderIsTheOwners(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	a := without(t, data, nil)
	defer a.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(makeDataDir(data))
	must(a.openStore(t.Context()))
	must(vault(a.stored, a.cfg, data).Put(t.Context(), "weather", sealed.ThisServer, "a-secret-of-some-length", "me"))
	_, err := admintoken.Ensure(data)
	must(err)
	_, err = a.backups().Make(t.Context(), store.ByHand)
	must(err)
	seen := map[string]bool{}
	must(filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		info, infoErr := d.Info()
		if err := errors.Join(err, infoErr); err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		seen[filepath.Ext(path)+filepath.Base(filepath.Dir(path))] = true
		return nil
	}))
	for _, kind := range []string{".gzbackups", ".dbdata", ".lockdata", ".db-waldata", "data"} {
		if !seen[kind] {
			t.Errorf("%s was not made: %v", kind, seen)
		}
	}
}

// TestBackupLeavesPlantedOut: what others may write is not made the owner's by a backup and its restoring.
func TestBackupLeavesPlantedOut(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{"tools/mine.yaml", "tools/planted.yaml", "mcp_servers.json", "music/song.mp3"} {
		path := filepath.Join(data, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if name == "tools/mine.yaml" {
			continue
		}
		if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // that is the attack
			t.Fatal(err)
		}
	}
	told := 0
	files, err := backupFiles(data, append(ours(), "music"), "", func(err error) error {
		if !strings.Contains(err.Error(), "chmod go-w "+data) {
			t.Error(err)
		}
		told++
		return nil
	})
	if err != nil || told != 2 || len(files) != 2 || files[0].Name != "tools/mine.yaml" || files[1].Name != "music/song.mp3" {
		t.Errorf("%d files told of; %+v, %v", told, files, err)
	}
	if files, err := backupFiles(data, ours(), "", refuse); err == nil {
		t.Errorf("%+v", files)
	}
}
