package lab

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/think"
	"xiaozhi/audio/file"
	"xiaozhi/internal/config"
	"xiaozhi/internal/scene"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// bench is a fake of the running program.
type bench struct {
	model  *providertest.LLM
	voices map[string]providers.TTS
	texts  *prompts.Set
	turns  []store.Turn
	rows   map[string][]store.Message
	sound  []int16
}

func newBench(t *testing.T) *bench {
	t.Helper()
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	body := func(role, text string) store.Message { return store.Message{Role: role, Body: text} }
	return &bench{
		texts: texts, voices: map[string]providers.TTS{}, model: &providertest.LLM{Label: "cloud", Script: []providertest.Step{providertest.Say("It is ", "warm. ", "Go out.").After(100 * time.Millisecond)}},
		turns: []store.Turn{{ID: "t2", ConversationID: "c", DeviceID: "d", Seq: 2, Kind: "user", Heard: "is it warm", AgentID: "1", Said: "23 degrees.", Cause: "done", LLMName: "old", TokensIn: 1000, TokensOut: 100, EOU: 50 * time.Millisecond, ASR: 350 * time.Millisecond, TTFS: 200 * time.Millisecond, TTFB: 300 * time.Millisecond, E2E: 900 * time.Millisecond, Rating: 1},
			{ID: "s", DeviceID: "d", Kind: "server", Said: "Ding.", Cause: "done"}, {ID: "t1", ConversationID: "c", DeviceID: "d", Seq: 1, Kind: "typed", Heard: "hello", AgentID: "1", Said: "Hi…", Cause: "voice", TTFS: 100 * time.Millisecond, TTFB: 150 * time.Millisecond, E2E: 700 * time.Millisecond}},
		rows: map[string][]store.Message{
			"t2": {
				body("user", `"is it warm"`), body("assistant", `{"calls":[{"id":"1","name":"temperature","arguments":"{\"city\": \"Paris\"}"}]}`), body("tool", `{"text":"23","call_id":"1"}`),
				body("assistant", `"23 degrees."`),
			},
			"t1": {body("user", `"hello"`), body("assistant", `"Hi…"`)},
		},
	}
}

func (b *bench) Cast(_ context.Context, _ string, s Setup) (Cast, error) {
	if s.LLM == "none" {
		return Cast{}, Refuse(Invalid, "lab/no-answer")
	}
	llm, err := chain.NewLLM([]providers.LLM{b.model}, chain.Options{})
	if err != nil {
		return Cast{}, err
	}
	voice := &scene.TTS{Label: "speaker", Delay: 200 * time.Millisecond, Sound: func(string) []providers.Sound {
		return []providers.Sound{{Rate: 16000, PCM: scene.Voiced(16000, time.Second, 900)}}
	}}
	tts, err := chain.NewTTS([]providers.TTS{voice}, chain.Options{})
	asr, err2 := chain.NewASR([]providers.ASR{&providertest.ASR{Script: []providertest.Hearing{{Delay: 300 * time.Millisecond, Text: "is it warm in Paris"}}}}, chain.Options{})
	return Cast{
		Agent: s.Agent, LLM: llm, TTS: tts, ASR: asr, Language: "en", Think: think.Options{Prompts: b.texts, Zone: time.UTC, Name: "Robo"},
		Turn: think.Turn{Role: prompts.Default, Text: s.Prompt}, Tools: []providers.ToolSpec{{Name: "temperature", Description: "of a city", Parameters: json.RawMessage(`{}`)}},
	}, errors.Join(err, err2)
}

func (b *bench) Voice(_ context.Context, name string, _ float64) (providers.TTS, func(), error) {
	if v := b.voices[name]; v != nil {
		return v, func() {}, nil
	}
	return nil, nil, Refuse(Missing, "agents/none", name)
}
func (b *bench) Count(s string) int { return len(s) }
func (b *bench) Budget() int        { return 6000 }

