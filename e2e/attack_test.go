package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
)

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	body   string
}

// knock asks a path with a body and header lines ("Name: value").
func (s *server) knock(ctx context.Context, t *testing.T, method, path, body string, lines ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.ota, "/xiaozhi/ota/")+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// boots asks where to connect, as firmware does.
func (s *server) boots(ctx context.Context, t *testing.T, id, client string, lines ...string) string {
	t.Helper()
	a := s.knock(ctx, t, http.MethodPost, "/xiaozhi/ota/", `{"partition_table":[],"application":{"version":"2.4.2"}}`,
		append([]string{"Device-Id: " + id, "Client-Id: " + client, "Content-Type: application/json"}, lines...)...)
	if a.status != http.StatusOK {
		t.Errorf("ota: %d %s", a.status, a.body)
	}
	return a.body
}

// order runs xiaozhi devices.
func (s *server) order(ctx context.Context, args ...string) (out string, err error) {
	base := strings.TrimSuffix(s.ota, "/xiaozhi/ota/")
	text, err := exec.CommandContext(ctx, binary, append([]string{"devices", "--server", base, "--data", filepath.Join(s.dir, "data")}, args...)...).CombinedOutput()
	return string(text), err
}

// TestAttackMACInAnySpelling: whoever says another's MAC, however it is spelled, is one
// stranger, gets no token, does not end the first one's talk, and is logged once.
func TestAttackMACInAnySpelling(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	const mac = "24:6f:28:ab:00:01"
	d := s.dial(ctx, t, devicetest.Options{DeviceID: mac, ClientID: "own", Mode: devicetest.Manual, NoMCP: true})
	ask(ctx, t, d, "what time is it")
	for _, said := range []string{mac, "24:6F:28:AB:00:01", "24-6f-28-ab-00-01", "246f28ab0001", "246F.28AB.0001", " 24:6f:28:ab:0:1 "} {
		if strings.Contains(s.boots(ctx, t, said, "of another"), `"token"`) {
			t.Errorf("%q is told a token", said)
		}
		r := dialRaw(t, s, said, "Client-Id: of another")
		r.hello(hello242)
		r.conn.Close()
	}
	ask(ctx, t, d, "what is the date")
	list, _ := s.order(ctx)
	if n := strings.Count(list, mac+"~"); n != 1 {
		t.Errorf("%d strangers:\n%s", n, list)
	}
	if n := strings.Count(s.log.String(), "it is a stranger"); n != 1 {
		t.Errorf("%d lines about the stranger", n)
	}
}

// TestAttackStrangersRefused: devices.unknown: refuse turns strangers away.
func TestAttackStrangersRefused(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "devices: {unknown: refuse}\n"})
	s.waitReady(ctx, t)
	d := s.dial(ctx, t, devicetest.Options{DeviceID: "24:6f:28:ab:00:02", ClientID: "own", Mode: devicetest.Manual, NoMCP: true})
	r := dialRaw(t, s, "24:6f:28:ab:00:02", "Client-Id: of another")
	r.text(hello242)
	r.text(`{"type":"listen","state":"detect","text":"what time is it"}`)
	r.awaitClose(ctx)
	ask(ctx, t, d, "what time is it")
}

// TestAttackFromOutside: in mode open too, whoever comes from a public address must be
// paired, whatever it says of itself; who is near need not.
func TestAttackFromOutside(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "server: {trust_proxy: true}\nauth: {pairing: open}\nmcp: {tokens: [{name: a, token: t0ken-of-the-laptop}]}\n"})
	for n, from := range []string{"203.0.113.9", "192.168.1.40, 203.0.113.9", "203.0.113.9, 10.0.0.2", "unknown", "2001:db8::1", "100.64.0.1"} {
		id := fmt.Sprintf("24:6f:28:ab:01:%02x", n)
		if body := s.boots(ctx, t, id, "x", "X-Forwarded-For: "+from, "X-Forwarded-Proto: https"); strings.Contains(body, `"token"`) || !strings.Contains(body, `"code"`) {
			t.Errorf("from %s: %s", from, body)
		}
		if n > 0 {
			continue // it takes seconds to say the code
		}
		r := dialRaw(t, s, id, "Client-Id: x", "X-Forwarded-For: "+from)
		r.text(hello242)
		r.text(`{"type":"listen","state":"detect","text":"what time is it"}`)
		r.awaitClose(ctx)
	}
	if body := s.boots(ctx, t, "24:6f:28:ab:01:ff", "x", "X-Forwarded-For: 192.168.1.40"); !strings.Contains(body, `"token"`) {
		t.Errorf("near: %s", body)
	}
}

