package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/sender"
)

// devices is a fleet that the test sets.
type devices struct {
	mu     sync.Mutex
	all    []fleet.Device
	follow func(string)
}

func (d *devices) List(context.Context) ([]fleet.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all), nil
}

func (d *devices) Get(_ context.Context, id string) (fleet.Device, bool, error) {
	i := slices.IndexFunc(d.all, func(d fleet.Device) bool { return d.ID == id })
	return d.all[max(i, 0)], i >= 0, nil
}

func (d *devices) Follow(f func(string)) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.follow = f
	return func() {}
}

func (d *devices) change(id string, s fleet.State) {
	d.mu.Lock()
	for i := range d.all {
		if d.all[i].ID == id {
			d.all[i].State = s
		}
	}
	d.mu.Unlock()
	d.follow(id)
}

// speaker is a connected device.
type speaker struct{ remote.Device }

func (speaker) Ask(context.Context, string) (string, error) { return "blue", nil }
func (speaker) Listen(context.Context) error                { return remote.ErrManual }
func (speaker) Stop(context.Context) (bool, error)          { return true, nil }

// office tells letters to the device that is there at once.
type office struct{ *mail.Memory }

func (o office) Send(ctx context.Context, l mail.Letter) (mail.Letter, error) {
	if l.Text == "" {
		return l, mail.ErrLength
	}
	if l.ID, l.Fate = "letter-of-"+l.Device, mail.Queued; l.Kind == mail.Ask {
		l.ID = "question-of-" + l.Device
	}
	failed, err := o.Add(ctx, []mail.Letter{l}, mail.Bounds{Device: 10, All: 10})
	return l, errors.Join(append(failed, err)...)
}
func (o office) SendAll(ctx context.Context, all []mail.Letter) (kept []mail.Letter, failed []error, err error) {
	for _, l := range all {
		if l.Text+l.Song == "" {
			return nil, nil, mail.ErrLength
		}
		if l.At.IsZero() {
			l.At = time.Now()
		}
		l.ID, l.Batch, l.Fate, l.Made = string(l.Kind)+"-of-"+l.Device, string(l.Kind), mail.Queued, time.Now()
		kept = append(kept, l)
	}
	failed, err = o.Add(ctx, kept, mail.Bounds{Device: 10, All: 10})
	return kept, failed, err
}
func (o office) Find(ctx context.Context, id string) (mail.Letter, error) { return o.Get(ctx, id) }
func (o office) Await(ctx context.Context, id string) (mail.Letter, error) {
	l, err := o.Get(ctx, id)
	if l.Fate, l.Heard = mail.Heard, l.Length(); l.Kind == mail.Ask {
		l.Fate, l.Answer = mail.Answered, "blue"
	}
	return l, err
}
func (o office) Withdraw(ctx context.Context, id string) (mail.Letter, error) {
	was, err := o.Get(ctx, id)
	if err == nil && was.Fate != mail.Queued {
		return was, mail.ErrOver
	}
	l := was
	l.Fate, l.Why = mail.Refused, mail.Withdrawn
	_, err = o.Change(ctx, was, l)
	return l, err
}

// rig serves the routes behind no guard, but to one person.
func rig(t *testing.T, p account.Person) (*devices, func(pattern, body string) *httptest.ResponseRecorder, http.Handler) {
	return rigWith(t, p, nil)
}

// rigWith is rig with routines.
func rigWith(t *testing.T, p account.Person, routines Routines) (*devices, func(pattern, body string) *httptest.ResponseRecorder, http.Handler) {
	t.Helper()
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	all := &devices{all: []fleet.Device{
		{ID: "b", Name: "kitchen", Known: true, State: fleet.Idle, Owner: "anna", First: at}, {ID: "a", Known: true, State: fleet.Asleep, Owner: "anna", First: at}, {ID: "c", Known: true, State: fleet.Started, Owner: "ben", First: at.Add(-time.Hour)},
	}}
	letters := office{mail.NewMemory()}
	a := newAPI(Options{
		Sender: sender.New(sender.Options{
			Letters: letters, Fleet: all, Groups: func(id string) []string { return map[string][]string{"a": {"upstairs"}, "b": {"upstairs"}}[id] },
			Zone: func(string) *time.Location { return time.UTC },
			HasSong: func(song string) error {
				if song == "none" {
					return mail.ErrNoSong
				}
				return nil
			},
		}),
		Guard: access.New(access.Options{Log: slog.New(slog.DiscardHandler)}), Fleet: all, Letters: letters, Routines: routines, ID: strings.ToLower,
		Owner: func(context.Context, string) (string, error) { return "", nil },
		Find: func(id string) (remote.Device, error) {
			if id == "b" {
				return speaker{}, nil
			}
			return nil, directory.ErrNotConnected
		},
		Chains: func(_ context.Context, whole bool) (any, error) { return map[string]bool{"whole": whole}, nil },
	})
	a.within = 50 * time.Millisecond
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, access.As(r, p)) })
	return all, func(pattern, body string) *httptest.ResponseRecorder {
		method, path, _ := strings.Cut(pattern, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w
	}, h
}