func (b *bench) Get(_ context.Context, id string) (store.Turn, []store.Message, []store.Call, error) {
	for _, t := range b.turns {
		if t.ID == id {
			return t, b.rows[id], []store.Call{{Fault: map[string]string{"t1": "x"}[id]}}, nil
		}
	}
	return store.Turn{}, nil, nil, store.ErrNotFound
}

func (b *bench) Before(_ context.Context, turn store.Turn, _ int) (all []store.Message, err error) {
	for _, t := range b.turns {
		if t.Seq > 0 && t.Seq < turn.Seq {
			all = append(b.rows[t.ID], all...)
		}
	}
	return all, nil
}

func (b *bench) List(context.Context, string, store.Page) ([]store.Turn, error) { return b.turns, nil }
func (b *bench) Costs(context.Context, store.CostQuery) ([]store.CostRow, error) {
	return []store.CostRow{{DeviceID: "d", AgentID: "1", Day: 20_000, Turns: 3, Unpriced: 2, CostMicros: 40}, {DeviceID: "e", AgentID: "2", Day: 20_001, Turns: 1, CostMicros: 2}}, nil
}

func (b *bench) Spans(_ context.Context, _ store.CostQuery, _ int, each func(string)) error {
	each(`{"attempts":[{"op":"think","provider":"cloud","cost":0.00004,"in":10},{"op":"speak","provider":"free","chars":7},{"op":"speak","provider":"dear","chars":7}]}`)
	each(`not JSON`)
	return nil
}

