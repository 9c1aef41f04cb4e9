package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// TestBackup: what a running server has written is there after a restore into an empty folder, with the files.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	archive, config := filepath.Join(dir, "my.tar.gz"), filepath.Join(dir, "config.yaml")
	want(t, os.WriteFile(config, []byte("server: {}\n"), 0o644), nil)
	s := openFile(t, filepath.Join(dir, "xiaozhi.db"))
	addDevice(t, s, "m")
	for i := range 100 {
		s.Log.Put(turnOf("m", "c", i))
	}
	flush(t, s)
	want(t, s.Backup(t.Context(), archive, []File{{"config.yaml", config}, {"prompts/a.en.md", config}}), nil)
	if info, err := os.Stat(archive); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if files, _ := filepath.Glob(archive + ".*"); len(files) > 0 {
		t.Errorf("left over: %v", files)
	}
	addDevice(t, s, "after")

	_, err := Restore(t.Context(), archive, dir, filepath.Join(dir, "xiaozhi.db"), at(0))
	if _, ok := errors.AsType[*LockedError](err); !ok {
		t.Errorf("restored under a running server: %v", err)
	}
	fresh := filepath.Join(dir, "fresh")
	want(t, os.Mkdir(fresh, 0o700), nil)
	aside, err := Restore(t.Context(), archive, fresh, filepath.Join(fresh, "xiaozhi.db"), at(0))
	if aside != "" || err != nil {
		t.Errorf("%q %v", aside, err)
	}
	checkRestored(t, fresh, 1, 100)

	// A second one, over what is there.
	old := filepath.Join(fresh, "prompts", "a.en.md")
	want(t, os.WriteFile(old, []byte("old"), 0o600), nil)
	func() {
		s, err := Open(t.Context(), Options{Path: filepath.Join(fresh, "xiaozhi.db")})
		want(t, err, nil)
		defer s.Close()
		addDevice(t, s, "n")
	}()
	aside, err = Restore(t.Context(), archive, fresh, filepath.Join(fresh, "xiaozhi.db"), at(0))
	want(t, err, nil)
	checkRestored(t, fresh, 1, 100)
	if content, err := os.ReadFile(filepath.Join(aside, "prompts", "a.en.md")); err != nil || string(content) != "old" {
		t.Errorf("%s %v", content, err)
	}
	checkRestored(t, aside, 2, 100)
}

