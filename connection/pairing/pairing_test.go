package pairing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"xiaozhi/connection/identity"
)

const speaker = "24:6f:28:aa:10:02"

type rig struct {
	t         *testing.T
	book      *identity.Book
	handler   http.Handler
	log       bytes.Buffer
	forgotten []string
	deeds     []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t}
	var err error
	if r.book, err = identity.New(t.Context(), identity.Options{Records: identity.NewMemory(), Mode: identity.Ask}); err != nil {
		t.Fatal(err)
	}
	r.handler = New(Options{
		Callers: func() []string { return []string{"12:00:00  192.168.1.40  " + speaker} },
		Book:    r.book, Connected: func(id string) bool { return id == speaker }, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Forget: func(_ context.Context, id string) ([]string, error) {
			r.forgotten = append(r.forgotten, id)
			return []string{"data/before-restore-x"}, nil
		},
		Audit: func(_ context.Context, d Deed) {
			r.deeds = append(r.deeds, fmt.Sprintf("%s %s %q %v", d.Who, d.Act, d.Device, d.Outcome == nil))
		},
	})
	return r
}

// waits has a device ask, and returns its code.
func (r *rig) waits(id string) string {
	return r.book.Provision(r.t.Context(), identity.Visit{Address: id, ClientID: "c", From: "192.168.1.40", Near: true}, identity.Description{}).Away.Code
}

