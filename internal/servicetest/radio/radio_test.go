package radio

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestFake(t *testing.T) {
	f := New(t)
	f.List("/song.mp3", "http://127.0.0.1:1/x")
	for path, want := range map[string]string{
		"/a.m3u": "#EXTINF:-1,Entry 0\r\n/song.mp3", "/b.pls": "File2=http://127.0.0.1:1/x", "/song.opus": "OggS", "/song.wav": "RIFF", "/hls.m3u8": "#EXT-X-", "/page": "<html>", "/none": "404",
	} {
		resp, err := http.Get(f.URL() + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %.60q", path, body)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL()+"/song.mp3", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Range", "bytes=100-")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPartialContent {
		t.Errorf("a part: %s", resp.Status)
	}
}
