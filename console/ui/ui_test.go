package ui

import (
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
)

// newSite returns a site with one more page.
func newSite(t *testing.T) *Site {
	t.Helper()
	page := fstest.MapFS{"x.html": {Data: []byte(`{{define "x"}}{{template "open" .}}<h1>{{.Title}}</h1>{{template "errors" .Form}}
{{template "field" (dict "Form" .Form "Name" "name" "Label" "Name" "Required" true)}}{{template "close" .}}{{end}}
{{define "bad"}}{{template "open" .}}<p>{{.Data.Nothing}}</p>{{template "close" .}}{{end}}`)}}
	s, err := New(Options{Files: []fs.FS{page}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWordsAreComplete: each text is there in both languages, with as many places to fill in.
func TestWordsAreComplete(t *testing.T) {
	verbs := regexp.MustCompile(`%(\[\d\])?[a-z]`)
	en, err := readWords(wordFiles, text.English)
	if err != nil {
		t.Fatal(err)
	}
	zh, err := readWords(wordFiles, text.Chinese)
	if err != nil {
		t.Fatal(err)
	}
	for id, words := range en {
		if zh[id] == "" {
			t.Errorf("%s is not there in Chinese", id)
		} else if a, b := verbs.FindAllString(words, -1), verbs.FindAllString(zh[id], -1); len(a) != len(b) {
			t.Errorf("%s: %v in English, %v in Chinese", id, a, b)
		}
	}
	for id := range zh {
		if en[id] == "" {
			t.Errorf("%s is not there in English", id)
		}
	}
}

// TestTemplatesNameTexts: a text that a template names is there, and one that is there is named somewhere.
func TestTemplatesNameTexts(t *testing.T) {
	words, err := readWords(wordFiles, text.English)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bt "([a-z-]+/[a-z0-9-]+)"`)
	var all strings.Builder
	err = filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, ".txt") || !regexp.MustCompile(`\.(html|go|js)$`).MatchString(path) {
			return err
		}
		raw, err := os.ReadFile(path)
		all.Write(raw)
		for _, m := range named.FindAllSubmatch(raw, -1) {
			if words[string(m[1])] == "" {
				t.Errorf("%s names the text %s, which is not there", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for id := range words {
		prefix, _, _ := strings.Cut(id, "/act-") // of acts, whose names have hyphens too
		if prefix += "/act-"; !strings.HasPrefix(id, prefix) {
			prefix = id[:strings.LastIndexAny(id, "/-")+1]
		}
		if !strings.Contains(all.String(), id) && !strings.Contains(all.String(), `"`+prefix) {
			t.Errorf("nothing names the text %s", id)
		}
	}
}

// TestPagesEscapeWhatOthersWrote: HTML and templates in what was typed are text.
func TestPagesEscapeWhatOthersWrote(t *testing.T) {
	s := newSite(t)
	for _, typed := range []string{`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, `{{.Site}}`, `' onfocus='x`} {
		r := httptest.NewRequest(http.MethodPost, "/console/x", strings.NewReader(url.Values{"name": {typed}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		f, ok := s.Form(w, r)
		if !ok {
			t.Fatal(w.Body)
		}
		f.Wrong("name", typed)
		s.Show(w, r, "x", Content{Title: typed, Form: f})
		body := w.Body.String()
		if w.Code != http.StatusUnprocessableEntity || strings.Contains(body, "<img src=x") || strings.Contains(body, "<script>alert") || strings.Contains(body, "' onfocus='x") {
			t.Errorf("%s: %d\n%s", typed, w.Code, body)
		}
	}
}

// TestFormsSayWhatIsWrong: the mistake stands at its field and above, and what was typed is kept.
func TestFormsSayWhatIsWrong(t *testing.T) {
	s := newSite(t)
	r := httptest.NewRequest(http.MethodGet, "/console/x?lang=zh", nil)
	f := Filled("name", "安")
	f.Wrong("name", "太短")
	w := httptest.NewRecorder()
	s.Show(w, r, "x", Content{Title: "题", Form: f})
	for _, want := range []string{`lang="zh"`, `value="安"`, `aria-invalid="true"`, `id="e-name"`, `href="#f-name"`, `太短`, `role="alert"`, `有 1 处需要修改`} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
}

// TestFormsHaveLimits: what is too long is refused at the field, and nothing is half read.
func TestFormsHaveLimits(t *testing.T) {
	s := newSite(t)
	post := func(body string) (*Form, bool, *httptest.ResponseRecorder) {
		r := httptest.NewRequest(http.MethodPost, "/console/x", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		f, ok := s.Form(w, r)
		return f, ok, w
	}
	if f, ok, _ := post("name=" + strings.Repeat("a", maxField+1)); !ok || f.Mistake("name") == "" {
		t.Error("a long field passed")
	}
	if _, ok, w := post("name=" + strings.Repeat("a", maxForm+1)); ok || w.Code != http.StatusRequestEntityTooLarge {
		t.Error("a long form passed", w.Code)
	}
	if f, ok, _ := post("name=%ff%00x"); !ok || f.Get("name") != "\ufffd\ufffdx" {
		t.Errorf("broken text was kept: %q", f.Get("name"))
	}
	if _, ok, w := post("name=%zz"); ok || w.Code != http.StatusBadRequest {
		t.Error("a broken form passed", w.Code)
	}
}

// TestBrokenPageTellsANumber: who asks sees nothing of the failure.
func TestBrokenPageTellsANumber(t *testing.T) {
	s := newSite(t)
	w := httptest.NewRecorder()
	s.Show(w, httptest.NewRequest(http.MethodGet, "/console/x", nil), "bad", Content{Data: struct{}{}})
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "The log says more under") || strings.Contains(w.Body.String(), "Nothing") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestRefusalsLeadOn: who has not logged in is led to do so, and back.
func TestRefusalsLeadOn(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		method string
		err    error
		status int
		to     string
	}{
		{"GET", account.ErrNoSession, 303, "/console/login?to=%2Fconsole%2Fdevices%3Fq%3D1"},
		{"POST", account.ErrNoSession, 303, "/console/login"},
		{"GET", account.ErrProveAgain, 303, "/console/prove?to=%2Fconsole%2Fdevices%3Fq%3D1"},
		{"GET", account.ErrForbidden, 403, ""},
		{"POST", account.ErrOrigin, 403, ""},
	} {
		w := httptest.NewRecorder()
		s.Refused(w, httptest.NewRequest(c.method, "/console/devices?q=1", nil), c.err)
		if w.Code != c.status || w.Header().Get("Location") != c.to {
			t.Errorf("%v: %d %s", c.err, w.Code, w.Header().Get("Location"))
		}
	}
}

// TestRefusedFormLeadsBack: who must show the password again comes back to the form, and to no page of another host.
func TestRefusedFormLeadsBack(t *testing.T) {
	s := newSite(t)
	for from, to := range map[string]string{
		"http://example.com/console/devices/a?x=1":   "/console/prove?to=%2Fconsole%2Fdevices%2Fa%3Fx%3D1",
		"http://evil.example/console/devices/a":      "/console/prove",
		"http://example.com//evil.example/console/x": "/console/prove",
		"": "/console/prove",
	} {
		r := httptest.NewRequest(http.MethodPost, "/console/devices/a", nil) // at example.com
		r.Header.Set("Referer", from)
		w := httptest.NewRecorder()
		s.Refused(w, r, account.ErrProveAgain)
		if got := w.Header().Get("Location"); got != to {
			t.Errorf("from %q: %s, want %s", from, got, to)
		}
	}
}

// TestInside: nobody is led away from the console.
func TestInside(t *testing.T) {
	for to, want := range map[string]bool{
		"/console/devices": true, "/console/devices/aa:bb?x=1": true, "//evil.example": false, "https://evil.example/console/": false,
		"/console//evil.example": false, "/console/\\evil": false, "/api/v1/me": false, "": false, "/console/../api": false, "/console/x\r\nSet-Cookie: a": false,
	} {
		if Inside(to) != want {
			t.Errorf("%q: %v", to, !want)
		}
	}
}

// TestAssets: a file is kept for ever under its hash, and gone under another one.
func TestAssets(t *testing.T) {
	s := newSite(t)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.serveAsset(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	if w := get(s.asset("app.css")); w.Code != 200 || w.Header().Get("Content-Type") != "text/css; charset=utf-8" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Error(w.Code, w.Header())
	}
	for _, path := range []string{"/console/assets/0/app.css", s.asset("../site.go"), s.asset("x.html"), "/console/assets/"} {
		if w := get(path); w.Code != 404 {
			t.Error(path, w.Code)
		}
	}
}

// TestLang: ?lang=, then the choice, then what the browser prefers.
func TestLang(t *testing.T) {
	for _, c := range []struct {
		query, cookie, accept string
		want                  text.Lang
	}{
		{"", "", "", text.English},
		{"", "", "zh-CN,zh;q=0.9,en;q=0.8", text.Chinese},
		{"", "", "de,en;q=0.5", text.English},
		{"", "", "zh-TW", text.Chinese},
		{"", "en", "zh-CN", text.English},
		{"?lang=zh", "en", "en", text.Chinese},
		{"?lang=<x>", "", "\x00", text.English},
	} {
		r := httptest.NewRequest(http.MethodGet, "/console/x"+url.PathEscape("")+strings.ReplaceAll(c.query, "<x>", "%3Cx%3E"), nil)
		r.Header.Set("Accept-Language", c.accept)
		if c.cookie != "" {
			r.AddCookie(&http.Cookie{Name: langCookie, Value: c.cookie})
		}
		if got := Lang(r); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestNoticeIsShownOnce: the next page says what was done, and a forged notice says nothing.
func TestNoticeIsShownOnce(t *testing.T) {
	s := newSite(t)
	w := httptest.NewRecorder()
	s.Done(w, httptest.NewRequest(http.MethodPost, "/console/x", nil), "/console/x", "frame/failed", "<b>7</b>")
	r := httptest.NewRequest(http.MethodGet, "/console/x", nil)
	for _, c := range w.Result().Cookies() {
		r.AddCookie(c)
	}
	w = httptest.NewRecorder()
	s.Show(w, r, "x", Content{})
	if !strings.Contains(w.Body.String(), "under &lt;b&gt;7&lt;/b&gt;.") || !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("%s\n%s", w.Header(), w.Body)
	}
	for _, forged := range []string{"x", "e30", "eyJJRCI6Im5vbmUifQ", "eyJJRCI6ImZyYW1lL2ZhaWxlZCJ9"} {
		r := httptest.NewRequest(http.MethodGet, "/console/x", nil)
		r.AddCookie(&http.Cookie{Name: noticeCookie, Value: forged})
		w := httptest.NewRecorder()
		s.Show(w, r, "x", Content{})
		if w.Code != 200 || strings.Contains(w.Body.String(), `role="status"`) {
			t.Errorf("%s: %d %s", forged, w.Code, w.Body)
		}
	}
}

// BenchmarkNew measures what the pages cost the start of the program.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPagesTakeTurns: a page is made when the one before it is, or a quarter of a second later; one that is made is over, though
// its browser reads slowly.
func TestPagesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := newTurns()
		waited := func() time.Duration {
			begun := time.Now()
			now.take(t.Context())()
			return time.Since(begun)
		}
		var ends []func()
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			ends = append(ends, now.take(t.Context()))
		}
		if d := waited(); d != patience {
			t.Errorf("a page waited %s for one that is not made", d)
		}
		ends[0]()
		ends[0]() // once more is nothing more
		read := make(chan struct{})
		go now.inTurn(func(_ http.ResponseWriter, r *http.Request) {
			endTurn(r)
			<-read
		})(nil, httptest.NewRequest(http.MethodGet, "/", nil))
		synctest.Wait()
		if d := waited(); d != 0 {
			t.Errorf("a page waited %s for a browser that reads slowly", d)
		}
		close(read)
		_ = now.take(t.Context())
		if d := waited(); d != patience {
			t.Errorf("a turn that was ended twice let two pages be made at once")
		}
	})
}
