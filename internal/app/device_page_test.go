package app

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/wire"
	"xiaozhi/store"
)

// speaker is the id of the device whose page is tested.
const speaker = "24:6f:28:aa:10:02"

// calledApp is a program that speaker has asked where to connect.
func calledApp(t *testing.T, settings string) (*App, http.Handler) {
	a, h := builtApp(t, t.TempDir(), "auth: {pairing: open}\n"+settings)
	t.Cleanup(a.Close)
	ota := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", strings.NewReader(`{"board":{"type":"box"}}`))
	ota.Host, ota.RemoteAddr = "192.168.1.2:8000", "192.168.1.40:5000"
	ota.Header = http.Header{"Device-Id": {speaker}, "Client-Id": {"7f0c6a9e-1111-4222-8333-444455556666"}, "Content-Type": {"application/json"}}
	h.ServeHTTP(httptest.NewRecorder(), ota)
	return a, h
}

// TestDeviceGiven: owners of the server give a speaker to another person on its page, of which the audit tells. What was kept of its
// microphone for the last one is gone then, by whatever way it was given.
func TestDeviceGiven(t *testing.T) {
	a, h := calledApp(t, "")
	people := enter(t, a, h, map[string]account.Role{"olga": account.Owner, "max": account.Member, "eve": account.Member})
	olga, mine, eve := people["olga"], people["max"], people["eve"]
	const page, owner, sound = "/console/devices/" + speaker, "/console/devices/" + speaker + "/owner", "/console/doctor/" + speaker + "/sound"
	a.seen.devices.Log.Arrives(contact.Arrival{Caller: contact.Caller{Device: speaker, From: "192.168.1.40", Known: true}})
	a.seen.devices.Log.Greets(contact.Greeting{Device: speaker})
	talk := watched(a, wire.Session{DeviceID: speaker})
	heard := func() {
		olga.expect("/console/doctor/"+speaker, url.Values{"do": {"listen"}}, 303, "")
		speaksUp(talk)
	}
	olga.expect(page, nil, 200, "It belongs to nobody.")
	olga.expect(owner, url.Values{}, 422, "Choose who gets the speaker.")
	olga.expect(owner, url.Values{"owner": {"nobody-knows"}}, 422, `id="e-owner"`)
	olga.expect(owner, url.Values{"owner": {"max"}}, 303, page)
	olga.expect(page, nil, 200, "The speaker belongs to max now.")
	if body := olga.ask(page, nil).Body.String(); !strings.Contains(body, "It belongs to max.") || strings.Contains(body, `<option value="max"`) || !strings.Contains(body, `<option value="eve"`) {
		t.Errorf("the page offers what is not to be chosen:\n%s", body)
	}
	mine.expect(owner, url.Values{"owner": {"eve"}}, 403, "")
	if body := mine.ask(page, nil).Body.String(); strings.Contains(body, `name="owner"`) || strings.Contains(body, `value="eve"`) {
		t.Error("a member is offered to give it away")
	}
	heard()
	mine.expect(sound, nil, 200, "WAVE")
	olga.expect(owner, url.Values{"owner": {"max"}}, 303, page)
	mine.expect(sound, nil, 200, "WAVE") // it was theirs already
	olga.expect(owner, url.Values{"owner": {"eve"}}, 303, page)
	eve.expect(sound, nil, 404, "")
	mine.expect(page, nil, 403, "")
	mine.expect(sound, nil, 403, "")
	olga.expect(page+"?lang=zh", nil, 200, "目前属于 eve。")
	heard()
	r := httptest.NewRequest(http.MethodPost, "/api/v1/users/max/devices", strings.NewReader(`{"device":"`+speaker+`"}`))
	r.Host, r.RemoteAddr = "127.0.0.1:8000", "127.0.0.1:9"
	r.Header = http.Header{"Content-Type": {"application/json"}, "Origin": {"http://127.0.0.1:8000"}}
	for _, cookie := range olga.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	mine.expect(sound, nil, 404, "")
	heard()
	mine.expect(sound, nil, 200, "WAVE")
	if _, err := a.stored.Devices.Edit(t.Context(), speaker, func(d *store.Device) error { d.OwnerID = ""; return nil }); err != nil { // by a command beside the server
		t.Fatal(err)
	}
	olga.expect(sound, nil, 404, "")
	acts, err := a.accounts.Audit(t.Context(), store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, act := range acts {
		if act.Act == "device.give" && act.OK {
			told = append(told, act.Who+" "+act.Object)
		}
	}
	if want := []string{"olga " + speaker + " max", "olga " + speaker + " eve", "olga " + speaker + " max", "olga " + speaker + " max"}; !slices.Equal(told, want) {
		t.Errorf("the audit tells %q", told)
	}
}

// TestDeviceKept: owners of the server say on the page of a speaker for how many days it is kept. Mistakes stand at their fields, beside
// what was typed, and change nothing; an empty field is that of the settings, which the page names.
func TestDeviceKept(t *testing.T) {
	a, h := calledApp(t, "store: {keep_days: 45}\nrecording: {days: 12}")
	people := enter(t, a, h, map[string]account.Role{"olga": account.Owner, "max": account.Member})
	olga := people["olga"]
	const page, keep = "/console/devices/" + speaker, "/console/devices/" + speaker + "/keep"
	days := func(text, sound string) url.Values { return url.Values{"keep-text": {text}, "keep-sound": {sound}} }
	kept := func(want string) {
		t.Helper()
		d, err := a.stored.Devices.Get(t.Context(), speaker)
		if err != nil {
			t.Fatal(err)
		}
		say := func(n *int) string {
			if n == nil {
				return "-"
			}
			return strconv.Itoa(*n)
		}
		if got := say(d.KeepText) + " " + say(d.KeepSound); got != want {
			t.Errorf("kept for %s days, not %s", got, want)
		}
	}
	olga.expect(page, nil, 200, "Empty: 45 days, as set for the server.")
	olga.expect(page, nil, 200, "Empty: 12 days, as set for the server.")
	olga.expect(keep, days("30", "0"), 303, page)
	olga.expect(page, nil, 200, "How long it is kept is changed.")
	olga.expect(page, nil, 200, ` value="30"`)
	kept("30 0")
	for _, wrong := range []string{"-1", "a week", "36501", "1.5", "99999999999999999999"} {
		w := olga.ask(keep, days("", wrong))
		if body := w.Body.String(); w.Code != 422 || !strings.Contains(body, `id="e-keep-sound"`) || strings.Contains(body, `id="e-keep-text"`) ||
			!strings.Contains(body, `value="`+wrong+`"`) || strings.Contains(body, `value="30"`) {
			t.Errorf("%s: %d %s", wrong, w.Code, body)
		}
	}
	olga.expect(keep+"?lang=zh", days("x", ""), 422, "请输入 0（一直保留）到 36500 之间的整数，或者留空。")
	kept("30 0")
	people["max"].expect(keep, days("1", "1"), 403, "")
	kept("30 0")
	olga.expect(keep, days("", "7"), 303, page)
	kept("- 7")
}

// TestDeviceDay: the page of a speaker draws its turns of the last 24 hours, by the clock of the server, and lists them; turns of others
// and older ones are not among them. Without any it says so.
func TestDeviceDay(t *testing.T) {
	a, h := calledApp(t, "server: {timezone: Asia/Kolkata}")
	olga := enter(t, a, h, map[string]account.Role{"olga": account.Owner})["olga"]
	const page = "/console/devices/" + speaker
	olga.expect(page, nil, 200, "No turns in the last 24 hours.")
	now := time.Now()
	hours := now.Add(-3 * time.Hour)
	talk := store.NewID()
	for i, turn := range []store.Turn{{At: now}, {At: hours, Fault: "llm"}, {At: hours}, {At: now.Add(-25 * time.Hour)}} {
		turn.ID, turn.ConversationID, turn.DeviceID, turn.Seq, turn.Kind = store.NewID(), talk, speaker, i+1, "user"
		a.stored.Log.Put(&store.Entry{Conversation: store.Conversation{ID: talk, DeviceID: speaker, BeganAt: now}, Turn: turn})
	}
	for range 200 {
		if turns, err := a.stored.Turns.List(t.Context(), speaker, store.Page{}); err == nil && len(turns) == 4 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	olga.expect(page, nil, 200, "Turns: 3, failed: 1.")
	body := olga.ask(page, nil).Body.String()
	kolkata := time.FixedZone("", 5*3600+1800)
	row := `<tr><th scope="row">` + hours.In(kolkata).Format("15") + `:00</th><td class="n">2</td><td class="n">1</td></tr>`
	if !strings.Contains(body, `role="img" aria-label="Turns: 3, failed: 1."`) || strings.Count(body, `<tr><th scope="row">`) != 2 || !strings.Contains(body, row) || !strings.Contains(body, "UTC&#43;05:30") || strings.Count(body, `<rect class="bad"`) != 1 {
		t.Errorf("not %s:\n%s", row, body)
	}
	olga.expect(page+"?lang=zh", nil, 200, "共 3 轮对话，其中 1 轮失败。")
}