func (r *rig) ask(method, path, kind, body string) (status int, answer string) {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func (r *rig) post(act, body string) (status int, answer string) {
	return r.ask(http.MethodPost, Path+"/"+act, "application/json", body)
}

func TestActs(t *testing.T) {
	r := newRig(t)
	code := r.waits(speaker)
	var list List
	if _, answer := r.ask(http.MethodGet, Path, "", ""); json.Unmarshal([]byte(answer), &list) != nil || list.Mode != "ask" || len(list.Devices) != 1 {
		t.Fatalf("listed: %s", answer)
	}
	if d := list.Devices[0]; d.ID != speaker || d.Code != code || !d.Connected || d.State != "new" || d.Remote != "192.168.1.40" {
		t.Errorf("listed: %+v", d)
	}
	for _, tc := range []struct {
		act, body string
		status    int
		answer    string
	}{
		{"pair", `{"code":"` + code + `"}`, 200, speaker},
		{"pair", `{"code":"` + code + `"}`, 409, "already / 这个配对码已经用过了"},
		{"pair", `{"code":"12345"}`, 400, "six digits"},
		{"pair", `{"device":"24-6F-28-AA-10-02"}`, 200, speaker},
		{"pair", `{"device":"kitchen"}`, 404, "no device is known"},
		{"rename", `{"device":"246f28aa1002","name":"Kitchen"}`, 200, speaker},
		{"rename", `{"device":"246f28aa1002","name":" "}`, 400, "letters or digits"},
		{"rename", `{"device":"x","name":"Kitchen"}`, 404, "no device is known"},
		{"refuse", `{"device":"24:6f:28:aa:10:02"}`, 200, speaker},
		{"forget", `{"device":"24:6f:28:aa:10:02"}`, 200, speaker + `","left":["data/before-restore-x"]`},
		{"forget", `{"device":"24:6f:28:aa:10:02"}`, 404, "no device is known"},
		{"keep", `{"device":"24:6f:28:aa:10:02","keep":{"text":3}}`, 409, "store.driver is none"},
		{"promote", `{"device":"24:6f:28:aa:10:02"}`, 404, "nothing here"},
		{"pair", `{"code":`, 400, "JSON"},
		{"pair", strings.Repeat(" ", 5000), 400, "JSON"},
	} {
		if status, answer := r.post(tc.act, tc.body); status != tc.status || !strings.Contains(answer, tc.answer) {
			t.Errorf("%s %s: %d %s", tc.act, tc.body, status, answer)
		}
	}
	if len(r.forgotten) != 1 || r.forgotten[0] != speaker {
		t.Errorf("forgotten elsewhere: %q", r.forgotten)
	}
	if n := strings.Count(r.log.String(), "audit"); n != 13 || strings.Count(r.log.String(), "ok=true") != 5 {
		t.Errorf("%d lines:\n%s", n, r.log.String())
	}
	want := []string{
		`owner device.pair "` + speaker + `" true`, `owner device.pair "" false`, `owner device.pair "" false`, `owner device.pair "` + speaker + `" true`,
		`owner device.pair "" false`, `owner device.rename "` + speaker + `" true`, `owner device.rename "` + speaker + `" false`, `owner device.rename "" false`,
		`owner device.refuse "` + speaker + `" true`, `owner device.forget "" true`, `owner device.forget "" false`, `owner device.keep "24:6f:28:aa:10:02" false`,
	}
	if !slices.Equal(r.deeds, want) {
		t.Errorf("audited:\n%s", strings.Join(r.deeds, "\n"))
	}
	if strings.Contains(r.log.String(), code) || strings.Contains(r.log.String(), "12345") {
		t.Errorf("a code is logged:\n%s", r.log.String())
	}
}

// TestDecided: an owner accepts, refuses and forgets the device that the path names.
func TestDecided(t *testing.T) {
	r := newRig(t)
	r.waits(speaker)
	var given []string
	o := Options{Book: r.book, Forget: func(_ context.Context, id string) ([]string, error) {
		r.forgotten = append(r.forgotten, id)
		return nil, nil
	}}
	mux := http.NewServeMux()
	for _, act := range []string{"pair", "refuse", "forget"} {
		mux.Handle("POST /{id}/"+act, Decide(o, act, func(_ *http.Request, id string) error { given = append(given, act+" "+id); return nil }))
	}
	r.handler = mux
	for _, tc := range []struct {
		path   string
		status int
		answer string
		state  string
	}{
		{"/24-6F-28-AA-10-02/pair", 200, speaker, "paired"},
		{"/nobody/pair", 404, "no device is known", "paired"},
		{"/246f28aa1002/refuse", 200, speaker, "refused"},
		{"/246f28aa1002/forget", 200, speaker, ""},
		{"/246f28aa1002/forget", 404, "no device is known", ""},
	} {
		status, answer := r.ask(http.MethodPost, tc.path, "", "")
		state := ""
		for _, k := range r.book.List() {
			state = k.State
		}
		if status != tc.status || !strings.Contains(answer, tc.answer) || state != tc.state {
			t.Errorf("%s: %d %s, it is %q", tc.path, status, answer, state)
		}
	}
	if want := []string{"pair " + speaker, "refuse " + speaker, "forget " + speaker}; !slices.Equal(given, want) || !slices.Equal(r.forgotten, []string{speaker}) {
		t.Errorf("told of %q, forgotten %q", given, r.forgotten)
	}
}

// TestStrangeRequests: a web form cannot do anything, and nothing else is here.
func TestStrangeRequests(t *testing.T) {
	r := newRig(t)
	code := r.waits(speaker)
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp"} {
		if status, _ := r.ask(http.MethodPost, Path+"/pair", kind, `{"code":"`+code+`"}`); status != 415 {
			t.Errorf("%q: %d", kind, status)
		}
	}
	for _, path := range []string{Path + "/", Path + "/pair/x", "/api/other"} {
		if status, _ := r.ask(http.MethodGet, path, "", ""); status != 404 && status != 405 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if r.book.List()[0].State != "new" {
		t.Error("something was done")
	}
}

func TestGuessesAreCounted(t *testing.T) {
	r := newRig(t)
	code := r.waits(speaker)
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	for range 5 {
		if status, answer := r.post("pair", `{"code":"`+wrong+`"}`); status != 404 || !strings.Contains(answer, "another server") || !strings.Contains(answer, "192.168.1.40  "+speaker) {
			t.Fatalf("%d %s", status, answer)
		}
	}
	if status, _ := r.post("pair", `{"code":"`+code+`"}`); status != 429 {
		t.Errorf("the right code after five wrong ones: %d", status)
	}
	if status, _ := r.post("pair", `{"device":"`+speaker+`"}`); status != 200 {
		t.Errorf("by its id: %d", status)
	}
}

func TestExplainsAll(t *testing.T) {
	if status, id := explain(errors.New("other")); status != 500 || id != "connection/internal" {
		t.Errorf("%d %s", status, id)
	}
}
