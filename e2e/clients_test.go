package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/speechtest"
)

// startEcho runs a server whose model repeats what it is asked.
func startEcho(t *testing.T, env ...string) (*server, *openaitest.Server) {
	t.Helper()
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, echo)
	return start(t, setup{hears: true, env: append(cloudEnv(cloud), env...)}), cloud
}

// sent counts the text messages of a device that hold all parts.
func sent(d *devicetest.Device, kind devicetest.Kind, parts ...string) int {
	n := 0
	for _, e := range d.Events() {
		if e.Kind == kind && len(e.Raw) > 0 && holdsAll(string(e.Raw), parts) {
			n++
		}
	}
	return n
}

// TestDesktopClient goes through an afternoon with the desktop program: three
// pages of tools, typed text, an interruption, push to talk over a reply, and
// auto mode again.
func TestDesktopClient(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := echoServer.use(t)
	s.waitReady(ctx, t)
	board := devicetest.NewBoard()
	d := s.dial(ctx, t, devicetest.Options{
		Profile: devicetest.PyXiaozhi, Sound: devicetest.Sound{FrameMs: 20}, Language: "zh-CN", Tools: board.Tools(), OpenListen: true,
	})
	s.waitForTools(ctx, t, d)
	if n := sent(d, devicetest.KindReceived, "tools/list"); n != 3 {
		t.Errorf("the tools were asked for in %d pages", n)
	}
	ask(ctx, t, d, "set the volume to 33")
	if got := board.Values().Volume; got != 33 {
		t.Errorf("volume %d", got)
	}
	if r := ask(ctx, t, d, "the first thing"); r.Text() != "I heard the first thing." {
		t.Errorf("answer %q", r.Text())
	}
	if err := d.Detect("a story please"); err != nil {
		t.Fatal(err)
	}
	awaitFrame(ctx, t, d, "a story please")
	if err := d.Abort(""); err != nil {
		t.Fatal(err)
	}
	if r := reply(ctx, t, d); !r.Cut {
		t.Errorf("the story was not cut: %q", r.Text())
	}
	if r := ask(ctx, t, d, "the second thing"); r.Text() != "I heard the second thing." {
		t.Errorf("answer %q", r.Text())
	}
	starts, replies := sent(d, devicetest.KindSent, `"start"`), d.Stats().Replies
	if starts > replies+2 { // the first one, one for each tts stop, and that of the abort
		t.Errorf("%d listen starts for %d replies: a loop", starts, replies)
	}
	clip := clipNamed(t, speechtest.Prompts, "vm-msgsaved")
	if err := d.ListenStart(devicetest.Manual); err != nil {
		t.Fatal(err)
	}
	if err := d.Say(ctx, clip.PCM()); err != nil {
		t.Fatal(err)
	}
	if err := d.ListenStop(); err != nil {
		t.Fatal(err)
	}
	if r := reply(ctx, t, d); r.Frames == 0 || r.Heard == "" {
		t.Errorf("push to talk: heard %q, %d frames", r.Heard, r.Frames)
	}
}

// awaitFrame returns when sound of the answer to a text arrives.
func awaitFrame(ctx context.Context, t *testing.T, d *devicetest.Device, text string) {
	t.Helper()
	if _, err := d.Wait(ctx, func(e devicetest.Event) bool {
		return e.Kind == devicetest.KindReceived && e.Type == "stt" && e.Text == text
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wait(ctx, func(e devicetest.Event) bool { return e.Kind == devicetest.KindFrame }); err != nil {
		t.Fatal(err)
	}
}

// TestBrowserPage is the test page: a preflight first, ids and token in the
// address, a bare hello, typed text before any listen, push to talk, no close
// frame, and a second visit that still knows the first.
func TestBrowserPage(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s, cloud := startEcho(t, "XIAOZHI_AUTH__ENABLED=true", "XIAOZHI_AUTH__TOKEN=dvc-browser-of-everybody", "XIAOZHI_SERVER__ORIGINS=http://page.example")
	s.waitReady(ctx, t)
	preflight(ctx, t, s)
	o := devicetest.Options{Profile: devicetest.Browser, Mode: devicetest.Manual, Hello: json.RawMessage(`{"type":"hello","device_id":"x","token":"y"}`)}
	d := s.dial(ctx, t, o)
	if r := ask(ctx, t, d, "my name is Berta"); r.Text() != "I heard my name is Berta." || r.Frames == 0 {
		t.Errorf("answer %q, %d frames", r.Text(), r.Frames)
	}
	if err := d.ListenStart(devicetest.Manual); err != nil {
		t.Fatal(err)
	}
	if err := d.Say(ctx, clipNamed(t, speechtest.Prompts, "vm-msgsaved").PCM()); err != nil {
		t.Fatal(err)
	}
	if err := d.ListenStop(); err != nil {
		t.Fatal(err)
	}
	if r := reply(ctx, t, d); r.Heard == "" || r.Frames == 0 {
		t.Errorf("push to talk: heard %q, %d frames", r.Heard, r.Frames)
	}
	d.CloseTCP()
	again := s.dial(ctx, t, o)
	ask(ctx, t, again, "what was it that I said")
	if last := lastRequest(t, cloud); !holdsAll(last, []string{"my name is Berta", "I heard my name is Berta", "what was it"}) {
		t.Errorf("the second visit knows nothing of the first: %s", last)
	}
	for origin, want := range map[string]int{
		"http://localhost:8006": 101, "http://127.0.0.1": 101, "http://page.example": 101, "null": 403, "https://evil.example": 403,
	} {
		page := dialTCP(t, s)
		if got := page.upgrade("/xiaozhi/v1/?device-id=page&client-id=c&token=dvc-browser-of-everybody", "Origin: "+origin); got != want {
			t.Errorf("a page of %s got %d, want %d", origin, got, want)
		}
	}
}

// preflight asks as a browser does before it posts with headers of its own.
func preflight(ctx context.Context, t *testing.T, s *server) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodOptions, s.ota, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "http://page.example")
	req.Header.Set("Access-Control-Request-Method", "POST")
	req.Header.Set("Access-Control-Request-Headers", "client-id,content-type,device-id")
	req.Header.Set("Access-Control-Request-Private-Network", "true")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	allowed := strings.ToLower(resp.Header.Get("Access-Control-Allow-Headers"))
	if resp.StatusCode/100 != 2 || resp.Header.Get("Access-Control-Allow-Origin") != "http://page.example" || !strings.Contains(resp.Header.Get("Access-Control-Allow-Methods"), "POST") ||
		!holdsAll(allowed, []string{"client-id", "content-type", "device-id"}) || resp.Header.Get("Access-Control-Allow-Private-Network") != "true" {
		t.Errorf("preflight: %d %v", resp.StatusCode, resp.Header)
	}
}

// lastRequest is the body of the newest chat request.
func lastRequest(t *testing.T, cloud *openaitest.Server) string {
	t.Helper()
	all := cloud.Requests(openaitest.Chat)
	if len(all) == 0 {
		t.Fatal("the model was never asked")
	}
	return string(all[len(all)-1].Body)
}
