package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

// made makes a database with something in it and returns its file's content.
func made(t *testing.T, path string, turns int) []byte {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path})
	want(t, err, nil)
	addDevice(t, s, "m")
	for i := range turns {
		s.Log.Put(turnOf("m", "c", i))
		if i%200 == 0 {
			flush(t, s)
		}
	}
	want(t, s.Close(), nil)
	content, err := os.ReadFile(path)
	want(t, err, nil)
	return content
}

// TestBrokenFile: a file that is damaged or of something else is refused, with what to do, and stays as it is.
func TestBrokenFile(t *testing.T) {
	whole := made(t, filepath.Join(t.TempDir(), "x.db"), 500)
	for name, content := range map[string][]byte{
		"text":      []byte("these are not the bytes of a database, but of a letter"),
		"short":     []byte("SQLite for"),
		"truncated": whole[:len(whole)/2],
		"header":    whole[:100],
		"page":      slices.Concat(whole[:8192], bytes.Repeat([]byte{0xa5}, 20_000), whole[28192:]),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "xiaozhi.db")
			backup := filepath.Join(dir, "backups", "schema-1-x.db")
			want(t, os.Mkdir(filepath.Dir(backup), 0o700), nil)
			want(t, os.WriteFile(backup, whole, 0o600), nil)
			want(t, os.WriteFile(path, content, 0o600), nil)
			for range 2 { // the lock is free again
				_, err := Open(t.Context(), Options{Path: path, Backups: filepath.Dir(backup)})
				if e, ok := errors.AsType[*BrokenError](err); !ok || e.Path != path || e.Backup != backup || !strings.Contains(err.Error(), backup) {
					t.Fatalf("error %v", err)
				}
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
				t.Errorf("the file was changed: %d bytes of %d, %v", len(now), len(content), err)
			}
		})
	}
}

// TestForeignFile: a database of another program is refused.
func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	d := &database{path: path, health: &health{}}
	want(t, d.connect(nil), nil)
	_, err := d.now.ExecContext(t.Context(), "CREATE TABLE songs (id INTEGER)")
	want(t, errors.Join(err, d.close()), nil)
	_, err = Open(t.Context(), Options{Path: path})
	if e, ok := errors.AsType[*ForeignError](err); !ok || e.Path != path {
		t.Errorf("error %v", err)
	}
}

// nextSchema is the program's schema, of the version knows, and one step more.
func nextSchema(t *testing.T) (files fstest.MapFS, knows int64) {
	t.Helper()
	files = fstest.MapFS{"99999_next.sql": {Data: []byte("-- +goose Up\nCREATE TABLE pets (id TEXT PRIMARY KEY, picture BLOB);\nINSERT INTO pets VALUES ('cat', NULL);\n")}}
	all, err := fs.ReadDir(migrations, "migrations")
	want(t, err, nil)
	for _, f := range all {
		content, err := fs.ReadFile(migrations, "migrations/"+f.Name())
		want(t, err, nil)
		files[f.Name()] = &fstest.MapFile{Data: content}
		number, _, _ := strings.Cut(f.Name(), "_")
		knows, err = strconv.ParseInt(number, 10, 64)
		want(t, err, nil)
	}
	return files, knows
}

