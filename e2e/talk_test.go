package e2e

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/speechtest"
)

// TestTypedTurnsUseTheDevicesTools goes the whole way with typed text and the
// rules brain: three pages of tools, a control, a query, and a plain question.
func TestTypedTurnsUseTheDevicesTools(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := plainServer.use(t)
	board := devicetest.NewBoard()
	d := s.dial(ctx, t, devicetest.Options{Tools: board.Tools()})
	s.waitForTools(ctx, t, d)
	if r := ask(ctx, t, d, "set the volume to 40"); !strings.Contains(r.Text(), "OK") || r.Frames == 0 {
		t.Errorf("answer to a control: %q, %d frames", r.Text(), r.Frames)
	}
	if got := board.Values().Volume; got != 40 {
		t.Errorf("the device's volume is %d", got)
	}
	if r := ask(ctx, t, d, "what is the volume"); !strings.Contains(r.Text(), "40") {
		t.Errorf("answer to a query: %q", r.Text())
	}
	if r := ask(ctx, t, d, "把亮度调到百分之六十"); r.Frames == 0 {
		t.Errorf("answer in Chinese: %q", r.Text())
	}
	if got := board.Values().Brightness; got != 60 {
		t.Errorf("the device's brightness is %d", got)
	}
	if r := ask(ctx, t, d, "set a timer for ten minutes"); !strings.Contains(r.Text(), "10 minutes") {
		t.Errorf("answer to a timer: %q", r.Text())
	}
	if r := ask(ctx, t, d, "list my timers"); !strings.Contains(r.Text(), "There is one: a timer of 10 minutes") {
		t.Errorf("the timers: %q", r.Text())
	}
	if r := ask(ctx, t, d, "what time is it"); !strings.Contains(r.Text(), ":") {
		t.Errorf("the time: %q", r.Text())
	}
	// Underruns are a matter of the machine here; agent's scenes hold them to none in fake time.
	if st := d.Stats(); st.Dropped != 0 {
		t.Errorf("dropped %d (underruns %d)", st.Dropped, st.Underruns)
	}
}

// waitForTools returns when the server has taken in all tools of the device.
func (s *server) waitForTools(ctx context.Context, t *testing.T, d *devicetest.Device) {
	t.Helper()
	s.awaitLog(ctx, t, "device tools listed", "session_id="+d.SessionID(), "complete=true")
}

// TestPushToTalk speaks a human prompt in manual mode, and listens to the answer.
func TestPushToTalk(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := plainServer.use(t)
	s.waitReady(ctx, t)
	d := s.dial(ctx, t, devicetest.Options{Mode: devicetest.Manual})
	clip := clipNamed(t, speechtest.Prompts, "vm-msgsaved")
	for round := range 2 {
		if err := d.ListenStart(devicetest.Manual); err != nil {
			t.Fatal(err)
		}
		if err := d.Say(ctx, clip.PCM()); err != nil {
			t.Fatal(err)
		}
		if err := d.ListenStop(); err != nil {
			t.Fatal(err)
		}
		r := reply(ctx, t, d)
		if errs, _ := speechtest.WER(clip.Text, r.Heard); errs > 1 {
			t.Errorf("round %d: said %q, heard %q", round, clip.Text, r.Heard)
		}
		if r.Frames == 0 {
			t.Errorf("round %d: no sound", round)
		}
	}
}

func clipNamed(t *testing.T, set func() ([]speechtest.Clip, error), name string) speechtest.Clip {
	t.Helper()
	clips, err := set()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clips {
		if strings.Contains(c.Name, name) {
			return c
		}
	}
	t.Fatalf("no clip %s", name)
	return speechtest.Clip{}
}

// startCloud runs a fake of the OpenAI wire format.
func startCloud(tb testing.TB) *openaitest.Server {
	tb.Helper()
	cloud, err := openaitest.New()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { cloud.Close() })
	return cloud
}

// cloudEnv makes a server use the fake as its language model.
func cloudEnv(cloud *openaitest.Server) []string {
	return []string{"XIAOZHI_LLM=auto,rules", "OPENAI_API_KEY=k-e2e-secret", "OPENAI_BASE_URL=" + cloud.URL(), "OPENAI_MODEL=fake-1"}
}

// TestModelWithTools lets a model call a control and a query of the device.
func TestModelWithTools(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat,
		openaitest.Calls(
			openaitest.Call{ID: "c1", Name: "self_audio_speaker_set_volume", Arguments: `{"volume": "55"}`},
			openaitest.Call{ID: "c2", Name: "self_get_device_status", Arguments: `{}`}),
		openaitest.Text("😊The volume ", "is now ", "fifty five."),
		openaitest.Text("You are welcome."))
	s := start(t, setup{speaks: true, env: cloudEnv(cloud)})
	board := devicetest.NewBoard()
	d := s.dial(ctx, t, devicetest.Options{Tools: board.Tools()})
	s.waitForTools(ctx, t, d)
	r := ask(ctx, t, d, "please do the usual thing")
	if r.Text() != "😊The volume is now fifty five." || r.Emotion != "happy" || r.Frames == 0 {
		t.Errorf("answer %q, emotion %q, %d frames", r.Text(), r.Emotion, r.Frames)
	}
	if got := board.Values().Volume; got != 55 {
		t.Errorf("volume %d", got)
	}
	requests := cloud.Requests(openaitest.Chat)
	if len(requests) != 2 {
		t.Fatalf("%d model calls, want 2", len(requests))
	}
	first, second := string(requests[0].Body), string(requests[1].Body)
	for _, want := range []string{`"self_audio_speaker_set_volume"`, `"get_current_time"`, `"fake-1"`} {
		if !strings.Contains(first, want) {
			t.Errorf("the first request does not hold %s", want)
		}
	}
	if strings.Contains(first, "self_reboot") {
		t.Error("a tool for people only is offered to the model")
	}
	for _, want := range []string{`"tool_call_id":"c1"`, `"tool_call_id":"c2"`, `audio_speaker`} {
		if !strings.Contains(second, want) {
			t.Errorf("the second request does not hold %s", want)
		}
	}
	ask(ctx, t, d, "thank you for that")
	if last := string(cloud.Requests(openaitest.Chat)[2].Body); !strings.Contains(last, "fifty five") || !strings.Contains(last, "please do the usual thing") {
		t.Error("the third request does not hold the history")
	}
	if strings.Contains(s.log.String(), "k-e2e-secret") {
		t.Error("the key is in the log")
	}
}

