package agent

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/enrol"
	"xiaozhi/agent/speak"
	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	pt "xiaozhi/providers/providertest"
	"xiaozhi/providers/rules"
)

var update = flag.Bool("update", false, "rewrite the expected parts of testdata/talk")

// talk is a conversation, or one that is recorded.
type talk interface {
	Post(ev wire.Event) error
	Hear(p wire.Packet)
}

// talker drives a conversation with a script.
type talker struct {
	t    *testing.T
	c    talk
	box  *box
	enc  *audio.Encoder
	loud []int16
	mute []int16
	seen map[string]int

	badly bool
	sent  int // packets
}

func newTalker(t *testing.T, c talk, b *box) *talker {
	t.Helper()
	enc, err := audio.NewEncoderOf(audio.Recognition, audio.Device())
	if err != nil {
		t.Fatal(err)
	}
	d := &talker{t: t, c: c, box: b, enc: enc, seen: map[string]int{}, mute: make([]int16, 960), loud: make([]int16, 960)}
	for i := range d.loud {
		d.loud[i] = int16(12000 * math.Sin(2*math.Pi*300*float64(i)/16000))
	}
	return d
}

func post(d *talker, packet []byte) { d.c.Hear(wire.Packet{Data: packet}) }

// do runs one line of the script.
func (d *talker) do(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	post := func(ev wire.Event) {
		if err := d.c.Post(ev); err != nil {
			d.t.Errorf("%s: %v", line, err)
		}
	}
	switch verb {
	case "listen":
		post(wire.ListenStart{Mode: wire.Mode(rest)})
	case "stop":
		post(wire.ListenStop{})
	case "detect":
		post(wire.Detect{Text: rest})
	case "abort":
		post(wire.Abort{Reason: rest})
	case "voice":
		d.sound(rest, d.loud)
	case "bad": // of this sound, each fifth packet is lost, each seventh broken, each third comes twice
		length, what := rest, d.loud
		if after, ok := strings.CutPrefix(rest, "silence "); ok {
			length, what = after, d.mute
		}
		d.badly = true
		d.sound(length, what)
		d.badly = false
	case "silence":
		d.sound(rest, d.mute)
	case "garbage":
		d.c.Hear(wire.Packet{Data: []byte{0xff, 0xff, 0xff, 1, 2, 3}})
		d.c.Hear(wire.Packet{})
	case "burst":
		n, _ := strconv.Atoi(rest)
		for range n {
			d.c.Hear(wire.Packet{Data: d.packet(d.loud)})
		}
	case "wait":
		if !pause(d.t.Context(), rest) {
			d.t.Errorf("%s: cut short", line)
		}
	case "until":
		d.seen[rest]++
		if !d.box.until(rest, d.seen[rest]) {
			d.t.Errorf("%s: never came; so far:\n%s", line, d.box)
		}
	case "again": // listen auto after the next tts stop, as firmware does
		d.do("until tts stop")
		d.do("wait 5ms")
		d.do("listen auto")
	default:
		d.t.Fatalf("unknown line %q", line)
	}
	synctest.Wait()
}

func (d *talker) packet(pcm []int16) []byte {
	buf := make([]byte, audio.MaxPacket)
	n, err := d.enc.Encode(pcm, buf)
	if err != nil {
		d.t.Fatal(err)
	}
	return buf[:n]
}

// sound streams frames in real time.
func (d *talker) sound(length string, pcm []int16) {
	total, err := time.ParseDuration(length)
	if err != nil {
		d.t.Fatal(err)
	}
	for ; total > 0; total -= 60 * time.Millisecond {
		time.Sleep(60 * time.Millisecond)
		packet := d.packet(pcm)
		d.sent++
		switch {
		case !d.badly:
		case d.sent%5 == 0:
			continue
		case d.sent%7 == 0:
			packet = []byte{0xff, 0xff, 0xff, 1, 2, 3}
		case d.sent%3 == 0:
			post(d, slices.Clone(packet))
		}
		post(d, packet)
	}
}

// talkScene is one scripted conversation.
type talkScene struct {
	more   []feature.Feature // beside those that there are
	parts  map[string][]string
	asr    *scriptASR
	llm    *scriptLLM
	tts    *toneTTS
	tools  *scriptSource
	duplex *pt.Duplex // nil: none
	music  scriptMusic
	voices *scriptVoices // nil: nobody is told apart
	keeper *partsKeeper
	limits router.Options
	now    func() time.Time // of our own tools; nil: always the same
	dev    *Device
	log    strings.Builder
}

