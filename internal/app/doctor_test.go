package app

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/doctor"
	"xiaozhi/internal/version"
	"xiaozhi/providers"
)

// TestDoctorOfServer: an owner is told how the server is, a member how their own device does, a stranger opens a link for
// phones and nothing else, and the bundle for support holds no secret, wherever one was.
func TestDoctorOfServer(t *testing.T) {
	cfg := config.Default()
	cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, nil
	cfg.Auth = config.Auth{Enabled: true, Token: "s3cret-of-all-devices", Pairing: "auto"}
	cfg.Providers = map[string]config.Provider{"x": {Type: "openai", BaseURL: "https://u:s3cret-password@h/v1?key=s3cret-in-query", Keys: config.Keys{APIKey: "s3cret-api-key"}}}
	cfg.MCP.Tokens = []config.Token{{Name: "laptop", Token: providers.Secret("s3cret-of-the-laptop")}}
	var printed bytes.Buffer
	a, err := Build(t.Context(), cfg, Options{PasswordCost: cheap, Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(&printed, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.web.guard.SetAdmin("s3cret-of-the-owner")
	h, err := a.routes()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, token string, header http.Header, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Host, r.RemoteAddr = "192.168.1.2:8000", "192.168.1.40:5000"
		for name, values := range header {
			r.Header[name] = values
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	device := http.Header{"Device-Id": {speakerMAC}, "Client-Id": {"s3cret-client-id"}, "Serial-Number": {"s3cret-serial"}, "Content-Type": {"application/json"}}
	if w := ask(http.MethodPost, "/xiaozhi/ota/?token=s3cret-in-the-address", "s3cret-of-all-devices", device, `{"uuid":"s3cret-client-id","board":{"type":"box<img src=x>"},"api_token":"s3cret-of-firmware"}`); !strings.Contains(w.Body.String(), "s3cret-of-all-devices") {
		t.Fatal(w.Body)
	}
	ask(http.MethodGet, "/xiaozhi/v1/", "s3cret-wrong-token", device, "") // without asking for a socket
	a.log.Info("a line", "arguments", "s3cret-of-a-tool", "key", "s3cret-api-key")
	const owner = "s3cret-of-the-owner"
	w := ask(http.MethodPost, doctor.Path, owner, nil, "")
	var answer doctor.Answer
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK || answer.Worst != doctor.Problem || len(answer.Devices) != 1 || len(answer.Callers) != 1 {
		t.Fatalf("%d %s %v", w.Code, w.Body, err)
	}
	var seen doctor.Seen
	w = ask(http.MethodGet, doctor.Path+"/devices/24-6F-28-AA-10-02?raw=ota", owner, nil, "")
	if err := json.Unmarshal(w.Body.Bytes(), &seen); err != nil || seen.Open != "socket" || !seen.Called || seen.Causes[0].ID != "contact/refused-upgrade" || !strings.Contains(seen.Sent, `"type":"box`) {
		t.Errorf("%s %v", w.Body, err)
	}
	whole := w.Body.String() + ask(http.MethodGet, doctor.Path, owner, nil, "").Body.String()
	w = ask(http.MethodGet, doctor.BundlePath, owner, nil, "")
	z, err := zip.NewReader(bytes.NewReader(w.Body.Bytes()), int64(w.Body.Len()))
	if err != nil {
		t.Fatal(w.Code, err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		whole += f.Name + string(body)
	}
	for line := range strings.Lines(whole) {
		if strings.Contains(line, "s3cret") {
			t.Errorf("a secret is shown: %s", line)
		}
	}
	for _, want := range []string{"settings.json", `"version": "` + version.Number(), "a line", `"board": "box<img src=x>"`, "doctor.json"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %s in the bundle", want)
		}
	}
	phone(t, a, ask, owner)
	pagesOfDoctor(t, a, h)
	members(t, a, ask)
}

type asks func(method, path, token string, header http.Header, body string) *httptest.ResponseRecorder

// phone opens a link as somebody who has not logged in.
func phone(t *testing.T, a *App, ask asks, owner string) {
	t.Helper()
	var link doctor.Link
	if err := json.Unmarshal(ask(http.MethodPost, doctor.Path+"/phone", owner, nil, "").Body.Bytes(), &link); err != nil {
		t.Fatal(err)
	}
	if w := ask(http.MethodGet, link.Path, "", http.Header{"User-Agent": {"a phone"}}, ""); w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" || !strings.Contains(w.Body.String(), "It works") || strings.Contains(w.Body.String(), "<nav") {
		t.Error(w.Code, w.Body)
	}
	if w := ask(http.MethodGet, doctor.PhonePath+"guessed", "", nil, ""); w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
	if last, ok := a.seen.doctor.Links().Last(); !ok || last.Opened == nil || last.Opened.From != "192.168.1.40" || last.Opened.Browser != "a phone" {
		t.Errorf("%+v", last)
	}
}

// members see the contacts of their own devices only.
func members(t *testing.T, a *App, ask asks) {
	t.Helper()
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	for name, want := range map[string]int{"ann": http.StatusOK, "bob": http.StatusForbidden} {
		if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: account.Member, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
		token, err := a.accounts.NewToken(t.Context(), by, name, account.NewToken{Label: "x", Scopes: []account.Scope{account.Read}})
		if err != nil {
			t.Fatal(err)
		}
		if name == "ann" {
			if err := a.book.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := a.accounts.Give(t.Context(), by, speakerMAC, name); err != nil {
				t.Fatal(err)
			}
		}
		if w := ask(http.MethodGet, doctor.Path+"/devices/"+speakerMAC, token, nil, ""); w.Code != want || strings.Contains(w.Body.String(), "callers") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		for _, path := range []string{doctor.Path, doctor.BundlePath, doctor.Path + "/devices/" + "24:6f:28:aa:10:99"} {
			if w := ask(http.MethodGet, path, token, nil, ""); w.Code != http.StatusForbidden {
				t.Errorf("%s gets %s: %d", name, path, w.Code)
			}
		}
	}
}

// pagesOfDoctor: an owner sees the pages, which escape what devices tell, and a member only what is theirs.
func pagesOfDoctor(t *testing.T, a *App, h http.Handler) {
	t.Helper()
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	session := func(name string, role account.Role) func(method, path, form string) *httptest.ResponseRecorder {
		if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: name, Role: role, Password: "correct horse battery"}); err != nil {
			t.Fatal(err)
		}
		secret, err := a.accounts.Login(t.Context(), name, account.Proof{Password: "correct horse battery"}, account.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		return func(method, path, form string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, strings.NewReader(form))
			r.Host, r.RemoteAddr = "192.168.1.2:8000", "192.168.1.41:5000"
			r.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Origin": {"http://192.168.1.2:8000"}}
			r.AddCookie(&http.Cookie{Name: "xiaozhi", Value: secret})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
	}
	owner, member := session("olga", account.Owner), session("max", account.Member)
	for path, wants := range map[string][]string{
		"/console/doctor":                             {"box&lt;img src=x&gt;", "Check again", "/console/phone/", "<svg viewBox", `id="server"`, `id="callers"`, "Latest devices to ask", `id="devices" data-topic="doctor"`},
		"/console/doctor?lang=zh":                     {"重新检查", "请求建立连接"},
		"/console/doctor?q=box":                       {speakerMAC, `role="search"`},
		"/console/doctor?q=none":                      {"No speaker matches"},
		"/console/doctor/" + speakerMAC + "?sent=ota": {`data-topic="contact:` + speakerMAC, "The proxy before this server", "went wrong", "What was sent", "POST /xiaozhi/ota/?token="},
		"/console/doctor/24:6f:28:aa:10:99":           {"has not called since", "Switch the speaker off and on", "box&lt;img src=x&gt;"},
	} {
		w := owner(http.MethodGet, path, "")
		for _, want := range wants {
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d, no %q in\n%s", path, w.Code, want, w.Body)
			}
		}
		if strings.Contains(w.Body.String(), "<img") || strings.Contains(w.Body.String(), "s3cret") {
			t.Errorf("%s shows what it must not:\n%s", path, w.Body)
		}
	}
	last, _ := a.seen.doctor.Links().Last()
	if w := owner(http.MethodPost, "/console/doctor", "do=phone"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console/doctor#phone" {
		t.Error(w.Code, w.Header())
	}
	if now, _ := a.seen.doctor.Links().Last(); now.Path == last.Path {
		t.Error("no link was made")
	}
	before := a.seen.doctor.Last().At
	if w := owner(http.MethodPost, "/console/doctor", "do=run"); w.Code != http.StatusSeeOther || !a.seen.doctor.Last().At.After(before) {
		t.Error(w.Code)
	}
	if w := member(http.MethodGet, "/console/doctor", ""); w.Code != http.StatusOK || strings.Contains(w.Body.String(), speakerMAC) || strings.Contains(w.Body.String(), `id="server"`) {
		t.Errorf("a member: %d\n%s", w.Code, w.Body)
	}
	for _, path := range []string{"GET /console/doctor/" + speakerMAC, "POST /console/doctor", "GET /console/bundle"} {
		method, path, _ := strings.Cut(path, " ")
		if w := member(method, path, "do=phone"); w.Code != http.StatusForbidden {
			t.Errorf("a member gets %s: %d", path, w.Code)
		}
	}
}
