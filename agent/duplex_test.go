package agent

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

// duplexTalk holds a conversation that a realtime service answers, in fake time. say speaks for a
// moment; what is left open at the end fails the test.
func duplexTalk(t *testing.T, d *pt.Duplex, change func(*Options), f func(t *testing.T, v *visit, say func())) {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	loud, mute := stormPackets(t)
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		o := Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{lines: []string{"it is not"}}, LLM: &scriptLLM{lines: []string{"text By the model.", "end"}},
			TTS: &toneTTS{rate: 16000}, Realtime: d, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
		}
		if change != nil {
			change(&o)
		}
		v := connect(t, o, router.Options{}, newScriptSource("device", nil))
		v.listens(t, wire.Auto)
		f(t, v, func() {
			for i := range 26 {
				time.Sleep(60 * time.Millisecond)
				packet := loud
				if i >= 10 {
					packet = mute
				}
				v.c.Hear(wire.Packet{Data: packet})
			}
			synctest.Wait()
		})
		v.bye()
		detectors.Wait()
		o.Devices.Close()
		if n := d.Sessions(); n > 0 {
			t.Errorf("%d sessions are left open", n)
		}
	})
}

func duplexSays(words, text string) [][]pt.DuplexPart {
	return [][]pt.DuplexPart{pt.Reply(words, 2*time.Second, text)}
}

// turnKeeper keeps the turns that it is given.
type turnKeeper struct {
	keeperInMemory
	turns []*Turn
}

func (k *turnKeeper) Turn(turn *Turn) {
	k.turns = append(k.turns, turn)
	k.keeperInMemory.Turn(turn)
}

// TestDuplexTurnIsKept: the record of such a turn has the words, and who answered.
func TestDuplexTurnIsKept(t *testing.T) {
	k := &turnKeeper{}
	d := &pt.Duplex{Script: duplexSays("今天天气怎么样", "晴天。")}
	duplexTalk(t, d, func(o *Options) { o.Keeper = k }, func(_ *testing.T, _ *visit, say func()) {
		say()
		time.Sleep(5 * time.Second)
	})
	if len(k.turns) != 1 {
		t.Fatalf("%d turns", len(k.turns))
	}
	got := k.turns[0]
	if got.Kind != TurnSaid || got.Heard != "今天天气怎么样" || got.Said != "晴天。" || got.Figures.LLMName != "fake-duplex" || got.Figures.TTSName != "fake-duplex" ||
		got.Figures.E2E == 0 || k.past.Memory.Language != "zh" {
		t.Errorf("%+v, learned %q", got, k.past.Memory.Language)
	}
}

// TestDuplexCannotBeOpened: the same turn is answered by the others, once.
func TestDuplexCannotBeOpened(t *testing.T) {
	d := &pt.Duplex{Fails: errors.New("no more sessions")}
	duplexTalk(t, d, nil, func(t *testing.T, v *visit, say func()) {
		say()
		time.Sleep(8 * time.Second)
		if got := v.box.String(); !strings.Contains(got, "stt it is not") || strings.Count(got, "tts start") != 1 || !strings.Contains(got, "sentence By the model.") {
			t.Errorf("got\n%s", got)
		}
	})
}

// TestDuplexMuted: an utterance that is given up is forgotten by the service.
func TestDuplexMuted(t *testing.T) {
	d := &pt.Duplex{Script: duplexSays("hello", "hi")}
	duplexTalk(t, d, nil, func(t *testing.T, v *visit, _ func()) {
		loud, _ := stormPackets(t)
		for range 8 {
			time.Sleep(60 * time.Millisecond)
			v.c.Hear(wire.Packet{Data: loud})
		}
		v.listens(t, wire.Auto) // the button, in the middle of a word
		time.Sleep(time.Second)
		if got := d.Did(); !strings.HasPrefix(got, "open, discard ") {
			t.Errorf("it did %s", got)
		}
	})
}

