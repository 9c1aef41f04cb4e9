package store

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

// cluster is a PostgreSQL of these tests alone: in a temporary folder, reached by a socket there, not as root.
type cluster struct {
	dir    string
	server *exec.Cmd
	made   int
	mu     sync.Mutex
}

// shared is the cluster of all tests; TestMain ends it.
var shared = sync.OnceValues(startCluster)

var errNoPostgres = errors.New("PostgreSQL is not installed (Debian: postgresql-15)")

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		runChild()
		return
	}
	code := m.Run()
	if started {
		if c, err := shared(); err == nil {
			c.stop()
		}
	}
	os.Exit(code)
}

// started says that shared was called.
var started bool

// postgresURL is the address of an empty database.
func postgresURL(t *testing.T) string {
	t.Helper()
	started = true
	c, err := shared()
	if errors.Is(err, errNoPostgres) {
		t.Skip("NOT TESTED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.made++
	name := fmt.Sprintf("t%d", c.made)
	c.mu.Unlock()
	conn, err := pgx.Connect(t.Context(), c.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return c.url(name)
}

// findPostgres returns the folder of PostgreSQL's programs.
func findPostgres() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.Sort(found)
	if len(found) == 0 {
		return "", errNoPostgres
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// unprivileged makes a command run as somebody who is not root, for PostgreSQL refuses that.
func unprivileged(cmd *exec.Cmd) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var who *user.User
	var err error
	for _, name := range []string{"postgres", "nobody"} {
		if who, err = user.Lookup(name); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	uid, _ := strconv.ParseUint(who.Uid, 10, 32)
	gid, _ := strconv.ParseUint(who.Gid, 10, 32)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return nil
}

func startCluster() (c *cluster, err error) {
	bin, err := findPostgres()
	if err != nil {
		return nil, err
	}
	c = &cluster{}
	if c.dir, err = os.MkdirTemp("/tmp", "xiaozhi-pg-"); err != nil { // a path of a socket must be short
		return nil, err
	}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	command := func(name string, args ...string) (*exec.Cmd, *bytes.Buffer, error) {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "LC_ALL=C", "TZ=UTC")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		return cmd, &out, unprivileged(cmd)
	}
	data := filepath.Join(c.dir, "data")
	initdb, out, err := command("initdb", "-D", data, "-U", "xiaozhi", "--auth=trust", "-E", "UTF8", "--no-sync")
	if err != nil {
		return nil, err
	}
	if attr := initdb.SysProcAttr.Credential; attr != nil {
		if err := os.Chown(c.dir, int(attr.Uid), int(attr.Gid)); err != nil {
			return nil, err
		}
	}
	if err := initdb.Run(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	server, out, err := command("postgres", "-D", data, "-k", c.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=100")
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	c.server = server
	for range 200 {
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		conn, err := pgx.Connect(ctx, c.url("postgres"))
		stop()
		if err == nil {
			return c, conn.Close(context.Background())
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, fmt.Errorf("PostgreSQL does not start: %s", out)
}

func (c *cluster) url(name string) string {
	return "postgres:///" + name + "?user=xiaozhi&host=" + url.QueryEscape(c.dir)
}

func (c *cluster) stop() {
	if c.server != nil {
		_ = c.server.Process.Signal(syscall.SIGINT) // a fast shutdown
		_ = c.server.Wait()
	}
	_ = os.RemoveAll(c.dir)
}
