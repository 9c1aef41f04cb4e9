package openaitest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"
)

// start makes a server and a client that end with the test.
func start(t *testing.T) (*Server, *http.Client) {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s, client
}

// post sends a body and gives the reply's status and body, as far as it came.
func post(ctx context.Context, t *testing.T, c *http.Client, url, contentType, body string) (int, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(got), err
}

func TestServerDefaults(t *testing.T) {
	s, c := start(t)
	_, chat, err := post(t.Context(), t, c, s.URL()+"/chat/completions", "application/json", `{"model":"m"}`)
	if err != nil || !strings.Contains(chat, `"content":"Hello. "`) || !strings.HasSuffix(chat, "data: [DONE]\n\n") {
		t.Errorf("chat %q, %v", chat, err)
	}
	_, sound, err := post(t.Context(), t, c, s.URL()+"/audio/speech", "application/json", `{"input":"hello"}`)
	if err != nil || len(sound) != 5*60*48 {
		t.Errorf("%d bytes of sound, %v", len(sound), err)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "a.wav")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = part.Write([]byte("RIFF"))
	_ = w.WriteField("model", "m")
	_ = w.Close()
	_, text, err := post(t.Context(), t, c, s.URL()+"/audio/transcriptions", w.FormDataContentType(), form.String())
	if err != nil || text != `{"text":"hello"}` {
		t.Errorf("transcript %q, %v", text, err)
	}
	if r := s.Requests(Chat)[0]; r.Began().Before(r.Arrived) || r.EndedAt().Before(r.Began()) {
		t.Errorf("came %v, begun %v, ended %v", r.Arrived, r.Began(), r.EndedAt())
	}
	r := s.Requests(Transcribe)[0]
	if string(r.File) != "RIFF" || r.Filename != "a.wav" || r.Fields["model"] != "m" || r.Gone() {
		t.Errorf("recorded %+v", r)
	}
	if s.Total() != 3 || s.Requests(Chat)[0].JSON()["model"] != "m" {
		t.Errorf("%d requests, the first %s", s.Total(), s.Requests(Chat)[0].Body)
	}
}

func TestScripts(t *testing.T) {
	s, c := start(t)
	url := s.URL() + "/chat/completions"
	s.Reply(Chat, Failure(429, "busy"), Text("a").Then(Piece{Cut: true}), Text("b").After(time.Millisecond))
	if status, body, err := post(t.Context(), t, c, url, "", "{}"); status != 429 || !strings.Contains(body, `"message":"busy"`) || err != nil {
		t.Errorf("%d %q %v", status, body, err)
	}
	if _, body, err := post(t.Context(), t, c, url, "", "{}"); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(body, `"content":"a"`) {
		t.Errorf("cut: %q %v", body, err)
	}
	for range 2 { // the last is repeated
		if _, body, err := post(t.Context(), t, c, url, "", "{}"); err != nil || !strings.Contains(body, `"content":"b"`) {
			t.Errorf("%q %v", body, err)
		}
	}
	s.Reply(Chat, Calls(Call{ID: "1", Name: "f", Arguments: `{"x":1}`}))
	if _, body, err := post(t.Context(), t, c, url, "", "{}"); err != nil || strings.Count(body, "tool_calls") != 4 || !strings.Contains(body, `"name":"f"`) {
		t.Errorf("calls %q %v", body, err)
	}
}

func TestServerNotesLeavingClient(t *testing.T) {
	s, c := start(t)
	s.Reply(Chat, TextEvery(time.Hour, "never"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if _, err := s.Await(ctx, Chat, 1); err != nil {
			t.Error(err)
		}
		cancel()
	}()
	if _, _, err := post(ctx, t, c, s.URL()+"/chat/completions", "", "{}"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	r := s.Requests(Chat)[0]
	if !r.Gone() || !r.Began().IsZero() || r.EndedAt().Before(r.Arrived) {
		t.Errorf("noted as gone %v, begun %v, ended %v after it came", r.Gone(), r.Began(), r.EndedAt().Sub(r.Arrived))
	}
	if _, err := s.Await(ctx, Chat, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("await: %v", err)
	}
}