// TestDevicesForPrograms: owners see all devices, others theirs, in pages.
func TestDevicesForPrograms(t *testing.T) {
	t.Parallel()
	for role, want := range map[account.Role]string{account.Owner: "b a c", account.Member: "b a"} {
		_, ask, _ := rig(t, account.Person{ID: "anna", Name: "anna", Role: role})
		var ids []string
		for path := "/api/v1/devices?limit=1"; path != ""; {
			var page DeviceList
			if w := ask("GET "+path, ""); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &page) != nil {
				t.Fatal(w.Code, w.Body)
			}
			for _, d := range page.Devices {
				ids = append(ids, d.ID)
			}
			if path = ""; page.Before != "" {
				path = "/api/v1/devices?limit=1&before=" + page.Before
			}
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s sees %s, want %s", role, got, want)
		}
		if w := ask("GET /api/v1/services", ""); !strings.Contains(w.Body.String(), map[bool]string{true: "true", false: "false"}[role == account.Owner]) {
			t.Errorf("%s: %s", role, w.Body)
		}
	}
}

// TestActsOfPrograms: what programs have a device do is done or refused, with a code and both languages, and not too often.
func TestActsOfPrograms(t *testing.T) {
	t.Parallel()
	_, ask, _ := rig(t, account.Person{ID: "anna", Name: "anna", Role: account.Owner})
	const d = "/api/v1/devices/"
	for _, c := range []struct {
		pattern, body string
		code          int
		holds         string
	}{
		{"GET " + d + "B", "", 200, `"state":"idle"`}, {"GET " + d + "x", "", 404, `"code":"api/no-device"`},
		{"POST " + d + "a/say", `{"text":"hello"}`, 202, `"fate":"queued"`}, {"POST " + d + "b/say", `{"text":"hello","wait":5}`, 200, `"heard":5,"of":5`},
		{"POST " + d + "b/say", `{"text":""}`, 400, "api/text"}, {"POST " + d + "b/say", `{"text":"x","wait":61}`, 400, "api/wait"}, {"POST " + d + "b/say", `{"txt":"x"}`, 400, "api/body"},
		{"POST " + d + "b/say", `[]`, 400, "api/body"},
		{"GET " + d + "a/said/letter-of-a", "", 200, `"fate":"queued"`}, {"GET " + d + "b/said/letter-of-a", "", 404, "api/no-letter"}, {"DELETE " + d + "b/said/letter-of-a", "", 404, "api/no-letter"},
		{"DELETE " + d + "a/said/letter-of-a", "", 200, `"fate":"refused"`},
		{"POST " + d + "b/ask", `{"text":"what colour?"}`, 200, `"answer":"blue"`}, {"POST " + d + "a/ask", `{"text":"what colour?"}`, 202, `"fate":"queued"`},
		{"POST " + d + "a/ask", `{"text":"what colour?","wait":-1}`, 400, "api/wait"}, {"POST " + d + "a/ask", `{"text":""}`, 400, "api/text"},
		{"POST " + d + "b/listen", "", 409, "device/manual"}, {"POST " + d + "b/stop", "", 200, `"stopped":true`}, {"POST " + d + "c/stop", "", 409, "设备"},
	} {
		if w := ask(c.pattern, c.body); w.Code != c.code || !strings.Contains(w.Body.String(), c.holds) {
			t.Errorf("%s %s: %d %s, want %d %s", c.pattern, c.body, w.Code, w.Body, c.code, c.holds)
		}
	}
	codes := map[int]int{}
	for range access.Burst + 2 { // one was before
		codes[ask("POST "+d+"c/listen", "").Code]++
	}
	if codes[http.StatusTooManyRequests] != 3 {
		t.Error(codes)
	}
}