// TestAttackFromWebPages: a page of elsewhere can be no device and reads nothing; a page
// of this machine or a listed one can, by its own origin and never by "*".
func TestAttackFromWebPages(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "server: {origins: [\"https://page.example\"]}\n"})
	for origin, may := range map[string]bool{
		"https://evil.example": false, "null": false, "http://localhost.evil.example": false, "https://page.example.evil.example": false,
		"http://localhost:8006": true, "http://127.0.0.1:8006": true, "https://page.example": true,
	} {
		a := s.knock(ctx, t, http.MethodPost, "/xiaozhi/ota/", "{}", "Device-Id: page", "Client-Id: "+origin, "Origin: "+origin)
		p := s.knock(ctx, t, http.MethodOptions, "/xiaozhi/ota/", "", "Origin: "+origin, "Access-Control-Request-Method: POST", "Access-Control-Request-Private-Network: true")
		want := ""
		if may {
			want = origin
		}
		if got := a.header.Get("Access-Control-Allow-Origin"); got != want || may != (a.status == http.StatusOK) || may != strings.Contains(a.body, "websocket") {
			t.Errorf("%s: %d, allowed %q: %s", origin, a.status, got, a.body)
		}
		if got := p.header.Get("Access-Control-Allow-Private-Network"); (got != "") != may {
			t.Errorf("%s: private network %q", origin, got)
		}
		if got := dialTCP(t, s).upgrade("/xiaozhi/v1/?device-id=page&client-id=y", "Origin: "+origin); (got == http.StatusSwitchingProtocols) != may {
			t.Errorf("%s: socket %d", origin, got)
		}
	}
}

// TestAttackSharedToken: auth.token cannot be short, and guesses of it, at either door,
// lock their address out, but not a device that has shown it there before.
func TestAttackSharedToken(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	const token = "one-token-of-all-devices"
	s := start(t, setup{config: "auth: {enabled: true, token: " + token + "}\nserver: {trust_proxy: true}\nmcp: {tokens: [{name: a, token: t0ken-of-the-laptop}]}\n"})
	socket := func(from, token string) int {
		return dialTCP(t, s).upgrade("/xiaozhi/v1/", "Device-Id: 24:6f:28:ab:02:01", "Authorization: Bearer "+token, "X-Forwarded-For: "+from)
	}
	if got := socket("192.168.1.40", token); got != http.StatusSwitchingProtocols {
		t.Errorf("the right one: %d", got)
	}
	for _, from := range []string{"192.168.1.40", "203.0.113.9"} {
		for n := range 10 {
			s.boots(ctx, t, "24:6f:28:ab:02:02", fmt.Sprint(n), "Authorization: Bearer guess", "X-Forwarded-For: "+from)
			if got := socket(from, "a wrong token"); got != http.StatusUnauthorized && n < 9 {
				t.Errorf("guess %d: %d", n, got)
			}
		}
	}
	if got := socket("203.0.113.9", token); got != http.StatusTooManyRequests {
		t.Errorf("the right one after guesses: %d", got)
	}
	if got := socket("192.168.1.40", token); got != http.StatusSwitchingProtocols {
		t.Errorf("the speaker beside who guesses: %d", got)
	}
	if strings.Contains(s.log.String(), token) {
		t.Error("the token is in the log")
	}
}

// TestAttackCodes: wrong, foreign and used codes each get one clear sentence and change
// nothing; who goes on guessing is stopped, and the owner accepts by id.
func TestAttackCodes(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "auth: {pairing: ask}\n"})
	code := ""
	flash := &devicetest.Flash{}
	o := devicetest.Options{DeviceID: "24:6f:28:ab:03:01", ClientID: "own", Flash: flash, Waiting: devicetest.PollsOnce}
	p, err := devicetest.Boot(ctx, s.ota, o, func(shown string) {
		code = shown
		if out, err := s.order(ctx, "pair", shown); err != nil {
			t.Errorf("pair: %v %s", err, out)
		}
	})
	if err != nil || p.Token == "" || len(code) != 6 {
		t.Fatalf("%+v %v", p, err)
	}
	waits := s.boots(ctx, t, "24:6f:28:ab:03:02", "x")
	before, _ := s.order(ctx)
	foreign := "000000"
	if strings.Contains(waits, foreign) {
		foreign = "000001"
	}
	for typed, want := range map[string]string{code: "used already", "12345": "", "kitchen": ""} {
		if out, err := s.order(ctx, "pair", typed); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v %s", typed, err, out)
		}
	}
	for range 5 {
		if out, err := s.order(ctx, "pair", foreign); err == nil {
			t.Errorf("a code of nobody: %s", out)
		}
	}
	if out, err := s.order(ctx, "pair", foreign); err == nil || !strings.Contains(out, "too many wrong codes") {
		t.Errorf("guessing on: %v %s", err, out)
	}
	if after, _ := s.order(ctx); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
	if out, err := s.order(ctx, "pair", "24:6f:28:ab:03:02"); err != nil {
		t.Errorf("by its id: %v %s", err, out)
	}
	if strings.Contains(s.log.String(), code) {
		t.Error("a code is in the log")
	}
}