// checkRestored looks what a data folder holds.
func checkRestored(t *testing.T, dir string, devices, turns int) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: filepath.Join(dir, "xiaozhi.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, _, err := s.Devices.Identities(t.Context())
	if err != nil || len(all) != devices {
		t.Errorf("%d devices, %v", len(all), err)
	}
	if n, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM turns"); n != turns || err != nil {
		t.Errorf("%d turns, %v", n, err)
	}
	for name, want := range map[string]string{"config.yaml": "server: {}\n", "prompts/a.en.md": "server: {}\n"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if devices == 1 && (err != nil || string(content) != want) {
			t.Errorf("%s: %q %v", name, content, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestRestoreRefuses: what is no sound backup changes nothing.
func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	archive, path := filepath.Join(dir, "a.tar.gz"), filepath.Join(dir, "xiaozhi.db")
	made(t, path, 50)
	s, err := Open(t.Context(), Options{Path: path})
	want(t, err, nil)
	want(t, s.Backup(t.Context(), archive, nil), nil)
	want(t, s.Close(), nil)
	before, err := os.ReadFile(path)
	want(t, err, nil)
	whole, err := os.ReadFile(archive)
	want(t, err, nil)
	pack := func(entries ...tar.Header) []byte {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		w := tar.NewWriter(zip)
		for _, h := range entries {
			content := []byte(`{"format":1,"engine":"sqlite"}`)
			if h.Name != manifestName {
				content = []byte("SQLite format 3\x00 and no more")
			}
			h.Size, h.Mode = int64(len(content)), 0o600
			if h.Typeflag == tar.TypeSymlink {
				h.Size, content = 0, nil
			}
			want(t, w.WriteHeader(&h), nil)
			_, err := w.Write(content)
			want(t, err, nil)
		}
		want(t, errors.Join(w.Close(), zip.Close()), nil)
		return out.Bytes()
	}
	head := tar.Header{Name: manifestName}
	for name, content := range map[string][]byte{
		"nothing":         nil,
		"text":            []byte("a letter"),
		"cut":             whole[:len(whole)-100],
		"changed":         append(append(append([]byte{}, whole[:len(whole)/2]...), 'x', 'y'), whole[len(whole)/2+2:]...),
		"no manifest":     pack(tar.Header{Name: databaseName}),
		"no database":     pack(head),
		"broken database": pack(head, tar.Header{Name: databaseName}),
		"outside":         pack(head, tar.Header{Name: "files/../../evil"}),
		"one above":       pack(head, tar.Header{Name: "files/../evil"}),
		"hidden above":    pack(head, tar.Header{Name: "files/x/../../evil"}),
		"the database":    pack(head, tar.Header{Name: "files/xiaozhi.db"}),
		"its log":         pack(head, tar.Header{Name: "files/xiaozhi.db-wal"}),
		"absolute":        pack(head, tar.Header{Name: "/tmp/evil"}),
		"link":            pack(head, tar.Header{Name: "files/x", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}),
	} {
		t.Run(name, func(t *testing.T) {
			want(t, os.WriteFile(archive, content, 0o600), nil)
			_, err := Restore(t.Context(), archive, dir, path, at(0))
			if _, broken := errors.AsType[*BrokenError](err); !broken && !errors.Is(err, ErrArchive) {
				t.Errorf("error %v", err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
				t.Errorf("the database was changed: %v", err)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 3 {
				t.Errorf("%v", files)
			}
		})
	}
}

// TestRestoreStays: a backup without a database puts no file outside of the data folder.
func TestRestoreStays(t *testing.T) {
	for _, name := range []string{"files/../evil", "files/x/../../evil", "files/./evil", "files//evil"} {
		above := t.TempDir()
		dir, archive := filepath.Join(above, "data"), filepath.Join(above, "a.tar.gz")
		want(t, os.Mkdir(dir, 0o700), nil)
		want(t, os.WriteFile(archive, archived(t, [2]string{manifestName, `{"format":1,"engine":"postgres"}`}, [2]string{name, "x"}), 0o600), nil)
		if _, err := Restore(t.Context(), archive, dir, filepath.Join(dir, "xiaozhi.db"), at(0)); !errors.Is(err, ErrArchive) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(above, "evil")); err == nil {
			t.Errorf("%s is outside", name)
		}
	}
}

// archived is an archive of files with their content.
func archived(tb testing.TB, files ...[2]string) []byte {
	tb.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o600}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// FuzzRestore: whatever an archive holds, only files of the data folder change, and only if it is one.
func FuzzRestore(f *testing.F) {
	head := [2]string{manifestName, `{"format":1,"engine":"postgres"}`}
	f.Add(archived(f, head, [2]string{"files/prompts/a.md", "x"}), "", "")
	f.Add([]byte(nil), "files/../evil", `{"format":1,"engine":"postgres"}`)
	f.Add([]byte("\x1f\x8b\x08"), "files/x/../../evil", `{"format":1}`)
	f.Add([]byte(nil), "xiaozhi.db", `{"format":1,"engine":"sqlite"}`)
	f.Add([]byte(nil), "/", `{"format":1}`)
	f.Fuzz(func(t *testing.T, content []byte, name, first string) {
		if name != "" { // an archive that can be read, more often than by chance
			if content = nil; len(name) < 100 && !strings.HasSuffix(name, "/") && utf8.ValidString(name) && !strings.ContainsRune(name, 0) {
				content = archived(t, [2]string{manifestName, first}, [2]string{name, "x"})
			}
		}
		above := t.TempDir()
		dir, archive := filepath.Join(above, "data"), filepath.Join(above, "a.tar.gz")
		want(t, os.Mkdir(dir, 0o700), nil)
		want(t, os.WriteFile(archive, content, 0o600), nil)
		_, err := Restore(t.Context(), archive, dir, filepath.Join(dir, "xiaozhi.db"), at(0))
		if found, _ := os.ReadDir(above); len(found) != 2 {
			t.Errorf("%v lie beside the data folder after %v", found, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(left) > 0 {
			t.Errorf("%v is left after %v", left, err)
		}
	})
}

// TestRestoreNewer: a backup of a newer program changes nothing.
func TestRestoreNewer(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.tar.gz")
	s := openFile(t, filepath.Join(dir, "x.db"))
	_, err := s.db.now.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)")
	want(t, err, nil)
	want(t, s.Backup(t.Context(), archive, nil), nil)
	fresh := filepath.Join(dir, "fresh")
	want(t, os.Mkdir(fresh, 0o700), nil)
	_, err = Restore(t.Context(), archive, fresh, filepath.Join(fresh, "xiaozhi.db"), at(0))
	if newer, ok := errors.AsType[*NewerError](err); !ok || newer.Has != 999 {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(fresh, "xiaozhi.db")); err == nil {
		t.Error("it was restored")
	}
}

// TestRestoreBroken: a damaged database is set aside as it is.
func TestRestoreBroken(t *testing.T) {
	dir := t.TempDir()
	archive, path := filepath.Join(dir, "a.tar.gz"), filepath.Join(dir, "xiaozhi.db")
	whole := made(t, path, 50)
	s, err := Open(t.Context(), Options{Path: path})
	want(t, err, nil)
	want(t, s.Backup(t.Context(), archive, nil), nil)
	want(t, s.Close(), nil)
	want(t, os.WriteFile(path, whole[:5000], 0o600), nil)
	want(t, os.WriteFile(path+"-wal", []byte("rest"), 0o600), nil)
	aside, err := Restore(t.Context(), archive, dir, path, at(0))
	want(t, err, nil)
	if old, err := os.ReadFile(filepath.Join(aside, "xiaozhi.db")); err != nil || !bytes.Equal(old, whole[:5000]) {
		t.Errorf("%d bytes were set aside, %v", len(old), err)
	}
	s = openFile(t, path)
	if turns, err := s.Turns.List(t.Context(), "m", Page{Limit: 100}); err != nil || len(turns) != 50 {
		t.Error(len(turns), err)
	}
}

// TestAllBackups: the backups of the folder are listed with why each was made, the newest first, and no two are made at once;
// who has a device forgotten waits for the other.
func TestAllBackups(t *testing.T) {
	dir := t.TempDir()
	s := openFile(t, filepath.Join(dir, "x.db"))
	b := &Backups{Store: s, Dir: filepath.Join(dir, "backups"), Log: slog.New(slog.DiscardHandler)}
	if all := b.All(); len(all) != 0 {
		t.Errorf("%v", all)
	}
	made, err := b.Make(t.Context(), Nightly)
	want(t, err, nil)
	for name, content := range map[string][]byte{
		"xiaozhi-20200102T030405Z.tar.gz":      archived(t, [2]string{manifestName, `{"format":1,"engine":"sqlite"}`}),
		"xiaozhi-20200103T030405Z.tar.gz":      []byte("half of it"),
		"schema-12-20200101T030405.123Z.db":    []byte("a copy"),
		"xiaozhi-mine.tar.gz":                  nil,
		"xiaozhi-20200104T030405Z.tar.gz.part": nil,
	} {
		want(t, os.WriteFile(filepath.Join(b.Dir, name), content, 0o600), nil)
	}
	all := b.All()
	if len(all) != 4 {
		t.Fatalf("%+v", all)
	}
	for i, c := range []Copy{{Path: made, Cause: Nightly}, {Path: "xiaozhi-20200103T030405Z.tar.gz"}, {Path: "xiaozhi-20200102T030405Z.tar.gz"}, {Path: "schema-12-20200101T030405.123Z.db", Cause: BeforeUpgrade}} {
		got := all[i]
		if filepath.Base(got.Path) != filepath.Base(c.Path) || got.Cause != c.Cause || got.Size == 0 || (got.Bad != nil) != (i == 1) {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if at := all[3].At; !at.Equal(time.Date(2020, 1, 1, 3, 4, 5, 123e6, time.UTC)) {
		t.Errorf("the copy is of %v", at)
	}

	var during error
	var renewed chan error
	other := &Backups{Store: s, Dir: b.Dir, Log: b.Log}
	b.Files = func() ([]File, error) {
		if renewed == nil {
			if !other.Running() {
				t.Error("it is not known that a backup is made")
			}
			_, during = other.Make(t.Context(), ByHand)
			renewed = make(chan error, 1)
			go func() { renewed <- other.Renew(t.Context()) }()
		}
		return nil, nil
	}
	_, err = b.Make(t.Context(), ByHand)
	want(t, err, nil)
	if !errors.Is(during, ErrBackupRuns) {
		t.Errorf("beside another: %v", during)
	}
	want(t, <-renewed, nil)
	if all := b.All(); len(all) != 1 || all[0].Cause != AfterForget || b.Running() {
		t.Errorf("%+v", all)
	}
}

func TestBackupDue(t *testing.T) {
	zone := time.FixedZone("+8", 8*3600)
	when := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 30, 0, 0, zone) }
	for _, test := range []struct {
		last, now time.Time
		want      bool
	}{
		{when(21, 3), when(22, 2), false},
		{when(21, 3), when(22, 3), true},
		{when(21, 2), when(22, 2), true}, // the hour of the day before was missed
		{when(22, 1), when(22, 2), false},
		{when(22, 3), when(22, 23), false},
		{when(10, 3), when(22, 1), true},
		{when(23, 3), when(22, 4), false},
	} {
		if got := backupDue(test.last, test.now, zone); got != test.want {
			t.Errorf("last %v now %v: %v", test.last, test.now, got)
		}
	}
}

// TestNightly: each night there is one backup more, and seven stay.
func TestNightly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nas [1]") // the signs of a pattern
	want(t, os.Mkdir(dir, 0o700), nil)
	mine := filepath.Join(dir, "xiaozhi-mine.tar.gz")
	want(t, os.WriteFile(mine, nil, 0o600), nil)
	path := filepath.Join(t.TempDir(), "x.db")
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), Options{Path: path})
		want(t, err, nil)
		b := &Backups{Store: s, Dir: dir, Zone: func() *time.Location { return time.UTC }, Log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { b.Run(ctx); close(done) }()
		time.Sleep(time.Hour) // the program is new: there is nothing to keep yet
		if all := b.list(); len(all) != 0 {
			t.Errorf("%v", all)
		}
		for night := range 10 {
			time.Sleep(24 * time.Hour)
			if all := b.list(); len(all) != min(night+1, 7) {
				t.Errorf("after %d nights: %v", night+1, all)
			}
		}
		stop()
		<-done
		want(t, s.Close(), nil)
	})
	if _, err := os.Stat(mine); err != nil {
		t.Error("a backup of somebody else was deleted:", err)
	}
}

