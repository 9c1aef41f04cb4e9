package e2e

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/store"
)

// TestAttackWaiting: devices of each way of waiting for their code to be accepted wait until it is, get
// no token before that and one then, and talk.
func TestAttackWaiting(t *testing.T) {
	t.Parallel()
	s := start(t, setup{config: "auth: {pairing: ask}\n"})
	for id, o := range map[string]devicetest.Options{
		"24:6f:28:ab:10:01": {Waiting: devicetest.Polls10},
		"24:6f:28:ab:10:02": {Waiting: devicetest.PollsOnce},
		"24:6f:28:ab:10:03": {Waiting: devicetest.Reposts60, Profile: devicetest.OldIoT162},
		"24:6f:28:ab:10:04": {Waiting: devicetest.PollsPy, Profile: devicetest.PyXiaozhi},
	} {
		o.DeviceID, o.ClientID, o.Flash, o.Mode, o.NoMCP = id, "own", &devicetest.Flash{}, devicetest.Manual, true
		o.Limits.MaxPause, o.Limits.Tolerance = 300*time.Millisecond, 500*time.Millisecond
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			ctx := limit(t)
			first, err := devicetest.Provision(ctx, s.ota, o)
			if err != nil || first.Token != "" || first.Code == "" {
				t.Fatalf("before it is accepted: %+v %v", first, err)
			}
			if got := s.polls(ctx, t, o); got != http.StatusAccepted {
				t.Errorf("it is told %d before it is accepted", got)
			}
			shown := map[string]bool{}
			accepted := make(chan error, 1)
			waits := time.AfterFunc(time.Second, func() {
				_, err := s.order(ctx, "pair", first.Code)
				accepted <- err
			})
			defer waits.Stop()
			p, err := devicetest.Boot(ctx, s.ota, o, func(code string) { shown[code] = true })
			if err != nil || p.Token == "" || len(p.Violations) > 0 || len(shown) != 1 || !shown[first.Code] {
				t.Fatalf("%+v %v, shown %v, not only %s", p, err, shown, first.Code)
			}
			if err := <-accepted; err != nil {
				t.Fatal(err)
			}
			if got := s.polls(ctx, t, o); got != http.StatusOK {
				t.Errorf("it is told %d after it was accepted", got)
			}
			o.URL, o.Token = p.URL, p.Token
			d, err := devicetest.Dial(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ask(ctx, t, d, "what time is it")
			if v := d.Violations(); len(v) > 0 {
				t.Error(v)
			}
		})
	}
}

// polls asks once whether the code was accepted.
func (s *server) polls(ctx context.Context, t *testing.T, o devicetest.Options) int {
	t.Helper()
	return s.knock(ctx, t, http.MethodPost, "/xiaozhi/ota/activate", "{}", "Device-Id: "+o.DeviceID, "Client-Id: "+o.ClientID, "Content-Type: application/json").status
}

var sixDigits = regexp.MustCompile(`"code":"(\d{6})"`)

// waits has a device ask for a code, which it returns.
func (s *server) waits(ctx context.Context, t *testing.T, id string) string {
	t.Helper()
	found := sixDigits.FindStringSubmatch(s.boots(ctx, t, id, "own"))
	if found == nil {
		t.Fatalf("%s gets no code", id)
	}
	return found[1]
}

// TestAttackOldCodes: a code that has expired, also while the server was off, and one of another server
// are refused with a sentence each and change nothing.
func TestAttackOldCodes(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	with := setup{config: "auth: {pairing: ask}\n"}
	s, other := start(t, with), start(t, with)
	expires, stays := s.waits(ctx, t, "24:6f:28:ab:11:01"), s.waits(ctx, t, "24:6f:28:ab:11:02")
	foreign := other.waits(ctx, t, "24:6f:28:ab:11:03")
	for foreign == expires || foreign == stays {
		foreign = other.waits(ctx, t, newDeviceID())
	}
	s.stop(t)
	makeOlder(ctx, t, filepath.Join(s.dir, "data", "xiaozhi.db"), expires)
	again, err := launch(with, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.stop(t) })
	before, _ := again.order(ctx)
	for code, want := range map[string]string{expires: "has expired", foreign: "it has asked another server"} {
		out, err := again.order(ctx, "pair", code)
		told, _, _ := strings.Cut(out, "who has asked here last")
		if err == nil || !strings.Contains(told, want) || strings.Count(strings.TrimSpace(told), "\n") > 1 {
			t.Errorf("%v %q, not %q", err, out, want)
		}
	}
	if after, _ := again.order(ctx); after != before || strings.Contains(after, "  paired") {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
	if next := again.waits(ctx, t, "24:6f:28:ab:11:01"); next == expires {
		t.Error("the device gets the code that has expired again")
	}
	if out, err := again.order(ctx, "pair", stays); err != nil {
		t.Errorf("the code that waits: %v %s", err, out)
	}
	if out, err := other.order(ctx, "pair", foreign); err != nil {
		t.Errorf("the code at its own server: %v %s", err, out)
	}
}

