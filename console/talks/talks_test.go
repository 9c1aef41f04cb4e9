package talks

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/store"
)

const good = "correct horse battery"

type plainSealer struct{}

func (plainSealer) Seal(_ context.Context, _, value string) (string, error) { return value, nil }
func (plainSealer) Unseal(_, text string) (string, error)                   { return text, nil }

// folder holds files of sound.
type folder struct {
	dir     string
	removed []string
}

func (f *folder) Open(path string) (*os.File, error) { return os.Open(filepath.Join(f.dir, path)) }

func (f *folder) Remove(_ context.Context, device, talk, turn string) error {
	f.removed = append(f.removed, strings.Join([]string{device, talk, turn}, " "))
	return nil
}

// home is a store with people, their speakers, and talks with sound.
type home struct {
	t       *testing.T
	db      *store.Store
	talks   *Talks
	sound   *folder
	mux     http.Handler
	cookies map[string]*http.Cookie
	ids     map[string]string // of people, by name
}

var began = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{t: t, sound: &folder{dir: t.TempDir()}, cookies: map[string]*http.Cookie{}, ids: map[string]string{}}
	var err error
	if h.db, err = store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "x.db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.db.Close() })
	accounts := account.New(account.Options{Store: h.db, Seal: plainSealer{}, Cost: account.Cost{Memory: 64, Passes: 1, Lanes: 1}})
	guard := access.New(access.Options{Accounts: accounts, Log: slog.New(slog.DiscardHandler)})
	h.talks = New(Options{Store: h.db, Sound: h.sound, Guard: guard, Days: func() int { return 7 }})
	if h.mux, err = guard.Mux(slices.Concat(h.talks.Routes(), h.talks.Programs())); err != nil {
		t.Fatal(err)
	}
	for name, role := range map[string]account.Role{"olga": account.Owner, "ann": account.Member, "ben": account.Member, "vic": account.Viewer} {
		h.must(accounts.Add(t.Context(), account.Actor{Name: "test", Via: account.ViaCommand}, account.NewUser{Name: name, Role: role, Password: good}))
		secret, err := accounts.Login(t.Context(), name, account.Proof{Password: good}, account.Origin{})
		h.must(err)
		h.cookies[name] = &http.Cookie{Name: "xiaozhi", Value: secret}
		person, err := accounts.Session(t.Context(), secret)
		h.must(err)
		h.ids[name] = person.ID
	}
	return h
}

func (h *home) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// ask asks as somebody. A path may follow a method.
func (h *home) ask(who, path string, headers ...string) *httptest.ResponseRecorder {
	h.t.Helper()
	method := http.MethodGet
	if m, p, ok := strings.Cut(path, " "); ok {
		method, path = m, p
	}
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, nil)
	r.Header.Set("Origin", "http://127.0.0.1")
	if c := h.cookies[who]; c != nil {
		r.AddCookie(c)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	return w
}

// audit lists what was done to objects, the oldest first.
func (h *home) audit(act string) (all []string) {
	h.t.Helper()
	acts, err := h.db.Audit.List(h.t.Context(), store.Page{Limit: 500})
	h.must(err)
	for _, a := range acts {
		if a.Act == act {
			all = append(all, a.Who+" "+a.Object)
		}
	}
	return all
}

// device adds a speaker of somebody.
func (h *home) device(id, owner string) {
	h.t.Helper()
	d := store.Identity{ID: id, Address: id, State: store.DevicePaired, Name: "Kitchen*", FirstAt: began}
	h.must(h.db.Devices.Commit(h.t.Context(), store.DeviceChange{Save: []store.Identity{d}}))
	_, err := h.db.Devices.Edit(h.t.Context(), id, func(d *store.Device) error { d.OwnerID = h.ids[owner]; return nil })
	h.must(err)
}

