package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/audio/file"
)

// scripted is a server with an OTA address, whose WebSocket is played from a script.
func scripted(t *testing.T, play func(context.Context, *peer)) (otaURL, wsURL string) {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	wsURL = "ws" + strings.TrimPrefix(server.URL, "http") + "/xiaozhi/v1/"
	mux.Handle("/xiaozhi/v1/", script(play))
	mux.HandleFunc("/xiaozhi/ota/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"server_time":{"timestamp":1795224000000},"websocket":{"url":%q,"token":"t"}}`, wsURL)
	})
	return server.URL + "/xiaozhi/ota/", wsURL
}

// runTalk runs the subcommand and gives its exit code and what it printed.
func runTalk(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	args = append([]string{"--flash", ""}, args...) // those who mean a file say which
	code = talk(t.Context(), args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// inOrder checks that parts come one after the other in text.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Errorf("no %q (in this order) in\n%s", p, text)
			return
		}
		rest = after
	}
}

func answer(ctx context.Context, p *peer, heard, says string) {
	if p.begin(ctx, heard, says) == nil && p.sound(ctx, 5) == nil {
		p.finish(ctx)
	}
}

// Nothing is typed before the server knows the tools, if it asks for them.
func TestTalkTypesAfterTools(t *testing.T) {
	t.Parallel()
	var order []string
	_, ws := scripted(t, func(ctx context.Context, p *peer) {
		p.send(`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":""}}`)
		for range 8 { // pages, and then the words
			page, err := p.await(ctx, "")
			if err != nil {
				return
			}
			_, next, more := strings.Cut(page, `"nextCursor":"`)
			next, _, _ = strings.Cut(next, `"`)
			switch {
			case more:
				order = append(order, "page")
				p.send(fmt.Sprintf(`"type":"mcp","payload":{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"cursor":%q}}`, len(order)+1, next))
			case strings.Contains(page, `"tools":[`):
				order = append(order, "last page")
			case strings.Contains(page, `"detect"`):
				order = append(order, "words")
				answer(ctx, p, "hi", "Hello.")
				return
			}
		}
	})
	if code, out, errs := runTalk(t, "", "--server", ws, "--mode", "manual", "--text", "hi"); code != 0 {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	if len(order) < 3 || order[0] != "page" || !slices.Equal(order[len(order)-2:], []string{"last page", "words"}) {
		t.Errorf("the server heard %v", order)
	}
}

// A typed turn by way of the OTA address, with a tool call, saved as WAV.
func TestTalkTyped(t *testing.T) {
	t.Parallel()
	ota, _ := scripted(t, func(ctx context.Context, p *peer) {
		p.await(ctx, `"state":"detect","text":"louder please"`)
		p.send(`"type":"mcp","payload":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"self.audio_speaker.set_volume","arguments":{"volume":90}}}`)
		p.await(ctx, `"id":1`)
		answer(ctx, p, "louder please", "Done.")
		p.await(ctx, `"state":"start"`)
	})
	path := filepath.Join(t.TempDir(), "reply.wav")
	code, out, errs := runTalk(t, "", "--server", ota, "--text", "louder please", "--save", path)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	inOrder(t, out, "ota", "connected", "you        louder please", "tool       self.audio_speaker.set_volume {\"volume\":90} → true", "heard      louder please",
		"tts start", "emotion    happy 🙂", "says       Done.", "first sound", "tts stop", "ms after the end of speech, 5 frames, 0.3 s of sound",
		"1 replies, 5 frames, 0 dropped,", "1 tool calls", "saved")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pcm, rate, err := file.ReadWAV(f)
	if err != nil || rate != 24000 || len(pcm) != 5*1440 {
		t.Errorf("saved %d samples at %d Hz, %v", len(pcm), rate, err)
	}
}

// A recording is spoken in each mode, with the messages that belong to it.
func TestTalkSpoken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "prompt.wav")
	var wav bytes.Buffer
	if err := file.WriteWAV(&wav, make([]int16, 11025), 22050); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, wav.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"auto", "manual", "realtime"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			_, ws := scripted(t, func(ctx context.Context, p *peer) {
				p.await(ctx, `"state":"start","mode":"`+mode+`"`)
				if mode == "manual" {
					p.await(ctx, `"state":"stop"`)
				} else {
					p.pause(ctx, 600*time.Millisecond) // longer than the recording
				}
				answer(ctx, p, "hello", "Hello to you.")
				p.await(ctx, "never")
			})
			code, out, errs := runTalk(t, "", "--server", ws, "--wav", path, "--mode", mode, "--no-mcp", "--protocol", "1")
			if code != 0 || errs != "" {
				t.Fatalf("exit %d: %s\n%s", code, errs, out)
			}
			inOrder(t, out, "listen start", "says       Hello to you.", "latency")
			inOrder(t, out, "you        speak", "(500ms)", "latency")
		})
	}
}

