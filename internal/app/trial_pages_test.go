package app

import (
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/openaitest"
	"xiaozhi/store"
)

// settle follows a page that waits for a trial, as a browser without script does, until it says done or has ended otherwise.
func (c *pageClient) settle(path, want string) string {
	c.t.Helper()
	path, _, _ = strings.Cut(path, "#")
	for end := time.Now().Add(20 * time.Second); ; {
		body := c.ask(path, nil).Body.String()
		if !strings.Contains(body, `http-equiv="refresh"`) {
			if !strings.Contains(body, want) {
				c.t.Fatalf("%s: no %q in\n%s", path, want, contentOf(body))
			}
			return body
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s: it goes on and on\n%s", path, body)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// contentOf is a page without its frame.
func contentOf(page string) string {
	_, page, _ = strings.Cut(page, "<main")
	return page
}

// TestTrialPages: a kept turn is answered by another model beside what it was; voices speak, and one is picked; two agents are
// compared over the kept turns; costs are summed up. Nobody tries what is somebody else's.
func TestTrialPages(t *testing.T) {
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	now, ctx, data := time.Now(), t.Context(), t.TempDir()
	before, err := store.Open(ctx, store.Options{Path: filepath.Join(data, "xiaozhi.db")})
	if err != nil {
		t.Fatal(err)
	}
	device := store.Identity{ID: kitchen, Address: kitchen, State: store.DevicePaired, Name: "Kitchen", FirstAt: now, SeenAt: now, SinceAt: now}
	if err := errors.Join(before.Devices.Commit(ctx, store.DeviceChange{Save: []store.Identity{device}}), before.Close()); err != nil {
		t.Fatal(err)
	}
	section := "{type: openai, api_key: k, model: m, base_url: '" + cloud.URL() + "'"
	a, h := builtApp(t, data, "asr: [c]\nllm: [c]\ntts: [c]\nconsole: {currency: EUR}\nproviders:\n  c: "+section+", price: {characters: 10, input: 1, output: 1, minute: 1}}\n  other: "+section+"}\n  dead: {type: openai, api_key: k, model: m, base_url: 'http://127.0.0.1:1/v1'}\n")
	defer a.Close()
	people := enter(t, a, h, map[string]account.Role{"ann": account.Owner, "bob": account.Member, "vera": account.Viewer})
	ann, bob := people["ann"], people["bob"]
	const hurt = `<img src=x onerror=alert(1)>{{.}}`
	for i, words := range []string{"good morning " + hurt, "and tomorrow?"} {
		turn := store.Turn{
			ID: "turn-" + string(rune('1'+i)), Seq: i + 1, At: now.Add(time.Duration(i) * time.Second), Kind: "user", Heard: words, Said: "Hi." + hurt, Cause: []string{"done", "barge-in"}[i],
			LLMName: "c", TTFS: 300 * time.Millisecond, TTFB: 200 * time.Millisecond, CostMicros: new(1500), TokensIn: 10, TokensOut: 5, Rating: 1,
		}
		a.stored.Log.Put(&store.Entry{Conversation: store.Conversation{ID: "talk", DeviceID: kitchen, BeganAt: now}, Turn: turn, Agent: "default"})
	}
	if err := a.stored.Log.Flush(ctx); err != nil {
		t.Fatal(err)
	}

	// A turn again.
	const turn = "/console/trials/turns/turn-1"
	ann.expect("/console/conversations/talk", nil, 200, `href="`+turn+`"`)
	ann.expect(turn, nil, 200, "&lt;img src=x")
	ann.expect(turn, url.Values{"agent": {"nobody"}}, 422, "There is no agent nobody")
	w := ann.ask(turn, url.Values{"llm": {"no-such"}})
	if at := w.Header().Get("Location"); w.Code != http.StatusSeeOther || !strings.HasPrefix(at, turn+"?run=") {
		t.Fatal(w.Code, at)
	}
	ann.settle(w.Header().Get("Location"), "Ended early")
	w = ann.ask(turn, url.Values{"llm": {"other"}, "agent": {"teacher"}, "long-prompt": {"Speak like a pirate, {{assistant_name}}."}, "mute": {"1"}})
	if w.Code != http.StatusSeeOther {
		t.Fatal(w.Code, w.Body)
	}
	body := ann.settle(w.Header().Get("Location"), "Side by side")
	for _, want := range []string{"– → other → –", "<td>teacher</td>", "Speak like a pirate", "? (other)", "500 ms", "Try it", "Hi.&lt;img"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, contentOf(body))
		}
	}
	if asked := cloud.Requests(openaitest.Chat); len(asked) == 0 || !strings.Contains(string(asked[len(asked)-1].Body), "Speak like a pirate, 小智.") {
		t.Error("the model was not sent the prompt that was typed")
	}
	ann.expect("/console/trials/turns/nothing", nil, 404, "")
	ann.expect(turn, url.Values{"voice": {strings.Repeat("v", 10001)}}, 422, `id="e-voice"`)
	ann.expect(turn+"?run=nothing", nil, 200, "Try it")

	// Voices side by side.
	const voices = "/console/trials/voices"
	ann.expect(voices, nil, 200, `value="c" selected`)
	ann.expect(voices, url.Values{"sentence": {""}, "service-0": {"c"}}, 422, "characters")
	ann.expect(voices, url.Values{"sentence": {"Hello."}}, 422, "voices")
	for field, typed := range map[string]string{"service-1": "gone", "voice-1": strings.Repeat("v", 10001), "speed-1": "fast"} { // the mistake stands at its field
		slots := url.Values{"sentence": {"Hello."}, "service-0": {"c"}, "service-1": {"c"}}
		slots.Set(field, typed)
		ann.expect(voices, slots, 422, `aria-describedby="e-`+field+`"`)
		ann.expect(voices, slots, 422, `id="e-`+field+`"`)
	}
	ann.expect(voices, url.Values{"sentence": {hurt}, "service-0": {hurt}, "speed-0": {"fast"}}, 422, "&lt;img src=x")
	w = ann.ask(voices, url.Values{"sentence": {"Hello."}, "service-0": {"c"}, "voice-0": {"alloy"}, "service-3": {"dead"}, "service-8": {"other"}, "voice-8": {"nova"}, "speed-8": {"1.2"}, "agent": {"default"}})
	at := w.Header().Get("Location")
	body = ann.settle(at, "first sound after")
	if n := strings.Count(body, "<audio "); n != 2 || !strings.Contains(body, `<p class="mistake">`) || regexp.MustCompile(`\p{Han}`).MatchString(contentOf(body)) || !strings.Contains(body, "nova") {
		t.Errorf("%d sounds in\n%s", n, contentOf(body))
	}
	sound := regexp.MustCompile(`/api/v1/sounds/[^"]+`).FindString(body)
	if w := ann.ask(sound, nil); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "RIFF") {
		t.Errorf("%d", w.Code)
	}
	bob.expect(sound, nil, 404, "")
	if body := bob.ask(strings.TrimSuffix(at, "#run"), nil).Body.String(); strings.Contains(body, "<audio ") {
		t.Error("the voices of somebody else's trial are shown")
	}
	pick := url.Values{"service": {"other"}, "voice": {"nova"}, "agent": {"default"}, "run": {"x"}}
	bob.expect(voices+"/pick", pick, 422, "")
	ann.expect(voices+"/pick", pick, 303, voices)
	if doc, _ := a.crew.roster.Get("default"); doc.Doc != `{"tts":["other"],"voice":"nova"}` {
		t.Errorf("%+v", doc)
	}

	// Two agents.
	compare := "/console/trials/compare"
	ann.expect(compare, nil, 200, "Kitchen")
	bob.expect(compare, nil, 200, "No device of yours has talked yet")
	compare += "/" + url.PathEscape(kitchen)
	sides := url.Values{"last": {"5"}, "a-agent": {"storyteller"}, "b-agent": {"teacher"}, "b-llm": {"other"}, "do": {"estimate"}}
	ann.expect(compare, url.Values{"last": {"5"}}, 422, "Both sides are the same")
	ann.expect(compare, url.Values{"last": {"x"}, "b-llm": {"other"}}, 422, "Choose 1 to 50 turns")
	ann.expect(compare, sides, 200, "2 turns; that will cost about")
	bob.expect(compare, sides, 403, "")
	sides.Set("do", "start")
	body = ann.settle(ann.ask(compare, sides).Header().Get("Location"), "Turn by turn")
	for _, want := range []string{"storyteller", "teacher · other", "good: 2, not good: 0", "without a price: 2", `<th scope="row">Interrupted by the user</th><td>1</td>`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, contentOf(body))
		}
	}
	if strings.Contains(body, "<img src=x") {
		t.Error("words are not treated as text")
	}
	if turns, err := a.stored.Turns.List(ctx, kitchen, store.Page{}); err != nil || len(turns) != 2 {
		t.Errorf("%d turns are kept after the trials, %v", len(turns), err)
	}

	// Costs.
	ann.expect("/console/costs", nil, 200, "0.00300 EUR")
	ann.expect("/console/costs?device="+url.QueryEscape(kitchen)+"&lang=zh", nil, 200, "按设备")
	delete(ann.cookies, "lang")
	ann.expect("/console/costs?from=2001-01-01&to=2001-01-02", nil, 200, "No turn is kept in this time")
	ann.expect("/console/costs?from=soon", nil, 400, "These are no days")
	ann.expect("/console/costs?from=2001-01-01", nil, 400, `role="alert"`)
	bob.expect("/console/costs", nil, 200, "No turn is kept in this time")
	for _, path := range []string{"/console/costs", voices, "/console/trials/compare", turn} {
		people["vera"].expect(path, nil, 403, "")
	}
	bob.expect(turn, nil, 403, "")
	bob.expect("/console/trials/cancel/nothing", url.Values{}, 404, "")
}