func readScene(a *txtar.Archive) *talkScene {
	s := &talkScene{parts: map[string][]string{}}
	for _, f := range a.Files {
		for line := range strings.SplitSeq(string(f.Data), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				s.parts[f.Name] = append(s.parts[f.Name], line)
			}
		}
	}
	s.asr, s.llm = &scriptASR{lines: s.parts["asr"]}, &scriptLLM{lines: s.parts["llm"]}
	if lines, ok := s.parts["realtime"]; ok {
		s.duplex = scriptDuplex(lines)
	}
	if lines, ok := s.parts["voices"]; ok {
		s.voices = &scriptVoices{lines: lines}
	}
	source := "device"
	for _, line := range s.parts["setup"] {
		if name, ok := strings.CutPrefix(line, "source "); ok {
			source = name
		}
	}
	s.tts, s.tools = &toneTTS{lines: s.parts["tts"], rate: 16000}, newScriptSource(source, s.parts["tools"])
	return s
}

// options are what the scene's setup part says.
func (s *talkScene) options(t *testing.T, detectors *sync.WaitGroup) (Options, wire.Session) {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		VAD: energyVAD{detectors}, ASR: s.asr, LLM: s.llm, TTS: s.tts, Prompts: set, Devices: NewDevices(), Features: append(allFeatures(&s.music), s.more...),
		NoChinese: true, Zone: time.UTC, Coding: audio.Coding{Bitrate: 24000, Complexity: 1}, // soon encoded
		Log: debugLog(&s.log),
	}
	if s.duplex != nil {
		o.Realtime = &restingDuplex{Duplex: s.duplex}
	}
	if s.voices != nil {
		o.Voices = s.voices
		s.voices.learns, s.voices.people = s.parts["learn"], map[string]bool{}
		o.Features = append(o.Features, enrol.New(t.Context(), s.voices, func(name string) bool { return name == "Carl" }))
	}
	session := wire.Session{DeviceID: "24:6f:28:aa:10:02", SessionID: "s1", Language: "en"}
	for _, line := range s.parts["setup"] {
		key, value, _ := strings.Cut(line, " ")
		n, _ := strconv.Atoi(value)
		switch key {
		case "language":
			session.Language = value
		case "max_steps":
			o.MaxSteps = n
		case "step_timeout":
			o.StepTimeout, _ = time.ParseDuration(value)
		case "idle_close":
			o.IdleClose, _ = time.ParseDuration(value)
		case "chinese":
			o.NoChinese = false
		case "sounds":
			o.Sounds = speak.NewCache(set)
		case "max_calls":
			o.MaxCalls = n
		case "max_daily":
			o.MaxDaily = n
		case "speaks":
			s.tts.speaks = strings.Fields(value)
		case "no_asr":
			o.ASR = nil
		case "no_llm":
			o.LLM = nil
		case "brain": // the rules, and our own tools by the clock of the scene
			o.LLM, s.now = rules.New(rules.Options{Prompts: set.Phrase, Zone: time.UTC}), time.Now
		case "source", "unordered":
		case "job":
			s.limits.Jobs = append(s.limits.Jobs, value)
		case "confirm":
			s.limits.Confirm = append(s.limits.Confirm, value)
		case "confirm_by":
			pattern, people, _ := strings.Cut(value, " ")
			s.limits.ConfirmBy = map[string][]string{pattern: strings.Fields(people)}
		case "known":
			s.voices.people[value] = true
		case "unknown":
			s.voices.people[value] = false
		case "agent_of":
			person, agent, _ := strings.Cut(value, " ")
			o.AgentOf = func(name string) string {
				if name == person {
					return agent
				}
				return ""
			}
		default:
			t.Fatalf("unknown setup %q", line)
		}
	}
	return o, session
}

// run plays the scene and returns what the device got.
func (s *talkScene) run(t *testing.T) *box {
	t.Helper()
	var detectors sync.WaitGroup
	o, session := s.options(t, &detectors)
	s.keeper = &partsKeeper{t: t}
	o.Keeper = s.keeper
	b := &box{began: time.Now(), wake: make(chan struct{})}
	s.limits.Log = o.Log
	tools := router.New(s.limits, s.local(t), s.tools)
	c := New(o, session, b, tools)
	d := newTalker(t, c, b)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.Run(ctx)
	}()
	synctest.Wait()
	s.dev = c.dev
	for _, line := range s.parts["script"] {
		d.do(line)
	}
	synctest.Wait()
	b.mu.Lock()
	got := &box{lines: slices.Clone(b.lines), hungUp: b.hungUp}
	b.mu.Unlock()
	cancel()
	<-over
	checkFinals(t, b)
	tools.Close()
	o.Devices.Close()
	detectors.Wait() // every detector was closed
	return got
}

