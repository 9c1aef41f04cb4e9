package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/speak"
	"xiaozhi/audio"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// talkOnce records a conversation in which the device presses its button so often.
func talkOnce(t *testing.T, r *Recorder, device string, presses int) {
	t.Helper()
	tape := r.Tape(wire.Session{DeviceID: device, SessionID: "S1"})
	ctx, cancel := context.WithCancel(t.Context())
	tape.Event(wire.ListenStart{Mode: wire.Auto}) // before Run
	end := tape.Run(ctx)
	for range presses {
		tape.Event(wire.Abort{Reason: strings.Repeat("x", 1000)})
	}
	cancel()
	end(context.Canceled)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// A recording is whole, for its owner only, and named so that no device can
// choose where it goes.
func TestRecorderWritesForTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "recordings")
	r, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	talkOnce(t, r, "../../etc/24:6F", 2)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v %v", info.Mode(), err)
	}
	files := names(t, dir)
	if len(files) != 1 || !strings.HasSuffix(files[0], "-etc246F-S1.talk.jsonl") {
		t.Fatalf("files %q", files)
	}
	name := filepath.Join(dir, files[0])
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info.Mode(), err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) < 4 || !strings.Contains(lines[0], `"listen_start":{"Mode":"auto"}`) || !strings.Contains(lines[1], `"abort"`) {
		t.Errorf("it says\n%s", text)
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, `"end":{"cause":"context canceled"}`) {
		t.Errorf("its last line is %s", last)
	}
}

// A folder that others can look into is refused, and left as it is.
func TestRecorderRefusesAnOpenFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "0755") || !strings.Contains(err.Error(), dir) {
		t.Errorf("err %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("it was changed to %v %v", info.Mode(), err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Dir: file}); err == nil {
		t.Error("a file was taken for a folder")
	}
}

// All recordings together stay below their bound: the oldest make room, and
// nothing else in the folder is touched.
func TestRecorderRemovesTheOldest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"20200101T000000.000-old-S0.talk.jsonl", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 10<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Options{Dir: dir, MaxTotal: 40 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		talkOnce(t, r, fmt.Sprint("device", i), 10)
		time.Sleep(2 * time.Millisecond) // names have milliseconds
		var total int64
		for _, name := range names(t, dir) {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && strings.HasSuffix(name, suffix) {
				total += info.Size()
			}
		}
		if total > 40<<10 {
			t.Errorf("after %d talks there are %d bytes", i+1, total)
		}
	}
	left := names(t, dir)
	all := strings.Join(left, " ")
	if !slices.Contains(left, "notes.txt") || strings.Contains(all, "-old-") || strings.Contains(all, "device0") || !strings.Contains(all, "device5") {
		t.Errorf("left: %q", left)
	}
}

// A recording that has got too long says so and ends; the conversation does not notice.
func TestRecordingHasABound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	var log bytes.Buffer
	r, err := New(Options{Dir: dir, MaxFile: 8 << 10, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	talkOnce(t, r, "long", 50)
	text, err := os.ReadFile(filepath.Join(dir, names(t, dir)[0]))
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 9<<10 || !strings.Contains(string(text), `"short":true`) {
		t.Errorf("%d bytes, ends with %s", len(text), text[len(text)-100:])
	}
	if n := strings.Count(log.String(), "conversation is not recorded"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, &log)
	}
}

// Conversations that cannot be recorded go on, and the log says so once.
func TestRecorderThatCannotWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	var log bytes.Buffer
	r, err := New(Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		talkOnce(t, r, "any", 5000) // more than the queue holds
	}
	if n := strings.Count(log.String(), "conversation is not recorded"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, &log)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	talkOnce(t, r, "any", 1)
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("when it can write again: %q", got)
	}
}

// A disk that stands still costs a bounded number of entries, and waits for nobody.
func TestQueueIsBounded(t *testing.T) {
	w := &writer{queue: make(chan Entry, queueEntries)}
	for range queueEntries + 10 {
		w.put(Entry{Abort: &wire.Abort{}})
	}
	if !w.slow.Load() || len(w.queue) != queueEntries {
		t.Errorf("slow %v, %d entries", w.slow.Load(), len(w.queue))
	}
	w = &writer{queue: make(chan Entry, queueEntries)}
	for range 40 {
		w.put(Entry{TTS: &TTS{Sound: &Sound{PCM: make(PCM, 1<<18)}}})
	}
	if !w.slow.Load() || w.waiting.Load() > queueBytes+1<<20 {
		t.Errorf("slow %v, %d bytes wait", w.slow.Load(), w.waiting.Load())
	}
}

