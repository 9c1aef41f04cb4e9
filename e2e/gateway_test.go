package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/devicetest"
)

// outward posts a JSON-RPC request to the gateway, as curl would.
func (s *server) outward(ctx context.Context, t *testing.T, method, params string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(s.ota, "/xiaozhi/ota/")+"/api/mcp/jsonrpc", bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+s.adminToken(t))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// adminToken is the owner's token, from the data folder.
func (s *server) adminToken(t *testing.T) string {
	t.Helper()
	token, err := admintoken.Read(filepath.Join(s.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// outwardCall calls a tool and returns its text.
func (s *server) outwardCall(ctx context.Context, t *testing.T, name, arguments string) string {
	t.Helper()
	answer := s.outward(ctx, t, "tools/call", `{"name":"`+name+`","arguments":`+arguments+`}`)
	var a struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil || len(a.Result.Content) == 0 || a.Result.IsError {
		t.Fatalf("%s: %s, %v", name, answer, err)
	}
	return a.Result.Content[0].Text
}

// TestOutward: a client outside sees a device come and go, works its tools and
// reads what was said.
func TestOutward(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "mcp: {transcripts: true}\n"})
	socket, resp, err := websocket.DefaultDialer.DialContext(ctx, strings.Replace(s.ws, "/xiaozhi/v1/", "/mcp/ws", 1), http.Header{"Authorization": {"Bearer " + s.adminToken(t)}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	defer socket.Close()
	send := func(frame string) {
		t.Helper()
		if err := socket.WriteMessage(websocket.TextMessage, []byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	deadline, _ := ctx.Deadline()
	if err := socket.SetReadDeadline(deadline); err != nil {
		t.Fatal(err)
	}
	read := func() (data string, change bool) {
		t.Helper()
		_, frame, err := socket.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		return string(frame), strings.Contains(string(frame), "tools/list_changed")
	}
	answer := func(id string) (changes int) {
		t.Helper()
		send(`{"jsonrpc":"2.0","id":"` + id + `","method":"ping"}`)
		for {
			data, change := read()
			if change {
				changes++
			} else if strings.Contains(data, `"`+id+`"`) {
				return changes
			}
		}
	}
	// told waits until a change is told, and counts those that follow it soon. Changes
	// are told together, unless 100 ms pass between two of them.
	told := func(what string, took time.Duration) {
		t.Helper()
		for change := false; !change; {
			_, change = read()
		}
		time.Sleep(700 * time.Millisecond) // anything more would have come by then
		if n, most := 1+answer(what), 1+int(took/(100*time.Millisecond)); n > most {
			t.Errorf("the %s was told %d times within %v, want %d at most", what, n, took, most)
		}
	}
	answer("start")
	board := devicetest.NewBoard()
	o := devicetest.Options{DeviceID: "24:6f:28:aa:10:02", Tools: board.Tools()}
	came := time.Now()
	d := s.dial(ctx, t, o)
	s.waitForTools(ctx, t, d)
	const stream = "device-246f28aa1002"
	for !strings.Contains(s.outward(ctx, t, "tools/list", "{}"), stream+".") {
		time.Sleep(20 * time.Millisecond) // real time: another process
	}
	told("coming", time.Since(came))
	if got := s.outwardCall(ctx, t, stream+".self.audio_speaker.set_volume", `{"volume":33}`); got != "true" || board.Values().Volume != 33 {
		t.Errorf("set_volume: %s, the device is at %d", got, board.Values().Volume)
	}
	if got := s.outwardCall(ctx, t, "timer.list_timers", `{}`); got == "" {
		t.Error("list_timers said nothing")
	}
	if r := ask(ctx, t, d, "what time is it"); r.Frames == 0 {
		t.Error("no sound")
	}
	for !strings.Contains(s.outward(ctx, t, "resources/read", `{"uri":"xiaozhi://devices/246f28aa1002/transcript"}`), "assistant") {
		time.Sleep(20 * time.Millisecond) // the final message comes behind the sound
	}
	went := time.Now()
	d.Close()
	for strings.Contains(s.outward(ctx, t, "tools/list", "{}"), stream+".") {
		time.Sleep(20 * time.Millisecond)
	}
	told("going", time.Since(went))
}

// TestOwnPort: the gateway has an address of its own, and its tokens see what
// they may, there and at /api/devices.
func TestOwnPort(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := l.Addr().String()
	l.Close()
	s := start(t, setup{config: `
mcp:
  listen: ["` + own + `"]
  tokens: [{name: clock, token: t0ken-of-the-clock, streams: [time]}, {name: all, token: t0ken-of-all-streams}]
`})
	d := s.dial(ctx, t, devicetest.Options{Tools: devicetest.NewBoard().Tools()})
	s.waitForTools(ctx, t, d)
	get := func(path, token string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+own+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
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
		return resp.StatusCode, string(text)
	}
	if status, _ := get("/api/mcp/tools", ""); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	if status, text := get("/api/mcp/tools", "t0ken-of-the-clock"); status != 200 || !strings.Contains(text, "time.now") || strings.Contains(text, "system.info") {
		t.Errorf("with a token: %d %s", status, text)
	}
	if status, text := get("/api/devices", "t0ken-of-the-clock"); status != 200 || !strings.Contains(text, `"devices":[]`) {
		t.Errorf("devices of a token that may see none: %d %s", status, text)
	}
	if status, text := get("/api/devices", "t0ken-of-all-streams"); status != 200 || !strings.Contains(text, "24:6f:28") {
		t.Errorf("devices: %d %s", status, text)
	}
	if strings.Contains(s.log.String(), "t0ken") {
		t.Error("a token is in the log")
	}
}

// TestOwnerOnly: without tokens nobody but the owner is let in, by no way, although
// all come from this machine; and the owner's token is told to no pipe and no log.
func TestOwnerOnly(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	base := strings.TrimSuffix(s.ota, "/xiaozhi/ota/")
	ask := func(method, path, token string, change func(*http.Request)) int {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		req.Header.Set("Content-Type", "application/json")
		if change != nil {
			change(req)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	paths := []string{
		"POST /api/mcp/jsonrpc", "POST /api/mcp/jsonrpc/time", "GET /api/mcp/tools", "POST /api/mcp/tools/call", "GET /api/mcp/resources",
		"GET /api/mcp/prompts", "GET /api/mcp/connect", "GET /mcp/ws", "GET /api/devices", "GET /api/devices/x/calls", "POST /api/devices/x/tools/call",
	}
	proxied := func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") }
	named := func(r *http.Request) { r.Host = "localhost:8000" }
	for _, path := range paths {
		method, path, _ := strings.Cut(path, " ")
		for what, change := range map[string]func(*http.Request){"plain": nil, "by a proxy": proxied, "by another name": named} {
			if status := ask(method, path, "", change); status != http.StatusUnauthorized {
				t.Errorf("%s %s, %s: %d", method, path, what, status)
			}
		}
		if status := ask(method, path, strings.Repeat("0", 64), nil); status != http.StatusUnauthorized && status != http.StatusTooManyRequests {
			t.Errorf("%s %s with a token of nobody: %d", method, path, status)
		}
	}
	token := s.adminToken(t)
	if status := ask("GET", "/api/devices", token, nil); status != http.StatusOK {
		t.Errorf("the owner: %d", status)
	}
	if strings.Contains(s.banner.String()+s.log.String(), token) {
		t.Error("the owner's token is in the log, or was told to a pipe")
	}
	if !strings.Contains(s.banner.String(), filepath.Join("data", "admin-token")) || !strings.Contains(s.banner.String(), `"mcpServers"`) {
		t.Errorf("the banner: %s", &s.banner)
	}
	if info, err := os.Stat(filepath.Join(s.dir, "data", "admin-token")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestOutwardSpeech: a client outside has a device speak, ask and be quiet.
func TestOutwardSpeech(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	// The device knows nothing of a cut that it has not asked for: its stop comes before the sound is played.
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	if got := s.outwardCall(ctx, t, "device.abort", `{}`); !strings.Contains(got, "没有在说话") {
		t.Errorf("abort of silence: %s", got)
	}
	if got := s.outwardCall(ctx, t, "device.say", `{"text":"The kettle is boiling."}`); got != `{"heard":"The kettle is boiling.","whole":true}` {
		t.Errorf("say: %s", got)
	}
	if r := reply(ctx, t, d); r.Text() != "The kettle is boiling." || r.Frames == 0 {
		t.Errorf("said %q, %d frames", r.Text(), r.Frames)
	}
	long := strings.Repeat("This sentence is one of many that go on and on. ", 8)
	said := make(chan string, 1)
	go func() {
		said <- s.outward(ctx, t, "tools/call", `{"name":"device.say","arguments":{"text":"`+long+`"}}`)
	}()
	if _, err := d.Wait(ctx, func(e devicetest.Event) bool { return strings.Contains(string(e.Raw), "one of many") }); err != nil {
		t.Fatal(err)
	}
	if got := s.outwardCall(ctx, t, "device.abort", `{}`); got != "好的" {
		t.Errorf("abort: %s", got)
	}
	if got := <-said; !strings.Contains(got, `\"whole\":false`) {
		t.Errorf("what was cut: %s", got)
	}
	answered := make(chan string, 1)
	go func() {
		answered <- s.outward(ctx, t, "tools/call", `{"name":"device.ask","arguments":{"text":"Shall I open the door?"}}`)
	}()
	for {
		if r := reply(ctx, t, d); strings.Contains(r.Text(), "door") {
			break
		}
	}
	if err := d.Detect("yes please"); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; !strings.Contains(got, "yes please") {
		t.Errorf("ask: %s", got)
	}
}