// talk adds a talk of one spoken turn: the user waits for 500 ms, the reply has a gap of 300 ms after its first half.
func (h *home) talk(id, device string, rows ...store.Recording) {
	h.t.Helper()
	zero := int64(-1)
	h.db.Log.Put(&store.Entry{
		Conversation: store.Conversation{ID: id, DeviceID: device, BeganAt: began},
		Agent:        "anna",
		Turn: store.Turn{
			ID: id + "-1", Seq: 1, At: began, Kind: "user", Cause: "done", Language: "zh", Heard: "现在<b>几点 *了*", Said: "九点。", E2E: 500 * time.Millisecond, EOU: 200 * time.Millisecond,
			TTFS: 290 * time.Millisecond, Added: 10 * time.Millisecond, ASRName: "ears", LLMName: "brain", TTSName: "brain", CostMicros: new(42),
			Spans: timeline.Spans{
				Zero: began.UnixMilli() + zero, End: timeline.EndVoice, Marks: map[timeline.Mark]int64{timeline.MarkEndpoint: 200, timeline.MarkTranscript: 260, timeline.MarkFrame: 500},
				Gaps:     []timeline.SpanGap{{Until: 1300, Played: 480}},
				Attempts: []timeline.SpanAttempt{{Op: "recognize", Provider: "ears", At: -1000, Took: 1260, Outcome: timeline.Answered}, {Op: "think", Part: 1, Provider: "brain", At: 260, First: 120, Took: 200, Outcome: timeline.Answered}},
			}.String(),
		},
		Messages: []store.Message{{Role: "user", Body: `"现在几点"`}, {Role: "assistant", Body: `{"text":"","calls":[{"id":"a","name":"time_now","arguments":"{}"}]}`}, {Role: "tool", Body: `{"text":"09:00","call_id":"a"}`}, {Role: "assistant", Body: `"九点。"`}},
		Calls:    []store.Call{{ID: id + "-c", At: began, Caller: "model", Name: "time.now", Source: "local", Kind: "query", Arguments: `{"zone":"a` + "`" + `b"}`, Result: "09:00", Took: 30 * time.Millisecond}},
	})
	h.must(h.db.Log.Flush(h.t.Context()))
	if len(rows) > 0 {
		_, err := h.db.Recordings.Put(h.t.Context(), rows)
		h.must(err)
	}
}

// tone writes a file of a tone of that length, and returns its row.
func (h *home) tone(turn, side string, rate int, length time.Duration) store.Recording {
	h.t.Helper()
	enc, err := audio.NewEncoder(audio.Format{Rate: rate, Frame: 60 * time.Millisecond})
	h.must(err)
	var packets audio.Packets
	pcm, buf := make([]int16, rate*60/1000), make([]byte, audio.MaxPacket)
	for i := range int(length / (60 * time.Millisecond)) {
		for j := range pcm {
			pcm[j] = int16(12000 * math.Sin(2*math.Pi*300*float64(i*len(pcm)+j)/float64(rate)))
		}
		n, err := enc.Encode(pcm, buf)
		h.must(err)
		packets.Add(buf[:n])
	}
	path := turn + "-" + side + ".opus"
	f, err := os.Create(filepath.Join(h.sound.dir, path))
	h.must(err)
	h.must(file.WriteOpus(f, &packets, rate))
	h.must(f.Close())
	return store.Recording{TurnID: turn, Side: side, Path: path, Length: packets.Length(), Bytes: 1, EndsAt: time.Now().Add(time.Hour)}
}

// loud reports whether there is sound in a channel between two times, in milliseconds.
func loud(pcm []int16, channel, from, to int) bool {
	sum := 0.0
	for i := from * 24; i < to*24; i++ {
		v := float64(pcm[2*i+channel])
		sum += v * v
	}
	return math.Sqrt(sum/float64((to-from)*24)) > 500
}

