package app

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/audio"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/recording"
	"xiaozhi/internal/scene"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// TestTrials: a kept turn is answered again by an agent that is not saved, with the device's tools but without calling one, and
// neither the device nor what is kept of it is touched; the prompt is shown as a turn has it.
func TestTrials(t *testing.T) {
	call := func(id string) providers.ToolCall {
		return providers.ToolCall{ID: id, Name: "set_reminder", Arguments: `{"time":"every day at 7 am","text":"take the pills"}`}
	}
	s := script{data: t.TempDir(), llm: []providertest.Step{
		providertest.Call(call("c1")), providertest.Call(call("c2")), providertest.Say("Aye, I shall."),
	}}
	s.replace = func(h *harness, o *agent.Options) {
		o.Features = features(h.app.reminders(h.t.Context(), h.app.stored), h.app.outside.letters, nil, h.app.outside.known, quietSwitch{h.app})
		h.app.cfg.Providers = map[string]config.Provider{"voice": {Type: "local"}}
	}
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.dial(ctx, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		types(ctx, t, d, "remind me of the pills")
		time.Sleep(time.Second)
		if err := h.app.stored.Log.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		turns, err := h.app.stored.Turns.List(ctx, kitchen, store.Page{})
		if err != nil || len(turns) != 1 {
			t.Fatal(turns, err)
		}
		routes, err := h.app.routes()
		if err != nil {
			t.Fatal(err)
		}
		h.app.web.guard.SetAdmin("0123456789abcdef")
		ask := func(method, path, body string, into any) int {
			t.Helper()
			status, answer := askAPI(routes, method, path, "0123456789abcdef", body)
			if err := json.Unmarshal([]byte(answer), into); err != nil {
				t.Fatalf("%s: %v", answer, err)
			}
			return status
		}
		var begun lab.Begun
		if status := ask(http.MethodPost, "/api/v1/turns/"+turns[0].ID+"/replay", `{"doc":{"prompt_text":"You are a pirate, {{assistant_name}}."}}`, &begun); status != http.StatusAccepted {
			t.Fatal(status)
		}
		time.Sleep(time.Minute)
		var run struct {
			lab.Snapshot
			Rows []lab.ReplayRow `json:"rows"`
		}
		ask(http.MethodGet, "/api/v1/runs/"+begun.Run, "", &run)
		if run.State != lab.Done || len(run.Rows) != 1 {
			t.Fatalf("%+v", run)
		}
		got := run.Rows[0].Replay
		if !strings.Contains(got.Said, "every day at 7") || len(got.Calls) == 0 || run.Rows[0].Original.Agent != "default" || got.Agent != draft || got.Heard != "remind me of the pills" || got.Fault != "" || run.Rows[0].Original.Said != got.Said {
			t.Errorf("%+v", run.Rows[0])
		}
		if len(got.Calls) != 1 || got.Calls[0].From != lab.FromRecord || got.Sound == "" {
			t.Errorf("%+v", got)
		}
		asked := h.llm.Asked()
		last := asked[len(asked)-1].Request
		if !strings.HasPrefix(last.Messages[0].Content, "You are a pirate, ") || len(last.Tools) != len(asked[0].Request.Tools) {
			t.Errorf("%d tools, %q", len(last.Tools), last.Messages[0].Content)
		}
		if all, err := h.app.stored.Reminders.Find(ctx, store.ReminderQuery{}); err != nil || len(all) != 1 {
			t.Errorf("%d timers %v", len(all), err)
		}
		if turns, err := h.app.stored.Turns.List(ctx, kitchen, store.Page{}); err != nil || len(turns) != 1 {
			t.Error(turns, err)
		}
		var p lab.Prompt
		ask(http.MethodPost, "/api/v1/devices/"+kitchen+"/prompt", `{"words":"and now?"}`, &p)
		if len(p.Parts) != 5 || p.Parts[1].Items != len(last.Tools) || !strings.Contains(p.Parts[3].Text, "take the pills") || p.Parts[0].Text == "" {
			t.Errorf("%+v", p)
		}
		turn := "/api/v1/turns/" + turns[0].ID + "/replay"
		for _, w := range []struct {
			path, body string
			status     int
		}{
			{"/api/v1/turns/nothing/replay", `{}`, 404}, {turn, `{"agent":"nobody"}`, 404}, {turn, `[]`, 400}, {"/api/v1/devices/" + kitchen + "/compare", `{"last":0}`, 400},
			{"/api/v1/voices", `{"sentence":""}`, 400}, {"/api/v1/voices", `{"sentence":"x","voices":[{"service":"c","speed":9}]}`, 400}, {"/api/v1/devices/" + kitchen + "/prompt", `{"llm":"no-such-service"}`, 400},
		} {
			var refused struct{ Message string }
			if status := ask(http.MethodPost, w.path, w.body, &refused); status != w.status || !strings.Contains(refused.Message, " / ") {
				t.Errorf("%s %s: %d %+v", w.path, w.body, status, refused)
			}
		}
		var costs lab.Costs
		if ask(http.MethodGet, "/api/v1/costs", "", &costs); costs.All.Turns != 1 || costs.All.Unpriced != 1 || len(costs.Devices) != 1 {
			t.Errorf("%+v", costs)
		}
	})
}

