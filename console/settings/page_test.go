package settings

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
	"xiaozhi/store"
)

// machine is a server that can always be made.
type machine struct{ tests []settings.Test }

func (m machine) Build(context.Context, *config.Config) (settings.Stage, error) { return m, nil }
func (m machine) Health() settings.Health                                       { return settings.Health{Ready: true} }
func (m machine) Tests(context.Context) []settings.Test                         { return m.tests }
func (m machine) Apply(context.Context) error                                   { return nil }
func (m machine) Drop()                                                         {}

// rig is the page over settings of files.
type rig struct {
	*settings.Settings

	t *testing.T
	h http.Handler
}

func newRig(t *testing.T, file, own string) *rig {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"base.yaml": file, "config.yaml": own} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "xiaozhi.db")})
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := settings.Open(t.Context(), settings.Options{
		Sources: config.Read(config.Options{File: filepath.Join(dir, "base.yaml"), DataDir: dir, Env: []string{"XIAOZHI_AGENT__MAX_STEPS=7"}}), Records: kept.Settings,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Run(machine{[]settings.Test{{Section: "deepseek", Role: "llm", Why: "401 <img src=x>"}}})
	t.Cleanup(func() {
		s.Close()
		kept.Close()
	})
	site, err := ui.New(ui.Options{Files: []fs.FS{Files, fstest.MapFS{"tabs.html": {Data: []byte(`{{define "people-tabs"}}{{end}}`)}}}, Explain: settings.Explain, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, r := range New(site, s, nil).Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	return &rig{s, t, mux}
}

// ask makes a request of a person in a language and returns the answer.
func (r *rig) ask(who, method, path, lang string, form url.Values) *httptest.ResponseRecorder {
	r.t.Helper()
	q := httptest.NewRequest(method, "/console/settings"+path, strings.NewReader(form.Encode()))
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Accept-Language", lang)
	w := httptest.NewRecorder()
	r.h.ServeHTTP(w, access.As(q, account.Person{ID: who, Name: who, Role: account.Owner, Proved: time.Now()}))
	return w
}

// get returns the text of a page.
func (r *rig) get(path string) string {
	r.t.Helper()
	w := r.ask("anna", "GET", path, "en", nil)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "settings/") && regexp.MustCompile(`>settings/[a-z-]+<`).MatchString(w.Body.String()) {
		r.t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

// form is what a browser would send of a page's form, with other values in some fields.
func (r *rig) form(path string, pairs ...string) url.Values {
	r.t.Helper()
	page, values := r.get(path), url.Values{}
	for _, m := range regexp.MustCompile(`<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"[^>]*>`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(m[0], "disabled") && !strings.Contains(m[0], "checkbox") && m[1] != "revision" {
			values.Set(m[1], m[2])
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values
}

// change takes a form to its end.
func (r *rig) change(who, path string, form url.Values) {
	r.t.Helper()
	w := r.ask(who, "POST", path, "en", form)
	at, ok := strings.CutPrefix(w.Header().Get("Location"), "/console/settings")
	if w.Code != http.StatusSeeOther || !ok {
		r.t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w = r.ask(who, "POST", at, "en", url.Values{"do": {"apply"}}); w.Code != http.StatusSeeOther {
		r.t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// TestChangeByPage types a value, sees the difference, applies it and undoes it.
func TestChangeByPage(t *testing.T) {
	r := newRig(t, "voice: {idle_close: 50s}\n", "voice: {barge_in: 400ms}\n")
	page := r.get("/voice")
	for _, want := range []string{`value="50s"`, "base.yaml:1", "config.yaml:1, which counts before", `id="f-v-voice.barge_in" name="v-voice.barge_in" type="text" autocomplete="off" spellcheck="false" value="400ms" disabled`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	w := r.ask("anna", "POST", "/voice", "en", r.form("/voice", "v-voice.idle_close", "70s", "v-voice.loudness", "false"))
	at := strings.TrimPrefix(w.Header().Get("Location"), "/console/settings")
	if w.Code != http.StatusSeeOther || r.Current().Voice.IdleClose.Seconds() != 50 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	page = r.get(at)
	for _, want := range []string{"voice.idle_close", "50s</del>", "1m10s</ins>", "deepseek", "401 &lt;img src=x&gt;", "Apply"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if strings.Contains(page, "voice.barge_in") {
		t.Error("what nobody has touched is changed")
	}
	if page := r.get("/voice?plan=" + strings.TrimPrefix(at, "/-/plan/")); !strings.Contains(page, `value="1m10s"`) {
		t.Error("what was typed is gone on the way back")
	}
	if w := r.ask("bert", "GET", at, "en", nil); strings.Contains(w.Body.String(), "idle_close") {
		t.Error("somebody else's plan is shown")
	}
	if w = r.ask("anna", "POST", at, "en", url.Values{"do": {"apply"}}); w.Code != http.StatusSeeOther || r.Current().Voice.IdleClose.Seconds() != 70 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if page := r.get(""); !strings.Contains(page, "Revision 1 is in force. If the server does worse") {
		t.Error(page)
	}
	if page := r.get("/-/revisions"); !strings.Contains(page, "voice.loudness") || !strings.Contains(page, "anna") {
		t.Error(page)
	}
	if w = r.ask("anna", "POST", "/-/revisions", "en", url.Values{"revision": {"1"}}); w.Code != http.StatusSeeOther || r.Current().Voice.IdleClose.Seconds() != 50 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// TestTimeZoneByPage: of the server only the zone is changed here, with names to choose from; all else is listed with where it
// stands. A wrong name stays at its field, and a zone that a file sets is not asked for.
func TestTimeZoneByPage(t *testing.T) {
	r := newRig(t, "", "")
	page := r.get("/server")
	for want, n := range map[string]int{
		`id="f-v-server.timezone"`: 1, `list="l-server.timezone"`: 1, `<option value="Europe/Berlin">`: 1, `name="v-`: 1, `id="k-server.listen"`: 1, `<h2>In files and the environment</h2>`: 1,
	} {
		if got := strings.Count(page, want); got != n {
			t.Errorf("%d times %s in\n%s", got, want, page)
		}
	}
	wrong := r.ask("anna", "POST", "/server", "zh", r.form("/server", "v-server.timezone", "Mars/Olympus")).Body.String()
	if !strings.Contains(wrong, `value="Mars/Olympus"`) || !strings.Contains(wrong, "没有名为“Mars/Olympus”的时区") || !strings.Contains(wrong, `aria-describedby="h-v-server.timezone e-v-server.timezone" aria-invalid="true"`) {
		t.Errorf("refused so:\n%s", wrong)
	}
	r.change("anna", "/server", r.form("/server", "v-server.timezone", "Europe/Berlin"))
	if got := r.Current().Server.Timezone; got != "Europe/Berlin" {
		t.Errorf("in force is %s", got)
	}
	pinned := newRig(t, "", "server: {timezone: Asia/Tokyo}\n").get("/server")
	if strings.Contains(pinned, "<form method=\"post\" action=\"/console/settings/server\"") || !strings.Contains(pinned, "Asia/Tokyo") || !strings.Contains(pinned, "config.yaml:1") {
		t.Errorf("pinned it is shown so:\n%s", pinned)
	}
}

// TestPlanLeadsBack: a plan that another page has made leads back there, applied or dropped, and never out of the console.
func TestPlanLeadsBack(t *testing.T) {
	r := newRig(t, "", "")
	for _, tt := range []struct{ do, to, want string }{
		{"apply", "/console/tools/servers", "/console/tools/servers"}, {"drop", "/console/tools/servers", "/console/tools/servers"},
		{"apply", "//evil.example.org", "/console/settings"}, {"drop", "https://evil.example.org", "/console/settings/agent"}, {"drop", "", "/console/settings/agent"},
	} {
		w := r.ask("anna", "POST", "/agent", "en", r.form("/agent", "v-agent.name", "Momo "+tt.do+tt.to))
		at := strings.TrimPrefix(w.Header().Get("Location"), "/console/settings") + "?" + url.Values{"to": {tt.to}}.Encode()
		if page := r.get(at); tt.want == tt.to && !strings.Contains(page, `<a class="button second" href="/console/tools/servers">`) {
			t.Errorf("%+v: %s", tt, page)
		}
		if w := r.ask("anna", "POST", at, "en", url.Values{"do": {tt.do}}); w.Header().Get("Location") != tt.want {
			t.Errorf("%+v: it leads to %s", tt, w.Header().Get("Location"))
		}
	}
}

// TestWrongByPage: what was typed stays, and the mistake stands at its field, in the language of who asks.
func TestWrongByPage(t *testing.T) {
	r := newRig(t, "", "")
	form := r.form("/agent", "v-agent.name", "<b>Momo</b>", "v-agent.history_tokens", "many")
	for lang, want := range map[string]string{"en": "agent.history_tokens must be", "zh": "agent.history_tokens"} {
		w := r.ask("anna", "POST", "/agent", lang, form)
		page := w.Body.String()
		if w.Code != http.StatusUnprocessableEntity || !strings.Contains(page, want) || !strings.Contains(page, `value="many"`) || !strings.Contains(page, `value="&lt;b&gt;Momo&lt;/b&gt;"`) ||
			!strings.Contains(page, `id="e-v-agent.history_tokens"`) || strings.Contains(page, "console#") {
			t.Errorf("%d %s", w.Code, page)
		}
	}
	if w := r.ask("anna", "POST", "/agent", "en", url.Values{"base": {"0"}, "v-agent.max_steps": {"3"}}); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "XIAOZHI_AGENT__MAX_STEPS") {
		t.Errorf("%d %s", w.Code, w.Body) // the page has it disabled
	}
	if w := r.ask("anna", "POST", "/agent", "en", url.Values{"base": {"0"}, "v-agent.name": {strings.Repeat("x", 10001)}}); w.Code != http.StatusUnprocessableEntity {
		t.Error(w.Code)
	}
	if w := r.ask("anna", "POST", "/agent", "en", url.Values{"base": {"99"}, "v-agent.name": {"x"}}); w.Code != http.StatusUnprocessableEntity {
		t.Error(w.Code)
	}
	if w := r.ask("anna", "GET", "/nothing", "en", nil); w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
	if w := r.ask("anna", "GET", "/-/plan/gone", "en", nil); !strings.Contains(w.Body.String(), "ten minutes") {
		t.Error(w.Body)
	}
}

// TestInForce: a revision that is held is not said to be in force.
func TestInForce(t *testing.T) {
	for want, held := range map[int]*settings.Held{7: nil, 5: {Revision: 7, Instead: 5}, 0: {Revision: 7}} {
		if got := inForce(7, held); got != want {
			t.Errorf("with %+v revision %d counts, want %d", held, got, want)
		}
	}
}

// TestTwoByPage: of two people who change the same key, the second sees both values and keeps what was typed.
func TestTwoByPage(t *testing.T) {
	r := newRig(t, "", "")
	mine := r.form("/agent", "v-agent.name", "Mine", "v-agent.history_tokens", "3000")
	r.change("bert", "/agent", r.form("/agent", "v-agent.name", "Theirs", "v-agent.exit_words", "ciao\nbasta"))
	w := r.ask("anna", "POST", "/agent", "en", mine)
	page := w.Body.String()
	if w.Code != http.StatusUnprocessableEntity || !strings.Contains(page, "bert") || !strings.Contains(page, "Theirs") || !strings.Contains(page, `value="Mine"`) || !strings.Contains(page, `name="base" value="1"`) ||
		!strings.Contains(page, "ciao\nbasta</textarea>") {
		t.Fatalf("%d %s", w.Code, page)
	}
	// The same form once more, of what is in force now.
	mine.Set("base", "1")
	mine.Set("s-agent.name", "Theirs")
	mine.Set("s-agent.exit_words", "ciao\nbasta")
	mine.Set("v-agent.exit_words", "ciao\r\nbasta")
	r.change("anna", "/agent", mine)
	if a := r.Current().Agent; a.Name != "Mine" || a.HistoryTokens != 3000 || !slices.Equal(a.ExitWords, []string{"ciao", "basta"}) {
		t.Errorf("%+v", a)
	}
	// Between the difference and the button.
	w = r.ask("anna", "POST", "/agent", "en", r.form("/agent", "v-agent.name", "Later"))
	at := strings.TrimPrefix(w.Header().Get("Location"), "/console/settings")
	r.change("bert", "/agent", r.form("/agent", "v-agent.name", "Sooner"))
	if w = r.ask("anna", "POST", at, "en", url.Values{"do": {"apply"}}); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "Sooner") || !strings.Contains(w.Body.String(), "Later") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w = r.ask("anna", "POST", at, "en", url.Values{"do": {"again"}})
	if w = r.ask("anna", "POST", strings.TrimPrefix(w.Header().Get("Location"), "/console/settings"), "en", url.Values{"do": {"apply"}}); r.Current().Agent.Name != "Later" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestReadOnlyByPage: with console.edit off, all is shown and nothing can be typed.
func TestReadOnlyByPage(t *testing.T) {
	r := newRig(t, "console: {edit: false}\n", "")
	page := r.get("/voice")
	if strings.Contains(page, "<button>Check") || !strings.Contains(page, "console.edit") || strings.Contains(page, `name="s-`) {
		t.Error(page)
	}
	if w := r.ask("anna", "POST", "/voice", "en", url.Values{"base": {"0"}, "v-voice.idle_close": {"3s"}}); w.Code != http.StatusUnprocessableEntity {
		t.Error(w.Code)
	}
}

// TestImportExportByPage carries settings to another server.
func TestImportExportByPage(t *testing.T) {
	r := newRig(t, "", "")
	r.change("anna", "/agent", r.form("/agent", "v-agent.name", "Momo"))
	doc := r.ask("anna", "GET", "/-/export", "en", nil)
	if !strings.Contains(doc.Body.String(), "name: Momo") || !strings.Contains(doc.Header().Get("Content-Disposition"), "attachment") {
		t.Error(doc.Body)
	}
	other := newRig(t, "", "")
	w := other.ask("anna", "POST", "/-/import", "en", url.Values{"base": {"0"}, "long-document": {doc.Body.String() + "server: {max_devices: 9}\n"}})
	at := strings.TrimPrefix(w.Header().Get("Location"), "/console/settings")
	if page := other.get(at); !strings.Contains(page, "Momo") || !strings.Contains(page, "server.max_devices") {
		t.Error(page)
	}
	if w := other.ask("anna", "POST", "/-/import", "en", url.Values{"base": {"0"}, "long-document": {"- <b>"}}); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "- &lt;b&gt;") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if page := other.get("?q=idle_close"); !strings.Contains(page, "/console/settings/voice#k-voice.idle_close") || strings.Contains(page, "agent.name") {
		t.Error(page)
	}
}