// TestMedia: each side comes as it is kept or as WAV, in pieces too, both on one clock with their gaps, and only to who may
// hear them. What others hear is in the audit.
func TestMedia(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.device("m", "ann")
	h.talk("c", "m", h.tone("c-1", "user", 16000, 1200*time.Millisecond), h.tone("c-1", "reply", 24000, 960*time.Millisecond))

	kept, err := os.ReadFile(filepath.Join(h.sound.dir, "c-1-user.opus"))
	h.must(err)
	w := h.ask("ann", "/console/media/c-1/user?as=opus")
	if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), kept) || w.Header().Get("Content-Type") != typeOpus || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %v, %d bytes", w.Code, w.Header(), w.Body.Len())
	}
	w = h.ask("ann", "/console/media/c-1/user?as=opus", "Range", "bytes=10-19")
	if w.Code != http.StatusPartialContent || !bytes.Equal(w.Body.Bytes(), kept[10:20]) {
		t.Errorf("a piece: %d, %d bytes", w.Code, w.Body.Len())
	}
	w = h.ask("ann", "/console/media/c-1/user")
	if pcm, rate, err := file.ReadWAV(w.Body); err != nil || rate != 16000 || len(pcm) != 19200 || w.Header().Get("Accept-Ranges") != "bytes" {
		t.Errorf("%d samples at %d Hz, %v, %v", len(pcm), rate, err, w.Header())
	}
	w = h.ask("ann", "/console/media/c-1/both")
	both := w.Body.Bytes()
	if w.Code != http.StatusOK || binary.LittleEndian.Uint16(both[22:]) != 2 || binary.LittleEndian.Uint32(both[24:]) != 24000 || binary.LittleEndian.Uint16(both[32:]) != 4 {
		t.Fatalf("%d: %q", w.Code, both[:44])
	}
	pcm := make([]int16, (len(both)-44)/2)
	_, err = binary.Decode(both[44:], binary.LittleEndian, pcm)
	h.must(err)
	// The user spoke until 200 ms after zero, from 1000 ms before; there the recording begins. The reply plays from 500 to 980,
	// and from 1300 to 1780.
	if length := len(pcm) / 2 / 24; length != 2780 {
		t.Errorf("%d ms", length)
	}
	for _, c := range []struct {
		channel, from, to int
		want              bool
	}{
		{0, 50, 1150, true}, {0, 1250, 2700, false}, {1, 0, 1490, false}, {1, 1520, 1950, true}, {1, 2000, 2290, false}, {1, 2320, 2750, true},
	} {
		if loud(pcm, c.channel, c.from, c.to) != c.want {
			t.Errorf("channel %d, %d to %d ms: loud is not %v", c.channel, c.from, c.to, c.want)
		}
	}
	for who, want := range map[string]int{"ben": 403, "vic": 403, "olga": 200, "": 401} {
		if w := h.ask(who, "/console/media/c-1/reply"); w.Code != want {
			t.Errorf("%q: %d", who, w.Code)
		}
	}
	h.ask("olga", "/console/media/c-1/user", "Range", "bytes=5-9")
	if got := h.audit("turn.listen"); len(got) != 1 || got[0] != "olga c-1" {
		t.Errorf("%q", got)
	}
	for path, want := range map[string]string{"/console/media/nothing/user": "account/no-talk", "/console/media/c-1/middle": "talks/side"} {
		if w := h.ask("olga", path); w.Code != 404 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestNoSound: why there is nothing to hear is said, with the date.
func TestNoSound(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.device("m", "ann")
	h.talk("never", "m")
	gone := h.tone("gone-1", "user", 16000, 300*time.Millisecond)
	h.must(os.Remove(filepath.Join(h.sound.dir, gone.Path)))
	h.talk("gone", "m", gone)
	over := h.tone("over-1", "user", 16000, 300*time.Millisecond)
	over.EndsAt = began.Add(24 * time.Hour)
	h.talk("over", "m", over)
	h.talk("half", "m", h.tone("half-1", "reply", 24000, 300*time.Millisecond))
	for path, want := range map[string]string{
		"never-1/user": "(2026-11-22)", "over-1/both": "until 2026-11-23", "gone-1/user?as=opus": "nothing was recorded on this side", "half-1/user": "nothing was recorded on this side",
	} {
		if w := h.ask("ann", "/console/media/"+path); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := h.ask("ann", "/console/media/half-1/both"); w.Code != http.StatusOK || w.Body.Len() < 1000 {
		t.Errorf("one side alone: %d", w.Code)
	}
	broken := h.tone("broken-1", "user", 16000, 300*time.Millisecond)
	h.must(os.WriteFile(filepath.Join(h.sound.dir, broken.Path), []byte("OggS and nothing of it"), 0o600))
	h.talk("broken", "m", broken)
	if w := h.ask("ann", "/console/media/broken-1/user"); w.Code != http.StatusInternalServerError {
		t.Errorf("a broken file: %d", w.Code)
	}
	turn, _, err := h.talks.Turn(t.Context(), "never-1")
	h.must(err)
	for age, want := range map[int]string{0: "当时没有开启录音。", 8: "录音保留 7 天，而且只有开启录音后才会保存。"} {
		turn.At = time.Now().AddDate(0, 0, -age)
		if zh := h.talks.NoSound(&turn, text.Chinese); zh != "没有这一轮（"+turn.At.UTC().Format(time.DateOnly)+"）的录音："+want {
			t.Error(zh)
		}
	}
}

// TestExport: a talk comes as JSON, as Markdown in both languages and with its sound, a turn as a scene; to who may have it, and
// the audit has it.
func TestExport(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.device("m", "ann")
	h.talk("c", "m", h.tone("c-1", "user", 16000, 300*time.Millisecond))
	const path = "/console/conversations/c/export/"
	w := h.ask("ann", path+"json")
	var d Document
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || w.Code != 200 || d.Format != documentFormat || d.Agent != "anna" || len(d.Turns) != 1 {
		t.Fatalf("%d %v: %s", w.Code, err, w.Body)
	}
	if o := d.Turns[0]; o.Wait["e2e"] != 500 || o.Wait["eou"]+o.Wait["asr"]+o.Wait["ttfs"]+o.Wait["ttfb"]+o.Wait["added"] != 500 || len(o.Messages) != 4 || len(o.Calls) != 1 ||
		o.Heard != "现在<b>几点 *了*" || o.CostMicros != 42 || len(o.Spans.Attempts) != 2 || fmt.Sprint(o.Sound, o.Services) != "[user] [ears brain]" {
		t.Errorf("%+v", o)
	}
	if got := w.Header().Get("Content-Disposition"); got != `attachment; filename="talk-20261122-090000.json"` {
		t.Error(got)
	}
	if md := h.ask("ann", path+"md").Body.String(); !strings.HasPrefix(md, "# Talk with Kitchen\\*, 2026-11-22 09:00\n") || !strings.Contains(md, "**User, 09:00:00:** 现在&lt;b>几点 \\*了\\*") ||
		!strings.Contains(md, "called `` time.now `` with `` {\"zone\":\"a'b\"} ``") || !strings.Contains(md, "*waited 500 ms; ears, brain*") {
		t.Error(md)
	}
	if md := h.ask("ann", path+"md?lang=zh").Body.String(); !strings.HasPrefix(md, "# 与Kitchen\\*的对话，2026-11-22 09:00\n") || !strings.Contains(md, "**用户 09:00:00：**") {
		t.Error(md)
	}
	packed := h.ask("olga", path+"zip").Body.Bytes()
	z, err := zip.NewReader(bytes.NewReader(packed), int64(len(packed)))
	h.must(err)
	names := map[string]bool{}
	for _, f := range z.File {
		names[f.Name] = true
		r, err := f.Open()
		h.must(err)
		_, err = io.Copy(io.Discard, r)
		h.must(err)
	}
	if len(names) != 3 || !names["talk.json"] || !names["talk.md"] || !names["001-user.opus"] {
		t.Errorf("%v", names)
	}
	scene := txtar.Parse(h.ask("ann", "/console/turns/c-1/fixture").Body.Bytes())
	parts := map[string]string{}
	for _, f := range scene.Files {
		parts[f.Name] = string(f.Data)
	}
	if parts["asr"] != "@60ms 现在<b>几点 *了*\n" || parts["llm"] != "delay 120ms\ncall time_now {}\nend\ntext 九点。\nend\n" || parts["tools"] != "time.now query 30ms 09:00\n" ||
		!strings.HasPrefix(parts["script"], "listen auto\n") || parts["setup"] != "language zh\n" {
		t.Errorf("%q", parts)
	}
	for who, want := range map[string]int{"ben": 403, "vic": 403, "": 401} {
		for _, path := range []string{path + "json", "/console/turns/c-1/fixture"} {
			if w := h.ask(who, path); w.Code != want {
				t.Errorf("%q %s: %d", who, path, w.Code)
			}
		}
	}
	if w := h.ask("ann", path+"exe"); w.Code != 404 || !strings.Contains(w.Body.String(), "talks/form") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if got := len(h.audit("talk.export")) + len(h.audit("turn.export")); got != 5 {
		t.Errorf("%d exports in the audit", got)
	}
}

// TestPeople: members have their own talks, owners all, viewers none; what is deleted is gone with its sound, and in the audit.
func TestPeople(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.device("m", "ann")
	h.device("n", "ben")
	h.talk("c", "m")
	h.talk("d", "n")
	ctx := t.Context()
	for who, want := range map[string]string{"ann": "c", "ben": "d", "olga": "dc"} {
		role := account.Member
		if who == "olga" {
			role = account.Owner
		}
		l, err := h.talks.List(ctx, account.Person{ID: h.ids[who], Role: role}, store.TalkFilter{Owner: map[string]string{"ann": h.ids["ben"]}[who]}, store.Page{})
		got := ""
		for i := range l.Talks {
			got += l.Talks[i].ID
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", who, got, err)
		}
		if days := h.talks.Days(l.Talks); len(days) != 1 || len(days[0].Talks) != len(want) || days[0].Date.Day() != 22 {
			t.Errorf("%+v", days)
		}
	}
	for _, p := range []account.Person{{ID: h.ids["vic"], Role: account.Viewer}, {}, {Role: account.Member}} {
		if l, err := h.talks.List(ctx, p, store.TalkFilter{}, store.Page{}); err == nil || len(l.Talks) > 0 {
			t.Errorf("%+v sees %+v", p, l)
		}
	}
	h.must(h.talks.Rate(ctx, "c-1", 7))
	h.must(h.talks.Keep(ctx, "c", true))
	talk, err := h.talks.Talk(ctx, "c", 0)
	if err != nil || !talk.Kept || talk.More || len(talk.Turns) != 1 || talk.Turns[0].Rating != 1 || len(talk.Turns[0].Messages) != 4 || len(talk.Turns[0].Calls) != 1 {
		t.Errorf("%+v, %v", talk, err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	h.must(h.talks.DeleteTurn(r, "c-1"))
	h.must(h.talks.DeleteTalk(r, "d"))
	if err := h.talks.DeleteTalk(r, "d"); err == nil {
		t.Error("it was deleted twice")
	}
	if got := strings.Join(h.sound.removed, ", "); got != "m c c-1, n d " {
		t.Errorf("%q", got)
	}
	if l, err := h.db.Talks.List(ctx, store.TalkFilter{}, store.Page{}); err != nil || len(l.Talks) > 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if got := append(h.audit("turn.delete"), h.audit("talk.delete")...); len(got) != 3 {
		t.Errorf("%q", got)
	}
}

// TestPrograms: programs search, read and delete talks with the same rights.
func TestPrograms(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.device("m", "ann")
	h.device("n", "ben")
	h.talk("c", "m")
	h.talk("d", "n")
	for path, want := range map[string]string{
		"ann /api/v1/talks":                                                       `"id":"c","device":"m","device_name":"Kitchen*","agent":"anna"`,
		"ann /api/v1/talks?text=" + "nothing":                                     `{"talks":[]}`,
		"ann /api/v1/talks?device=n":                                              `{"talks":[]}`,
		"olga /api/v1/talks?limit=1":                                              `"before":"1795338000000-d"`,
		"olga /api/v1/talks?limit=1&before=1795338000000-d":                       `"id":"c"`,
		"olga /api/v1/talks?text=%E5%87%A0%E7%82%B9&slower=400&tool=time.now":     `"slowest_ms":500`,
		"ann /api/v1/talks?slower=soon":                                           "slower",
		"ann /api/v1/talks?limit=1000000":                                         "limit",
		"ann /api/v1/talks?failed=maybe":                                          "failed",
		"ann /api/v1/talks?before=yesterday":                                      "before",
		"ann /api/v1/talks?text=" + strings.Repeat("x", 10000):                    "text",
		"ann /api/v1/talks?text=%3Cscript%3E%27%3B+DROP+TABLE+turns%3B--&failed=": `{"talks":[]}`,
		"ann /api/v1/talks/c":                                                     `"heard":"现在`,
		"ann /api/v1/talks/c?after=1":                                             `"turns":null`,
		"ann /api/v1/talks/c?after=x":                                             "after",
		"ben /api/v1/talks/c":                                                     "account/forbidden",
		"vic /api/v1/talks":                                                       "account/forbidden",
		"ben DELETE /api/v1/talks/c":                                              "account/forbidden",
		"ann DELETE /api/v1/turns/nothing":                                        "account/no-talk",
	} {
		who, path, _ := strings.Cut(path, " ")
		if w := h.ask(who, path); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s %.80s: %d %s, want %s", who, path, w.Code, w.Body, want)
		}
	}
	for _, path := range []string{"DELETE /api/v1/turns/c-1", "DELETE /api/v1/talks/d"} {
		if w := h.ask("olga", path); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := h.ask("olga", "/api/v1/talks"); w.Body.String() != "{\"talks\":[]}\n" || len(h.sound.removed) != 2 {
		t.Errorf("%s %q", w.Body, h.sound.removed)
	}
}

// FuzzParseFilter: whatever an address has, it is a search or a field that is wrong, and a cursor comes back as it was.
func FuzzParseFilter(f *testing.F) {
	f.Add("text=a&slower=5&before=17-x")
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		_, p, err := ParseFilter(v)
		if err != nil || p.Before == (store.Cursor{}) {
			return
		}
		_, again, err := ParseFilter(url.Values{"before": {Cursor(p.Before)}})
		if err != nil || !again.Before.At.Equal(p.Before.At) || again.Before.ID != p.Before.ID {
			t.Errorf("%+v, %+v, %v", p.Before, again.Before, err)
		}
	})
}

// TestBin: what was deleted on a page is gone when the time to take it back is over, and not before; what was taken back stays.
func TestBin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, gone := &Bin{all: map[string]*waste{}}, []string{}
		put := func(id string) { b.put(id, func() { gone = append(gone, id) }) }
		put("a")
		put("b")
		time.Sleep(UndoTime - time.Second)
		if !b.Has("a") || len(gone) > 0 || !b.Undo("b") || b.Undo("b") || b.Has("b") {
			t.Errorf("%q are gone", gone)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !slices.Equal(gone, []string{"a"}) || b.Has("a") || b.Undo("a") {
			t.Errorf("%q are gone", gone)
		}
		put("c")
		b.Close()
		put("d")
		if !slices.Equal(gone, []string{"a", "c", "d"}) {
			t.Errorf("%q are gone at the end", gone)
		}
	})
}
