package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/speechtest"
	"xiaozhi/internal/testall"
	"xiaozhi/mcp/secret"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/local"
	"xiaozhi/providers/pocketsphinx"
	"xiaozhi/providers/providertest"
)

// withEngines runs f with the whole server and its real detector, recogniser and
// voice, in memory and in fake time: however long they take, no time passes, so
// what a device hears and when does not depend on the machine. The model is llm,
// or the rules.
func withEngines(t *testing.T, llm *providertest.LLM, f func(ctx context.Context, t *testing.T, h *harness)) {
	t.Helper()
	data := t.TempDir()
	// The voice's library is opened once for the process: not in one of its bubbles.
	if _, err := local.New(t.Context(), local.Options{}); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		h := &harness{t: t, log: &lockedBuffer{}, ln: pipes{make(chan net.Conn), make(chan struct{})}, llm: llm}
		log := slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cfg := config.Default()
		cfg.LLM = []string{"rules"}
		h.app = newApp(cfg, Options{Data: filepath.Join(data, "data"), Log: log})
		defer h.app.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		h.buildReal(ctx)
		served := make(chan error, 1)
		go func() { served <- h.app.serve(ctx, []net.Listener{h.ln}) }()
		defer func() {
			cancel()
			if err := <-served; err != nil {
				t.Errorf("serve: %v", err)
			}
			if t.Failed() {
				t.Logf("log:\n%s", h.log)
			}
		}()
		f(ctx, t, h)
	})
}

// buildReal is assemble, but for the model and for phrases synthesised ahead.
func (h *harness) buildReal(ctx context.Context) {
	h.t.Helper()
	cfg, log := h.app.cfg, h.app.log
	texts, err := prompts.Load("")
	if err != nil {
		h.t.Fatal(err)
	}
	if h.app.crew, err = openCrew(ctx, h.app.cfg, h.app.stored, texts, h.app.log); err != nil {
		h.t.Fatal(err)
	}
	maker := engines.New(log)
	h.app.life.atEnd(maker.Close)
	e, err := maker.Make(ctx, cfg, texts, h.app.report)
	if err != nil {
		h.t.Fatal(err)
	}
	h.app.life.engines(e.Start())
	if h.llm != nil {
		e.Main.LLM, e.Models = h.llm, true
	}
	tools, err := localTools(cfg, texts.Names())
	if err != nil {
		h.t.Fatal(err)
	}
	o := conversationOptions(cfg, e, texts, log)
	h.app.cast = newCast(castOf(cfg, texts, e.Agents))
	h.app.life.atEnd(o.Devices.Close)
	if err := h.app.join(ctx, o, tools, secret.Sources{}, &pictures{texts: texts, log: log}); err != nil {
		h.t.Fatal(err)
	}
}

// speaker connects a strict device, which listens at once unless it is to be
// pressed or opens by itself. It must break no rule until the test ends.
func (h *harness) speaker(ctx context.Context, t *testing.T, o devicetest.Options) *devicetest.Device {
	t.Helper()
	d := h.dial(ctx, o)
	if o.Mode != devicetest.Manual && !o.OpenListen {
		if err := d.ListenStart(max(o.Mode, devicetest.Auto)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { noViolations(t, d) })
	return d
}

// repeating is a model that repeats what it is asked, and tells a long story when
// that is asked for.
func repeating() *providertest.LLM {
	return &providertest.LLM{Answer: func(req providers.LLMRequest) providertest.Step {
		text := req.Messages[len(req.Messages)-1].Content
		if strings.Contains(text, "story") {
			var pieces []string
			for i := range 40 {
				pieces = append(pieces, fmt.Sprintf("This is sentence number %d of a story that does not want to end. ", i))
			}
			return providertest.Say(pieces...)
		}
		return providertest.Say("I heard " + text + ".")
	}}
}

// clip is one recording.
func clip(t *testing.T, set func() ([]speechtest.Clip, error), name string) speechtest.Clip {
	t.Helper()
	all, err := set()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if strings.Contains(c.Name, name) {
			return c
		}
	}
	t.Fatalf("no clip %s", name)
	return speechtest.Clip{}
}

// spoken plays a clip into the microphone, and then silence for long enough to
// end what is said.
func spoken(ctx context.Context, d *devicetest.Device, c speechtest.Clip) error {
	if err := d.Say(ctx, c.PCM()); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return d.Silence(ctx, 1200*time.Millisecond)
}

