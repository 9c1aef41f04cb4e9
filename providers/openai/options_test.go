package openai

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

func TestInvalidOptions(t *testing.T) {
	tests := []struct {
		name string
		o    Options
		part string
	}{
		{"no model", Options{}, "model"},
		{"no scheme", Options{Model: "m", BaseURL: "localhost:11434"}, "base_url"},
		{"no host", Options{Model: "m", BaseURL: "http://"}, "base_url"},
		{"no URL", Options{Model: "m", BaseURL: "http://a b:sk-secret@x"}, "base_url"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewLLM(tt.o)
			if err == nil || !strings.Contains(err.Error(), "openai: ") || !strings.Contains(err.Error(), tt.part) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want one that names %s and no secret", err, tt.part)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	l, err := NewLLM(Options{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if o := l.o; l.Name() != "openai" || o.BaseURL != DefaultBaseURL || o.Retries != 2 ||
		o.Timeouts.FirstToken != 15*time.Second || o.Timeouts.Connect != 1400*time.Millisecond || o.HTTPClient == nil {
		t.Errorf("defaults %+v", o)
	}
	if wire := l.o.HTTPClient.Transport.(*transport.HTTP); wire.Proxy == nil {
		t.Error("no proxy of the environment")
	}
}

func TestOptionsShowNoSecret(t *testing.T) {
	o := Options{APIKey: "sk-hidden", Headers: map[string]providers.Secret{"X-Key": "hidden-too"}}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "options", o.Headers, "key", o.APIKey)
	for _, text := range []string{fmt.Sprintf("%v %+v %#v", o, o, o), log.String()} {
		if strings.Contains(text, "hidden") {
			t.Errorf("shown: %s", text)
		}
	}
}

func TestFindOllama(t *testing.T) {
	notFound := openaitest.JSON(404, `{"error":"not found"}`)
	tests := []struct {
		name         string
		tags, models openaitest.Reply
		want         string
	}{
		{"the first that chats", openaitest.JSON(200, `{"models":[{"name":"nomic-embed-text:latest","details":{"family":"nomic-bert"}},
			{"name":"mxbai:1","details":{"family":"bert"}},{"name":"qwen3:4b","details":{"family":"qwen3"}},{"name":"llama3.2:1b"}]}`), notFound, "qwen3:4b"},
		{"by the common list", notFound, openaitest.JSON(200, `{"data":[{"id":"bge-m3"},{"id":"llama3.2:1b"}]}`), "llama3.2:1b"},
		{"none", openaitest.JSON(200, `{"models":[]}`), notFound, ""},
		{"only others", openaitest.JSON(200, `{"models":[{"name":"whisper"}]}`), notFound, ""},
		{"broken", openaitest.JSON(200, `{`), notFound, ""},
		{"something else on that port", openaitest.JSON(500, `?`), notFound, ""},
		{"neither list", notFound, notFound, ""},
		{"no answer", openaitest.Reply{Hang: true}, notFound, ""},
	}
	s := newServer(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.Reply(openaitest.Tags, tt.tags)
			s.Reply(openaitest.Models, tt.models)
			for _, base := range []string{s.Root(), s.URL() + "/"} {
				if tt.want == "" && base == s.Root() {
					continue // one is enough for what fails
				}
				limit := patience
				if tt.tags.Hang {
					limit = 50 * time.Millisecond
				}
				if got, err := findOllama(t.Context(), base, limit); got != tt.want || (err == nil) != (tt.want != "") {
					t.Errorf("at %s: %q, %v", base, got, err)
				}
			}
		})
	}
	if _, err := FindOllama(t.Context(), "nowhere"); err == nil {
		t.Error("no error for a base that is no URL")
	}
}

func TestClean(t *testing.T) {
	long := strings.Repeat("好", 200)
	for in, want := range map[string]string{"a\n\t b ": "a b", long: text.Cut(long, transport.MaxErrorText), "\xff": "?", "": "", "key sk-1": "key ***"} {
		if got := (Options{APIKey: "sk-1"}).account().Clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}