// TestTrialServices: services are asked by their names in the settings, also those that are in no chain; a voice says the sentence,
// one that cannot be reached says why; kept sound is heard again.
func TestTrialServices(t *testing.T) {
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	section := func(url string) string { return "{type: openai, api_key: k, model: m, base_url: '" + url + "', " }
	data := t.TempDir()
	a, routes := builtApp(t, data, "asr: [c]\nllm: [c]\ntts: [c]\nconsole: {currency: EUR}\nproviders:\n  c: "+section(cloud.URL())+"price: {characters: 10, minute: 1}}\n  other: "+section(cloud.URL())+"}\n  dead: "+section("http://127.0.0.1:1/v1")+"}\n")
	defer a.Close()
	a.web.guard.SetAdmin("0123456789abcdef")
	now := time.Now()
	device := store.Identity{ID: kitchen, Address: kitchen, State: store.DeviceNew, FirstAt: now, SeenAt: now, SinceAt: now}
	if err := a.stored.Devices.Commit(t.Context(), store.DeviceChange{Save: []store.Identity{device}}); err != nil {
		t.Fatal(err)
	}
	turn := store.Turn{ID: store.NewID(), Seq: 1, At: now, Kind: "user", Heard: "good morning", Said: "Hi.", Cause: "done"}
	a.stored.Log.Put(&store.Entry{Conversation: store.Conversation{ID: store.NewID(), DeviceID: kitchen, BeganAt: now}, Turn: turn})
	if err := a.stored.Log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.recorders.turns.Put(recording.Turn{Device: kitchen, Talk: "talk", ID: turn.ID, At: now, User: tonePackets(t)})
	for kept := false; !kept; time.Sleep(10 * time.Millisecond) {
		all, err := a.stored.Recordings.Of(t.Context(), turn.ID)
		if kept = len(all) > 0; err != nil || time.Since(now) > 5*time.Second {
			t.Fatal(all, err)
		}
	}
	run := func(path, body string, rows any) lab.RunState {
		t.Helper()
		status, answer := askAPI(routes, http.MethodPost, path, "0123456789abcdef", body)
		var begun lab.Begun
		if err := json.Unmarshal([]byte(answer), &begun); err != nil || status != http.StatusAccepted {
			t.Fatal(status, answer, err)
		}
		_, answer = askAPI(routes, http.MethodGet, "/api/v1/runs/"+begun.Run+"/stream", "0123456789abcdef", "")
		lines := strings.Split(strings.TrimSpace(answer), "\n")
		var all []json.RawMessage
		var s struct {
			State lab.RunState
			Rows  []json.RawMessage
			Fault string
		}
		for _, line := range lines {
			s.Rows = nil
			if err := json.Unmarshal([]byte(line), &s); err != nil {
				t.Fatal(line, err)
			}
			all = append(all, s.Rows...)
		}
		joined, err := json.Marshal(all)
		if err == nil {
			err = json.Unmarshal(joined, rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.State != lab.Done {
			t.Log(answer)
		}
		return s.State
	}
	var voices []lab.VoiceRow
	if state := run("/api/v1/voices", `{"sentence":"Good morning.","voices":[{"service":"c","voice":"alloy","speed":1.5},{"service":"dead"},{"service":"nothing"}]}`, &voices); state != lab.Done || len(voices) != 3 {
		t.Fatal(state, voices)
	}
	if v := voices[0]; v.Fault != "" || v.First == 0 || v.Length == 0 || v.Cost != (lab.Cost{Micros: 130_000}) {
		t.Errorf("%+v", v)
	}
	status, wav := askAPI(routes, http.MethodGet, "/api/v1/sounds/"+voices[0].Sound, "0123456789abcdef", "")
	if status != http.StatusOK || !strings.HasPrefix(wav, "RIFF") {
		t.Error(status)
	}
	asked := cloud.Requests(openaitest.Speak)
	if len(asked) != 1 || asked[0].JSON()["speed"] != 1.5 || asked[0].JSON()["voice"] != "alloy" {
		t.Errorf("%d requests: %v", len(asked), asked[0].JSON())
	}
	var picked struct{ Rev int }
	status, answer := askAPI(routes, http.MethodPatch, "/api/v1/agents/default", "0123456789abcdef", string(voices[0].Patch))
	if err := json.Unmarshal([]byte(answer), &picked); err != nil || status != http.StatusOK || picked.Rev != 1 {
		t.Error(status, answer, err)
	}
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: "bea", Role: account.Member, Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	bea, err := a.accounts.NewToken(t.Context(), by, "bea", account.NewToken{Label: "x", Scopes: []account.Scope{account.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{ // what is somebody else's
		"POST /api/v1/turns/" + turn.ID + "/replay": 403, "POST /api/v1/devices/" + kitchen + "/compare": 403, "POST /api/v1/devices/" + kitchen + "/prompt": 403,
		"GET /api/v1/sounds/" + voices[0].Sound: 404, "POST /api/v1/turns/nothing/replay": 403,
	} {
		method, at, _ := strings.Cut(path, " ")
		if status, answer := askAPI(routes, method, at, bea, `{"last":1}`); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, answer, want)
		}
	}
	var hers, all lab.Costs
	for token, costs := range map[string]*lab.Costs{bea: &hers, "0123456789abcdef": &all} {
		if _, answer := askAPI(routes, http.MethodGet, "/api/v1/costs", token, ""); json.Unmarshal([]byte(answer), costs) != nil {
			t.Error(answer)
		}
	}
	if hers.All.Turns != 0 || all.All.Turns != 1 || all.Currency != "EUR" {
		t.Errorf("%+v %+v", hers, all)
	}
	for _, v := range voices[1:] {
		if !strings.Contains(v.Fault, " / ") {
			t.Errorf("%+v", v)
		}
	}
	var replays []lab.ReplayRow
	if state := run("/api/v1/turns/"+turn.ID+"/replay", `{"asr":"other","llm":"other","mute":true}`, &replays); state != lab.Done || len(replays) != 1 {
		t.Fatal(state)
	}
	if got := replays[0].Replay; got.Heard != "hello" || got.Said == "" || got.ASR != "other" || got.LLM != "other" || got.TTS != "" || got.Cost.Missing != "other" || got.Fault != "" {
		t.Errorf("%+v", got)
	}
	if heard := cloud.Requests(openaitest.Transcribe); len(heard) != 1 {
		t.Errorf("%d utterances", len(heard))
	}
}

// tonePackets are half a second of a tone as a microphone sends it.
func tonePackets(t *testing.T) *audio.Packets {
	t.Helper()
	enc, err := audio.NewEncoder(audio.Recognition)
	if err != nil {
		t.Fatal(err)
	}
	var p audio.Packets
	buf := make([]byte, audio.MaxPacket)
	for range 8 {
		n, err := enc.Encode(scene.Voiced(16000, 60*time.Millisecond, 9000), buf)
		if err != nil {
			t.Fatal(err)
		}
		p.Add(buf[:n])
	}
	return &p
}