// Lines of the standard input are typed turns; after a hang-up the device connects anew.
func TestTalkLines(t *testing.T) {
	t.Parallel()
	_, ws := scripted(t, func(ctx context.Context, p *peer) {
		p.await(ctx, `"state":"detect"`)
		answer(ctx, p, "x", "Goodbye.")
	})
	code, out, errs := runTalk(t, "one\n\n  two  \n", "--server", ws)
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	inOrder(t, out, "connected", "you        one", "Goodbye.", "closed", "connected", "you        two", "Goodbye.", "2 replies")
}

// The button is pressed in the middle of a reply.
func TestTalkAbort(t *testing.T) {
	t.Parallel()
	_, ws := scripted(t, func(ctx context.Context, p *peer) {
		p.await(ctx, `"state":"detect"`)
		p.begin(ctx, "x", "A long story.")
		p.sound(ctx, 6)
		p.await(ctx, `"type":"abort"`)
		p.cut()
		p.await(ctx, "never")
	})
	code, out, errs := runTalk(t, "", "--server", ws, "--text", "tell me a story", "--abort-after", "100ms", "--verbose")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s\n%s", code, errs, out)
	}
	inOrder(t, out, ">>", "first sound", "abort", "tts stop", ", cut")
}

// A server that breaks the protocol is told of at the end.
func TestTalkWarns(t *testing.T) {
	t.Parallel()
	_, ws := scripted(t, func(ctx context.Context, p *peer) {
		p.await(ctx, `"state":"detect"`)
		p.send(`"type":"llm","emotion":"happy","text":""`)
		answer(ctx, p, "x", "Yes.")
		p.await(ctx, "never")
	})
	code, out, _ := runTalk(t, "", "--server", ws, "--text", "hi")
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	inOrder(t, out, "total", "broke the device protocol", "outside_reply")
}

// What fails says so and ends with 1.
func TestTalkFails(t *testing.T) {
	t.Parallel()
	_, silent := scripted(t, func(ctx context.Context, p *peer) { p.await(ctx, "never") })
	_, rude := scripted(t, func(ctx context.Context, p *peer) { p.await(ctx, `"state":"detect"`) })
	_, away := scripted(t, func(ctx context.Context, p *peer) {
		p.await(ctx, `"state":"detect"`)
		answer(ctx, p, "x", "This device is not paired yet.")
		_ = p.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1000, "device turned away"), time.Now().Add(time.Second))
	})
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	missing := httptest.NewServer(http.NotFoundHandler())
	defer missing.Close()
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no reply", []string{"--server", silent, "--text", "x", "--timeout", "1s"}, "no reply within 1s"},
		{"hangs up", []string{"--server", rude, "--text", "x"}, "ended the connection"},
		{"turned away", []string{"--server", away, "--text", "x"}, "turned this device away"},
		{"nobody there", []string{"--server", closed.URL, "--text", "x"}, "refused"},
		{"no such page", []string{"--server", missing.URL, "--text", "x"}, "404"},
		{"no WebSocket", []string{"--server", "ws" + strings.TrimPrefix(missing.URL, "http"), "--text", "x"}, "404"},
		{"nothing to save", []string{"--server", closed.URL, "--save", "x.wav"}, "no reply to save"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := runTalk(t, "", tt.args...)
			if code != 1 || !strings.Contains(errs, tt.want) {
				t.Errorf("exit %d: %s, want 1 and %q\n%s", code, errs, tt.want, out)
			}
		})
	}
}