// Without a recorder nothing is wrapped, and nothing is allocated.
func TestNilTapeCostsNothing(t *testing.T) {
	var r *Recorder
	tape := r.Tape(wire.Session{})
	if tape != nil {
		t.Fatal("there is a tape")
	}
	tts := &providertest.TTS{}
	o, _ := tape.Wrap(agent.Options{TTS: tts}, router.Options{})
	if o.TTS != providers.TTS(tts) || o.Recall != nil {
		t.Error("the options were wrapped")
	}
	out := discard{}
	if tape.Outbox(out) != wire.Outbox(out) {
		t.Error("the outbox was wrapped")
	}
	var ev wire.Event = wire.ListenStop{}
	packet := wire.Packet{Data: []byte{1}, Stamp: 1}
	if n := testing.AllocsPerRun(100, func() { tape.Event(ev); tape.Hear(packet) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	tape.Run(t.Context())(nil)
}

type discard struct{}

func (discard) Send(wire.Message)                   {}
func (discard) Audio(uint64, []byte) (uint32, bool) { return 0, true }
func (discard) Lag() time.Duration                  { return 0 }
func (discard) HangUp(error)                        {}

// lagging is an outbox whose lag is known.
type lagging struct {
	discard
	lag *time.Duration
}

func (l lagging) Lag() time.Duration { return *l.lag }

// stamping is an outbox that stamps packets.
type stamping struct{ discard }

func (stamping) Audio(uint64, []byte) (uint32, bool) { return 77, true }

// Stamps pass through the wrapper and are recorded; none is recorded as none.
func TestTapeRecordsStamps(t *testing.T) {
	for out, want := range map[wire.Outbox]uint32{discard{}: 0, stamping{}: 77} {
		tape, recorded := NewTape(wire.Session{})
		stamp, ok := tape.Outbox(out).Audio(1, []byte{1})
		a := recorded().Entries[0].Audio
		if !ok || stamp != want || (want != 0) != (a.Stamp != nil) || (want != 0 && *a.Stamp != want) {
			t.Errorf("%T: %d, %v, recorded %v", out, stamp, ok, a.Stamp)
		}
	}
}

// What a frame and an event say is all recorded: a new member is to be taught here.
func TestFramesAreWhole(t *testing.T) {
	var got []string
	typ := reflect.TypeFor[wire.Packet]()
	for f := range typ.Fields() {
		if f.IsExported() {
			got = append(got, f.Name)
		}
	}
	if !slices.Equal(got, []string{"Data", "At", "Stamp"}) {
		t.Errorf("a packet has %q", got)
	}
	at := time.Date(2026, 11, 21, 9, 0, 0, 5, time.UTC)
	tape, recorded := NewTape(wire.Session{})
	packet := []byte{1}
	tape.Hear(wire.Packet{Data: packet, At: at, Stamp: 9})
	tape.Hear(wire.Packet{Data: packet, Stamp: 10})
	packet[0] = 0
	e := recorded().Entries
	if f := e[0].Frame; f.Packet[0] != 1 || f.At != at || f.Stamp != 9 {
		t.Errorf("%+v", f)
	}
	if f := e[1].Frame; f.Packet[0] != 1 || !f.At.IsZero() || f.Stamp != 10 {
		t.Errorf("%+v", f)
	}
}

// The lag of an outbox is recorded where it changes.
func TestOutboxKeepsItsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tape, recorded := NewTape(wire.Session{})
		var lag time.Duration
		out := tape.Outbox(lagging{lag: &lag})
		for _, d := range []time.Duration{0, 30, 30, 0} {
			if lag = d; out.Lag() != d {
				t.Errorf("lag %v", out.Lag())
			}
		}
		var got []time.Duration
		for _, e := range recorded().Entries {
			got = append(got, *e.Lag)
		}
		if !slices.Equal(got, []time.Duration{30, 0}) {
			t.Errorf("recorded %v", got)
		}
	})
}

// The owner of a packet's memory may use it again at once.
func TestTapeCopies(t *testing.T) {
	tape, recorded := NewTape(wire.Session{})
	packet := []byte{1, 2, 3}
	tape.Hear(wire.Packet{Data: packet})
	tape.Outbox(discard{}).Audio(1, packet)
	tape.Outbox(discard{}).Send(wire.Message{Kind: wire.MessageTTSStop, Closing: packet})
	clear(packet)
	e := recorded().Entries
	for i, got := range [][]byte{e[0].Frame.Packet, e[1].Audio.Packet, e[2].Sent.Closing} {
		if !bytes.Equal(got, []byte{1, 2, 3}) {
			t.Errorf("entry %d holds %v", i, got)
		}
	}
}

