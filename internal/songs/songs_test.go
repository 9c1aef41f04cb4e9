package songs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/audio/file"
)

func wav(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := file.WriteWAV(&b, make([]int16, 1600), 16000); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// server serves songs, and what are none.
func server(t *testing.T) (s *httptest.Server, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	sound := wav(t)
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	mux := http.NewServeMux()
	mux.HandleFunc("/a_good%20song.wav", func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write(sound)
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>no song") })
	mux.HandleFunc("/says-large", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99999999999")
		_, _ = w.Write(sound)
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9999")
		_, _ = w.Write(sound[:100])
	})
	mux.HandleFunc("/hangs", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})
	for from, to := range map[string]string{"/moved": "/a_good%20song.wav", "/loop": "/loop", "/door": "http://169.254.169.254/latest", "/file": "file:///etc/passwd", "/user": "http://a:b@127.0.0.1/"} {
		mux.HandleFunc(from, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	}
	s = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s, asked
}

// TestFetch: a song is fetched once for all who ask, and played as often as one likes; what is no song is not.
func TestFetch(t *testing.T) {
	s, asked := server(t)
	c := New(t.TempDir()+"/songs", true)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			id, title, err := c.Fetch(t.Context(), " "+s.URL+"/a_good%20song.wav ")
			if err != nil || title != "a good song" || !Is(id) {
				t.Error(id, title, err)
				return
			}
			song, err := c.Open(id)
			if err != nil {
				t.Error(err)
				return
			}
			if n, err := song.Read(make([]int16, 9999)); n == 0 || song.Rate() != 16000 {
				t.Error(n, err)
			}
			if err := song.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	if _, _, err := c.Fetch(t.Context(), s.URL+"/moved"); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]error{
		"/page": ErrNoSound, "/says-large": ErrTooLarge, "/nothing": StatusError(404), "/door": ErrHere, "/file": ErrURL, "/user": ErrURL, "/cut": io.ErrUnexpectedEOF, "/loop": nil,
	} {
		if _, _, err := c.Fetch(t.Context(), s.URL+path); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		} else if strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: the error tells of the address: %v", path, err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, _, err := c.Fetch(ctx, s.URL+"/hangs"); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	left, err := os.ReadDir(c.dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	for _, id := range []string{"fetched:", "fetched:../songs.go", "fetched:" + strings.Repeat("0", 32), "x.wav"} {
		if _, err := c.Open(id); err == nil {
			t.Errorf("%s is opened", id)
		}
	}
}

// TestFetchAddresses: neither this machine nor what only machines ask is asked.
func TestFetchAddresses(t *testing.T) {
	s, _ := server(t)
	c := New(t.TempDir()+"/songs", false)
	for address, want := range map[string]error{
		s.URL + "/a_good%20song.wav": ErrHere, "http://localhost:1/x": ErrHere, "http://169.254.169.254/x": ErrHere, "http://[::1]:1/x": ErrHere, "http://0.0.0.0:1/x": ErrHere,
		"http://[::ffff:127.0.0.1]:1/": ErrHere, "http://[fd00:ec2::254]/": ErrHere, "ftp://example.org/x": ErrURL, "https://a:b@example.org/": ErrURL, "https:///x": ErrURL, "http://": ErrURL,
		"http://example.org/" + strings.Repeat("x", 2000): ErrURL,
	} {
		if _, _, err := c.Fetch(t.Context(), address); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestMakeRoom: of too many songs those that were asked for longest ago go.
func TestMakeRoom(t *testing.T) {
	s, _ := server(t)
	c := New(t.TempDir()+"/songs", true)
	first := ""
	for i := range maxKept + 3 {
		id, _, err := c.Fetch(t.Context(), s.URL+"/a_good%20song.wav?"+strings.Repeat("x", i))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = id
		}
	}
	left, err := os.ReadDir(c.dir)
	if err != nil || len(left) != maxKept {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	if _, err := c.Open(first); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
}
