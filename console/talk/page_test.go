package talk

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The scripts of the page, with those of the frame, are small; they keep nothing in the browser.
func TestScripts(t *testing.T) {
	const most = 40 << 10
	size := 0
	frame, err := filepath.Glob("../ui/assets/*.js")
	if err != nil || len(frame) == 0 {
		t.Fatal(frame, err)
	}
	for _, name := range frame {
		if base := filepath.Base(name); base == "typed.js" || base == "copy.js" {
			continue // which app.js asks for where they are needed, and never here
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		size += int(info.Size())
	}
	own, err := fs.Glob(Scripts, "*.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range own {
		raw, err := fs.ReadFile(Scripts, name)
		if err != nil {
			t.Fatal(err)
		}
		size += len(raw)
		for _, never := range []string{"eval(", "innerHTML =", "http://", "https://", "document.write", "localStorage", "sessionStorage", "indexedDB", "document.cookie"} {
			if strings.Contains(string(raw), never) {
				t.Errorf("%s has %s", name, never)
			}
		}
	}
	if size > most {
		t.Errorf("%d bytes of script, at most %d", size, most)
	}
}

// A browser keeps its name, and is given one only if it has none.
func TestBrowserOf(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/console/talk", nil)
	first := browserOf(httptest.NewRecorder(), r)
	if !isBrowserID(first) {
		t.Errorf("a new name: %q", first)
	}
	r.AddCookie(&http.Cookie{Name: browserCookie, Value: first})
	if again := browserOf(httptest.NewRecorder(), r); again != first {
		t.Errorf("%q became %q", first, again)
	}
	r = httptest.NewRequest(http.MethodGet, "/console/talk", nil)
	r.AddCookie(&http.Cookie{Name: browserCookie, Value: `<img onerror=alert(1)>`})
	if name := browserOf(httptest.NewRecorder(), r); !isBrowserID(name) {
		t.Errorf("a name of nonsense is kept: %q", name)
	}
}
