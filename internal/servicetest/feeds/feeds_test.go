package feeds

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"testing"
)

func TestFake(t *testing.T) {
	f := New(t, Item{"Rain & sun", "<p>It rains.</p>"})
	for path, want := range map[string]string{"/rss": "Rain & sun", "/atom": "Rain &amp;amp; sun", "/rdf": "encoding=\"gbk\"", "/page": "<html>", "/none": "404"} {
		resp, err := http.Get(f.URL() + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("%s: %s", path, body)
		}
		if path == "/rss" || path == "/atom" {
			if err := xml.Unmarshal(body, new(struct{})); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
