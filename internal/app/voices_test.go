package app

import (
	"bytes"
	"context"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/audio/file"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/voiceprintapi"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
	"xiaozhi/voices"
)

// wavOf is a file of somebody with a voice of a pitch who speaks.
func wavOf(t *testing.T, pitch float64, d time.Duration) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := file.WriteWAV(&b, providertest.VoiceOf(pitch, d), 16000); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// upload sends a form with a file.
func (c *pageClient) upload(path string, form url.Values, content []byte) *httptest.ResponseRecorder {
	c.t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	for name := range form {
		_ = m.WriteField(name, form.Get(name)) // to memory
	}
	part, _ := m.CreateFormFile("file", "voice.wav")
	_, _ = part.Write(content)
	_ = m.Close()
	r := httptest.NewRequest(http.MethodPost, path, &body)
	r.Header.Set("Content-Type", m.FormDataContentType())
	r.Header.Set("Origin", "http://127.0.0.1:8000")
	r.Host, r.RemoteAddr = "127.0.0.1:8000", "127.0.0.1:9"
	for _, cookie := range c.cookies {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	for _, cookie := range w.Result().Cookies() {
		c.cookies[cookie.Name] = cookie
	}
	return w
}

// TestVoicesOfAHousehold: owners add people, enrol and try voices on the page and by the API, at a service on a real socket; a person who is deleted
// is forgotten by the service too, at once or, if it refuses, later; members and viewers see none of it.
func TestVoicesOfAHousehold(t *testing.T) {
	fake := voiceprintapi.Start(t)
	settings := "llm: [rules]\nasr: [ears]\ntts: [mouth]\nvoice: {identify: on}\nvoiceprint: [home]\nproviders: {ears: {type: whisper-cpp}, mouth: {type: piper}, home: {type: voiceprint-api, base_url: '" + fake.URL() + "', api_key: " + servicetest.Key + ", proxy: none}}\n"
	data := t.TempDir()
	a, h := builtApp(t, data, settings)
	defer a.Close()
	people := enter(t, a, h, map[string]account.Role{"olga": account.Owner, "max": account.Member, "vic": account.Viewer})
	olga := people["olga"]
	const page, admin = "/console/voices", "0123456789abcdef"
	for _, name := range []string{"max", "vic"} {
		people[name].expect(page, nil, 403, "")
		people[name].expect(page, url.Values{"do": {"add"}, "name": {"Eve"}}, 403, "")
	}
	olga.expect(page, nil, 200, "Nobody is known by the voice yet")
	olga.expect(page, url.Values{"do": {"add"}, "name": {"Anna O'Neil"}}, 303, page)
	olga.expect(page, nil, 200, "Anna O&#39;Neil")
	anna, _ := a.outside.voices.Named("anna o'neil")
	olga.expect(page, url.Values{"do": {"rename"}, "id": {anna.ID}, "name": {"Anna"}}, 303, page)
	olga.expect(page, url.Values{"do": {"add"}, "name": {"ANNA"}}, 422, "Somebody has this name already")
	olga.expect(page, url.Values{"do": {"add"}, "name": {strings.Repeat("x", 65)}}, 422, "1 to 64 letters")
	olga.expect(page, url.Values{"do": {"add"}, "name": {"<script>"}}, 422, "1 to 64 letters")
	of := url.Values{"do": {"enrol"}, "id": {anna.ID}}
	for what, c := range map[string]struct {
		content []byte
		want    string
	}{
		"no sound": {[]byte("hello"), "no sound that can be read"},
		"nothing":  {nil, "no sound that can be read"},
		"short":    {wavOf(t, 200, time.Second), "Too little is said"},
		"long":     {wavOf(t, 200, 61*time.Second), "too long"},
		"a head":   {wavOf(t, 200, 3*time.Second)[:44], "Too little is said"},
		"huge":     {make([]byte, 9<<20), "too long"},
	} {
		if w := olga.upload(page, of, c.content); !strings.Contains(w.Body.String(), c.want) || w.Code != 422 {
			t.Errorf("%s: %d %.900s", what, w.Code, w.Body)
		}
	}
	if len(fake.Kept()) != 0 {
		t.Errorf("the service keeps %q", fake.Kept())
	}
	if w := olga.upload(page, of, wavOf(t, 200, 3*time.Second)); w.Code != 303 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	olga.expect(page, nil, 200, "A voice of Anna was learned")
	if w := olga.upload(page, url.Values{"do": {"try"}}, wavOf(t, 200, 2*time.Second)); !strings.Contains(w.Body.String(), "This is Anna") {
		t.Errorf("%d %s", w.Code, w.Body)
	}

	a.web.guard.SetAdmin(admin)
	d := readDescription(t)
	program := func(method, path string, body []byte, status int) map[string]any {
		t.Helper()
		r := httptest.NewRequest(method, path, bytes.NewReader(body))
		r.Host = "127.0.0.1:8000"
		r.Header.Set("Authorization", "Bearer "+admin)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != status {
			t.Fatalf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, status)
		}
		return got
	}
	fits := func(name string, got map[string]any) {
		t.Helper()
		if err := d.valid(map[string]any{"$ref": definitions + name}, got); err != nil {
			t.Errorf("%v in %v", err, got)
		}
	}
	const all = "/api/v1/people"
	ben := program("POST", all, []byte(`{"name":"Ben"}`), 200)
	fits("VoicePerson", ben)
	at := all + "/" + ben["id"].(string)
	program("POST", all, []byte(`{"name":"Ben","role":"owner"}`), 400)
	program("POST", at+"/voices", wavOf(t, 200, 3*time.Second), 409) // Anna's
	program("POST", at+"/voices", []byte("RIFF"), 415)
	program("POST", all+"/x/voices", wavOf(t, 300, 3*time.Second), 404)
	made := program("POST", at+"/voices", wavOf(t, 300, 3*time.Second), 200)
	fits("Voiceprint", made)
	trial := program("POST", all+"/identify", wavOf(t, 300, 2*time.Second), 200)
	fits("VoiceTrial", trial)
	if trial["verdict"] != "known" || trial["name"] != "Ben" {
		t.Errorf("%v", trial)
	}
	if stranger := program("POST", all+"/identify", wavOf(t, 900, 2*time.Second), 200); stranger["verdict"] != "stranger" || stranger["name"] != nil {
		t.Errorf("%v", stranger)
	}
	list := program("GET", all, nil, 200)
	fits("VoicePeople", list)
	if got := list["people"].([]any); len(got) != 2 || list["engine"] != "home" {
		t.Errorf("%v", list)
	}
	fits("VoiceDeleted", program("DELETE", at+"/voices/"+made["id"].(string), nil, 200))
	if len(fake.Kept()) != 1 {
		t.Errorf("the service keeps %q", fake.Kept())
	}
	fake.Refuse(true)
	olga.expect(page, url.Values{"do": {"delete"}, "id": {anna.ID}}, 303, page)
	olga.expect(page, nil, 200, "asked again until it has")
	left := program("GET", all, nil, 200)
	fits("VoicePeople", left)
	if got := left["removals"].([]any); len(got) != 1 || len(left["people"].([]any)) != 1 {
		t.Errorf("%v", left)
	}
	program("DELETE", all+"/"+anna.ID, nil, 404)
	fake.Refuse(false)
	if r := a.outside.voices.Removals(); len(r) != 1 || r[0].Tries != 1 {
		t.Errorf("%+v", r)
	}
	acts, err := a.accounts.Audit(t.Context(), store.Page{Limit: 100})
	did := map[string]int{}
	for _, act := range acts {
		did[act.Act]++
	}
	if err != nil || did["person.add"] == 0 || did["person.delete"] != 2 || did["voice.enrol"] == 0 || did["voice.try"] == 0 {
		t.Errorf("%v, %v", did, err)
	}
}