// TestAbortAnywhere presses the button at twenty moments of a turn: one tts
// stop each time, no frame after it, the model's request is closed, and the
// next reply is clean.
func TestAbortAnywhere(t *testing.T) {
	t.Parallel()
	const aborted = 5 // requests that the model is still answering at their abort
	ctx := limit(t)
	cloud := startCloud(t)
	var asked atomic.Int64
	cloud.Handle(openaitest.Chat, func(*openaitest.Request) openaitest.Reply {
		story := []string{"This is one ", "sentence. ", "Here is another ", "sentence of it. ", "And a third ", "one to end it."}
		if asked.Add(1) <= aborted {
			story = slices.Repeat(story, 100) // a minute and more
		}
		return openaitest.TextEvery(120*time.Millisecond, story...)
	})
	s := start(t, setup{speaks: true, env: cloudEnv(cloud)})
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true, OpenListen: true})
	for i := range 20 {
		if err := d.Detect("tell me a long story"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 90 * time.Millisecond) // real time: the moment is the point
		if err := d.Abort(""); err != nil {
			t.Fatal(err)
		}
		if _, err := d.WaitText(ctx, "tts", "stop"); err != nil {
			t.Fatalf("abort %d: no tts stop: %v", i, err)
		}
	}
	for i, r := range cloud.Requests(openaitest.Chat)[:aborted] {
		if !r.Gone() {
			t.Errorf("request %d was not closed by its abort", i)
		}
	}
	cloud.Reply(openaitest.Chat, openaitest.Text("All is well."))
	if err := d.Detect("and now the end"); err != nil {
		t.Fatal(err)
	}
	r := reply(ctx, t, d)
	for r.Heard != "and now the end" { // those that were aborted
		r = reply(ctx, t, d)
	}
	if r.Text() != "All is well." || r.Dropped != 0 || r.Cut {
		t.Errorf("after the aborts: %q, dropped %d", r.Text(), r.Dropped)
	}
}

// TestFailuresAreHeard breaks the model and the voice.
func TestFailuresAreHeard(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Failure(401, "no such key"))
	cloud.Reply(openaitest.Speak, openaitest.Failure(503, "overloaded"))
	env := append(cloudEnv(cloud), "XIAOZHI_LLM=openai")
	s := start(t, setup{env: env, config: "tts: [cloud]\nproviders: {cloud: {type: openai, base_url: \"" + cloud.URL() + "\", tts_model: voice-1}}\n"})
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	r := ask(ctx, t, d, "hello my friend")
	if r.Frames < 10 || !strings.Contains(r.Text(), "model") {
		t.Errorf("model and voice down: %q, %d frames", r.Text(), r.Frames)
	}
	cloud.Reply(openaitest.Chat, openaitest.Text("I am back."))
	r = ask(ctx, t, d, "are you there")
	if r.Frames < 10 || !strings.Contains(strings.ToLower(r.Text()), "speech") {
		t.Errorf("voice down: %q, %d frames", r.Text(), r.Frames)
	}
	cloud.Reply(openaitest.Speak, openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, time.Second), 4800))
	if r = ask(ctx, t, d, "and now"); r.Text() != "I am back." || r.Frames < 16 {
		t.Errorf("all is up again: %q, %d frames", r.Text(), r.Frames)
	}
	for _, want := range []string{"no such key", "overloaded"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
}

// TestGoodbyeHangsUp ends a conversation by its words, and dials again.
func TestGoodbyeHangsUp(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := plainServer.use(t)
	for range 2 {
		d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
		r := ask(ctx, t, d, "goodbye")
		if r.Frames == 0 {
			t.Errorf("no goodbye was heard: %q", r.Text())
		}
		select {
		case <-d.Done():
		case <-ctx.Done():
			t.Fatal("the server did not hang up")
		}
	}
}

// TestPages looks at what people see.
func TestPages(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := plainServer.use(t)
	base := strings.TrimSuffix(s.ota, "/xiaozhi/ota/")
	for path, want := range map[string]string{
		"/healthz": "ok", "/xiaozhi/ota/": "OTA", "/xiaozhi/ota": "OTA", "/xiaozhi/v1/": "WebSocket", "/nothing": "/xiaozhi/ota/",
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("GET %s: %d %q, %v", path, resp.StatusCode, body, err)
		}
	}
}