// readRow reads rows as the program keeps them.
func readRow(row store.Message) (m providers.Message, err error) {
	m.Role = providers.Role(row.Role)
	if json.Unmarshal([]byte(row.Body), &m.Content) == nil {
		return m, nil
	}
	var b struct {
		Text   string `json:"text"`
		CallID string `json:"call_id"`
		Calls  []struct{ ID, Name, Arguments string }
	}
	err = json.Unmarshal([]byte(row.Body), &b)
	m.Content, m.ToolCallID = b.Text, b.CallID
	for _, c := range b.Calls {
		m.ToolCalls = append(m.ToolCalls, providers.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return m, err
}

// lab runs f with a lab over a bench in fake time.
func (b *bench) lab(t *testing.T, f func(t *testing.T, l *Lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := New(t.Context(), Options{
			Stage: b, Turns: b, Read: readRow, Currency: func() string { return "€" },
			Sound:  func(context.Context, string) ([]int16, error) { return b.sound, nil },
			Agents: func(context.Context) (map[string]string, error) { return map[string]string{"1": "pirate"}, nil },
			Prices: func(name string) (config.Price, bool) {
				return map[string]config.Price{"cloud": {Input: 2, Output: 8}}[name], name == "cloud" || name == "free"
			},
		})
		defer l.Close()
		f(t, l)
	})
}

// over waits for the end of a run.
func over(t *testing.T, r *Run, err error) Snapshot {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for {
		s, changed := r.Snapshot(0)
		if s.State != Running {
			return s
		}
		<-changed
	}
}

// TestReplay: a kept turn is answered again, beside what it was: tools are answered from the record, and what is not in it is
// marked.
func TestReplay(t *testing.T) {
	b := newBench(t)
	call := func(id, city string) providers.ToolCall {
		return providers.ToolCall{ID: id, Name: "temperature", Arguments: `{"city":"` + city + `"}`}
	}
	usage := providertest.Part{Delta: providers.Delta{Text: "It is warm. Go out.", Usage: providers.Usage{Prompt: 1000, Completion: 10}}}
	calls := providertest.Call(call("a", "Paris"), call("b", "Rome"), providers.ToolCall{ID: "c", Name: "lamp_on"}).After(50 * time.Millisecond)
	b.model.Script = []providertest.Step{append(calls, providertest.Part{Delta: providers.Delta{Usage: providers.Usage{Prompt: 500}}}), {usage}}
	b.sound = scene.Voiced(16000, time.Second, 9000)
	b.lab(t, func(t *testing.T, l *Lab) {
		k, err := l.Kept(t.Context(), "t2")
		if err != nil {
			t.Fatal(err)
		}
		run, err := l.Replay("anna", k, ReplayOrder{Setup: Setup{ASR: "ears"}})
		if _, err := l.Replay("anna", k, ReplayOrder{}); err == nil {
			t.Error("two at a time")
		}
		s := over(t, run, err)
		if s.State != Done || len(s.Rows) != 1 {
			t.Fatalf("%+v", s)
		}
		row, _ := s.Rows[0].(ReplayRow)
		got, was := row.Replay, row.Original
		if was.Agent != "pirate" || was.Said != "23 degrees." || was.Sums.Wait != 900 || was.Sums.Work != 900-50 || was.Cost.Missing != "old" || len(was.Calls) != 1 || was.Calls[0].Result != "23" {
			t.Errorf("original %+v", was)
		}
		if got.Heard != "is it warm in Paris" || got.Said != "It is warm. Go out." || got.LLM != "cloud" || got.TTS != "speaker" || got.Fault != "" {
			t.Errorf("replay %+v", got)
		}
		want := Sums{ASR: 300, TTFT: 50, TTFS: 150, TTFB: 200, Work: 650}
		want.All = got.Sums.All
		if got.Sums != want {
			t.Errorf("times %+v, want %+v", got.Sums, want)
		}
		if got.Cost.Micros != 3080 || !strings.Contains(got.Cost.Missing, "speaker") || strings.Contains(got.Cost.Missing, "cloud") {
			t.Errorf("cost %+v", got.Cost)
		}
		var from []From
		for _, c := range got.Calls {
			from = append(from, c.From)
		}
		if len(from) != 3 || from[0] != FromRecord || from[1] != FromOther || from[2] != FromNone || !strings.Contains(got.Calls[2].Result, "not called") {
			t.Errorf("calls %+v", got.Calls)
		}
		asked := b.model.Asked()[0].Request.Messages
		if len(asked) != 4 || asked[1].Content != "hello" || asked[3].Content != "is it warm in Paris" {
			t.Errorf("the model was shown %+v", asked)
		}
		wav, err := l.Sound("anna", got.Sound)
		if pcm, _, e := file.ReadWAV(strings.NewReader(string(wav))); err != nil || e != nil || len(pcm) < 16000 {
			t.Error(len(pcm), err, e)
		}
		if _, err := l.Sound("bob", got.Sound); err == nil {
			t.Error("somebody else hears it")
		}
	})
}

// TestReplayRefused: what cannot be tried says why.
func TestReplayRefused(t *testing.T) {
	b := newBench(t)
	b.lab(t, func(t *testing.T, l *Lab) {
		if _, err := l.Kept(t.Context(), "s"); err == nil {
			t.Error("there is nothing to answer")
		}
		k, err := l.Kept(t.Context(), "t1")
		if err != nil {
			t.Fatal(err)
		}
		for name, order := range map[string]ReplayOrder{"no sound": {Sound: true}, "no model": {Setup: Setup{LLM: "none"}}} {
			run, err := l.Replay("anna", k, order)
			if s := over(t, run, err); s.State != Failed || !strings.Contains(s.Fault, " / ") {
				t.Errorf("%s: %+v", name, s)
			}
		}
		b.model.Can = providers.Capabilities{OwnTools: true}
		run, err := l.Replay("anna", k, ReplayOrder{})
		if s := over(t, run, err); s.State != Failed || !strings.Contains(s.Fault, "cloud") || len(b.model.Asked()) != 0 {
			t.Errorf("%+v", s)
		}
		b.model.Can = providers.Capabilities{}
		b.model.Script = []providertest.Step{{{Hang: true}}}
		run, err = l.Replay("anna", k, ReplayOrder{})
		if s := over(t, run, err); s.State != TimedOut {
			t.Errorf("%+v", s)
		}
		run, err = l.Replay("anna", k, ReplayOrder{})
		synctest.Wait()
		run.Cancel()
		if s := over(t, run, err); s.State != Cancelled || len(s.Rows) != 0 {
			t.Errorf("%+v", s)
		}
		if _, err := l.Find("bob", run.ID); err == nil {
			t.Error("somebody else sees it")
		}
		b.model.Script = []providertest.Step{providertest.Fail(&providers.Error{Provider: "cloud", Op: "think", Kind: providers.Unauthorized, Err: errors.New("no such key")})}
		run, err = l.Replay("anna", k, ReplayOrder{})
		s := over(t, run, err)
		if row, _ := s.Rows[0].(ReplayRow); !strings.Contains(row.Replay.Fault, "no such key") {
			t.Errorf("%+v", row)
		}
	})
}

// TestCompare: two setups answer the last turns, the oldest first, and what it will cost is told before.
func TestCompare(t *testing.T) {
	b := newBench(t)
	b.lab(t, func(t *testing.T, l *Lab) {
		order := CompareOrder{Device: "d", Last: 50, Agent: "pirate", A: Setup{Agent: "a"}, B: Setup{Agent: "b"}, Speak: true}
		turns, err := l.Last(t.Context(), order)
		if err != nil || len(turns) != 2 || turns[0].ID != "t1" {
			t.Fatalf("%+v %v", turns, err)
		}
		e, err := l.Estimate(t.Context(), order, turns)
		if err != nil || e.A.Micros != 2800 || e.A.Missing != "speaker" || e.Unknown != 1 {
			t.Errorf("%+v %v", e, err)
		}
		run, err := l.Compare("anna", order, turns)
		s := over(t, run, err)
		sum, _ := s.Summary.(Compared)
		if s.State != Done || s.Done != 2 || sum.A.Turns != 2 || sum.A.First50 != 200 || sum.A.Work95 != 400 || sum.Original.Work50 != 250 || sum.Original.First95 != 200 || sum.Original.Work95 != 500 ||
			sum.Interrupted != 1 || sum.Up != 1 || sum.ToolsFailed != 1 || sum.ToolsWorked != 1 || sum.B.Length != len("It is warm. Go out.") || sum.B.Unpriced != 2 {
			t.Errorf("%+v", s)
		}
		if row, _ := s.Rows[1].(CompareRow); row.Replay.Agent != "a" || row.B.Agent != "b" || row.Turn != "t2" {
			t.Errorf("%+v", row)
		}
		order.Last = 51
		if _, err := l.Last(t.Context(), order); err == nil {
			t.Error("too many")
		}
	})
}

// TestVoices: each voice says the sentence, as loud as the others; one that fails says why.
func TestVoices(t *testing.T) {
	b := newBench(t)
	say := func(amplitude float64, wait time.Duration) providers.TTS {
		return &scene.TTS{Delay: wait, Sound: func(string) []providers.Sound {
			return []providers.Sound{{Rate: 24000, PCM: scene.Voiced(24000, time.Second, amplitude)}}
		}}
	}
	b.voices["soft"], b.voices["loud"] = say(3500, 100*time.Millisecond), say(9000, 300*time.Millisecond)
	b.voices["mute"] = &scene.TTS{Sound: func(string) []providers.Sound { return nil }}
	b.lab(t, func(t *testing.T, l *Lab) {
		run, err := l.Voices("anna", " Good morning. ", []Voice{{Service: "soft", Voice: "v"}, {Service: "loud"}, {Service: "mute"}, {Service: "none"}})
		s := over(t, run, err)
		var mean []float64
		for i := range 2 {
			row, _ := s.Rows[i].(VoiceRow)
			wav, err := l.Sound("anna", row.Sound)
			pcm, rate, e := file.ReadWAV(strings.NewReader(string(wav)))
			if err != nil || e != nil || rate != 24000 || row.Length != 1000 || row.First != []int64{100, 300}[i] {
				t.Fatalf("%+v %v %v", row, err, e)
			}
			sum := 0.0
			for _, v := range pcm {
				sum += float64(v) * float64(v)
			}
			mean = append(mean, 10*math.Log10(sum/float64(len(pcm))))
		}
		if row, _ := s.Rows[0].(VoiceRow); string(row.Patch) != `{"tts":["soft"],"voice":"v"}` || row.Gain <= 0 {
			t.Errorf("%+v", row)
		}
		if math.Abs(mean[0]-mean[1]) > 1 {
			t.Errorf("loudness %.1f and %.1f dB", mean[0], mean[1])
		}
		for i := 2; i < 4; i++ {
			if row, _ := s.Rows[i].(VoiceRow); row.Fault == "" || row.Sound != "" {
				t.Errorf("%+v", row)
			}
		}
		if _, err := l.Voices("anna", "x", make([]Voice, 10)); err == nil {
			t.Error("too many voices")
		}
		first, _ := s.Rows[0].(VoiceRow)
		time.Sleep(keepClip + time.Second)
		if _, err := l.Sound("anna", first.Sound); err == nil {
			t.Error("it is kept too long")
		}
		if synctest.Wait(); len(l.clips.all) != 0 || l.clips.timer != nil {
			t.Errorf("%d sounds are in memory", len(l.clips.all))
		}
	})
}

// TestPrompt: what a model would be sent is shown in parts; an unknown variable is told with its line.
func TestPrompt(t *testing.T) {
	b := newBench(t)
	b.lab(t, func(t *testing.T, l *Lab) {
		p, err := l.Prompt(t.Context(), PromptOrder{Device: "d", Words: "and now?", Setup: Setup{Prompt: "You are {{assistant_name}}."}})
		if err != nil || len(p.Parts) != 5 || p.Parts[0].Text != "You are Robo." || p.Parts[1].Items != 1 || p.Parts[3].Items != 6 || p.Parts[4].Text != "user: and now?" || p.Tokens == 0 {
			t.Errorf("%+v %v", p, err)
		}
		_, err = l.Prompt(t.Context(), PromptOrder{Device: "d", Setup: Setup{Doc: json.RawMessage(`{"prompt_text":"You are\n{{asistant_name}}."}`)}})
		if err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), "{{assistant_name}}") {
			t.Error(err)
		}
	})
}

