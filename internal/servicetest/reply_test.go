package servicetest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"time"
)

func TestReplies(t *testing.T) {
	body := bytes.Repeat([]byte("sound"), 100)
	var s *Server
	s = New(t, func(w http.ResponseWriter, r *http.Request) {
		s.Send(w, r, s.Fault(), Reply{Type: "audio/pcm", Body: body, Piece: 50, Broken: []byte("<html>"), Filler: []byte("more")})
	}, Slow, Silent, Cut, Closed, Broken, Huge, Odd)
	for fault, want := range map[Fault]struct {
		bytes int
		fails bool
	}{None: {500, false}, Slow: {500, false}, Odd: {500, false}, Cut: {50, true}, Closed: {50, false}, Broken: {6, false}, Huge: {1 << 20, false}} {
		s.Fail(fault)
		begin := time.Now()
		resp, err := http.Get(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		if len(got) != want.bytes || (err != nil) != want.fails || resp.Header.Get("Content-Type") != "audio/pcm" {
			t.Errorf("%v: %d bytes, error %v, want %d", fault, len(got), err, want.bytes)
		}
		if took := time.Since(begin); fault == Slow && took < slowness {
			t.Errorf("a slow one answered after %v", took)
		}
	}
	s.Fail(Silent)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL(), nil)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("a silent one answered")
	}
}

func TestEarHearsWordsInSound(t *testing.T) {
	tone, silence := Speech("abcdefghijklmnopqrstuvwxy", 16000), make([]byte, 32000)
	for _, parts := range []bool{false, true} {
		e := Ear{Rate: 16000, Parts: parts}
		var all, partials []string
		for _, p := range Pieces(tone, 1600) {
			sentence, ended := e.Hear(p)
			if ended {
				all = append(all, sentence)
			} else if sentence != "" {
				partials = append(partials, sentence)
			}
		}
		if rest := e.Rest(); rest != "" {
			all = append(all, rest)
		}
		first, second := Halves()
		if !parts && (len(all) != 1 || all[0] != Words) || parts && (len(all) != 2 || all[0] != first || all[1] != second) || len(partials) < 4 {
			t.Errorf("parts %v: sentences %q, partials %q", parts, all, partials)
		}
		if heard, _ := e.Hear(silence); heard != "" || e.Heard() || e.Rest() != "" {
			t.Errorf("heard %q in silence", heard)
		}
	}
}