// received counts the text messages of the server that hold all parts.
func received(d *devicetest.Device, parts ...string) int {
	n := 0
events:
	for _, e := range d.Events() {
		if e.Kind != devicetest.KindReceived || len(e.Raw) == 0 {
			continue
		}
		for _, part := range parts {
			if !strings.Contains(string(e.Raw), part) {
				continue events
			}
		}
		n++
	}
	return n
}

// firstFrame returns when sound of the next reply arrives.
func firstFrame(ctx context.Context, t *testing.T, d *devicetest.Device) {
	t.Helper()
	if _, err := d.WaitText(ctx, "tts", "start"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wait(ctx, func(e devicetest.Event) bool { return e.Kind == devicetest.KindFrame }); err != nil {
		t.Fatal(err)
	}
}

// tally adds up what devices that speak at the same time were heard to say.
type tally struct {
	mu            sync.Mutex
	errors, words int
	right, total  int
	lines         []string
}

func (c *tally) add(said speechtest.Clip, heard string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, w := speechtest.WER(said.Text, heard)
	c.errors, c.words, c.total = c.errors+e, c.words+w, c.total+1
	if e == 0 {
		c.right++
	} else {
		c.lines = append(c.lines, fmt.Sprintf("%s: said %q, heard %q", said.Name, said.Text, heard))
	}
}

// speakAll lets three devices speak the clips in auto mode, with one reply to each.
func speakAll(ctx context.Context, t *testing.T, h *harness, clips []speechtest.Clip, tools []devicetest.Tool, sum *tally) {
	t.Helper()
	const devices = 3
	var wg sync.WaitGroup
	for n := range devices {
		d := h.speaker(ctx, t, devicetest.Options{
			DeviceID: fmt.Sprintf("24:6f:28:aa:20:%02x", n), OpenListen: true, Tools: tools, NoMCP: tools == nil,
		})
		if tools != nil {
			h.waitTools(ctx, t, d, len(tools))
		}
		wg.Go(func() {
			for i := n; i < len(clips); i += devices {
				if err := spoken(ctx, d, clips[i]); err != nil {
					t.Error(err)
					return
				}
				r, err := d.WaitReply(ctx)
				if err != nil {
					t.Errorf("%s: no reply: %v", clips[i].Name, err)
					return
				}
				sum.add(clips[i], r.Heard)
			}
			if got, want := d.Stats().Replies, (len(clips)-n+devices-1)/devices; got != want {
				t.Errorf("%d replies to %d clips", got, want)
			}
		})
	}
	wg.Wait()
}

// waitTools returns when the server has asked for the last page of a device's tools.
func (h *harness) waitTools(ctx context.Context, t *testing.T, d *devicetest.Device, n int) {
	t.Helper()
	if _, err := d.Wait(ctx, func(e devicetest.Event) bool {
		raw := string(e.Raw)
		return e.Kind == devicetest.KindSent && strings.Contains(raw, `"tools":[`) && !strings.Contains(raw, "nextCursor")
	}); err != nil {
		t.Fatalf("the %d tools were not listed: %v", n, err)
	}
	synctest.Wait()
}

// TestDictation speaks human prompts: at most 30 % of the words are wrong, and one
// prompt is one turn.
func TestDictation(t *testing.T) {
	all, err := speechtest.Prompts()
	if err != nil {
		t.Fatal(err)
	}
	var short []speechtest.Clip
	for _, c := range all {
		if c.Duration() < 4*time.Second && len(short) < testall.Pick(24, 3) {
			short = append(short, c)
		}
	}
	fine := &providertest.LLM{Script: []providertest.Step{providertest.Say("Fine.")}}
	withEngines(t, fine, func(ctx context.Context, t *testing.T, h *harness) {
		var sum tally
		speakAll(ctx, t, h, short, nil, &sum)
		t.Logf("dictation: %d of %d words wrong, %d of %d prompts exact", sum.errors, sum.words, sum.right, sum.total)
		if sum.total != len(short) || sum.errors*100 > sum.words*30 {
			t.Errorf("too many words are wrong:\n%s", strings.Join(sum.lines, "\n"))
		}
	})
}

// TestSpokenCommands makes tools of spoken commands, so that the recogniser's
// grammar knows them: at least 85 % are understood exactly.
func TestSpokenCommands(t *testing.T) {
	all, err := speechtest.Commands()
	if err != nil {
		t.Fatal(err)
	}
	var tools []devicetest.Tool
	var said []speechtest.Clip
	for i, c := range all {
		if c.Text == "goodbye" {
			continue // it ends the conversation
		}
		tools = append(tools, devicetest.Tool{
			Name: "self." + strings.ReplaceAll(c.Text, " ", "_"), Description: c.Text,
			Call: func(context.Context, devicetest.Call) (devicetest.Result, error) {
				return devicetest.Result{Text: "true"}, nil
			},
		})
		if i%testall.Pick(1, 12) == 0 { // all can be said, a few are
			said = append(said, c)
		}
	}
	fine := &providertest.LLM{Script: []providertest.Step{providertest.Say("Fine.")}}
	withEngines(t, fine, func(ctx context.Context, t *testing.T, h *harness) {
		var sum tally
		speakAll(ctx, t, h, said, tools, &sum)
		t.Logf("commands: %d of %d exact", sum.right, sum.total)
		if sum.total != len(said) || sum.right*100 < sum.total*85 {
			t.Errorf("too few commands are understood:\n%s", strings.Join(sum.lines, "\n"))
		}
	})
}

// TestNoiseOpensNoTurn plays music, tones and silence to a listening server.
func TestNoiseOpensNoTurn(t *testing.T) {
	music, err := speechtest.Music()
	if err != nil {
		t.Fatal(err)
	}
	noise, err := speechtest.Noise()
	if err != nil {
		t.Fatal(err)
	}
	withEngines(t, nil, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.speaker(ctx, t, devicetest.Options{OpenListen: true, NoMCP: true, Sound: devicetest.Sound{NoDTX: true}})
		for _, c := range append(music[:2:2], noise...) {
			if err := spoken(ctx, d, c); err != nil {
				t.Fatal(err)
			}
			if received(d, `"stt"`)+received(d, `"tts"`) > 0 {
				t.Fatalf("%s opened a turn", c.Name)
			}
		}
	})
}

