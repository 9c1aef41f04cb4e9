package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/doubaodialogue"
	"xiaozhi/internal/servicetest/geminilive"
	"xiaozhi/internal/servicetest/openairealtime"
	"xiaozhi/internal/servicetest/qwenomni"
	"xiaozhi/internal/timeline"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// talking is a harness in real time, whose turns are answered by a service on a socket. The engines beside it are fakes.
func talking(t *testing.T, kind string, fake *servicetest.Server, e script, more ...string) *harness {
	t.Helper()
	cfg := mustLoadText(t, fmt.Sprintf(`
realtime: [live]
providers:
  live: {type: %s, base_url: "%s", app_id: %s, api_key: %s, proxy: none, price: {input: 1000}}
`, kind, fake.WS(), servicetest.ID, servicetest.Key)+strings.Join(more, "\n"))
	h := &harness{
		t: t, log: &lockedBuffer{}, ln: pipes{make(chan net.Conn), make(chan struct{})},
		vad: &providertest.VAD{}, asr: &providertest.ASR{Script: e.asr}, llm: &providertest.LLM{Script: e.llm}, tts: &providertest.TTS{},
	}
	h.app = newApp(cfg, Options{PasswordCost: cheap, Data: filepath.Join(t.TempDir(), "data"), Log: slog.New(slog.NewTextHandler(h.log, nil))})
	t.Cleanup(h.app.Close)
	if err := h.app.openStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.replace = func(h *harness, o *agent.Options) {
		f := engines.New(h.app.log)
		h.app.life.atEnd(f.Close)
		made, err := f.Make(t.Context(), cfg, o.Prompts, h.app.report)
		if o.Realtime = made.Main.Duplex; err != nil || o.Realtime == nil {
			t.Fatal(o.Realtime, err)
		}
	}
	h.build(e)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- h.app.serve(ctx, []net.Listener{h.ln}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", h.log)
		}
	})
	return h
}

// connect connects a strict device that has these tools and listens.
func (h *harness) connect(t *testing.T, tools ...devicetest.Tool) (context.Context, *devicetest.Device) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	t.Cleanup(cancel)
	d := h.dial(ctx, devicetest.Options{OpenListen: true, Tools: tools})
	t.Cleanup(func() {
		for _, v := range d.Violations() {
			if !v.Rule.Timed() { // time is real here
				t.Errorf("violation: %v", v)
			}
		}
	})
	return ctx, d
}

// kept returns the record of the turn that ended last, and whom it asked: role, name and what came of it.
func (h *harness) kept(ctx context.Context, t *testing.T) (turn store.Turn, asked string) {
	t.Helper()
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		turns, err := h.app.stored.Turns.List(ctx, "", store.Page{})
		if err = errors.Join(err, h.app.stored.Log.Flush(ctx)); err != nil {
			t.Fatal(err)
		}
		if len(turns) == 0 || turns[0].Spans == "" {
			continue
		}
		spans, err := timeline.ReadSpans(turns[0].Spans)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, a := range spans.Attempts {
			all = append(all, a.Op+" "+a.Provider+" "+string(a.Outcome))
		}
		return turns[0], strings.Join(all, ", ")
	}
	t.Fatal("no turn was kept")
	return turn, ""
}

// textOf joins the sentences of a reply.
func textOf(r *devicetest.Reply) string {
	var all []string
	for _, s := range r.Sentences {
		all = append(all, s.Text)
	}
	return strings.Join(all, " ")
}

