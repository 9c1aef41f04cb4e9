package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/testall"
	"xiaozhi/store"
)

// promises are what the server has confirmed over all its lives, by kind.
type promises struct {
	speakers int    // that were paired, or are known although nobody was told so
	cookie   string // of the owner's session

	mu   sync.Mutex
	made map[string][]string
}

func (p *promises) add(kind, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made[kind] = append(p.made[kind], what)
}

// of returns what was confirmed of a kind.
func (p *promises) of(kind string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.made[kind])
}

// promised are the kinds of what is confirmed.
func promised() []string {
	return []string{"reminder", "account by HTTP", "account by the command", "session", "pairing"}
}

// missing are the kinds of which nothing was confirmed yet.
func (p *promises) missing() (kinds []string) {
	for _, kind := range promised() {
		if len(p.of(kind)) == 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

const killClient = "9b1f4a3e-4711-4a66-9a5e-0c2b8a6f1d33"

// TestKills: a server that is killed at any moment while it is asked for reminders, accounts and pairings, and talks, has kept
// all that it confirmed. No turn is there in half, and the database is sound.
func TestKills(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), testall.Pick(40*time.Minute, 3*time.Minute))
	defer stop()
	dir, p, kills := t.TempDir(), &promises{made: map[string][]string{}}, testall.Pick(200, 5)
	flash := &devicetest.Flash{}
	for i := range kills {
		if i%10 == 0 { // one that has no reminders yet
			flash = &devicetest.Flash{}
		}
		k := &victim{promises: p, round: i, kitchen: fmt.Sprintf("24:6f:28:4b:00:%02x", i/10), flash: flash}
		k.live(ctx, t, dir)
		k.check(ctx, t, filepath.Join(dir, "data"), i == kills-1)
		if t.Failed() {
			t.Fatalf("after %d kills", i+1)
		}
	}
	for _, kind := range promised() {
		t.Logf("%d of kind %s were confirmed", len(p.made[kind]), kind)
	}
}

// victim is one life of the server.
type victim struct {
	*promises

	server  *server
	base    string
	token   string
	round   int
	kitchen string // id of the device that talks
	flash   *devicetest.Flash
}

// killWait is how long a busy machine may take until the server has confirmed one of each kind and kept a turn.
const killWait = 90 * time.Second