func (s *talkScene) local(t *testing.T) mcp.Source {
	t.Helper()
	if s.now == nil {
		s.now = func() time.Time { return time.Date(2026, 11, 21, 9, 10, 0, 0, time.UTC) }
	}
	o := local.Options{Now: s.now}
	if s.voices != nil {
		o.Voices = func() bool { return true }
	}
	src := local.New(o)
	if err := src.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return src
}

// TestTalk plays every scene in testdata/talk: what the device does, and what
// it must get, in which order and when (testdata/README.md).
func TestTalk(t *testing.T) {
	files, err := filepath.Glob("testdata/talk/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenes", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				s := readScene(a)
				b := s.run(t)
				checkRules(t, b, 0)
				s.dev.history.Unpack()
				checkHistory(t, s.dev.history.Snapshot())
				for _, req := range s.llm.requests {
					checkHistory(t, req.Messages)
				}
				compareTranscript(t, file, a, b)
				compare(t, file, a, "history", s.history())
				if s.duplex != nil {
					if s.duplex.Sessions() > 0 {
						t.Error("a realtime session is left open")
					}
					compare(t, file, a, "duplex", s.duplexDid())
				}
				compare(t, file, a, "speakers", s.speakers())
				if s.voices != nil {
					compare(t, file, a, "looks", s.voices.String())
					compare(t, file, a, "learned", strings.Join(s.voices.learned, "\n")+"\n")
				}
				compare(t, file, a, "said", strings.Join(s.tts.said, "\n")+"\n")
				compare(t, file, a, "told", s.told())
				if slices.Contains(s.parts["setup"], "unordered") {
					slices.Sort(s.tools.calls) // of calls that run side by side
				}
				compare(t, file, a, "calls", strings.Join(s.tools.calls, "\n")+"\n")
				compare(t, file, a, "heard", fmt.Sprintln(s.asr.heard)) // how much sound each recogniser got
				compare(t, file, a, "music", fmt.Sprintf("opened %q\nclosed %q\n", s.music.opened, s.music.closed))
				for _, want := range s.parts["log"] {
					if !strings.Contains(s.log.String(), want) {
						t.Errorf("the log does not say %q:\n%s", want, &s.log)
					}
				}
				if t.Failed() {
					t.Logf("log:\n%s", &s.log)
				}
			})
		})
	}
}

// duplexDid lists what the realtime service was asked to do, and what it was told at each beginning.
func (s *talkScene) duplexDid() string {
	var b strings.Builder
	opened := s.duplex.Requests()
	for did := range strings.SplitSeq(s.duplex.Did(), ", ") {
		if did == "close" {
			continue // beside what goes on
		}
		b.WriteString(did)
		if did == "open" {
			for _, m := range opened[0].History {
				fmt.Fprintf(&b, " [%s: %s]", m.Role, m.Content)
			}
			opened = opened[1:]
		}
		b.WriteString("\n")
	}
	return b.String()
}

// told lists the languages that recogniser and model were told, and what a model reads of them.
func (s *talkScene) told() string {
	var b strings.Builder
	for _, language := range s.asr.told {
		fmt.Fprintf(&b, "asr: %s\n", language)
	}
	for _, req := range s.llm.requests {
		fmt.Fprintf(&b, "llm: %s\n", req.Language)
		if _, line, ok := strings.Cut(req.Messages[0].Content, "\n\nAnswer in "); ok {
			fmt.Fprintf(&b, "prompt: Answer in %s\n", line)
		}
	}
	return b.String()
}

func (s *talkScene) history() string {
	var b strings.Builder
	for _, m := range s.dev.history.Snapshot() {
		fmt.Fprintf(&b, "%s: %s", m.Role, m.Content)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " -> %s %s", c.Name, c.Arguments)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// compareTranscript checks what the device got.
func compareTranscript(t *testing.T, file string, a *txtar.Archive, b *box) {
	t.Helper()
	for i, f := range a.Files {
		if f.Name != "expect" {
			continue
		}
		want, err := readMoments(string(f.Data))
		if err != nil {
			t.Fatal(err)
		}
		got := b.moments()
		if *update {
			a.Files[i].Data = []byte(renew(want, got))
			if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if text := differences(want, got); text != "" {
			t.Errorf("what the device got (-: expected, +: came):\n%s", text)
		}
	}
}

// compare checks one part of a scene, if the scene has it.
func compare(t *testing.T, file string, a *txtar.Archive, part, got string) {
	t.Helper()
	for i, f := range a.Files {
		if f.Name != part {
			continue
		}
		if *update {
			a.Files[i].Data = []byte(got)
			if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if want := string(f.Data); strings.TrimSpace(want) != strings.TrimSpace(got) {
			t.Errorf("%s is\n%s\nwant\n%s", part, got, want)
		}
	}
}