// TestRealtimeTalks: a device talks with each service over a real socket. It hears the service's sound, its user's words
// are shown, and its tool runs where the service takes tools.
func TestRealtimeTalks(t *testing.T) {
	t.Parallel()
	for kind, tt := range map[string]struct {
		fake   func(testing.TB) *servicetest.Server
		tools  bool
		tokens int // that it says it was sent
	}{
		"openai-realtime": {openairealtime.New, true, 40}, "qwen-omni": {qwenomni.New, true, 40},
		"gemini-live": {geminilive.New, true, 20}, "doubao-dialogue": {doubaodialogue.New, false, 0}, // which tells it too late
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ran := make(chan struct{}, 8)
			lamp := devicetest.Tool{
				Name: "lamp", Description: "Switches the lamp.", Properties: []devicetest.Property{{Name: "state", Type: "string"}},
				Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
					ran <- struct{}{}
					return devicetest.Result{Text: "true"}, nil
				},
			}
			h := talking(t, kind, tt.fake(t), script{})
			ctx, d := h.connect(t, lamp)
			sayAll(ctx, t, d, 1200*time.Millisecond)
			r, err := d.WaitReply(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if want := servicetest.Answer(servicetest.Words); !tt.tools && textOf(r) != want || textOf(r) == "" {
				t.Errorf("the answer is %q", textOf(r))
			}
			if long := time.Duration(len(r.PCM)) * time.Second / time.Duration(r.Rate); r.Heard != servicetest.Words || long < 500*time.Millisecond || !loud(r.PCM) {
				t.Errorf("heard %q, %v of sound", r.Heard, long)
			}
			if len(ran) != map[bool]int{false: 0, true: 1}[tt.tools] {
				t.Errorf("the tool ran %d times", len(ran))
			}
			turn, asked := h.kept(ctx, t)
			if want := strings.Repeat(", converse live answered", 1+len(ran))[2:]; asked != want || turn.TokensIn != tt.tokens || turn.Cost() != 1000*tt.tokens {
				t.Errorf("kept are %q, %d tokens for %d", asked, turn.TokensIn, turn.Cost())
			}
		})
	}
}

// loud says whether most of a sound is louder than a whisper.
func loud(pcm []int16) bool {
	n := 0
	for _, s := range pcm {
		if s > 1000 || s < -1000 {
			n++
		}
	}
	return n > len(pcm)/2
}

// TestRealtimeAbort: an agent has its voice. The button cuts the answer, and the service is told how much of it was heard: no more than was played.
func TestRealtimeAbort(t *testing.T) {
	t.Parallel()
	fake := openairealtime.New(t)
	h := talking(t, "openai-realtime", fake, script{}, "agents: {default: {voice: cedar}}")
	ctx, d := h.connect(t)
	sayAll(ctx, t, d, 1200*time.Millisecond)
	firstFrame(ctx, t, d)
	aborted := time.Now()
	if err := d.Abort(""); err != nil {
		t.Fatal(err)
	}
	r, err := d.WaitReply(ctx)
	if err != nil || !r.Cut {
		t.Fatalf("%+v, %v", r, err)
	}
	played := aborted.Sub(r.FirstFrame)
	end := regexp.MustCompile(`"audio_end_ms":(\d+)`)
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		told, voice := "", false
		for _, q := range fake.Requests() {
			voice = voice || strings.Contains(string(q.Body), `"voice":"cedar"`)
			if m := end.FindSubmatch(q.Body); m != nil {
				told = string(m[1])
			}
		}
		if ms, err := strconv.Atoi(told); err == nil {
			if heard := time.Duration(ms) * time.Millisecond; heard <= 0 || heard > played+200*time.Millisecond || heard > time.Duration(r.Frames)*60*time.Millisecond {
				t.Errorf("it is told that %v was heard, of %v that was played", heard, played)
			}
			if !voice {
				t.Error("the voice of the agent was not asked for")
			}
			return
		}
		if time.Now().After(until) {
			t.Fatal("the service was not told what was heard")
		}
	}
}

// TestRealtimeFallsBack: a service that refuses is stood in for by the three chains within the same turn, and what it was
// is in the log.
func TestRealtimeFallsBack(t *testing.T) {
	t.Parallel()
	fake := openairealtime.New(t)
	fake.Fail(servicetest.NoMoney)
	h := talking(t, "openai-realtime", fake, script{
		asr: []providertest.Hearing{{Text: "what time is it", Language: "en"}}, llm: []providertest.Step{providertest.Say("It is ten.")},
	})
	ctx, d := h.connect(t)
	sayAll(ctx, t, d, 1200*time.Millisecond)
	r, err := d.WaitReply(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.Heard != "what time is it" || textOf(r) != "It is ten." || received(d, `"stt"`) != 1 {
		t.Errorf("heard %q, answered %q", r.Heard, textOf(r))
	}
	turn, asked := h.kept(ctx, t)
	// The fakes beside it are no chains, and note nothing.
	if want := "converse live failed"; asked != want || !strings.Contains(turn.Spans, "insufficient_quota") {
		t.Errorf("kept are %q\n%s", asked, turn.Spans)
	}
}