// live starts the server, has it work, and kills it within a second. The first life lasts until one of each kind was
// confirmed, however slow the machine is, and then that second.
func (k *victim) live(ctx context.Context, t *testing.T, dir string) {
	t.Helper()
	s, err := launch(setup{config: "auth: {pairing: ask}\nreminders: {per_device: 1000}\nstore: {backup: 0}\n"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	k.server, k.base = s, strings.TrimSuffix(s.ota, "/xiaozhi/ota/")
	if k.token, err = admintoken.Read(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	begun := make(chan struct{})
	work.Go(func() { k.talk(ctx, begun) })
	work.Go(func() { k.people(ctx) })
	work.Go(func() { k.command(ctx, dir) })
	work.Go(func() { k.pairings(ctx) })
	select {
	case <-begun:
		if len(k.missing()) > 0 {
			k.first(ctx, t, filepath.Join(dir, "data"))
		}
	case <-time.After(killWait):
		t.Errorf("the device could not connect within %v", killWait)
	}
	time.Sleep(rand.N(time.Second))
	_ = s.cmd.Process.Kill()
	<-s.over
	stop() // the commands are killed, too
	work.Wait()
	if lines := strings.Split(s.log.String(), "\n"); t.Failed() {
		t.Logf("the end of the server's log:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// first waits until one of each kind was confirmed, and a turn kept.
func (k *victim) first(ctx context.Context, t *testing.T, data string) {
	t.Helper()
	s, err := store.Open(ctx, store.Options{Path: filepath.Join(data, "xiaozhi.db"), Tool: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for began, talks := time.Now(), 0; len(k.missing()) > 0 || talks == 0; time.Sleep(50 * time.Millisecond) {
		if time.Since(began) > killWait || len(k.of("refused")) > 0 {
			t.Errorf("after %v nothing was confirmed of %q, and %d talks were kept", time.Since(began), k.missing(), talks)
			return
		}
		kept, err := s.Conversations.List(ctx, "", store.Page{Limit: 1})
		if err != nil {
			t.Error(err)
			return
		}
		if talks = len(kept); talks > 0 && kept[0].Turns == 0 {
			talks = 0
		}
	}
}

// order asks the server for something. Status 0: it has not answered.
func (k *victim) order(ctx context.Context, path string, body any, name, value string) (status int, header http.Header, said []byte) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.base+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, nil
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", k.base)
	if name != "" {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil
	}
	defer resp.Body.Close()
	if said, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, nil
	}
	return resp.StatusCode, resp.Header, said
}

// post is order by the admin token, and reports whether it was confirmed.
func (k *victim) post(ctx context.Context, path string, body, answer any) bool {
	status, _, said := k.order(ctx, path, body, "Authorization", "Bearer "+k.token)
	return status == http.StatusOK && json.Unmarshal(said, answer) == nil
}

// pair has a device known, and returns what it was told. It has no code if it is known.
func (k *victim) pair(ctx context.Context, o devicetest.Options) (devicetest.Provisioned, bool) {
	told, err := devicetest.Provision(ctx, k.server.ota, o)
	if err != nil {
		return told, false
	}
	if told.Code == "" {
		return told, told.Token != ""
	}
	var done struct{ Device string }
	if !k.post(ctx, "/api/pairing/pair", map[string]string{"code": told.Code}, &done) {
		return told, false
	}
	k.add("pairing", done.Device)
	told, err = devicetest.Provision(ctx, k.server.ota, o)
	return told, err == nil
}

// talk has a device talk, and asks for reminders on it.
func (k *victim) talk(ctx context.Context, begun chan struct{}) {
	o := devicetest.Options{DeviceID: k.kitchen, ClientID: killClient, Flash: k.flash, Mode: devicetest.Manual, Sound: devicetest.Sound{NoDecode: true}}
	told, ok := k.pair(ctx, o)
	if !ok {
		return
	}
	o.URL, o.Token = told.URL, told.Token
	d, err := devicetest.Dial(ctx, o)
	if err != nil {
		return
	}
	defer d.Close()
	close(begun)
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		for d.Detect("what time is it") == nil {
			select {
			case <-time.After(rand.N(300 * time.Millisecond)):
			case <-d.Done():
				return
			}
		}
	})
	for i := range 90 {
		name := fmt.Sprintf("chore %d of life %d", i, k.round)
		var answer struct{ IsError bool }
		order := map[string]any{"name": "set_reminder", "arguments": map[string]string{"time": "tomorrow at 7 am", "text": name}}
		if !k.post(ctx, "/api/devices/"+k.kitchen+"/tools/call", order, &answer) {
			return
		}
		if !answer.IsError {
			k.add("reminder", name)
		}
	}
}

// pairings has one speaker after the other paired.
func (k *victim) pairings(ctx context.Context) {
	for range 20 {
		select {
		case <-time.After(rand.N(60 * time.Millisecond)):
		case <-ctx.Done():
			return
		}
		if _, ok := k.pair(ctx, devicetest.Options{DeviceID: fmt.Sprintf("24:6f:28:4c:%02x:%02x", k.speakers/256, k.speakers%256), ClientID: killClient}); !ok {
			return // the next life goes on with it
		}
		k.speakers++
	}
}

// check looks into what the server has left.
func (k *victim) check(ctx context.Context, t *testing.T, data string, last bool) {
	t.Helper()
	s, err := store.Open(ctx, store.Options{Path: filepath.Join(data, "xiaozhi.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	accounts := map[string]bool{}
	there := map[string]map[string]bool{"reminder": {}, "account by HTTP": accounts, "account by the command": accounts, "session": {}, "pairing": {}}
	reminders, err := s.Reminders.Find(ctx, store.ReminderQuery{})
	for _, r := range reminders {
		there["reminder"][r.Text] = true
	}
	people, errPeople := s.Users.List(ctx)
	for _, u := range people {
		accounts[u.Name] = true
		sessions, err := s.Sessions.Of(ctx, u.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, session := range sessions {
			there["session"][session.Hash] = true
		}
	}
	devices, _, errDevices := s.Devices.Identities(ctx)
	for _, d := range devices {
		there["pairing"][d.ID] = d.State == store.DevicePaired
	}
	if err != nil || errPeople != nil || errDevices != nil {
		t.Fatal(err, errPeople, errDevices)
	}
	for kind, all := range there {
		for _, what := range k.made[kind] {
			if !all[what] {
				t.Errorf("%s %q was confirmed and is lost", kind, what)
			}
		}
	}
	for _, why := range k.made["refused"] {
		t.Errorf("an account was refused: %s", why)
	}
	if err := s.Check(ctx); err != nil {
		t.Error(err)
	}
	turns := k.checkTurns(ctx, t, s, last)
	if last {
		t.Logf("%d turns, %d reminders, %d accounts, %d devices", turns, len(reminders), len(people), len(devices))
		if turns == 0 {
			t.Error("nothing was said at all")
		}
	}
}

// checkTurns looks whether turns are whole, of the last talks or of all, and counts them.
func (k *victim) checkTurns(ctx context.Context, t *testing.T, s *store.Store, all bool) (counted int) {
	t.Helper()
	for page := (store.Page{Limit: 500}); ; {
		talks, err := s.Conversations.List(ctx, "", page)
		if err != nil {
			t.Fatal(err)
		}
		for _, talk := range talks {
			seq, n := 0, 0
			for {
				turns, err := s.Turns.Of(ctx, talk.ID, seq, 500)
				if err != nil {
					t.Fatal(err)
				}
				if len(turns) == 0 {
					break
				}
				for i := range turns {
					if _, messages, _, err := s.Turns.Get(ctx, turns[i].ID); err != nil || len(messages) == 0 {
						t.Errorf("turn %s has %d messages: %v", turns[i].ID, len(messages), err)
					}
				}
				seq, n = turns[len(turns)-1].Seq, n+len(turns)
			}
			if n != talk.Turns {
				t.Errorf("of %d turns of talk %s there are %d", talk.Turns, talk.ID, n)
			}
			counted += n
			page.Before = store.Cursor{At: talk.BeganAt, ID: talk.ID}
		}
		if !all || len(talks) < page.Limit {
			return counted
		}
	}
}
