package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xiaozhi/internal/testall"
)

// childEnv names the database on which the test's own program works as a server that will be killed.
const childEnv = "STORE_CHILD"

// runChild writes promises of each kind and turns as fast as it can, and says each promise that was kept on its standard output.
func runChild() {
	ctx := context.Background()
	s, err := Open(ctx, Options{Path: os.Getenv(childEnv)})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	run := time.Now().UnixNano()
	var out sync.Mutex
	say := func(kind, id string, err error) {
		out.Lock()
		defer out.Unlock()
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(kind, id)
	}
	device := fmt.Sprintf("d%d", run)
	say("device", device, s.Devices.Commit(ctx, DeviceChange{Save: []Identity{{ID: device, Address: device, State: DevicePaired}}}))
	go func() {
		for i := 0; ; i++ {
			id := fmt.Sprintf("r%d-%d", run, i)
			say("reminder", id, s.Reminders.Add(ctx, Reminder{ID: id, DeviceID: device, Kind: "timer", State: "armed", DueAt: time.Now()}))
		}
	}()
	go func() {
		for i := 0; ; i++ {
			id := fmt.Sprintf("%s-%d", device, i)
			say("device", id, s.Devices.Commit(ctx, DeviceChange{Save: []Identity{{ID: id, Address: id, State: DevicePaired}}}))
		}
	}()
	go func() {
		for i := 0; ; i++ {
			id := fmt.Sprintf("s%d-%d", run, i)
			say("agent", id, s.Agents.Put(ctx, id, "", AgentRevision{Rev: 1, Doc: "{}"}, 9))
			say("secret", id, s.Secrets.Put(ctx, Secret{Name: id, Sealed: "x"}))
			say("user", id, s.Users.Add(ctx, User{ID: id, Name: id, Role: Member}))
		}
	}()
	for i := 0; ; i++ {
		s.Log.Put(turnOf(device, device, i))
		if i%50 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// TestKill: a server that is killed under load at any moment has kept every promise, and no turn is there in half.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	kept := map[string][]string{} // by kind
	for range testall.Pick(200, 6) {
		said := killAfter(t, path, time.Duration(rand.Int64N(int64(400*time.Millisecond))))
		for _, line := range said {
			kind, id, _ := strings.Cut(line, " ")
			if kind == "error" {
				t.Fatal("the child:", id)
			}
			kept[kind] = append(kept[kind], id)
		}
		checkKilled(t, path, kept)
		if t.Failed() {
			return
		}
	}
	s := openFile(t, path)
	turns, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM turns")
	t.Logf("%d reminders, %d devices, %d agents, %d secrets, %d users, %d turns %v",
		len(kept["reminder"]), len(kept["device"]), len(kept["agent"]), len(kept["secret"]), len(kept["user"]), turns, err)
	if len(kept["reminder"]) == 0 || turns == 0 {
		t.Error("the children did nothing")
	}
}

// killAfter runs a child, kills it after a time from its first word on, and returns what it said.
func killAfter(t *testing.T, path string, after time.Duration) (said []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	want(t, err, nil)
	want(t, cmd.Start(), nil)
	lines := bufio.NewReader(out)
	for begun := false; ; begun = true {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line without an end was not said
		}
		if !begun {
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		said = append(said, strings.TrimSuffix(line, "\n"))
	}
	_ = cmd.Wait() // it was killed
	return said
}

// checkKilled looks into what a child has left.
func checkKilled(t *testing.T, path string, kept map[string][]string) {
	t.Helper()
	s, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for kind, table := range map[string]string{
		"reminder": "id FROM reminders", "device": "id FROM devices", "secret": "name FROM secrets", "user": "name FROM users",
		"agent": "a.slug FROM agents a JOIN agent_revisions r ON r.agent_id = a.id AND r.rev = a.rev",
	} {
		there := map[string]bool{}
		rows, err := s.db.read.QueryContext(t.Context(), "SELECT "+table)
		want(t, err, nil)
		for rows.Next() {
			var id string
			want(t, rows.Scan(&id), nil)
			there[id] = true
		}
		want(t, rows.Close(), nil)
		for _, id := range kept[kind] {
			if !there[id] {
				t.Errorf("%s %s was promised and is lost", kind, id)
			}
		}
	}
	half, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM turns WHERE (SELECT COUNT(*) FROM messages WHERE turn_id = turns.id) <> 2 "+
		"OR (SELECT COUNT(*) FROM tool_calls WHERE turn_id = turns.id) <> 1")
	if half != 0 || err != nil {
		t.Errorf("%d turns are there in half: %v", half, err)
	}
	counted, err := count(t.Context(), s.db.read, "SELECT COUNT(*) FROM conversations c WHERE turns <> (SELECT COUNT(*) FROM turns WHERE conversation_id = c.id)")
	if counted != 0 || err != nil {
		t.Errorf("%d conversations have another number of turns: %v", counted, err)
	}
	var said string
	if err := s.db.now.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&said); err != nil || said != "ok" {
		t.Errorf("integrity_check: %s %v", said, err)
	}
}