// warmASR, warmLLM and warmTTS count how often they are to get ready.
type (
	warmASR struct {
		providertest.ASR
		warmed int
	}
	warmLLM struct {
		providertest.LLM
		warmed int
	}
	warmTTS struct {
		providertest.TTS
		warmed int
	}
)

func (a *warmASR) Warm(context.Context) error { a.warmed++; return nil }
func (l *warmLLM) Warm(context.Context) error { l.warmed++; return nil }
func (s *warmTTS) Warm(context.Context) error { s.warmed++; return nil }

// Engines that are recorded still get ready for what comes.
func TestTapedEnginesGetReady(t *testing.T) {
	asr, llm, tts := &warmASR{}, &warmLLM{}, &warmTTS{}
	for _, given := range []agent.Options{
		{VAD: &providertest.VAD{}, ASR: asr, LLM: llm, TTS: tts},
		{VAD: &providertest.VAD{}, ASR: &providertest.ASR{}, LLM: &providertest.LLM{}, TTS: &providertest.TTS{}},
	} {
		tape, _ := NewTape(wire.Session{})
		o, _ := tape.Wrap(given, router.Options{})
		for _, engine := range []any{o.ASR, o.LLM, o.TTS} {
			if w, ok := engine.(providers.Warmer); !ok || w.Warm(t.Context()) != nil {
				t.Errorf("%T does not get ready", engine)
			}
		}
	}
	if asr.warmed != 1 || llm.warmed != 1 || tts.warmed != 1 {
		t.Errorf("they got ready %d, %d and %d times", asr.warmed, llm.warmed, tts.warmed)
	}
}

// Every kind of message has a name.
func TestEveryMessageHasAName(t *testing.T) {
	seen := map[string]bool{"": true}
	for k := wire.MessageSTT; k <= wire.MessageKeepAlive; k++ {
		name := kindNames()[k]
		if seen[name] {
			t.Errorf("kind %d is called %q", k, name)
		}
		seen[name] = true
	}
}

// After its end a tape takes nothing more, whoever is late.
func TestTapeEnds(t *testing.T) {
	tape, recorded := NewTape(wire.Session{})
	end := tape.Run(t.Context())
	end(errors.New("over"))
	tape.Event(wire.Abort{})
	got := recorded().Entries
	if len(got) != 1 || got[0].End == nil || got[0].End.Cause != "over" {
		t.Errorf("%+v", got)
	}
}

// The end of the connection is recorded, and the end of the conversation comes last.
func TestTapeEndsInOrder(t *testing.T) {
	for range 100 {
		tape, recorded := NewTape(wire.Session{})
		ctx, cancel := context.WithCancelCause(t.Context())
		end := tape.Run(ctx)
		cancel(errors.New("left"))
		end(errors.New("over"))
		got := recorded().Entries
		if len(got) != 2 || got[0].Gone == nil || got[0].Gone.Cause != "left" || got[1].End == nil {
			t.Fatalf("%+v", got)
		}
	}
}

// What conversations share, and nobody could replay, a recorded one has for itself.
func TestSharedPartsAreMadeAnew(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	given := agent.Options{
		VAD: &providertest.VAD{}, ASR: &providertest.ASR{}, LLM: &providertest.LLM{}, TTS: &providertest.TTS{}, Prompts: set,
		Sounds: speak.NewCache(set), Levels: audio.NewLevels(), Zone: time.UTC,
	}
	called := 0
	given.Recall = func(agent.Memory) { called++ }
	tape, recorded := NewTape(wire.Session{})
	o, _ := tape.Wrap(given, router.Options{})
	if o.Sounds == nil || o.Sounds == given.Sounds || o.Levels == nil || o.Levels == given.Levels {
		t.Error("sounds or levels are shared")
	}
	o.Recall(agent.Memory{Role: "r"})
	e := recorded().Entries
	if b := e[0].Begin; b == nil || !b.Has.Sounds || !b.Has.Levels || b.Has.Music || b.Zone != "UTC" {
		t.Errorf("%+v", b)
	}
	if m := e[1].Memory; m == nil || m.Role != "r" || called != 1 {
		t.Errorf("%+v, and the other was called %d times", m, called)
	}
	tape, recorded = NewTape(wire.Session{})
	given.Sounds, given.Levels = nil, nil
	if o, _ := tape.Wrap(given, router.Options{}); o.Sounds != nil || o.Levels != nil || recorded().Begin().Has.Sounds {
		t.Error("sounds or levels out of nothing")
	}
}
