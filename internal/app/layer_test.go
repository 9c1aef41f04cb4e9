package app

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/settings"
	"xiaozhi/store"
)

// folderWith makes a data folder in whose store people have set something.
func folderWith(t *testing.T, docs ...string) (data string) {
	t.Helper()
	data = t.TempDir()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(data, databaseFile)})
	if err != nil {
		t.Fatal(err)
	}
	for i, doc := range docs {
		if _, err := s.Settings.Save(t.Context(), store.SettingsRevision{BaseID: i, Doc: doc, ByID: "olga", Kind: "edit"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return data
}

// startOn starts a program on a data folder, whose log it returns.
func startOn(t *testing.T, data, file string, how func(o *Options)) (*App, *bytes.Buffer) {
	t.Helper()
	cfg, _, err := config.Load(config.Options{File: writeFile(t, "base.yaml", file), DataDir: data})
	if err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	o := Options{Data: data, Log: slog.New(slog.NewTextHandler(log, nil))}
	if how != nil {
		how(&o)
	}
	a, err := Build(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return a, log
}

const plainFile = "llm: [rules]\n"

// TestConsoleLayerAtStart: what people have set counts from the start on, also for what is made first.
func TestConsoleLayerAtStart(t *testing.T) {
	data := folderWith(t, `{"agent":{"name":"Momo"}}`, `{"agent":{"name":"Momo"},"voice":{"idle_close":"70s"}}`)
	a, _ := startOn(t, data, plainFile, nil)
	if a.cfg.Agent.Name != "Momo" || a.cfg.Voice.IdleClose.Seconds() != 70 || a.crew.settings().Agent.Name != "Momo" {
		t.Errorf("%+v", a.cfg.Agent)
	}
	if place := a.cfg.OriginOf([]string{"agent", "name"}).Place; place != "console#2" {
		t.Error(place)
	}
	a.Close()
	check, _ := startOn(t, data, plainFile, func(o *Options) { o.Check = true })
	defer check.Close()
	if check.cfg.Agent.Name != "Momo" {
		t.Error("a check does not look at it")
	}
}

// TestConsoleLayerDoesNotFit: files that have changed since do not keep the server from starting.
func TestConsoleLayerDoesNotFit(t *testing.T) {
	data := folderWith(t, `{"agent":{"name":"Momo"}}`, `{"agent":{"name":"Lulu"},"llm":["gone","rules"]}`)
	a, log := startOn(t, data, plainFile, nil)
	if a.cfg.Agent.Name != "Momo" || !strings.Contains(log.String(), "gone") {
		t.Errorf("%q, and the log says\n%s", a.cfg.Agent.Name, log)
	}
	found := examiner{a}.settingsFindings()
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	if what, do := found[0].In("en"); !strings.Contains(what, "gone") || !strings.Contains(what, "revision 2") || do == "" {
		t.Error(what, do)
	}
	a.Close()
	a, _ = startOn(t, data, plainFile, func(o *Options) { o.NoConsoleSettings = true })
	defer a.Close()
	if a.cfg.Agent.Name == "Momo" || len(examiner{a}.settingsFindings()) != 1 {
		t.Error("it counts although it should not")
	}
}

// pretender is a server of settings that can always be made.
type pretender struct{}

func (pretender) Build(context.Context, *config.Config) (settings.Stage, error) {
	return pretender{}, nil
}
func (pretender) Health() settings.Health               { return settings.Health{Ready: true} }
func (pretender) Tests(context.Context) []settings.Test { return nil }
func (pretender) Apply(context.Context) error           { return nil }
func (pretender) Drop()                                 {}

// TestSettingsByHTTP changes settings as a program does, with a secret that nobody sees afterwards.
func TestSettingsByHTTP(t *testing.T) {
	a, log := startOn(t, t.TempDir(), plainFile+"voice: {barge_in: 300ms}\n", nil)
	defer a.Close()
	a.settings.Run(pretender{})
	a.web.guard.SetAdmin("0123456789abcdef")
	h, err := a.routes()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string, status int, into any) {
		t.Helper()
		r := httptest.NewRequest(method, settings.Path+path, strings.NewReader(body))
		r.Host = "127.0.0.1:8000"
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != status || strings.Contains(w.Body.String(), "sk-very-secret") {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err, w.Body)
		}
	}
	var plan settings.ShownPlan
	ask("POST", "/plan", `{"base":0,"edits":[{"path":["voice","idle_close"],"value":"70s"},{"path":["providers","mine"],"value":{"type":"openai","base_url":"https://one.example/v1","model":"m","api_key":"sk-very-secret"}}]}`, 200, &plan)
	var done settings.ShownRevision
	ask("POST", "/apply", `{"plan":"`+plan.ID+`"}`, 200, &done)
	if done.Revision != 1 || done.By != account.AdminName || a.settings.Current().Providers["mine"].APIKey != "sk-very-secret" {
		t.Errorf("%+v", done)
	}
	var all settings.Shown
	ask("GET", "", "", 200, &all)
	i := slices.IndexFunc(all.Values, func(v settings.ShownValue) bool { return v.Key == "voice.idle_close" })
	if v := all.Values[i]; v.Value != "1m10s" || v.From != "console" || v.Place != "console#1" || !v.Own || !v.Changeable {
		t.Errorf("%+v", v)
	}
	if all.Watch == nil || all.Watch.Revision != 1 {
		t.Error("nothing is watched")
	}
	var exported settings.Exported
	ask("GET", "/export", "", 200, &exported)
	if !strings.Contains(exported.Document, "sealed:console.mine.api_key-") {
		t.Error(exported.Document)
	}
	var refused struct{ Problems []settings.ShownProblem }
	ask("POST", "/plan", `{"base":1,"edits":[{"path":["voice","idle_close"],"value":7}]}`, 400, &refused)
	if len(refused.Problems) != 1 || !slices.Equal(refused.Problems[0].Path, []string{"voice", "idle_close"}) {
		t.Errorf("%+v", refused)
	}
	ask("POST", "/plan", `{"base":1,"edits":[{"path":["llm"],"value":["mine"]}]}`, 200, &plan)
	ask("POST", "/apply", `{"plan":"`+plan.ID+`"}`, 200, &done)
	var stale struct{ Revision int }
	ask("POST", "/plan", `{"base":1,"edits":[{"path":["llm"],"value":[]}]}`, 409, &stale)
	if stale.Revision != 2 {
		t.Errorf("%+v", stale)
	}
	ask("POST", "/undo", `{"revision":1}`, 400, &refused) // what uses the service stays
	ask("POST", "/undo", `{"revision":2}`, 200, &done)
	ask("POST", "/undo", `{"revision":1}`, 200, &done)
	if _, there := a.settings.Current().Providers["mine"]; there || done.Revision != 4 {
		t.Errorf("%+v", done)
	}
	ask("POST", "/import", `{"base":4,"document":"agent: {name: Momo}\nserver: {max_devices: 3}\n"}`, 200, &plan)
	if len(plan.Changes) != 1 || len(plan.Left) != 1 || plan.Left[0].Key != "server.max_devices" {
		t.Errorf("%+v", plan)
	}
	if strings.Contains(log.String(), "very-secret") {
		t.Error("the log tells the secret")
	}
	acts, err := a.accounts.Audit(t.Context(), store.Page{})
	if err != nil || !slices.ContainsFunc(acts, func(a store.Act) bool { return a.Act == "settings.apply" && a.Object == "console#1" && a.OK }) ||
		!slices.ContainsFunc(acts, func(a store.Act) bool { return a.Act == "secret.set" && a.OK }) {
		t.Errorf("%+v %v", acts, err)
	}
}