// TestChineseIsExplained speaks Chinese to a server that has no recogniser for
// it: a spoken and logged explanation, no English text.
func TestChineseIsExplained(t *testing.T) {
	withEngines(t, nil, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.speaker(ctx, t, devicetest.Options{OpenListen: true, NoMCP: true, Language: "zh-CN"})
		if err := spoken(ctx, d, clip(t, speechtest.Mandarin, "yi-shi")); err != nil {
			t.Fatal(err)
		}
		r, err := d.WaitReply(ctx)
		if err != nil || r.Heard != "" || !strings.Contains(r.Text(), "中文") || r.Frames == 0 {
			t.Errorf("heard %q, said %q in %d frames, %v", r.Heard, r.Text(), r.Frames, err)
		}
		if !strings.Contains(h.log.String(), "no Chinese recogniser is configured") {
			t.Error("the log does not say why")
		}
	})
}

// TestClientsAreSpokenTo speaks a human prompt twice to every kind of client, in
// auto mode: one prompt is one turn, and the second is heard without a button. With TEST_ALL it is
// every kind with every frame size, otherwise each kind and each framing once, and the second prompt to the first one.
func TestClientsAreSpokenTo(t *testing.T) {
	prompt, tools := clip(t, speechtest.Prompts, "vm-msgsaved"), devicetest.NewBoard().Tools()
	withEngines(t, repeating(), func(ctx context.Context, t *testing.T, h *harness) {
		var wg sync.WaitGroup
		clients := []devicetest.Options{
			{Profile: devicetest.Firmware242, Tools: tools},
			{Profile: devicetest.Firmware242, Protocol: 2, NoMCP: true},
			{Profile: devicetest.Firmware242, Protocol: 3, Quirks: devicetest.Quirks{MuteMCP: true}},
			{Profile: devicetest.PyXiaozhi, Sound: devicetest.Sound{FrameMs: 20}, Language: "zh-CN", Tools: tools},
			{Profile: devicetest.Browser, Language: "zh-CN", NoMCP: true, Hello: json.RawMessage(`{"type":"hello","features":{}}`)},
			{Profile: devicetest.OldIoT162, Things: []devicetest.Thing{devicetest.Lamp()}},
			{Profile: devicetest.Firmware222Minus, NoMCP: true, Sound: devicetest.Sound{NoDTX: true}},
			{Profile: devicetest.PyXiaozhi, Sound: devicetest.Sound{FrameMs: 40}, Language: "zh-CN", NoMCP: true},
			{Profile: devicetest.PyXiaozhi, Sound: devicetest.Sound{FrameMs: 60}, Language: "zh-CN", NoMCP: true},
		}
		for i, o := range clients[:testall.Pick(len(clients), 5)] {
			name := fmt.Sprintf("%s, framing %d, frames of %d ms", o.Profile, o.Protocol, o.Sound.FrameMs)
			o.DeviceID, o.OpenListen = fmt.Sprintf("24:6f:28:cc:00:%02x", i), true
			d := h.speaker(ctx, t, o)
			wg.Go(func() {
				if err := turns(ctx, d, prompt, testall.Pick(2, map[bool]int{true: 2, false: 1}[i == 0])); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if n := received(d, `"mcp"`); n > 0 && (o.NoMCP || o.Profile == devicetest.OldIoT162) {
					t.Errorf("%s: %d mcp messages to a device without", name, n)
				}
				d.CloseTCP()
			})
		}
		wg.Wait()
	})
}