// TestMigration: before the schema is changed the file is copied, and a program that does not know the new one is
// told which copy it may take.
func TestMigration(t *testing.T) {
	dir := t.TempDir()
	path, backups := filepath.Join(dir, "xiaozhi.db"), filepath.Join(dir, "backups")
	made(t, path, 10)
	files, knows := nextSchema(t)
	newer := Options{Path: path, Backups: backups, hooks: hooks{migrations: files}}
	for range 2 {
		s, err := Open(t.Context(), newer)
		want(t, err, nil)
		if n, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM turns, pets"); n != 10 || err != nil {
			t.Error(n, err)
		}
		want(t, s.Close(), nil)
	}
	copies, err := filepath.Glob(filepath.Join(backups, "*"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("copies %v %v", copies, err)
	}
	if info, err := os.Stat(copies[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	before, err := os.ReadFile(path)
	want(t, err, nil)
	_, err = Open(t.Context(), Options{Path: path, Backups: backups})
	if e, ok := errors.AsType[*NewerError](err); !ok || e.Has != 99999 || e.Knows != knows || e.Backup != copies[0] || !strings.Contains(err.Error(), copies[0]) {
		t.Errorf("error %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the file was changed: %v", err)
	}
	want(t, os.Rename(copies[0], path), nil)
	s := openFile(t, path)
	if turns, err := s.Turns.List(t.Context(), "m", Page{}); err != nil || len(turns) != 10 {
		t.Error(len(turns), err)
	}
}

// TestOldSchema: what a program of the first schema has written is there with the one of today.
func TestOldSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "xiaozhi.db")
	files, _ := nextSchema(t)
	first := fstest.MapFS{"00001_first.sql": files["00001_first.sql"]}
	old, err := Open(t.Context(), Options{Path: path, hooks: hooks{migrations: first}})
	want(t, err, nil)
	for _, row := range []string{
		"INSERT INTO agents (id, slug, rev) VALUES ('a', 'pirate', 2)",
		"INSERT INTO devices (id, address, client, state, keeps, told, first_at, agent_id) VALUES ('m', 'm', '', 'paired', TRUE, TRUE, 1, 'a')",
		"INSERT INTO conversations (id, device_id, agent_id, began_at) VALUES ('c', 'm', 'a', 1)",
		"INSERT INTO turns (id, conversation_id, device_id, seq, at, kind, agent_rev, heard, cause) VALUES ('t', 'c', 'm', 1, 1, 'user', 2, 'hello', 'done')",
	} {
		_, err := old.db.now.ExecContext(t.Context(), row)
		want(t, err, nil)
	}
	want(t, old.Close(), nil)
	s := openFile(t, path)
	if turn, _, _, err := s.Turns.Get(t.Context(), "t"); err != nil || turn.Heard != "hello" || turn.AgentRev != 2 || turn.AgentID != "" {
		t.Errorf("%+v %v", turn, err)
	}
	if given, err := s.Agents.Assigned(t.Context()); err != nil || given["m"] != (Assignment{"pirate", 0}) {
		t.Errorf("%v %v", given, err)
	}
}

// TestMigrationFails: a step that fails leaves nothing of itself.
func TestMigrationFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	made(t, path, 1)
	files, _ := nextSchema(t)
	files["99999_next.sql"].Data = append(files["99999_next.sql"].Data, "INSERT INTO pets VALUES ('cat', NULL);\n"...)
	if _, err := Open(t.Context(), Options{Path: path, hooks: hooks{migrations: files}}); err == nil {
		t.Error("it has not failed")
	}
	s := openFile(t, path)
	if n, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'pets'"); n != 0 || err != nil {
		t.Error(n, err)
	}
}

// TestPostgresMigration: the words of SQLite are swapped, and a newer schema is refused.
func TestPostgresMigration(t *testing.T) {
	url := postgresURL(t)
	files, knows := nextSchema(t)
	s, err := Open(t.Context(), Options{URL: url, hooks: hooks{migrations: files}})
	want(t, err, nil)
	if n, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM information_schema.columns WHERE column_name = 'picture' AND data_type = 'bytea'"); n != 1 || err != nil {
		t.Error(n, err)
	}
	want(t, s.Close(), nil)
	_, err = Open(t.Context(), Options{URL: url})
	if e, ok := errors.AsType[*NewerError](err); !ok || e.Has != 99999 || e.Knows != knows {
		t.Errorf("error %v", err)
	}
}

