package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestEmptyConfigServes starts on a config file without a byte in it.
func TestEmptyConfigServes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.yaml")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx := limit(t)
	s := start(t, setup{speaks: true, args: []string{"--config", empty, "--listen", "127.0.0.1:0"}})
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	if r := ask(ctx, t, d, "what time is it"); r.Frames == 0 {
		t.Error("no answer")
	}
}

// TestVariablesOverride sets by environment what a file sets too, and sees
// which counts on the wire.
func TestVariablesOverride(t *testing.T) {
	t.Parallel()
	const token = "dvc-5f2e9c-do-not-print"
	ctx := limit(t)
	s := start(t, setup{
		config: "server: {listen: [\":1\"], public_url: \"http://file.example:1\"}\nauth: {enabled: false}\n",
		env: []string{
			"XIAOZHI_SERVER__LISTEN=127.0.0.1:0", "XIAOZHI_SERVER__PUBLIC_URL=", "XIAOZHI_server__timezone=Asia/Kathmandu",
			"XIAOZHI_AUTH__ENABLED=true", "XIAOZHI_AUTH__TOKEN=" + token, "XIAOZHI_LOG__LEVEL=debug",
		},
		args: []string{"--data", "elsewhere"},
	})
	p, err := devicetest.Provision(ctx, s.ota, devicetest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Token != token || p.URL != s.ws || p.Zone != 5*time.Hour+45*time.Minute {
		t.Errorf("the device was told %s", p.Raw)
	}
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	if r := ask(ctx, t, d, "what time is it"); r.Frames == 0 {
		t.Error("no answer")
	}
	if _, err := devicetest.Dial(ctx, devicetest.Options{URL: s.ws, Token: "wrong-" + token}); err == nil {
		t.Error("a wrong token was let in")
	}
	d.Close()
	s.stop(t)
	if strings.Contains(s.log.String()+s.banner.String(), token) {
		t.Error("the token was printed")
	}
	if info, err := os.Stat(filepath.Join(s.dir, "elsewhere")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data folder: %v, %v", info, err)
	}
}

// TestSignalEndsInOrder ends the server while one device hears a reply, one is
// listened to, one is idle, one has not said hello and a browser holds an idle
// connection: exit 0, the reply is heard to its end, a user who is listened to hears
// that the server stops, every device is told by a close frame outside a reply.
func TestSignalEndsInOrder(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Text("One sentence to begin with. ", "And a second one, which is longer than the first. ", "And a third one to end it all."))
	s := start(t, setup{speaks: true, env: cloudEnv(cloud)})
	talking := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	idle := s.dial(ctx, t, devicetest.Options{NoMCP: true, DeviceID: "24:6f:28:aa:40:01"})
	mute := dialRaw(t, s, "24:6f:28:aa:40:02")
	listening := s.dial(ctx, t, devicetest.Options{NoMCP: true, DeviceID: "24:6f:28:aa:40:03", OpenListen: true})
	browser := &http.Client{Transport: &http.Transport{}}
	resp, err := browser.Get(s.ota)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := talking.Detect("tell me a story"); err != nil {
		t.Fatal(err)
	}
	if _, err := talking.WaitText(ctx, "tts", "sentence_start"); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := listening.WaitText(ctx, "tts", "start"); err != nil {
		t.Fatal(err)
	}
	if _, answer, err := websocket.DefaultDialer.DialContext(ctx, s.ws, http.Header{"Device-Id": {"late"}}); err == nil || answer == nil || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a device that comes too late is answered %v, %v", answer, err)
	}
	if reply, err := talking.WaitReply(ctx); err != nil || len(reply.Sentences) != 3 || reply.Dropped != 0 {
		t.Errorf("the reply was not heard to its end: %+v, %v", reply, err)
	}
	if reply, err := listening.WaitReply(ctx); err != nil || reply.Text() != "The server is shutting down. Please try again in a moment." || reply.Duration() < 2*time.Second || reply.Dropped != 0 {
		t.Errorf("the listening device is not told: %+v, %v", reply, err)
	}
	for name, d := range map[string]*devicetest.Device{"talking": talking, "idle": idle, "listening": listening} {
		select {
		case <-d.Done():
		case <-ctx.Done():
			t.Fatalf("the %s device was not hung up", name)
		}
		events := d.Events()
		if last := events[len(events)-1]; last.Kind != devicetest.KindClosed || !strings.Contains(last.Text, "1000") {
			t.Errorf("the %s device: %s %s", name, last.Kind, last.Text)
		}
	}
	if code, reason := mute.awaitClose(ctx); code != 1000 {
		t.Errorf("the device without hello got %d %q", code, reason)
	}
	s.stop(t)
	if !strings.Contains(s.log.String(), "shutting down") {
		t.Error("the log does not say that the server stops")
	}
}