// turns says the clip n times and judges the answers.
func turns(ctx context.Context, d *devicetest.Device, prompt speechtest.Clip, n int) error {
	for i := range n {
		if err := spoken(ctx, d, prompt); err != nil {
			return err
		}
		r, err := d.WaitReply(ctx)
		if err != nil {
			return fmt.Errorf("turn %d: no reply: %w", i, err)
		}
		if errs, _ := speechtest.WER(prompt.Text, r.Heard); errs > 1 {
			return fmt.Errorf("turn %d: said %q, heard %q", i, prompt.Text, r.Heard)
		}
		if r.Text() != "I heard "+r.Heard+"." || r.Frames == 0 || r.Dropped > 0 || r.Cut {
			return fmt.Errorf("turn %d: answered %q, %d frames, %d dropped, cut %t", i, r.Text(), r.Frames, r.Dropped, r.Cut)
		}
	}
	if err := d.WaitMic(ctx); err != nil {
		return err
	}
	if err := d.Silence(ctx, 500*time.Millisecond); err != nil {
		return err
	}
	if words, replies := received(d, `"stt"`), d.Stats().Replies; words != n || replies != n {
		return fmt.Errorf("%d prompts made %d turns and %d replies", n, words, replies)
	}
	return nil
}

// TestRealtimeIsCutByVoice keeps the microphone open for good, with echo
// cancelled by the server's timestamps: a spoken turn, a story that is cut by
// voice alone, and its answer, all with one listen start.
func TestRealtimeIsCutByVoice(t *testing.T) {
	prompt := clip(t, speechtest.Prompts, "conf-getpin")
	withEngines(t, repeating(), func(ctx context.Context, t *testing.T, h *harness) {
		d := h.speaker(ctx, t, devicetest.Options{Mode: devicetest.Realtime, Protocol: 2, Sound: devicetest.Sound{AEC: true}, NoMCP: true})
		if err := spoken(ctx, d, prompt); err != nil {
			t.Fatal(err)
		}
		if r, err := d.WaitReply(ctx); err != nil || r.Heard == "" || r.Cut {
			t.Fatalf("first turn: %+v, %v", r, err)
		}
		if err := d.Detect("a story please"); err != nil {
			t.Fatal(err)
		}
		firstFrame(ctx, t, d)
		if err := spoken(ctx, d, prompt); err != nil {
			t.Fatal(err)
		}
		if r, err := d.WaitReply(ctx); err != nil || strings.Contains(r.Text(), "number 2") {
			t.Fatalf("voice did not cut the story soon: %v, %d frames, %q", err, r.Frames, r.Text())
		}
		r, err := d.WaitReply(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if errs, _ := speechtest.WER(prompt.Text, r.Heard); errs > 1 || r.Frames == 0 {
			t.Errorf("after the cut: heard %q, %d frames", r.Heard, r.Frames)
		}
		starts := 0
		for _, e := range d.Events() {
			if e.Kind == devicetest.KindSent && strings.Contains(string(e.Raw), `"listen"`) && strings.Contains(string(e.Raw), `"start"`) {
				starts++
			}
		}
		if starts != 1 {
			t.Errorf("%d listen starts", starts)
		}
	})
}

// TestButtonOverAReply presses to talk while a story is told, with old and
// present firmware: the story ends, what is said then is answered.
func TestButtonOverAReply(t *testing.T) {
	prompt := clip(t, speechtest.Prompts, "vm-msgsaved")
	withEngines(t, repeating(), func(ctx context.Context, t *testing.T, h *harness) {
		for i, profile := range []devicetest.Profile{devicetest.Firmware242, devicetest.Firmware222Minus} {
			d := h.speaker(ctx, t, devicetest.Options{
				DeviceID: fmt.Sprintf("24:6f:28:cc:01:%02x", i), Profile: profile, Mode: devicetest.Manual, NoMCP: true,
			})
			if err := pressOver(ctx, t, d, prompt); err != nil {
				t.Errorf("%s: %v", profile, err)
			}
		}
	})
}

func pressOver(ctx context.Context, t *testing.T, d *devicetest.Device, prompt speechtest.Clip) error {
	t.Helper()
	if err := d.Detect("a story please"); err != nil {
		return err
	}
	firstFrame(ctx, t, d)
	if err := d.Abort(""); err != nil {
		return err
	}
	if err := d.ListenStart(devicetest.Manual); err != nil {
		return err
	}
	if err := d.Say(ctx, prompt.PCM()); err != nil {
		return err
	}
	if err := d.ListenStop(); err != nil {
		return err
	}
	if story, err := d.WaitReply(ctx); err != nil || !story.Cut {
		return fmt.Errorf("the story was not cut: %w", err)
	}
	r, err := d.WaitReply(ctx)
	if err != nil {
		return err
	}
	if errs, _ := speechtest.WER(prompt.Text, r.Heard); errs > 1 || r.Frames == 0 || r.Cut {
		return fmt.Errorf("heard %q, %d frames, cut %t", r.Heard, r.Frames, r.Cut)
	}
	return nil
}

// TestWakeWord opens with two seconds of wake word, as a burst before any listen:
// a greeting comes, the burst is in no transcript, and the next prompt is heard.
func TestWakeWord(t *testing.T) {
	prompt := clip(t, speechtest.Prompts, "vm-msgsaved")
	withEngines(t, repeating(), func(ctx context.Context, t *testing.T, h *harness) {
		d := h.speaker(ctx, t, devicetest.Options{OpenListen: true, Wake: devicetest.Wake{Word: "hi xiaozhi", Frames: 33}, NoMCP: true})
		if r, err := d.WaitReply(ctx); err != nil || r.Frames == 0 || r.Cut {
			t.Fatalf("greeting %+v, %v", r, err)
		}
		if err := spoken(ctx, d, prompt); err != nil {
			t.Fatal(err)
		}
		r, err := d.WaitReply(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if errs, _ := speechtest.WER(prompt.Text, r.Heard); errs > 1 {
			t.Errorf("said %q, heard %q", prompt.Text, r.Heard)
		}
		if n := received(d, `"tts"`, `"start"`); n != 2 {
			t.Errorf("%d replies to a wake word and a prompt", n)
		}
	})
}

// TestRepliesAreIntelligible gives a reply, as the device played it, to a recogniser.
func TestRepliesAreIntelligible(t *testing.T) {
	const text = "Please check the number and dial again. Your message has been saved."
	says := &providertest.LLM{Script: []providertest.Step{providertest.Say(text)}}
	withEngines(t, says, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.speaker(ctx, t, devicetest.Options{NoMCP: true})
		if err := d.Detect("tell me something"); err != nil {
			t.Fatal(err)
		}
		r, err := d.WaitReply(ctx)
		if err != nil {
			t.Fatal(err)
		}
		heard := recognise(ctx, t, r.PCM, r.Rate)
		if errs, words := speechtest.WER(text, heard); errs*4 > words {
			t.Errorf("said %q, a recogniser hears %q", text, heard)
		}
	})
}

// recognise is what a recogniser of its own makes of a sound.
func recognise(ctx context.Context, t *testing.T, pcm []int16, rate int) string {
	t.Helper()
	r, err := pocketsphinx.New(pocketsphinx.Options{Decoders: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stream, err := r.Open(ctx, providers.ASRRequest{Rate: speechtest.Rate})
	if err != nil {
		t.Fatal(err)
	}
	down, err := audio.NewResampler(rate, speechtest.Rate)
	if err != nil {
		t.Fatal(err)
	}
	pcm = down.Flush(down.Write(nil, pcm))
	if err := stream.Write(append(make([]int16, 4000), append(pcm, make([]int16, 4000)...)...)); err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	text := ""
	for tr, err := range stream.Transcripts() {
		if err != nil {
			t.Fatal(err)
		}
		text = tr.Text
	}
	return text
}