// TestDuplexDrain: its answer is heard to the end before the server hangs up.
func TestDuplexDrain(t *testing.T) {
	d := &pt.Duplex{Script: duplexSays("hello", "Hi there.")}
	duplexTalk(t, d, nil, func(t *testing.T, v *visit, say func()) {
		say()
		if err := v.c.Post(wire.Drain{Cause: errors.New("the end")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := v.box.String(); !strings.Contains(got, "sentence Hi there.\n  1413 frames 34\n") || !strings.Contains(got, "hang up: the end") {
			t.Errorf("got\n%s", got)
		}
	})
}

// TestDuplexAsked: the answer to a question from outside is read by the recogniser, and the
// service is not asked.
func TestDuplexAsked(t *testing.T) {
	d := &pt.Duplex{Script: duplexSays("hello", "hi")}
	duplexTalk(t, d, nil, func(t *testing.T, v *visit, say func()) {
		var answer string
		var asking sync.WaitGroup
		asking.Go(func() { answer, _ = v.d.Ask(t.Context(), "Is it so?") })
		time.Sleep(8 * time.Second)
		v.listens(t, wire.Auto)
		say()
		asking.Wait()
		if answer != "it is not" || strings.Contains(d.Did(), "respond") {
			t.Errorf("the answer is %q, the service did %s", answer, d.Did())
		}
	})
}

// TestDuplexIsLeft: the connection ends in the middle of an answer, and while one is awaited.
func TestDuplexIsLeft(t *testing.T) {
	for name, script := range map[string][][]pt.DuplexPart{
		"in the middle": duplexSays("hello", "a long story"),
		"while silent":  {{{Hang: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			duplexTalk(t, &pt.Duplex{Script: script}, nil, func(_ *testing.T, _ *visit, say func()) {
				say()
				time.Sleep(500 * time.Millisecond)
			})
		})
	}
}

// TestDuplexOfTheAgent: an agent may have its own service, or none.
func TestDuplexOfTheAgent(t *testing.T) {
	own, other := &pt.Duplex{Script: duplexSays("hello", "mine")}, &pt.Duplex{Script: duplexSays("hello", "not mine")}
	for _, p := range []Persona{{Realtime: own, RealtimeVoice: "marin"}, {NoRealtime: true}} {
		duplexTalk(t, other, func(o *Options) {
			o.Persona = func(string) (Persona, bool) { return p, true }
		}, func(t *testing.T, v *visit, say func()) {
			say()
			time.Sleep(5 * time.Second)
			want := "sentence By the model."
			if p.Realtime != nil {
				want = "sentence mine"
			}
			if got := v.box.String(); !strings.Contains(got, want) || other.Did() != "" {
				t.Errorf("got\n%s", got)
			}
		})
	}
	if r := own.Requests(); len(r) != 1 || r[0].Voice != "marin" || r[0].Instructions == "" || r[0].Language != "en" || own.Sessions() > 0 {
		t.Errorf("asked %+v", r)
	}
}

// TestDuplexInput: a session is given the utterances that are answered, and nothing else.
func TestDuplexInput(t *testing.T) {
	fake := &pt.Duplex{Script: duplexSays("hello", "hi")}
	d := &duplex{
		whom: &whom{}, onset: func() {}, log: debugLog(&strings.Builder{}), kept: map[uint64]*keptSound{},
		child: func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(t.Context()) },
		start: func(f func()) { f() },
	}
	d.whom.o.Store(&Options{Realtime: fake})
	partner := partner{provider: fake}
	prepare := func() {
		d.prepare(partner, func() (providers.DuplexRequest, error) { return providers.DuplexRequest{}, nil })
	}
	second := make([]int16, 16000)
	ask := func(ids ...uint64) {
		t.Helper()
		for _, err := range d.of(ids).Respond(t.Context(), nil) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	hear := func(id uint64, times int) {
		d.Begin(id)
		prepare()
		for range times {
			d.Write(id, second)
		}
	}
	hear(1, 1)
	ask(1)
	hear(2, 2)
	ask(1, 2) // both, although it has heard the second
	hear(3, 1)
	hear(4, 2)
	d.Release(3)
	ask(4) // what came before it is forgotten
	hear(5, 1)
	partner.language = "de"
	hear(6, 2) // for somebody else
	ask(6)
	d.Release(6)
	d.close()
	if got, want := fake.Did(), "open, respond 1s, discard 2s, respond 3s, discard 3s, respond 2s, close, open, respond 2s, close"; got != want {
		t.Errorf("it did\n%s, want\n%s", got, want)
	}
}
