package letters

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

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/mail/storetest"
	"xiaozhi/internal/testall"
	"xiaozhi/store"
)

// What tells the test's own program that it is a server that will be killed.
const (
	childEnv  = "LETTERS_CHILD"  // the database
	finishEnv = "LETTERS_FINISH" // it sends nothing more, and ends when all letters are over
)

const soakDevices = 64

func deviceName(i int) string { return fmt.Sprintf("device%02d", i) }

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if err := runChild(context.Background(), path, os.Getenv(finishEnv) != ""); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runChild sends letters to devices that come and go as fast as it can, and says on its standard output which it has sent, and of
// which the sound has begun.
func runChild(ctx context.Context, path string, finish bool) error {
	s, err := store.Open(ctx, store.Options{Path: path})
	if err != nil {
		return err
	}
	defer s.Close()
	office := mail.New(ctx, mail.Options{Store: New(s.Outbox), NewID: store.NewID})
	if err := office.Start(ctx); err != nil {
		return err
	}
	defer office.Close()
	var out sync.Mutex
	say := func(what, text string) {
		out.Lock()
		defer out.Unlock()
		fmt.Println(what, text)
	}
	var devices sync.WaitGroup
	over := make(chan struct{})
	for i := range soakDevices {
		devices.Go(func() {
			for n := uint64(0); ; n++ {
				l := &storetest.Listener{Device: deviceName(i), Heard: func(text string) { say("began", text) }, Takes: func() time.Duration { return 3 * time.Millisecond }}
				stop := l.Talk(office, n+uint64(os.Getpid()))
				stay := time.After(time.Duration(50+rand.IntN(400)) * time.Millisecond) //nolint:gosec // a storm
				if finish {
					stay = nil
				}
				select {
				case <-stay:
				case <-over:
				}
				stop()
				select {
				case <-over:
					return
				case <-time.After(time.Duration(rand.IntN(100)) * time.Millisecond): //nolint:gosec // a storm
				}
			}
		})
	}
	for run := time.Now().UnixNano(); !finish; {
		text := fmt.Sprintf("letter-%d-%s", run, store.NewID())
		if l, err := office.Send(ctx, mail.Letter{Device: deviceName(rand.IntN(soakDevices)), Text: text}); err == nil { //nolint:gosec // a storm
			say("sent", l.ID)
		}
	}
	for open := true; open; time.Sleep(50 * time.Millisecond) {
		all, err := office.List(ctx, mail.Filter{Open: true, Limit: 1})
		if err != nil {
			return err
		}
		open = len(all) > 0
	}
	close(over)
	devices.Wait()
	return nil
}

// TestSoakKilled: of 10 000 letters of a server that is killed again and again, in the midst of whatever it does, each that was
// confirmed is there, and is told once, or not at all, and its fate says so.
func TestSoakKilled(t *testing.T) {
	testall.Only(t)
	path := filepath.Join(t.TempDir(), "x.db")
	s, err := store.Open(t.Context(), store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	var all []store.Identity
	for i := range soakDevices {
		all = append(all, store.Identity{ID: deviceName(i), Address: deviceName(i), State: store.DevicePaired, FirstAt: time.Now(), SeenAt: time.Now(), SinceAt: time.Now()})
	}
	if err := s.Devices.Commit(t.Context(), store.DeviceChange{Save: all}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ledger, sent, kills := storetest.NewLedger(), map[string]bool{}, 0
	run := func(finish bool) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), childEnv+"="+path)
		if finish {
			cmd.Env = append(cmd.Env, finishEnv+"=1")
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !finish {
			time.AfterFunc(time.Duration(300+rand.IntN(3000))*time.Millisecond, func() { _ = cmd.Process.Signal(syscall.SIGKILL) }) //nolint:gosec // at any time
		}
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			switch what, text, _ := strings.Cut(lines.Text(), " "); what {
			case "sent":
				sent[text] = true
			case "began":
				ledger.Hear(text)
			default:
				t.Error(lines.Text())
			}
		}
		if err := cmd.Wait(); finish && err != nil {
			t.Error(err)
		}
	}
	for len(sent) < 10000 {
		run(false)
		kills++
	}
	run(true)
	if s, err = store.Open(t.Context(), store.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var letters []mail.Letter
	for before := (mail.Cursor{}); ; {
		page, err := New(s.Outbox).List(t.Context(), mail.Filter{Before: before, Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		letters = append(letters, page...)
		last := page[len(page)-1]
		before = mail.Cursor{At: last.Made, ID: last.ID}
	}
	there := map[string]bool{}
	for _, l := range letters {
		there[l.ID] = true
	}
	for id := range sent {
		if !there[id] {
			t.Errorf("%s was confirmed, and is not there", id)
		}
	}
	t.Logf("%d letters confirmed, %d kept, %d kills", len(sent), len(letters), kills)
	ledger.Check(t, letters)
}