// TestServersStartAtOnce: servers that find a new database together take each step of the schema once.
func TestServersStartAtOnce(t *testing.T) {
	url := postgresURL(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s, err := Open(t.Context(), Options{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestPostgresAway: a server that cannot be reached is named without the password.
func TestPostgresAway(t *testing.T) {
	for _, url := range []string{"postgres://me:geheim@127.0.0.1:1/x", "postgres://me:geheim@127.0.0.1:port/x"} {
		if _, err := Open(t.Context(), Options{URL: url}); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("error %v", err)
		}
	}
}

// TestLock: two servers do not share a file, and a command may use it beside a server.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s := openFile(t, path)
	addDevice(t, s, "m")
	_, err := Open(t.Context(), Options{Path: path})
	if e, ok := errors.AsType[*LockedError](err); !ok || e.PID != os.Getpid() {
		t.Errorf("error %v", err)
	}
	tool := open(t, Options{Path: path, Tool: true})
	addDevice(t, tool, "n")
	if all, _, err := s.Devices.Identities(t.Context()); err != nil || len(all) != 2 {
		t.Error(len(all), err)
	}
	files, _ := nextSchema(t)
	_, err = Open(t.Context(), Options{Path: path, Tool: true, hooks: hooks{migrations: files}})
	if _, ok := errors.AsType[*LockedError](err); !ok {
		t.Errorf("a command changed the schema under a server: %v", err)
	}
}

// TestFileModes: nobody else may read the files, whatever they were before.
func TestFileModes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "x.db")
	want(t, os.Mkdir(filepath.Dir(path), 0o755), nil)
	want(t, os.WriteFile(path, nil, 0o644), nil)
	s := openFile(t, path)
	addDevice(t, s, "m")
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) != 4 {
		t.Errorf("%v %v", files, err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
}

// TestNetworkFilesystem: where shared memory does not work the journal is another, and Health says so.
func TestNetworkFilesystem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	made(t, path, 5) // it was on a disk before
	nas := Options{Path: path, hooks: hooks{filesystem: func(string) string { return "nfs" }}}
	s := open(t, nas)
	s.Log.Put(turnOf("m", "c", 6))
	flush(t, s)
	if turns, err := s.Turns.List(t.Context(), "m", Page{}); err != nil || len(turns) != 6 {
		t.Error(len(turns), err)
	}
	var mode string
	if err := s.db.later.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "truncate" {
		t.Error(mode, err)
	}
	if h := s.Health(); h.Network != "nfs" || !slices.Equal(h.Trouble, []Trouble{TroubleNoWAL}) {
		t.Errorf("%+v", h)
	}
	if files, _ := filepath.Glob(path + "-*"); slices.Contains(files, path+"-shm") {
		t.Errorf("%v", files)
	}
}

func TestSettings(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "a b?c#d%.db"))
	for _, c := range []struct {
		name string
		want string
		db   queryer
	}{
		{"synchronous", "2", s.db.now},
		{"synchronous", "1", s.db.later},
		{"journal_mode", "wal", s.db.now},
		{"foreign_keys", "1", s.db.later},
		{"secure_delete", "1", s.db.now},
		{"secure_delete", "1", s.db.later},
		{"query_only", "1", s.db.read},
		{"busy_timeout", "5000", s.db.read},
	} {
		rows, err := c.db.QueryContext(t.Context(), "PRAGMA "+c.name)
		want(t, err, nil)
		var got string
		rows.Next()
		if err := rows.Scan(&got); err != nil || got != c.want {
			t.Errorf("%s is %s, want %s: %v", c.name, got, c.want, err)
		}
		rows.Close()
	}
	if _, err := os.Stat(s.db.path); err != nil {
		t.Error(err)
	}
}

func TestNetworkName(t *testing.T) {
	for magic, want := range map[int64]string{0x6969: "nfs", 0xff534d42: "smb", -0xACB2BE: "smb", 0x65735546: "fuse", 0xef53: "", 0x01021994: ""} {
		if got := networkName(magic); got != want {
			t.Errorf("%x: %q, want %q", magic, got, want)
		}
	}
	if got := networkFilesystem(filepath.Join(t.TempDir(), "nothing")); got != "" {
		t.Error(got)
	}
}

