package app

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"xiaozhi/agent"
	"xiaozhi/internal/account"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/contact/watch"
	"xiaozhi/internal/wire"
	"xiaozhi/store"
)

// speaksUp has a device listen and send a second of sound.
func speaksUp(talk *watch.Talk) {
	talk.Post(wire.ListenStart{Mode: wire.Auto})
	talk.Hear()
	talk.Options(agent.Options{}).Meter(make([]int16, 16000))
}

// TestMicrophoneIsHeard: whose device it is hears on the doctor's page what its microphone sends, once they have asked for it: nobody else
// does but owners, of whom the audit tells; of a private talk nothing is there, and what is deleted is gone.
func TestMicrophoneIsHeard(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "auth: {pairing: open}")
	defer a.Close()
	people := enter(t, a, h, map[string]account.Role{"olga": account.Owner, "max": account.Member, "eve": account.Member, "vera": account.Viewer})
	olga, mine := people["olga"], people["max"]
	const id = "24:6f:28:aa:10:02"
	ota := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/", strings.NewReader(`{"board":{"type":"box"}}`))
	ota.Host, ota.RemoteAddr = "192.168.1.2:8000", "192.168.1.40:5000"
	ota.Header = http.Header{"Device-Id": {id}, "Client-Id": {"7f0c6a9e-1111-4222-8333-444455556666"}, "Content-Type": {"application/json"}}
	h.ServeHTTP(httptest.NewRecorder(), ota)
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	if err := a.accounts.Give(t.Context(), by, id, "max"); err != nil {
		t.Fatal(err)
	}
	olga.expect("/console/doctor/24:6f:28:aa:10:99", nil, 200, `class="card" aria-labelledby="h-microphone" hidden>`) // it has never called
	const page, sound = "/console/doctor/" + id, "/console/doctor/" + id + "/sound"
	a.seen.devices.Log.Arrives(contact.Arrival{Caller: contact.Caller{Device: id, From: "192.168.1.40", Known: true}})
	a.seen.devices.Log.Greets(contact.Greeting{Device: id})
	talk := watched(a, wire.Session{DeviceID: id})
	speaksUp(talk)
	mine.expect(page, nil, 200, "Nothing of it is kept, so there is nothing to hear. Keep the next 5 minutes")
	mine.expect(page+"?lang=zh", nil, 200, "保留接下来 5 分钟的声音")
	mine.expect(page+"?lang=en", nil, 200, "Hear what came")
	mine.expect(sound, nil, 404, "")
	mine.expect(page, map[string][]string{"do": {"listen"}}, 303, page+"#microphone")
	mine.expect(page, nil, 200, "waiting for sound")
	speaksUp(watched(a, wire.Session{DeviceID: id, Private: true}))
	mine.expect(sound, nil, 404, "")
	speaksUp(talk)
	mine.expect(page, nil, 200, `<audio controls preload="none" src="`+page+`/sound"`)
	for range 3 {
		mine.expect(sound, nil, 200, "WAVE")
		olga.expect(sound, nil, 200, "WAVE")
	}
	for _, name := range []string{"eve", "vera"} {
		people[name].expect(sound, nil, 403, "")
		people[name].expect(page, nil, 403, "")
		people[name].expect(page, map[string][]string{"do": {"listen"}}, 403, "")
	}
	r := httptest.NewRequest(http.MethodGet, sound, nil)
	r.Host, r.RemoteAddr = "127.0.0.1:8000", "127.0.0.1:9"
	r.Header.Set("Range", "bytes=0-3")
	for _, cookie := range mine.cookies {
		r.AddCookie(cookie)
	}
	part := httptest.NewRecorder()
	if h.ServeHTTP(part, r); part.Code != http.StatusPartialContent || part.Body.String() != "RIFF" || part.Header().Get("Content-Type") != "audio/wav" || !strings.Contains(part.Header().Get("Cache-Control"), "no-store") {
		t.Errorf("%d %q %v", part.Code, part.Body, part.Header())
	}
	mine.expect(page, map[string][]string{"do": {"unlisten"}}, 303, page+"#microphone")
	mine.expect(page, nil, 200, "Nothing of its microphone is kept now.")
	olga.expect(sound, nil, 404, "")
	acts, err := a.accounts.Audit(t.Context(), store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, act := range acts {
		if act.Object == id && strings.HasPrefix(act.Act, "device.listen") && act.OK {
			told = append(told, act.Act+" "+act.Who)
		}
	}
	if slices.Sort(told); !slices.Equal(told, []string{"device.listen olga", "device.listen-in max"}) {
		t.Errorf("the audit tells %q", told)
	}
	// What was asked for by whose it was is not there for whose it is now.
	a.seen.devices.Sound.Ask(id, "")
	speaksUp(talk)
	if err := a.book.Refuse(t.Context(), id, "olga"); err != nil {
		t.Fatal(err)
	}
	olga.expect(sound, nil, 404, "")
}

// TestMicrophoneOfRecorded: where the sound of turns is kept, what came before a voice was found can be heard without asking.
func TestMicrophoneOfRecorded(t *testing.T) {
	a, h := builtApp(t, t.TempDir(), "recording: {sound: user}")
	defer a.Close()
	olga := enter(t, a, h, map[string]account.Role{"olga": account.Owner})["olga"]
	const id = "24:6f:28:aa:10:02"
	a.seen.devices.Log.Arrives(contact.Arrival{Caller: contact.Caller{Device: id, From: "192.168.1.40", Known: true}})
	olga.expect("/console/doctor/"+id, nil, 200, "The sound of its talks is kept.")
	speaksUp(watched(a, wire.Session{DeviceID: id, Unknown: true}))
	olga.expect("/console/doctor/"+id+"/sound", nil, 404, "")
	talk := watched(a, wire.Session{DeviceID: id})
	speaksUp(talk)
	olga.expect("/console/doctor/"+id+"/sound", nil, 200, "WAVE")
	a.seen.devices.Sound.Drop(id)
	o := talk.Options(agent.Options{})
	o.Report(agent.Report{Stage: agent.StageVoice})
	o.Meter(make([]int16, 16000))
	olga.expect("/console/doctor/"+id+"/sound", nil, 404, "")
}
