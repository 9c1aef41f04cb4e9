package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/timeline"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// keeperInMemory keeps one device's past, and may stall.
type keeperInMemory struct {
	mu    sync.Mutex
	past  Past
	stall chan struct{} // Load waits until it is closed, whatever its context says; nil: it does not
	err   error
	log   []string
	ids   int
}

func (k *keeperInMemory) note(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, fmt.Sprintf(format, args...))
}

func (k *keeperInMemory) Load(context.Context) (Past, error) {
	if k.stall != nil {
		<-k.stall
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.past
	p.Memory.History = slices.Clone(p.Memory.History)
	return p, k.err
}

func (k *keeperInMemory) NewID() string { k.ids++; return fmt.Sprint("talk", k.ids) }

func (k *keeperInMemory) Turn(t *Turn) {
	k.note("%s %d %s %q %q %v", t.Talk.ID, t.Talk.Turns, t.Kind, t.Heard, t.Said, t.Cause)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.past.Talk.ID != t.Talk.ID {
		k.past.Memory.History = nil
	}
	k.past.Talk, k.past.Left = t.Talk, t.At
	k.past.Memory.History = append(k.past.Memory.History, t.Messages...)
}

func (k *keeperInMemory) Learn(m Memory) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m.History = k.past.Memory.History
	k.past.Memory = m
}

func (k *keeperInMemory) Ended(Talk, time.Time, error) {}

func (k *keeperInMemory) Erase(id string) {
	k.note("erase %s", id)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.past.Talk.ID == id {
		k.past.Talk, k.past.Memory.History = Talk{}, nil
	}
}

// keeping are the options of conversations of a program that has just been started.
func keeping(t *testing.T, llm providers.LLM, k Keeper) Options {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		VAD: energyVAD{new(sync.WaitGroup)}, ASR: &scriptASR{}, LLM: llm, TTS: &toneTTS{rate: 16000}, Prompts: set, Devices: NewDevices(), Zone: time.UTC, Keeper: k,
	}
}

// shownTo are the messages of the last request but for the system prompt, without the time of day.
func shownTo(llm *scriptLLM) string {
	var all []string
	for _, m := range llm.last().Messages {
		if m.Role == providers.RoleUser || m.Role == providers.RoleAssistant {
			all = append(all, m.Content)
		}
	}
	return strings.Join(all, " | ")
}

// last is the last request to the model.
func (l *scriptLLM) last() providers.LLMRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.requests) == 0 {
		return providers.LLMRequest{}
	}
	return l.requests[len(l.requests)-1]
}

// talkTo has a device come to a program that has just been started, say something, and go.
func talkTo(t *testing.T, k Keeper, answer string, words ...string) (shown string) {
	t.Helper()
	o := keeping(t, nil, k)
	defer o.Devices.Close()
	return talkOn(t, o, answer, words...)
}

// talkOn has a device come to a program that runs, say something, and go.
func talkOn(t *testing.T, o Options, answer string, words ...string) (shown string) {
	t.Helper()
	llm := &scriptLLM{}
	for range words {
		llm.lines = append(llm.lines, "text "+answer, "end")
	}
	o.LLM = llm
	v := connect(t, o, router.Options{})
	for _, w := range words {
		time.Sleep(2 * time.Second)
		v.types(t, w)
		time.Sleep(10 * time.Second)
	}
	v.bye()
	return shownTo(llm)
}

// TestKeeper: what was said and learned comes back after a restart, the dialogue for ten minutes.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeperInMemory{}
		talkTo(t, k, "Fine.", "one", "two")
		if got := talkTo(t, k, "Fine.", "three"); got != "one | Fine. | two | Fine. | three" {
			t.Errorf("the model was shown %q", got)
		}
		time.Sleep(keepDevice + time.Minute)
		if got := talkTo(t, k, "Fine.", "four"); got != "four" {
			t.Errorf("after a long time the model was shown %q", got)
		}
		k.past.Left = time.Now().Add(time.Hour) // the clock was set back
		if got := talkTo(t, k, "Fine.", "five"); got != "five" {
			t.Errorf("of a talk in the future the model was shown %q", got)
		}
		want := []string{
			`talk1 1 typed "one" "Fine." done`, `talk1 2 typed "two" "Fine." done`, `talk1 3 typed "three" "Fine." done`, `talk2 1 typed "four" "Fine." done`, `talk3 1 typed "five" "Fine." done`,
		}
		if !slices.Equal(k.log, want) {
			t.Errorf("%q", k.log)
		}
	})
}

// TestTalkEnds: the only device of a program begins another talk after ten minutes, too, and what was learned of it stays.
func TestTalkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeperInMemory{past: Past{Memory: Memory{Role: "pirate"}}}
		o := keeping(t, nil, k)
		defer o.Devices.Close()
		talkOn(t, o, "Fine.", "one")
		time.Sleep(keepDevice - time.Minute)
		if got := talkOn(t, o, "Fine.", "two"); got != "one | Fine. | two" {
			t.Errorf("after nine minutes the model was shown %q", got)
		}
		time.Sleep(keepDevice + time.Minute)
		if got := talkOn(t, o, "Fine.", "three"); got != "three" {
			t.Errorf("after eleven minutes the model was shown %q", got)
		}
		want := []string{`talk1 1 typed "one" "Fine." done`, `talk1 2 typed "two" "Fine." done`, `talk2 1 typed "three" "Fine." done`}
		if !slices.Equal(k.log, want) || k.past.Memory.Role != "pirate" {
			t.Errorf("%q, %+v", k.log, k.past.Memory)
		}
	})
}