// TestWhoIsSpeaking: a voice that is known is kept with its turn, what it wants remembered is of its person, who talks to an agent of their own, and to
// nobody else; strangers are kept as such. An engine that hangs delays no turn: then it is not known.
func TestWhoIsSpeaking(t *testing.T) {
	engine := &providertest.Voiceprint{}
	s := script{data: t.TempDir()}
	s.replace = func(h *harness, o *agent.Options) {
		h.asr.Script = []providertest.Hearing{
			{Text: "remember the key", Language: "en", Delay: 300 * time.Millisecond},
			{Text: "hello", Language: "en", Delay: 300 * time.Millisecond},
			{Text: "hello", Language: "en", Delay: 300 * time.Millisecond},
		}
		h.llm = remembering("{}")
		o.LLM = h.llm
		h.app.cfg.Voice.Identify = config.On
		h.app.cfg.Agents = map[string]config.Persona{"hers": {Prompt: "default", Text: "You talk to Anna.", People: []string{"anna"}}}
		var err error
		if h.app.outside.known, err = memoriesOf(h.t.Context(), h.app); err != nil {
			h.t.Fatal(err)
		}
		if err := openVoices(h.t.Context(), h.app); err != nil {
			h.t.Fatal(err)
		}
		o.Voices = tellsApart(h.app.outside.voices, h.app.cfg)
		o.Features = learnsVoices(h.t.Context(), h.app, features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, h.app.outside.known, quietSwitch{h.app}))
	}
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		h.app.cast.main.Store(&engines.Chains{Voiceprint: engine})
		book := h.app.outside.voices
		anna, err := book.Learn(ctx, "Anna", "olga", voices.File, "", [][]int16{providertest.VoiceOf(400, 3*time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true, Mode: devicetest.Auto})
		time.Sleep(time.Second)
		says := func(pitch float64) (took time.Duration) {
			t.Helper()
			if err := d.Say(ctx, providertest.VoiceOf(pitch, 2*time.Second)); err != nil {
				t.Fatal(err)
			}
			before := time.Now()
			if err := d.WaitState(ctx, devicetest.Speaking); err != nil {
				t.Fatal(err)
			}
			took = time.Since(before)
			if _, err := d.WaitReply(ctx); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			return took
		}
		says(400)
		if got := h.told(); !strings.HasPrefix(got, "You talk to Anna.") || !strings.HasSuffix(got, "现在说话的人从声音听出是“Anna”。") {
			t.Errorf("of a voice that is known the model is told %s", got)
		}
		facts, err := h.app.stored.Memories.List(ctx, kitchen, store.Page{Limit: 10})
		if err != nil || len(facts) != 1 || facts[0].Person != "Anna" {
			t.Errorf("%+v, %v", facts, err)
		}
		quick := says(1200)
		if got := h.told(); strings.Contains(got, "Anna") || !strings.Contains(got, "现在不知道是谁在说话") {
			t.Errorf("of a stranger the model is told %s", got)
		}
		engine.Takes = time.Hour
		if slow := says(400); slow != quick {
			t.Errorf("an engine that hangs delays the answer from %v to %v", quick, slow)
		}
		if got := h.told(); strings.Contains(got, "Anna") {
			t.Errorf("of a voice that is not known in time the model is told %s", got)
		}
		if err := h.app.stored.Log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		turns, err := h.app.stored.Turns.List(ctx, kitchen, store.Page{Limit: 10})
		var who []string
		for _, turn := range turns {
			who = append(who, turn.Speaker)
			if sure := turn.SpeakerSure > 0; sure != (turn.Speaker == anna.ID) {
				t.Errorf("%q with %d %%", turn.Speaker, turn.SpeakerSure)
			}
		}
		if err != nil || !slices.Equal(who, []string{"", store.StrangerSpoke, anna.ID}) {
			t.Errorf("%q, %v", who, err)
		}
		if _, err := forgetPerson(ctx, h.app, anna.ID, true); err != nil {
			t.Error(err)
		}
		if facts, err = h.app.stored.Memories.List(ctx, kitchen, store.Page{Limit: 10}); err != nil || len(facts) != 0 || book.On() {
			t.Errorf("after her deletion there are %+v, %v", facts, err)
		}
	})
}