// TestParameters: SQLite counts parameters as they come, PostgreSQL by their names: they agree where each name comes
// first after those with smaller numbers.
func TestParameters(t *testing.T) {
	files, err := filepath.Glob("*.go")
	want(t, err, nil)
	literal, mark := regexp.MustCompile(`"[^"\n]*\$\d[^"\n]*"(?: ?\+\s*(?:\w+ ?\+\s*)?"[^"\n]*")*`), regexp.MustCompile(`\$(\d+)`)
	n := 0
	for _, name := range files {
		content, err := os.ReadFile(name)
		want(t, err, nil)
		for _, text := range literal.FindAllString(string(content), -1) {
			n++
			before := 0
			for _, m := range mark.FindAllStringSubmatch(text, -1) {
				var at int
				fmt.Sscan(m[1], &at)
				if before > 0 && at > before+1 {
					t.Errorf("%s: $%d comes after $%d in %s", name, at, before, text)
				}
				before = max(before, at)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d statements", n)
	}
}

// TestLook: a look beside a server, or before there is anything, makes and changes nothing.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "x.db")
	look := func() (*Store, error) { return Open(t.Context(), Options{Path: path, Look: true}) }
	if _, err := look(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is there: %v", err)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) > 0 {
		t.Errorf("it made %v", all)
	}
	want(t, os.Mkdir(filepath.Dir(path), 0o700), nil)
	want(t, os.WriteFile(path, nil, 0o600), nil)
	if _, err := look(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty file: %v", err)
	}
	running := openFile(t, path)
	want(t, running.Secrets.Put(t.Context(), Secret{Name: "a", Sealed: "x"}), nil)
	s, err := look()
	want(t, err, nil)
	if got, err := s.Secrets.Get(t.Context(), "a"); err != nil || got.Sealed != "x" {
		t.Errorf("%+v %v", got, err)
	}
	want(t, s.Close(), nil)
	path = filepath.Join(dir, "letter.db")
	want(t, os.WriteFile(path, []byte("a letter that is no database"), 0o600), nil)
	if _, err := look(); !isBroken(err) {
		t.Errorf("a broken file: %v", err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "a letter that is no database" {
		t.Errorf("it was changed: %v", err)
	}
}

func isBroken(err error) bool {
	_, ok := errors.AsType[*BrokenError](err)
	return ok
}

// TestLookAtPostgres: an empty database stays empty.
func TestLookAtPostgres(t *testing.T) {
	o := Options{URL: postgresURL(t), Look: true}
	for range 2 {
		if _, err := Open(t.Context(), o); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an empty database: %v", err)
		}
	}
	s, err := Open(t.Context(), Options{URL: o.URL})
	want(t, err, nil)
	want(t, s.Secrets.Put(t.Context(), Secret{Name: "a", Sealed: "x"}), nil)
	want(t, s.Close(), nil)
	s, err = Open(t.Context(), o)
	want(t, err, nil)
	if got, err := s.Secrets.Get(t.Context(), "a"); err != nil || got.Sealed != "x" {
		t.Errorf("%+v %v", got, err)
	}
	want(t, s.Close(), nil)
}

// TestLockFreedBesideChildren: a database can be opened again while a child that was forked before has its files still.
func TestLockFreedBesideChildren(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := Open(t.Context(), Options{Path: path})
	want(t, err, nil)
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(open) == 0 {
		t.Skip("this system does not list the files that a process has open")
	}
	for _, name := range open {
		if to, err := os.Readlink(name); err != nil || to != lockFile(path) {
			continue
		}
		fd, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			t.Fatal(err)
		}
		child, err := unix.Dup(fd) // as fork does
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(child)
	}
	want(t, s.Close(), nil)
	openFile(t, path)
}