// Misuse ends with 2 before anything is sent.
func TestTalkMisused(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.wav")
	if err := os.WriteFile(bad, []byte("not sound"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--nope"}, "nope"},
		{[]string{"hello"}, `unknown argument "hello"`},
		{[]string{"--server", "ftp://localhost:8000"}, "--server"},
		{[]string{"--server", "http://[::1"}, "--server"},
		{[]string{"--server", "ws://"}, "--server"},
		{[]string{"--mode", "loud"}, "--mode"},
		{[]string{"--protocol", "4"}, "--protocol"},
		{[]string{"--frame", "30"}, "--frame"},
		{[]string{"--timeout", "0s"}, "--timeout"},
		{[]string{"--text", " "}, "no words"},
		{[]string{"--wav", "nowhere.wav"}, "nowhere.wav"},
		{[]string{"--wav", bad}, "bad.wav"},
	}
	for _, tt := range tests {
		code, _, errs := runTalk(t, "", tt.args...)
		if code != 2 || !strings.Contains(errs, tt.want) {
			t.Errorf("%v: exit %d: %s", tt.args, code, errs)
		}
	}
	if code, out, _ := runTalk(t, "", "--help"); code != 0 || !strings.Contains(out, "--text") || !strings.Contains(out, "模拟") {
		t.Errorf("help: exit %d\n%s", code, out)
	}
}

// An address may be typed as short as people type it.
func TestTalkAddress(t *testing.T) {
	for typed, want := range map[string]string{
		"localhost:8000":               "http://localhost:8000/xiaozhi/ota/",
		"http://10.0.0.2:8000/":        "http://10.0.0.2:8000/xiaozhi/ota/",
		"wss://speaker.example.org":    "wss://speaker.example.org/xiaozhi/v1/",
		"ws://localhost:8000/other":    "ws://localhost:8000/other",
		"https://example.org/my/ota":   "https://example.org/my/ota",
		"http://example.org?device=me": "http://example.org?device=me",
	} {
		if got := completeURL(typed); got != want {
			t.Errorf("%s: %s, want %s", typed, got, want)
		}
	}
}

// The token of a pair is told once: the speaker keeps it, and waits where a person must accept it.
func TestTalkKeepsItsToken(t *testing.T) {
	t.Parallel()
	_, ws := scripted(t, func(ctx context.Context, p *peer) {
		if _, err := p.await(ctx, "detect"); err == nil {
			answer(ctx, p, "hi", "Hello.")
		}
	})
	accepted, boots := false, 0
	mux := http.NewServeMux()
	mux.HandleFunc("/xiaozhi/ota/activate", func(w http.ResponseWriter, _ *http.Request) { accepted = true })
	mux.HandleFunc("/xiaozhi/ota/", func(w http.ResponseWriter, _ *http.Request) {
		code, token := `"activation":{"code":"306790","challenge":"c","message":"306790"},`, ""
		if accepted {
			code = ""
			if boots++; boots == 1 {
				token = `,"token":"once"`
			}
		}
		fmt.Fprintf(w, `{%s"server_time":{"timestamp":1795224000000},"websocket":{"url":%q%s}}`, code, ws, token)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "new", "speaker.json")
	for i, want := range []string{"xiaozhi devices pair 306790", "connected"} {
		code, out, errs := runTalk(t, "", "--server", server.URL, "--flash", file, "--mode", "manual", "--text", "hi")
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "306790") != (i == 0) {
			t.Fatalf("exit %d: %s\n%s", code, errs, out)
		}
	}
	kept, err := flash(file).read()
	if info, statErr := os.Stat(file); err != nil || statErr != nil || info.Mode().Perm() != 0o600 || len(kept) != 1 || boots != 2 {
		t.Errorf("%v kept after %d boots, %v, %v", kept, boots, err, statErr)
	}
	for _, token := range kept {
		if token != "once" {
			t.Errorf("kept %q", token)
		}
	}
}

// A speaker that nobody accepts says so, and how.
func TestTalkNotAccepted(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/xiaozhi/ota/activate", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	mux.HandleFunc("/xiaozhi/ota/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"activation":{"code":"306790","challenge":"c","message":"306790"},"server_time":{"timestamp":1795224000000},"websocket":{"url":"ws://127.0.0.1/xiaozhi/v1/"}}`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	code, out, errs := runTalk(t, "", "--server", server.URL, "--timeout", "200ms", "--text", "hi")
	if code != 1 || !strings.Contains(errs, "xiaozhi devices pair 306790") || strings.Contains(out, "0 replies") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
}

// The silence at a recording's end does not count as speech.
func TestTrailing(t *testing.T) {
	pcm := make([]int16, 16000)
	for i := range 8000 {
		pcm[i] = int16(4000 * (i%2*2 - 1))
	}
	if got := trailing(pcm).Milliseconds(); got != 500 {
		t.Errorf("%d ms", got)
	}
	if got := trailing(pcm[:8000]); got != 0 {
		t.Errorf("%s after speech to the end", got)
	}
}

// TestTalkRefusals: a token that is not right and a full server are
// named as such.
func TestTalkRefusals(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{401: "401 Unauthorized", 503: "503 Service Unavailable"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		for _, url := range []string{"ws" + strings.TrimPrefix(server.URL, "http"), server.URL} {
			code, out, errs := runTalk(t, "", "--server", url, "--text", "x", "--token", "t0psecret")
			if code != 1 || !strings.Contains(errs, want) || strings.Contains(out+errs, "t0psecret") {
				t.Errorf("%s: exit %d\n%s%s", url, code, out, errs)
			}
		}
		server.Close()
	}
}