// makeOlder has a code in the database of a server that is off end a minute ago.
func makeOlder(ctx context.Context, t *testing.T, path, code string) {
	t.Helper()
	db, err := store.Open(ctx, store.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, waiting, err := db.Devices.Identities(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range waiting {
		if p.Code != code {
			continue
		}
		p.EndsAt = time.Now().Add(-time.Minute)
		if err := db.Devices.Commit(ctx, store.DeviceChange{Open: []store.Pairing{p}}); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("the code is not in the database")
}

// TestAttackTokenTold: the token is told until it was used once, and to nobody after that, whoever says
// the pair's names; when a person accepts the device again it gets a new one, whose first use ends the old one.
func TestAttackTokenTold(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "auth: {pairing: ask}\n"})
	const id = "24:6f:28:ab:12:01"
	told := regexp.MustCompile(`"token":"([^"]+)"`)
	token := func() string {
		found := told.FindStringSubmatch(s.boots(ctx, t, id, "own", "User-Agent: bread-compact-wifi/2.4.2"))
		if found == nil {
			return ""
		}
		return found[1]
	}
	use := func(token string) (welcome bool) {
		t.Helper()
		r := dialRaw(t, s, id, "Client-Id: own", "Authorization: Bearer "+token)
		defer r.conn.Close()
		if r.text(hello242); !strings.Contains(r.await(`"type":"hello"`), "session_id") {
			t.Error("no hello")
		}
		r.text(typed("what time is it"))
		return strings.Contains(r.await(`"type":"stt"`), "what time is it")
	}
	if s.waits(ctx, t, id) == "" || token() != "" {
		t.Error("a token is told before a person accepts")
	}
	if out, err := s.order(ctx, "pair", id); err != nil {
		t.Fatal(err, out)
	}
	first := token()
	if again := token(); first == "" || again != first {
		t.Fatalf("told %q and then %q", first, again)
	}
	if !use(first) {
		t.Error("the token is no good")
	}
	if again := token(); again != "" {
		t.Errorf("told again after its use: %q", again)
	}
	if out, err := s.order(ctx, "pair", id); err != nil {
		t.Fatal(err, out)
	}
	second := token()
	if second == "" || second == first {
		t.Fatalf("told %q when it was accepted again", second)
	}
	if !use(second) {
		t.Error("the second token is no good")
	}
	if again := token(); again != "" {
		t.Errorf("told again: %q", again)
	}
	for what, old := range map[string]string{"the old one": first, "none": "", "a made-up one": "xzd_" + strings.Repeat("A", 43)} {
		r := dialRaw(t, s, id, "Client-Id: own", "Authorization: Bearer "+old)
		r.text(hello242)
		r.text(typed("what time is it"))
		if said := r.until(`"sentence_start"`); strings.Contains(said, "what time is it") {
			t.Errorf("%s still counts: %s", what, said) // it takes seconds to say the code
		}
		r.conn.Close()
	}
	if !use(second) {
		t.Error("the second token is no good after tries with others")
	}
	for _, secret := range []string{first, second} {
		if where := holds(t, s.dir, secret); where != "" || strings.Contains(s.log.String(), secret) {
			t.Errorf("the token lies in %q or the log", where)
		}
	}
}

// until returns the text of all messages up to the first that holds a part.
func (r *raw) until(part string) string {
	r.t.Helper()
	r.patience(30 * time.Second)
	var all strings.Builder
	for !strings.Contains(all.String(), part) {
		op, payload, err := r.read()
		if err != nil {
			r.t.Fatalf("no message with %q: %v", part, err)
		}
		if op == opText {
			all.Write(payload)
		}
	}
	return all.String()
}

// TestAttackPageTalks: the test page works when it was opened from this machine or a listed origin, with
// a token of its own that it gets each time; with that token a page of elsewhere can do nothing.
func TestAttackPageTalks(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "server: {origins: [\"https://page.example\"]}\n"})
	told := regexp.MustCompile(`"token":"([^"]+)"`)
	for id, origin := range map[string]string{
		"24:6f:28:ab:13:01": "http://localhost:8006", "24:6f:28:ab:13:02": "http://127.0.0.1:5500",
		"24:6f:28:ab:13:03": "https://page.example", "24:6f:28:ab:13:04": "http://[::1]:8006",
	} {
		for visit := range 2 {
			found := told.FindStringSubmatch(s.boots(ctx, t, id, "web_test_client", "Origin: "+origin))
			if found == nil {
				t.Fatalf("%s, visit %d: no token", origin, visit)
			}
			address := "/xiaozhi/v1/?device-id=" + id + "&client-id=web_test_client&authorization=Bearer%20" + found[1]
			if got := dialTCP(t, s).upgrade(address, "Origin: https://evil.example"); got != http.StatusForbidden {
				t.Errorf("a page of elsewhere with the token: %d", got)
			}
			page := dialTCP(t, s)
			if got := page.upgrade(address, "Origin: "+origin); got != http.StatusSwitchingProtocols {
				t.Fatalf("%s, visit %d: %d", origin, visit, got)
			}
			page.hello(`{"type":"hello","device_id":"` + id + `","device_name":"test","device_mac":"` + id + `","token":"x","features":{"mcp":true}}`)
			page.text(`{"type":"listen","mode":"manual","state":"detect","text":"what time is it"}`)
			page.await(`"type":"tts"`, `"sentence_start"`)
			page.conn.Close()
		}
	}
	if list, _ := s.order(ctx); strings.Count(list, "24:6f:28:ab:13:") != 4 || strings.Contains(list, "stranger") {
		t.Errorf("listed:\n%s", list)
	}
}
