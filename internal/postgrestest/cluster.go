// Package postgrestest starts a PostgreSQL for the tests of one package: in a temporary folder, reached by a socket there,
// and never as root.
package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Cluster is a PostgreSQL with a database for each test. The zero value is ready: the first [Cluster.URL] starts it, and
// TestMain must call [Cluster.Stop]. Its methods may be called at the same time.
type Cluster struct {
	mu     sync.Mutex
	tried  bool
	err    error // why it could not be started
	dir    string
	server *exec.Cmd
	made   int      // databases
	free   []string // databases that no test uses any more, empty
}

var errMissing = errors.New("PostgreSQL is not installed (Debian: postgresql-15)")

// URL returns the address of an empty database. It skips the test if PostgreSQL is not installed.
func (c *Cluster) URL(t *testing.T) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tried {
		c.tried, c.err = true, c.start(context.WithoutCancel(t.Context()))
	}
	if errors.Is(c.err, errMissing) {
		t.Skip("NOT TESTED: ", c.err)
	}
	if c.err != nil {
		t.Fatal(c.err)
	}
	var name string
	if n := len(c.free); n > 0 {
		name, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.made++
		name = fmt.Sprintf("t%d", c.made)
		if err := c.exec(t.Context(), "postgres", "CREATE DATABASE "+name); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { c.putBack(context.WithoutCancel(t.Context()), name) })
	return c.url(name)
}

// putBack empties a database, whose 300 files take longer to make, and keeps it for another test. One
// that is still in use after a second is not used again.
func (c *Cluster) putBack(ctx context.Context, name string) {
	if c.exec(ctx, name, "SET lock_timeout = '1s'; DROP SCHEMA public CASCADE; CREATE SCHEMA public") != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, name)
}

// exec runs statements in a database.
func (c *Cluster) exec(ctx context.Context, name, statements string) error {
	conn, err := pgx.Connect(ctx, c.url(name))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statements)
	return err
}

// Stop ends the server, if there is one, and deletes its files.
func (c *Cluster) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop()
}

func (c *Cluster) stop() {
	if c.server != nil {
		_ = c.server.Process.Signal(syscall.SIGINT) // a fast shutdown
		_ = c.server.Wait()
		c.server = nil
	}
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

func (c *Cluster) url(name string) string {
	return "postgres:///" + name + "?user=xiaozhi&host=" + url.QueryEscape(c.dir)
}

// start makes a cluster and waits until it answers, for ten seconds at most.
func (c *Cluster) start(ctx context.Context) (err error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is right
	if slices.Sort(found); len(found) == 0 {
		return errMissing
	}
	bin := filepath.Dir(found[len(found)-1])
	if c.dir, err = os.MkdirTemp(home(), "xiaozhi-pg-"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	data := filepath.Join(c.dir, "data")
	initdb, out, err := c.command(ctx, bin, "initdb", "-D", data, "-U", "xiaozhi", "--auth=trust", "-E", "UTF8", "--no-sync")
	if err != nil {
		return err
	}
	if attr := initdb.SysProcAttr.Credential; attr != nil {
		if err := os.Chown(c.dir, int(attr.Uid), int(attr.Gid)); err != nil {
			return err
		}
	}
	if err := initdb.Run(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	server, out, err := c.command(context.WithoutCancel(ctx), bin, "postgres", "-D", data, "-k", c.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=100")
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	c.server = server
	for range 200 {
		ctx, stop := context.WithTimeout(ctx, time.Second)
		conn, err := pgx.Connect(ctx, c.url("postgres"))
		if err == nil {
			err = conn.Close(ctx)
			stop()
			return err
		}
		stop()
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("PostgreSQL does not start: %s", out)
}

// home is the folder in which clusters are made. Its path is short, for there is a socket below it. In memory it takes less
// time to make and delete a thousand files; containers often have little room there.
func home() string {
	const memory, need = "/dev/shm", 1 << 30
	var room syscall.Statfs_t
	if err := syscall.Statfs(memory, &room); err != nil || room.Bavail*uint64(room.Bsize) < need {
		return "/tmp"
	}
	return memory
}

// command makes a command of PostgreSQL's that runs as somebody who is not root, for PostgreSQL refuses that.
func (c *Cluster) command(ctx context.Context, bin, name string, args ...string) (*exec.Cmd, *bytes.Buffer, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if os.Geteuid() != 0 {
		return cmd, &out, nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, nil, err
	}
	uid, errUID := strconv.ParseUint(who.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(who.Gid, 10, 32)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return cmd, &out, errors.Join(errUID, errGID)
}
