package bench

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/internal/openaitest"
)

func TestDeltas(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"Hello, big world. ", []string{"Hello,", " big", " world.", " "}},
		{"好的，我来。", []string{"好", "的，", "我", "来。"}},
		{"苹果是 apple，对吗？", []string{"苹", "果", "是", " apple，", "对", "吗？"}},
	} {
		if got := deltas(c.text); !slices.Equal(got, c.want) || strings.Join(got, "") != c.text {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// pieces are the delays of a reply and the length of its data.
func pieces(r openaitest.Reply) (delays []time.Duration, size int) {
	for _, p := range r.Pieces {
		delays = append(delays, p.Delay)
		size += len(p.Data)
	}
	return delays, size
}

// What openaitest does with these delays is tested there, in a bubble.
func TestPlanDelays(t *testing.T) {
	p := Plan{ASR: 200 * time.Millisecond, LLM: 400 * time.Millisecond, TTS: 300 * time.Millisecond, Rate: 40, Sound: 250 * time.Millisecond, Rest: 90 * time.Millisecond}
	if r := p.transcript(); r.Delay != p.ASR || r.Pieces[0].Data != `{"text":"he was not an ill disposed young man"}` {
		t.Errorf("transcript %+v", r)
	}
	delays, _ := pieces(p.chat("one two three"))
	if want := durations(400, 25, 25, 25, 25); !slices.Equal(delays, want) { // three words, the finish, the end mark
		t.Errorf("chat %v, want %v", delays, want)
	}
	delays, size := pieces(p.speech(strings.Repeat("x", 48000), false))
	if want := durations(300, 90, 90); !slices.Equal(delays, want) || size != 250*48 { // two parts of 100 ms and one of 50
		t.Errorf("speech %v, %d bytes", delays, size)
	}
	if _, size := pieces((&Plan{Sound: -1}).speech(strings.Repeat("x", 48000), false)); size != 3600*48000 {
		t.Errorf("endless speech has %d bytes", size)
	}
	for _, trouble := range []Trouble{Failing, Hanging} {
		p := Plan{Trouble: trouble}
		for _, r := range []openaitest.Reply{p.transcript(), p.chat("x"), p.speech("x", true)} {
			if r.Hang != (trouble == Hanging) || (r.Status == http.StatusServiceUnavailable) != (trouble == Failing) {
				t.Errorf("%s: %+v", trouble, r)
			}
		}
	}
}

// The stubs on a real socket, as a server asks them.
func TestStubs(t *testing.T) {
	s, err := StartStubs("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Set(Plan{Heard: "what time is it", Replies: []string{"First one.", "Second."}, Log: true})
	ask := func(ctx context.Context, path, kind, body string) (int, string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", kind)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		got, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(got)
	}
	var form strings.Builder
	w := multipart.NewWriter(&form)
	part, _ := w.CreateFormFile("file", "a.wav")
	_, _ = part.Write([]byte("RIFF"))
	_ = w.Close()
	if _, text := ask(t.Context(), "/audio/transcriptions", w.FormDataContentType(), form.String()); text != `{"text":"what time is it"}` {
		t.Errorf("transcript %s", text)
	}
	for _, want := range []string{"First", "Second", "First"} {
		if _, text := ask(t.Context(), "/chat/completions", "application/json", "{}"); !strings.Contains(text, want) || !strings.HasSuffix(text, "[DONE]\n\n") {
			t.Errorf("chat %s, want %s", text, want)
		}
	}
	if _, sound := ask(t.Context(), "/audio/speech", "application/json", `{"input":"x"}`); len(sound) != 300*48 {
		t.Errorf("%d bytes of sound", len(sound))
	}
	if len(s.Requests(openaitest.Chat)) != 3 || len(s.Requests(openaitest.Speak)) != 1 || s.Requests(openaitest.Speak)[0].JSON()["input"] != "x" {
		t.Errorf("%d chats, %d speeches are logged", len(s.Requests(openaitest.Chat)), len(s.Requests(openaitest.Speak)))
	}
	_, wav := ask(t.Context(), "/audio/speech", "application/json", `{"input":"x","response_format":"wav"}`)
	if pcm, rate, err := file.ReadWAV(strings.NewReader(wav)); err != nil || rate != replyRate || len(pcm) != 300*24 {
		t.Errorf("a WAV file of %d samples at %d Hz, %v", len(pcm), rate, err)
	}
	s.Set(Plan{Trouble: Failing})
	if status, _ := ask(t.Context(), "/chat/completions", "application/json", "{}"); status != http.StatusServiceUnavailable || len(s.Requests(openaitest.Chat)) != 0 {
		t.Errorf("status %d, %d logged", status, len(s.Requests(openaitest.Chat)))
	}
}

// closing takes only requests that were open at the abort.
func TestClosing(t *testing.T) {
	s, err := StartStubs("")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Set(Plan{Trouble: Hanging, Log: true})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/chat/completions", strings.NewReader("{}"))
		if resp, err := http.DefaultClient.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	r, err := s.Await(t.Context(), openaitest.Chat, 1)
	if err != nil {
		t.Fatal(err)
	}
	open := []*openaitest.Request{r}
	if got := closing(t.Context(), open, r.Arrived.Add(-time.Second)); got != nil {
		t.Errorf("it came after the abort, but %v", got)
	}
	aborted := time.Now()
	cancel()
	<-done
	if got := closing(t.Context(), open, aborted); len(got) != 1 || got[0] <= 0 || got[0] >= closePatience {
		t.Errorf("closed after %v", got)
	}
	if got := closing(t.Context(), open, time.Now().Add(time.Hour)); got != nil {
		t.Errorf("it was over before the abort, but %v", got)
	}
}