// TestAttackAskedTooOften: a flood at the doors is answered, and neither the log nor the
// records fill.
func TestAttackAskedTooOften(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	for n := range 300 {
		s.boots(ctx, t, fmt.Sprintf("02:00:00:00:%02x:%02x", n>>8, n&0xff), "x")
		s.knock(ctx, t, http.MethodGet, "/api/devices", "", "Authorization: Bearer guess")
		s.knock(ctx, t, http.MethodPost, "/mcp/vision/explain", "x", "Device-Id: y", "Authorization: Bearer guess")
	}
	for what, most := range map[string]int{"ota ": 25, "request refused": 25, "picture refused": 25} {
		if n := strings.Count(s.log.String(), `msg="`+what); n > most {
			t.Errorf("%d lines %q", n, what)
		}
	}
	if list, _ := s.order(ctx, "--json"); strings.Count(list, `"id"`) > 130 {
		t.Errorf("%d records", strings.Count(list, `"id"`))
	}
}

// TestAttackFullServer: made-up devices that fill the server make room for one that a
// person has accepted.
func TestAttackFullServer(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "server: {max_devices: 3}\n"})
	o := devicetest.Options{DeviceID: "24:6f:28:ab:04:01", ClientID: "own", Mode: devicetest.Manual, NoMCP: true}
	s.provision(ctx, t, o)
	if out, err := s.order(ctx, "pair", o.DeviceID); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for n := range 3 {
		r := dialRaw(t, s, fmt.Sprintf("02:00:00:00:01:%02x", n), "Client-Id: x")
		r.hello(hello242)
	}
	if got := dialTCP(t, s).upgrade("/xiaozhi/v1/", "Device-Id: 02:00:00:00:01:ff", "Client-Id: x"); got != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", got)
	}
	ask(ctx, t, s.dial(ctx, t, o), "what time is it")
}

// TestAttackGatewayByPages: what a page of another site can send without leave reaches
// nothing, even with the owner's token.
func TestAttackGatewayByPages(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := plainServer.use(t)
	owner := "Authorization: Bearer " + s.adminToken(t)
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for _, c := range []struct {
		what, path string
		want       int
		lines      []string
	}{
		{"the owner", "/api/mcp/jsonrpc", 200, []string{owner, "Content-Type: application/json"}},
		{"of another site", "/api/mcp/jsonrpc", 403, []string{owner, "Content-Type: application/json", "Sec-Fetch-Site: cross-site"}},
		{"of another origin", "/api/mcp/jsonrpc", 403, []string{owner, "Content-Type: application/json", "Origin: https://evil.example"}},
		{"a form", "/api/mcp/jsonrpc", 415, []string{owner, "Content-Type: text/plain"}},
		{"no type", "/api/mcp/jsonrpc", 415, []string{owner}},
		{"devices, a form", "/api/devices/x/tools/call", 415, []string{owner, "Content-Type: application/x-www-form-urlencoded"}},
		{"pairing, of another site", "/api/pairing/pair", 403, []string{owner, "Content-Type: application/json", "Sec-Fetch-Site: cross-site"}},
		{"pairing, nobody", "/api/pairing/pair", 401, []string{"Content-Type: application/json"}},
	} {
		if a := s.knock(ctx, t, http.MethodPost, c.path, call, c.lines...); a.status != c.want {
			t.Errorf("%s: %d %s", c.what, a.status, a.body)
		}
	}
}

// TestAttackBadStarts: what would leave the server open, or what is damaged, stops the
// start with a sentence that says what to do, and is not overwritten.
func TestAttackBadStarts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		before func(dir string) error
		want   string
	}{
		"short auth.token":      {config: "auth: {enabled: true, token: hunter2}\n", want: "auth.token: the token is too short"},
		"short gateway token":   {config: "mcp: {tokens: [{name: a, token: hunter2}]}\n", want: "the token is too short"},
		"public without tokens": {config: "server: {public_url: \"https://speak.example.org\"}\n", want: "server.public_url"},
		"proxy without tokens":  {config: "server: {trust_proxy: true}\n", want: "server.trust_proxy"},
		"any origin":            {config: "server: {origins: [\"*\"]}\n", want: "is no origin"},
		"unknown agent":         {config: "devices: {\"24:6f:28:ab:05:01\": {agent: pirat}}\nagents: {pirate: {prompt: default}}\n", want: "pirate"},
		"agent with a wrong chain": {
			config: "agents: {pirate: {prompt: default, llm: [ruls]}}\n", want: "rules",
		},
		"folder of everybody": {before: func(dir string) error {
			data := filepath.Join(dir, "data")
			if err := os.Mkdir(data, 0o700); err != nil {
				return err
			}
			return os.Chmod(data, 0o777) //nolint:gosec // that is the attack
		}, want: "data"},
		"damaged database": {before: func(dir string) error {
			if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, "data", "xiaozhi.db"), []byte(strings.Repeat("no database ", 1000)), 0o600)
		}, want: "xiaozhi.db"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.before != nil {
				if err := c.before(dir); err != nil {
					t.Fatal(err)
				}
			}
			s, err := launch(setup{config: c.config}, dir)
			if err == nil {
				s.stop(t)
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v", err)
			}
			if data, err := os.ReadFile(filepath.Join(dir, "data", "xiaozhi.db")); name == "damaged database" && (err != nil || !strings.HasPrefix(string(data), "no database")) {
				t.Error("the file was overwritten")
			}
		})
	}
}
