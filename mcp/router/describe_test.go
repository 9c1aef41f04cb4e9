package router

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
)

// looked is a device with one tool that returns result, and a router that looks.
func looked(t *testing.T, name string, result any, look Describe) *Router {
	t.Helper()
	s := source("device", name)
	s.call = func(context.Context, string, map[string]any) (any, error) { return result, nil }
	return newRouter(t, Options{Describe: look}, s)
}

func TestDescribePictures(t *testing.T) {
	jpg := mcp.Image{MIMEType: "image/jpeg", Data: []byte{1, 2, 3}}
	big := mcp.Image{MIMEType: "image/jpeg", Data: make([]byte, maxLookBytes+1)}
	see := func(_ context.Context, mime string, data []byte, question string) (string, error) {
		return fmt.Sprintf("%s of %d: a cat (%s)", mime, len(data), question), nil
	}
	tests := map[string]struct {
		result any
		look   Describe
		want   string
	}{
		"one picture":          {jpg, see, "[image/jpeg image, 3 bytes]\nimage/jpeg of 3: a cat (which?)"},
		"text and picture":     {[]any{"a", jpg, "b"}, see, "a\n[image/jpeg image, 3 bytes]\nimage/jpeg of 3: a cat (which?)\nb"},
		"in an ActionResponse": {mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: jpg}, see, "[image/jpeg image, 3 bytes]\nimage/jpeg of 3: a cat (which?)"},
		"in a pointer to one":  {&mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: jpg}, see, "[image/jpeg image, 3 bytes]\nimage/jpeg of 3: a cat (which?)"},
		"a nil pointer":        {(*mcp.ActionResponse)(nil), see, "tool call failed: self.get: the tool returned nothing"},
		"three pictures": {
			[]any{jpg, jpg, jpg},
			func(context.Context, string, []byte, string) (string, error) { return "seen", nil },
			"[image/jpeg image, 3 bytes]\nseen\n[image/jpeg image, 3 bytes]\nseen\n[image/jpeg image, 3 bytes]\nthe picture was not looked at: only 2 are looked at",
		},
		"a huge picture": {big, see, "[image/jpeg image, 4194305 bytes]\nthe picture was not looked at: it is larger than 4194304 bytes"},
		"nobody can see": {jpg, nil, "[image/jpeg image, 3 bytes]"},
		"it failed": {
			jpg, func(context.Context, string, []byte, string) (string, error) { return "", errors.New("no model") },
			"[image/jpeg image, 3 bytes]\nthe picture was not looked at: no model",
		},
		"it crashed": {
			jpg, func(context.Context, string, []byte, string) (string, error) { panic("oh") },
			"[image/jpeg image, 3 bytes]\nthe picture was not looked at: looking crashed: oh",
		},
		"no picture": {"text", see, "text"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := looked(t, "self.get", test.result, test.look)
			if got := mcp.ResultText(b.Run(t.Context(), prepare(t, b, "self_get", `{"question":"which?"}`))); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestDescribeLanguage: of the answer, and of the words for none.
func TestDescribeLanguage(t *testing.T) {
	language := ""
	b := looked(t, "self.get", mcp.Image{MIMEType: "image/png", Data: nil}, func(ctx context.Context, _ string, _ []byte, _ string) (string, error) {
		language = mcp.InfoFrom(ctx).Language
		return "", errors.New("没有模型")
	})
	r := b.Run(mcp.WithInfo(t.Context(), mcp.Info{Language: "zh"}), prepare(t, b, "self_get", ""))
	if got := mcp.ResultText(r); language != "zh" || got != "[image/png image, 0 bytes]\n没有看这张图片：没有模型" {
		t.Errorf("language %q, got %s", language, got)
	}
}

// TestDescribeNotWanted: who can show a picture gets it and nothing else, and a
// control's is for nobody.
func TestDescribeNotWanted(t *testing.T) {
	never := func(context.Context, string, []byte, string) (string, error) {
		t.Error("a picture was looked at")
		return "", nil
	}
	picture := mcp.Image{MIMEType: "image/png", Data: []byte{1}}
	b := looked(t, "self.get", picture, never)
	if r := b.Run(mcp.WithInfo(t.Context(), mcp.Info{Pictures: true}), prepare(t, b, "self_get", "")); mcp.ResultText(r) != "[image/png image, 1 bytes]" {
		t.Errorf("for who takes pictures: %+v", r)
	}
	b = looked(t, "self.set_lamp", picture, never)
	if r := b.Run(t.Context(), prepare(t, b, "self_set_lamp", "")); mcp.ResultText(r) != "[image/png image, 1 bytes]" {
		t.Errorf("of a control: %+v", r)
	}
}

// TestDescribeEnds: with its time, with its caller and with the router; the device
// is free for other calls while somebody looks.
func TestDescribeEnds(t *testing.T) {
	hang := func(ctx context.Context, _ string, _ []byte, _ string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := source("device", "self.get", "self.other")
		s.call = func(_ context.Context, name string, _ map[string]any) (any, error) {
			if name == "self.other" {
				return "free", nil
			}
			return mcp.Image{MIMEType: "image/png", Data: nil}, nil
		}
		b := New(Options{Describe: hang, Log: slog.New(slog.NewTextHandler(&log, nil))}, s)
		began := time.Now()
		if got := mcp.ResultText(b.Run(t.Context(), prepare(t, b, "self_get", ""))); !strings.Contains(got, "it took too long") || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
		if !strings.Contains(log.String(), "tool=self.get") || !strings.Contains(log.String(), "took=30s") {
			t.Errorf("log: %s", log.String())
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		slow := prepare(t, b, "self_get", "")
		done := make(chan mcp.ActionResponse, 1)
		go func() { done <- b.Run(ctx, slow) }()
		synctest.Wait()
		if r := b.Run(t.Context(), prepare(t, b, "self_other", "")); r.Result != "free" {
			t.Errorf("while somebody looks: %+v", r)
		}
		if r := <-done; r.Action != mcp.ActionTypeError || !strings.Contains(mcp.ResultText(r), "given up") {
			t.Errorf("the caller that left: %+v", r)
		}
		synctest.Wait()
		if err := b.Go(slow, func(r mcp.ActionResponse) { done <- r }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began = time.Now()
		b.Close()
		if r := <-done; time.Since(began) != 0 || !strings.Contains(mcp.ResultText(r), "not looked at") {
			t.Errorf("Close took %v: %+v", time.Since(began), r)
		}
	})
}