// TestLettersOfPrograms: what several devices are to say, ask or play is sent to those that the asker may speak to, listed and taken
// back.
func TestLettersOfPrograms(t *testing.T) {
	t.Parallel()
	const v = "/api/v1/"
	type step struct {
		pattern, body string
		code          int
		holds         string
	}
	steps := []step{
		{"POST " + v + "say", `{"to":"all","text":"hello"}`, 202, `"device":"b","name":"kitchen"`}, {"POST " + v + "play", `{"to":"group:upstairs","song":"scale"}`, 202, `"device":"a"`},
		{"POST " + v + "ask", `{"to":"Kitchen","text":"why?","wait":5}`, 200, `"answer":"blue"`}, {"POST " + v + "play", `{"to":"b","song":"none"}`, 404, "api/no-song"},
		{"POST " + v + "say", `{"to":"c","text":"x"}`, 404, "api/nobody"}, {"POST " + v + "say", `{"to":"cellar","text":"x"}`, 404, "api/nobody"}, {"POST " + v + "say", `{"text":"x"}`, 404, "api/nobody"},
		{"POST " + v + "say", `{"to":"b","text":""}`, 400, "api/text"}, {"POST " + v + "say", `{"to":"b","text":"x","priority":"high"}`, 400, "api/priority"},
		{"POST " + v + "say", `{"to":"b","text":"x","at":"yesterday"}`, 400, "api/at"}, {"POST " + v + "say", `{"to":"b","text":"x","at":"every day at 7"}`, 400, "api/at"},
		{"POST " + v + "say", `{"to":"b","text":"x","at":"2001-01-01T00:00:00Z"}`, 400, "api/at"}, {"POST " + v + "say", `{"to":"b","text":"x","language":"klingon!"}`, 400, "api/language"},
		{"POST " + v + "say", `{"to":"b","text":"x","wait":99}`, 400, "api/wait"}, {"POST " + v + "say", `{"to":"b","words":"x"}`, 400, "api/body"},
	}
	_, ask, _ := rig(t, account.Person{ID: "anna", Name: "anna", Role: account.Member})
	check := func(steps []step) {
		t.Helper()
		for _, c := range steps {
			if w := ask(c.pattern, c.body); w.Code != c.code || !strings.Contains(w.Body.String(), c.holds) {
				t.Errorf("%s %s: %d %s, want %d %s", c.pattern, c.body, w.Code, w.Body, c.code, c.holds)
			}
		}
	}
	check(steps[:12])
	check([]step{
		{"GET " + v + "letters?state=open", "", 200, `"kind":"play"`}, {"GET " + v + "letters?device=B", "", 200, `"device":"b"`}, {"GET " + v + "letters?state=later", "", 400, "api/state"},
		{"GET " + v + "letters/say-of-b", "", 200, `"fate":"queued"`}, {"GET " + v + "letters/nothing", "", 404, "api/no-letter"},
		{"DELETE " + v + "letters/say-of-b", "", 200, `"why":"withdrawn"`}, {"DELETE " + v + "letters/say-of-b", "", 409, "api/told"}, {"DELETE " + v + "letters/play", "", 200, `"device":"a"`},
	})
	_, ask, _ = rig(t, account.Person{ID: "anna", Name: "anna", Role: account.Member})
	check(steps[12:])
	_, ask, _ = rig(t, account.Person{ID: "anna", Name: "anna", Role: account.Member, Scopes: []account.Scope{account.Say}})
	check([]step{{"POST " + v + "say", `{"to":"b","text":"x","priority":"urgent"}`, 403, "account/forbidden"}})
	_, ask, _ = rig(t, account.Person{ID: "anna", Name: "anna", Role: account.Member, Scopes: []account.Scope{account.Say, account.Urgent}})
	check([]step{{"POST " + v + "say", `{"to":"b","text":"x","priority":"urgent"}`, 202, "queued"}})
}

// TestStateStream: a stream tells how all devices are, then each change, and what went, to who may know.
func TestStateStream(t *testing.T) {
	t.Parallel()
	all, _, h := rig(t, account.Person{ID: "anna", Name: "anna", Role: account.Owner})
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/devices/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	until := func(want string) {
		t.Helper()
		for b := make([]byte, 4096); !strings.Contains(text.String(), want); {
			n, err := resp.Body.Read(b)
			text.Write(b[:n])
			if err != nil {
				t.Fatalf("no %s: %v in %s", want, err, text.String())
			}
		}
	}
	until("event: ready")
	if n := strings.Count(text.String(), "event: device"); n != 3 {
		t.Errorf("%d devices: %s", n, text.String())
	}
	text.Reset()
	time.Sleep(150 * time.Millisecond) // longer than one write may take
	all.change("b", fleet.Speaking)
	all.change("b", fleet.Idle)
	all.change("gone", fleet.Idle)
	until("event: gone")
	if s := text.String(); strings.Count(s, "event: device") != 1 || !strings.Contains(s, `"state":"idle"`) {
		t.Errorf("changes at once: %s", s)
	}
}