// TestKeeperLearned: role, language and what else was learned of a device come back however long it was away.
func TestKeeperLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeperInMemory{past: Past{Memory: Memory{Role: "pirate", Pause: time.Second, Fast: 2, Language: "zh", Spoke: true, Echoes: true}}}
		time.Sleep(24 * time.Hour)
		var got Memory
		o := keeping(t, &scriptLLM{}, k)
		o.Recall = func(m Memory) { got = m }
		connect(t, o, router.Options{}).bye()
		o.Devices.Close()
		if !reflect.DeepEqual(got, k.past.Memory) {
			t.Errorf("%+v", got)
		}
	})
}

// TestKeeperStalls: a device whose past is not there in time is served as a new one after 0.3 s, and what had been learned of it
// is not overwritten by nothing.
func TestKeeperStalls(t *testing.T) {
	for name, broken := range map[string]bool{"stalls": false, "fails": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeperInMemory{past: Past{Memory: Memory{Role: "pirate"}}}
				if broken {
					k.err = errors.New("no disk")
				} else {
					k.stall = make(chan struct{})
					time.AfterFunc(time.Hour, func() { close(k.stall) })
				}
				began := time.Now()
				o := keeping(t, &scriptLLM{lines: []string{"text Fine.", "end"}}, k)
				v := connect(t, o, router.Options{})
				v.types(t, "one")
				time.Sleep(20 * time.Second)
				v.bye()
				if took := time.Since(began); took > 21*time.Second {
					t.Errorf("it took %v", took)
				}
				o.Devices.Close() // it waits for what is being loaded
				if got := strings.Join(k.log, ", "); got != `talk1 1 typed "one" "Fine." done` {
					t.Errorf("%s", got)
				}
				if k.past.Memory.Role != "pirate" {
					t.Errorf("what was learned is overwritten: %+v", k.past.Memory)
				}
			})
		})
	}
}

// TestZoneOfTurn: whoever answers is told the zone of the device, which need not be that of the server.
func TestZoneOfTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		llm := &scriptLLM{lines: []string{"text Fine.", "end"}}
		o := keeping(t, llm, nil)
		o.Zone = time.FixedZone("EST", -5*3600)
		v := connect(t, o, router.Options{})
		v.types(t, "one")
		time.Sleep(10 * time.Second)
		v.bye()
		o.Devices.Close()
		if got := llm.last().Zone; got != o.Zone {
			t.Errorf("zone %v", got)
		}
	})
}

// TestRoleWhileKeeperFails: a role that is taken while what is kept is not there is kept as soon as it is.
func TestRoleWhileKeeperFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeperInMemory{past: Past{Memory: Memory{Role: "storyteller", Pause: time.Second}}, err: errors.New("no disk")}
		o := keeping(t, &scriptLLM{lines: []string{"text Fine.", "end"}}, k)
		v := connect(t, o, router.Options{})
		if err := v.c.Do(t.Context(), func(h feature.Host) error { _, err := h.SetRole("teacher"); return err }); err != nil {
			t.Fatal(err)
		}
		v.bye()
		k.err = nil
		v = connect(t, o, router.Options{})
		v.types(t, "one")
		time.Sleep(10 * time.Second)
		v.bye()
		o.Devices.Close()
		if got := k.past.Memory; got.Role != "teacher" || got.Pause != time.Second {
			t.Errorf("%+v is kept", got)
		}
	})
}

// askedLLM tells, as chains do, whom it has asked.
type askedLLM struct{ *scriptLLM }

func (l askedLLM) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		a := timeline.Attempt{Op: "think", Provider: "script-llm", Asked: time.Now(), Outcome: timeline.Answered}
		defer func() { timeline.NoteAttempt(ctx, a) }()
		l.scriptLLM.Generate(ctx, req)(yield)
	}
}

// attemptsKept keeps the attempts of turns.
type attemptsKept struct {
	*keeperInMemory
	of map[string][]timeline.Attempt // by what was heard
}

func (k attemptsKept) Turn(t *Turn) {
	k.keeperInMemory.Turn(t)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.of[t.Heard] = t.Figures.Attempts
}

// TestSpeculationsAreInTheRecord: the model was asked for words that the recogniser took back.
// That has cost something, and stands in the record of the turn that was answered.
func TestSpeculationsAreInTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := attemptsKept{&keeperInMemory{}, map[string][]timeline.Attempt{}}
		o := keeping(t, askedLLM{&scriptLLM{lines: []string{"delay 400ms", "text Fine.", "end", "text I am your assistant.", "end"}}}, k)
		o.ASR = &scriptASR{lines: []string{"~how are you|@300ms who are you"}, streams: true}
		defer o.Devices.Close()
		v := connect(t, o, router.Options{})
		d := newTalker(t, v.c, v.box)
		for _, line := range []string{"listen auto", "voice 600ms", "silence 1.2s", "until tts stop"} {
			d.do(line)
		}
		v.bye()
		if got := k.of["who are you"]; len(got) != 2 || !got[0].Void || got[1].Void {
			t.Errorf("attempts %+v of %q", got, k.log)
		}
	})
}
