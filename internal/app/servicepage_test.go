package app

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/openaitest"
	"xiaozhi/providers"
)

const (
	pageKey  = "sk-the-right-key-0123456789"
	otherKey = "sk-a-wrong-key-9876543210"
)

// lockedCloud is a cloud that takes one key, speaks a tone, hears a sentence and calls the tool of a test.
func lockedCloud(t *testing.T) *openaitest.Server {
	t.Helper()
	cloud := fakeCloud(t)
	for _, role := range []openaitest.Role{openaitest.Chat, openaitest.Transcribe, openaitest.Speak} {
		cloud.Handle(role, func(r *openaitest.Request) openaitest.Reply {
			switch {
			case r.Header.Get("Authorization") != "Bearer "+pageKey:
				return openaitest.Failure(http.StatusUnauthorized, "no <b>such</b> key: "+r.Header.Get("Authorization"))
			case role == openaitest.Transcribe:
				return openaitest.JSON(200, `{"text":"The weather is nice today, let us go for a walk."}`)
			case role == openaitest.Speak:
				return openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, time.Second), 4096)
			case bytes.Contains(r.Body, []byte(`"role":"tool"`)):
				return openaitest.Text("It is 23 degrees.")
			}
			return openaitest.Calls(openaitest.Call{ID: "c", Name: "get_temperature", Arguments: `{"city":"Beijing"}`})
		})
	}
	return cloud
}

// owned returns an owner at the pages of a program.
func owned(t *testing.T, a *App, h http.Handler) *pageClient {
	t.Helper()
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: "ann", Role: account.Owner, Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	c := &pageClient{t, h, map[string]*http.Cookie{}}
	c.expect("/console/login", url.Values{"name": {"ann"}, "password": {"correct horse battery"}}, 303, "/console/overview")
	return c
}

var (
	clipPath = regexp.MustCompile(`/console/services/sound/[A-Z0-9]+`)
	planID   = regexp.MustCompile(`name="plan" value="([^"]+)"`)
	draftID  = regexp.MustCompile(`name="draft" value="([A-Z0-9]+)"`)
)

func match(t *testing.T, re *regexp.Regexp, body string) string {
	t.Helper()
	m := re.FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("no %s in\n%.3000s", re, body)
	}
	return m[len(m)-1]
}

// TestServicesAreTried: a wrong key is told in words, the right one is heard, held and not shown; what others have
// written is text, and what is wrong stands at its field with what was typed.
func TestServicesAreTried(t *testing.T) {
	t.Parallel()
	cloud := lockedCloud(t)
	a, h := builtApp(t, t.TempDir(), "{}")
	defer a.Close()
	c := owned(t, a, h)
	c.expect("/console/services", nil, 200, "Add a service")
	c.expect("/console/services/add?q=qwen", nil, 200, `href="/console/services/add/dashscope"`)
	c.expect("/console/services/add?q=%E8%AE%AF%E9%A3%9E", nil, 200, `href="/console/services/add/iflytek"`)
	c.expect("/console/services/add/nothing", nil, 404, "")
	const page = "/console/services/add/openai"
	form := url.Values{"do": {"test"}, "base": {"0"}, "name": {"mine"}, "set.base_url": {cloud.URL()}, "set.api_key": {otherKey}, "join": {"llm", "tts", "asr"}}
	w := c.ask(page, form)
	if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, "The key is wrong") || !strings.Contains(body, "no &lt;b&gt;such") || strings.Contains(body, otherKey) {
		t.Errorf("a wrong key: %d\n%.3000s", w.Code, body)
	}
	form.Set("set.api_key", pageKey)
	body := c.ask(page, form).Body.String()
	for _, want := range []string{"It is 23 degrees.", "The tool was called", "let us go for a walk", `value="` + cloud.URL() + `"`, `name="join" value="tts" checked`} {
		if !strings.Contains(body, want) {
			t.Errorf("the right key: no %q in\n%.3000s", want, body)
		}
	}
	if strings.Contains(body, pageKey) {
		t.Error("the key came back")
	}
	clip := match(t, clipPath, body)
	if w := c.ask(clip, nil); w.Code != 200 || w.Header().Get("Content-Type") != "audio/wav" || w.Body.Len() < 40000 {
		t.Errorf("the sound: %d %s, %d bytes", w.Code, w.Header().Get("Content-Type"), w.Body.Len())
	}
	form.Del("set.api_key")
	form.Set("draft", match(t, draftID, body))
	if body := c.ask(page, form).Body.String(); !strings.Contains(body, "It is 23 degrees.") {
		t.Errorf("the key was not held:\n%.2000s", body)
	}
	bads := []string{`<img src=x onerror=alert(1)>`, `{{.Site}}`, `"><script>alert(1)</script>`, strings.Repeat("长", 10_000)}
	for i := range bads {
		for n, field := range []string{"name", "set.base_url", "set.model", "set.voice", "set.voice.zh", "set.temperature", "set.timeout", "set.extra", "set.region", "set.proxy", "set.price.input", "set.format", "set.mode", "draft", "base", "join"} {
			if n%2 != i%2 { // each field has two of them
				continue
			}
			typed := bads[i]
			bad := url.Values{"do": {"save"}, "name": {"mine"}, "set.base_url": {cloud.URL()}, "set.api_key": {pageKey}}
			bad.Set(field, typed)
			kind := "deepseek" // it is asked at once, as it only thinks
			if strings.HasPrefix(field, "set.voice") || field == "set.format" {
				kind = "kokoro"
			}
			w := c.ask("/console/services/add/"+kind, bad)
			if body := w.Body.String(); w.Code >= 500 || strings.Contains(body, "<img src=x") || strings.Contains(body, "<script>alert") || strings.Contains(body, pageKey) {
				t.Errorf("%s = %.20q: %d\n%.600s", field, typed, w.Code, body)
			}
		}
	}
	long := url.Values{"do": {"test"}, "name": {"mine"}, "set.base_url": {cloud.URL()}, "set.api_key": {pageKey}, "set.model": {strings.Repeat("x", 10_001)}}
	c.expect(page, long, 422, "10000")
	wrong := url.Values{"do": {"test"}, "name": {"mine"}, "set.base_url": {cloud.URL()}, "set.api_key": {pageKey}, "set.temperature": {"warm"}, "set.timeout": {"soon"}}
	w = c.ask(page, wrong)
	for _, want := range []string{`id="e-set.temperature"`, `value="warm"`, `id="e-set.timeout"`, "This is not a number", `<details id="more" open>`} {
		if w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("mistakes: %d, no %s", w.Code, want)
		}
	}
	if len(a.cfg.Providers) > 0 {
		t.Error("a test has set something")
	}
}