// TestNightsOff: a server that is switched off each night backs up in the morning, once there is something to keep, and
// clears away what it was killed over.
func TestNightsOff(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, at(0).Format(backupName)+partEnd)
	want(t, os.WriteFile(left, []byte("half of it"), 0o600), nil)
	path := filepath.Join(t.TempDir(), "x.db")
	synctest.Test(t, func(t *testing.T) {
		for day := range 3 {
			time.Sleep(8 * time.Hour)
			s, err := Open(t.Context(), Options{Path: path})
			want(t, err, nil)
			b := &Backups{Store: s, Dir: dir, Zone: func() *time.Location { return time.UTC }, Log: slog.New(slog.DiscardHandler)}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { b.Run(ctx); close(done) }()
			time.Sleep(time.Hour)
			if all := b.list(); len(all) != day {
				t.Errorf("day %d: %v", day, all)
			}
			d := Identity{ID: "m", Address: "m", State: DevicePaired, FirstAt: time.Now().Add(time.Duration(-day) * 24 * time.Hour)}
			want(t, s.Devices.Commit(t.Context(), DeviceChange{Save: []Identity{d}}), nil)
			time.Sleep(15 * time.Hour)
			stop()
			<-done
			want(t, s.Close(), nil)
		}
	})
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Error("half of a backup is left:", err)
	}
}