// TestCosts: what turns have cost is summed up in four ways, and those without a price are counted as such.
func TestCosts(t *testing.T) {
	b := newBench(t)
	b.lab(t, func(t *testing.T, l *Lab) {
		now := time.Now()
		c, err := l.Costs(t.Context(), store.CostQuery{From: now.AddDate(0, -1, 0), To: now})
		if err != nil || c.Currency != "€" || c.All.Turns != 4 || c.All.Unpriced != 2 || c.All.Micros != 42 || c.Days[0].Key != "2024-10-05" || c.Devices[0].Key != "d" || c.Agents[0].Key != "pirate" {
			t.Errorf("%+v %v", c, err)
		}
		if len(c.Services) != 3 || c.Services[0].Key != "cloud" || c.Services[0].Micros != 40 || c.Services[0].Free ||
			c.Services[1].Key != "dear" || c.Services[1].Unpriced != 1 || c.Services[1].Free || c.Services[2].Unpriced != 0 || !c.Services[2].Free {
			t.Errorf("%+v", c.Services)
		}
		if _, err := l.Costs(t.Context(), store.CostQuery{From: now, To: now}); err == nil {
			t.Error("no time at all")
		}
	})
}

// TestRunsAtOnce: of all people a few runs go on at a time, and each has their own.
func TestRunsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := NewRuns(t.Context())
		wait := func(ctx context.Context, _ *Run) error { <-ctx.Done(); return nil }
		for _, who := range []string{"a", "b", "c"} {
			if _, err := o.Start(who, "x", 1, time.Minute, wait); err != nil {
				t.Error(err)
			}
		}
		if _, err := o.Start("d", "x", 1, time.Minute, wait); err == nil {
			t.Error("too many at once")
		}
		time.Sleep(2 * time.Minute)
		for range keptRuns + 5 {
			r, err := o.Start("d", "x", 1, time.Minute, func(context.Context, *Run) error { return nil })
			over(t, r, err)
		}
		if len(o.all) > keptRuns {
			t.Errorf("%d runs are kept", len(o.all))
		}
		o.Close()
		if _, err := o.Start("a", "x", 1, time.Minute, wait); err == nil {
			t.Error("it is closed")
		}
	})
}