// TestServicesAreSet: a service is added with its key, after what will change was shown; it comes first for the next turn. Its
// order is changed, somebody's older form is refused with what differs, the breaker is seen open and closed, a change is taken
// back, another host wants the key again, and the service is removed.
func TestServicesAreSet(t *testing.T) {
	cloud := lockedCloud(t)
	data := t.TempDir()
	a, h := builtApp(t, data, "tts: [local]\n")
	defer a.Close()
	c := owned(t, a, h)
	add := url.Values{"do": {"save"}, "base": {"0"}, "name": {"mine"}, "set.base_url": {cloud.URL()}, "set.api_key": {pageKey}, "join": {"llm", "tts"}}
	body := c.ask("/console/services/add/openai", add).Body.String()
	for _, want := range []string{"providers.mine.api_key", "What will change", "mine, local", "Works"} {
		if !strings.Contains(body, want) {
			t.Errorf("the plan does not say %q:\n%.3000s", want, body)
		}
	}
	if strings.Contains(body, pageKey) || a.settings.Revision() != 0 {
		t.Errorf("revision %d", a.settings.Revision())
	}
	c.expect("/console/services", url.Values{"do": {"apply"}, "plan": {match(t, planID, body)}}, 303, "/console/services?undo=1")
	if now := a.settings.Current(); now.TTS[0] != "mine" || string(now.Providers["mine"].APIKey) != pageKey {
		t.Fatalf("set: %v %+v", now.TTS, now.Providers["mine"])
	}
	c.expect("/console/services", url.Values{"do": {"apply"}, "plan": {"gone"}}, 422, "")
	c.expect("/console/services/of/rules", nil, 200, "<h1>rules</h1>") // in use, though nobody has set it
	c.expect("/console/services/of/mine", nil, 200, "ends with 6789")
	c.expect("/console/services/of/mine/voices", nil, 200, "alloy")
	c.expect("/console/services/of/mine/voices?after=nobody", nil, 400, "no such place in the list")
	c.expect("/console/services?idle-q=nobody", nil, 200, `id="idle"`)
	c.expect("/console/services?idle-q=nobody&idle-after=%00", nil, 400, "no such place in the list")
	c.expect("/console/services/of/mine/voices", url.Values{"voice": {"alloy"}}, 200, "/console/services/sound/")
	c.expect("/console/services", url.Values{"do": {"down"}, "role": {"tts"}, "name": {"mine"}, "base": {"1"}}, 303, "/console/services?undo=2")
	c.expect("/console/services", url.Values{"do": {"up"}, "role": {"tts"}, "name": {"mine"}, "base": {"1"}}, 422, "Somebody else (ann) has changed the same")
	c.expect("/console/services", url.Values{"do": {"undo"}, "revision": {"2"}}, 303, "/console/services")
	if now := a.settings.Current(); now.TTS[0] != "mine" {
		t.Errorf("taken back: %v", now.TTS)
	}
	cloud.Reply(openaitest.Speak, openaitest.Failure(500, "down"))
	speak := func() {
		for range a.cast.main.Load().TTS.Synthesize(t.Context(), providers.TTSRequest{Text: "hello", Language: "en"}) {
			break
		}
	}
	for range 3 {
		speak()
	}
	c.expect("/console/services", nil, 200, "Breaker open")
	edit := url.Values{"do": {"save"}, "base": {"3"}, "set.base_url": {"https://evil.example/v1"}}
	c.expect("/console/services/of/mine", edit, 422, "Type the key again")
	body = c.ask("/console/services/of/mine", url.Values{"do": {"remove"}, "base": {"3"}}).Body.String()
	c.expect("/console/services", url.Values{"do": {"apply"}, "plan": {match(t, planID, body)}}, 303, "/console/services?undo=4")
	if now := a.settings.Current(); len(now.Providers) > 0 || strings.Join(now.TTS, " ") != "local" {
		t.Errorf("removed: %v %v", now.TTS, now.Providers)
	}
	kept := ""
	for _, name := range find(data, databaseFile+"*") {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kept += string(raw)
	}
	if strings.Contains(kept, pageKey) || kept == "" {
		t.Error("the database has the key as it was typed")
	}
}
