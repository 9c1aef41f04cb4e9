package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/voices"
)

// scriptVoices says who is speaking, a line for each look: "[@DELAY] NAME PERCENT", "stranger", "unclear" or "unknown". It is not on
// without lines.
type scriptVoices struct {
	mu    sync.Mutex
	lines []string
	looks []string // how much sound each has got, and how it has ended

	people  map[string]bool // by name: whether their voice is known
	learns  []string        // what comes of learning a voice, a line each: "ok", "other NAME", "unlike", "error", "@DELAY …"
	learned []string
}

func (v *scriptVoices) Engine() string { return "script" }

func (v *scriptVoices) Named(name string) (voices.Person, bool) {
	_, there := v.people[name]
	return voices.Person{ID: "id of " + name, Name: name}, there
}

func (v *scriptVoices) Voices(person string) ([]voices.Voice, map[string]bool) {
	if v.people[strings.TrimPrefix(person, "id of ")] {
		return []voices.Voice{{}}, nil
	}
	return nil, nil
}

func (v *scriptVoices) Learn(ctx context.Context, name, _ string, source voices.Source, device string, samples [][]int16) (voices.Person, error) {
	v.mu.Lock()
	line := "ok"
	if len(v.learns) > 0 {
		line, v.learns = v.learns[0], v.learns[1:]
	}
	v.mu.Unlock()
	if rest, ok := strings.CutPrefix(line, "@"); ok {
		var delay string
		if delay, line, _ = strings.Cut(rest, " "); !pause(ctx, delay) {
			line = "ended"
		}
	}
	var lengths []time.Duration
	for _, pcm := range samples {
		lengths = append(lengths, (time.Duration(len(pcm)) * time.Second / 16000).Round(100*time.Millisecond))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.learned = append(v.learned, fmt.Sprintf("%s by %s at %s: %v: %s", name, source, device, lengths, line))
	what, other, _ := strings.Cut(line, " ")
	switch what {
	case "other":
		return voices.Person{}, &voices.OtherError{Name: other}
	case "unlike":
		return voices.Person{}, voices.ErrUnlike
	case "ok":
		return voices.Person{ID: "id of " + name, Name: name}, nil
	}
	return voices.Person{}, errors.New(line)
}

func (v *scriptVoices) On() bool { return true }

func (v *scriptVoices) Certain(s voices.Speaker) bool { return s.Sure >= 60 }

func (v *scriptVoices) Identify(ctx context.Context, pcm []int16) voices.Speaker {
	v.mu.Lock()
	line := "unknown"
	if len(v.lines) > 0 {
		line, v.lines = v.lines[0], v.lines[1:]
	}
	v.mu.Unlock()
	if rest, ok := strings.CutPrefix(line, "@"); ok {
		var delay string
		delay, line, _ = strings.Cut(rest, " ")
		if !pause(ctx, delay) {
			v.did(pcm, "ended: "+context.Cause(ctx).Error())
			return voices.Speaker{}
		}
	}
	v.did(pcm, line)
	name, sure, _ := strings.Cut(line, " ")
	switch name {
	case "unknown":
		return voices.Speaker{}
	case "unclear":
		return voices.Speaker{Verdict: voices.Unclear}
	case "stranger":
		return voices.Speaker{Verdict: voices.Stranger}
	}
	n, _ := strconv.Atoi(sure)
	return voices.Speaker{Verdict: voices.Known, ID: "id of " + name, Name: name, Sure: n}
}

func (v *scriptVoices) did(pcm []int16, what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.looks = append(v.looks, fmt.Sprintf("%v %s", time.Duration(len(pcm))*time.Second/16000, what))
}

func (v *scriptVoices) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.looks, "\n") + "\n"
}

// speakers lists who is said to have spoken, in the turns that were kept and in what models were told.
func (s *talkScene) speakers() string {
	var b strings.Builder
	for _, t := range s.keeper.turns {
		who := "nobody"
		switch sp := t.Speaker; {
		case sp.Before:
			who = sp.Name + " before"
		case sp.Name != "":
			who = fmt.Sprintf("%s %d", sp.Name, sp.Sure)
		case sp.On:
			who = "stranger"
		}
		fmt.Fprintf(&b, "turn of %s: %s: %s\n", t.Agent, who, t.Heard)
	}
	for _, req := range s.llm.requests {
		for line := range strings.SplitSeq(req.Messages[0].Content, "\n") {
			if strings.Contains(line, "who is speaking") || strings.Contains(line, "说话") {
				fmt.Fprintf(&b, "model: %s\n", line)
			}
		}
	}
	return b.String()
}

// A tool that only certain people may allow is asked of them for others, too: the device hears whose yes it is.
func TestCallThatCertainPeopleAllow(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		asr, voices []string
		want, heard string
	}{
		"theirs":            {[]string{"@300ms yes please open it"}, []string{"Anna 80"}, "opened", "OK."},
		"a stranger's":      {[]string{"@300ms yes please open it"}, []string{"stranger"}, "the yes was not of anybody who may", "Only Anna may allow that,"},
		"too short, then":   {[]string{"@300ms yes", "@300ms yes open it"}, []string{"unclear", "Anna 80"}, "opened", "OK."},
		"too short, twice":  {[]string{"@300ms yes", "@300ms yes"}, []string{"unclear", "unclear"}, "the yes was not of anybody who may", "Only Anna may allow that,"},
		"no, whoever it is": {[]string{"@300ms no"}, []string{"stranger"}, "the user has not consented", "OK, I will not do it."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var detectors sync.WaitGroup
				v := connect(t, Options{
					VAD: energyVAD{&detectors}, ASR: &scriptASR{lines: c.asr}, LLM: &scriptLLM{}, TTS: &toneTTS{rate: 16000}, Prompts: set,
					Devices: NewDevices(), Zone: time.UTC, Voices: &scriptVoices{lines: c.voices},
				}, router.Options{Rules: router.Rules{ConfirmBy: map[string][]string{"self.safe.*": {"Anna"}}}}, newScriptSource("device", []string{"self.safe.open control 0s opened"}))
				var wg sync.WaitGroup
				wg.Go(func() {
					d := newTalker(t, v.c, v.box)
					for i := range c.asr {
						if d.do("until tts stop"); i > 0 {
							d.do("until tts stop") // the first was that of the answer before
						}
						for _, line := range []string{"wait 5ms", "listen auto", "voice 900ms", "silence 900ms"} {
							d.do(line)
						}
					}
				})
				r, _ := v.d.Call(t.Context(), mcp.Call{ID: "c", Name: "self_safe_open", Language: "en"})
				wg.Wait()
				time.Sleep(8 * time.Second)
				if got := mcp.ResultText(r); !strings.Contains(got, c.want) || !strings.Contains(v.box.String(), "sentence "+c.heard) {
					t.Errorf("%q; the device got\n%s", got, v.box)
				}
				v.bye()
				detectors.Wait()
			})
		})
	}
}
