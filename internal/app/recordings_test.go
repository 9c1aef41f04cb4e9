package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/audio/file"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/recording"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/wire"
	"xiaozhi/providers/providertest"
	"xiaozhi/store"
)

// recordingOf is what the settings of a script say about sound.
func recordingOf(set func(cfg *config.Config)) func(h *harness, o *agent.Options) {
	return func(h *harness, _ *agent.Options) { set(h.app.cfg) }
}

// sounds lists the recordings of a data folder by the names of their files, as they are decoded: length and loudness.
func sounds(t *testing.T, data string) (lengths map[string]time.Duration, loud map[string]float64) {
	t.Helper()
	lengths, loud = map[string]time.Duration{}, map[string]float64{}
	err := filepath.WalkDir(filepath.Join(data, recordingsFolder), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r, err := file.NewOpusReader(bytes.NewReader(content))
		if err != nil {
			return err
		}
		pcm, samples, sum := make([]int16, 4096), 0, 0.0
		for {
			n, err := r.Read(pcm)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			for _, v := range pcm[:n] {
				sum += float64(v) * float64(v)
			}
			samples += n
		}
		lengths[filepath.Base(path)], loud[filepath.Base(path)] = time.Duration(samples)*time.Second/48000, math.Sqrt(sum/float64(max(samples, 1)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lengths, loud
}

// side returns the file names of one side.
func side(lengths map[string]time.Duration, name string) (files []string) {
	for f := range lengths {
		if strings.HasSuffix(f, "-"+name+".opus") {
			files = append(files, f)
		}
	}
	return files
}

// spokenTurn has a device say something, hear the reply, and waits until what is kept of it is written.
func spokenTurn(ctx context.Context, t *testing.T, h *harness, d *devicetest.Device) *devicetest.Reply {
	t.Helper()
	if err := d.ListenStart(devicetest.Auto); err != nil {
		t.Fatal(err)
	}
	sayAll(ctx, t, d, 1500*time.Millisecond)
	r, err := d.WaitReply(ctx)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	written(ctx, t, h)
	return r
}

// written waits until what was recorded is on the disk.
func written(ctx context.Context, t *testing.T, h *harness) {
	t.Helper()
	r := h.app.recorders.turns
	for again := 2; again > 0; { // the second one comes after what was being written at the first
		if err := r.Forget(ctx, "nobody"); err != nil {
			t.Fatal(err)
		}
		if r.Stats().Waiting == 0 {
			again--
		}
	}
}

// TestSoundIsRecorded: whose sound of a turn is kept is as device, agent and all say, in this order, and by default
// nobody's: then there is no file and no folder.
func TestSoundIsRecorded(t *testing.T) {
	const id = "aa:bb:cc:dd:ee:01"
	for name, c := range map[string]struct {
		set         func(cfg *config.Config)
		user, reply bool
	}{
		"default": {set: func(*config.Config) {}},
		"all":     {set: func(cfg *config.Config) { cfg.Recording.Sound = config.RecordBoth }, user: true, reply: true},
		"user":    {set: func(cfg *config.Config) { cfg.Recording.Sound = config.RecordUser }, user: true},
		"agent":   {set: func(cfg *config.Config) { cfg.Agents["default"] = config.Persona{Record: config.RecordBoth} }, user: true, reply: true},
		"device": {set: func(cfg *config.Config) {
			cfg.Agents["default"] = config.Persona{Record: config.RecordOff}
			cfg.Devices.ByID[id] = config.Device{Record: config.RecordUser}
		}, user: true},
		"device off": {set: func(cfg *config.Config) {
			cfg.Recording.Sound = config.RecordBoth
			cfg.Devices.ByID[id] = config.Device{Record: config.RecordOff}
		}},
		"agent off": {set: func(cfg *config.Config) {
			cfg.Recording.Sound = config.RecordBoth
			cfg.Agents["default"] = config.Persona{Record: config.RecordOff}
		}},
		"forgets": {set: func(cfg *config.Config) {
			cfg.Recording.Sound = config.RecordBoth
			cfg.Agents["default"] = config.Persona{Memory: config.Forget}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			s := script{
				data: data, asr: []providertest.Hearing{{Text: "what is it"}}, llm: []providertest.Step{providertest.Say("It is what it is.")}, replace: recordingOf(c.set),
			}
			inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
				d := h.dial(ctx, devicetest.Options{DeviceID: id, NoMCP: true})
				r := spokenTurn(ctx, t, h, d)
				lengths, loud := sounds(t, data)
				user, reply := side(lengths, "user"), side(lengths, "reply")
				if len(user) == 1 != c.user || len(reply) == 1 != c.reply || len(lengths) != len(user)+len(reply) {
					t.Fatalf("%v", lengths)
				}
				if !c.user {
					if _, err := os.Stat(filepath.Join(data, recordingsFolder)); !errors.Is(err, fs.ErrNotExist) {
						t.Error("a folder is there:", err)
					}
					return
				}
				if l := lengths[user[0]]; l < 2*time.Second || l > 3200*time.Millisecond || loud[user[0]] < 2000 {
					t.Errorf("the user: %v, %.0f", l, loud[user[0]])
				}
				if c.reply && (lengths[reply[0]] != time.Duration(r.Frames)*60*time.Millisecond || loud[reply[0]] < 500) {
					t.Errorf("the reply: %v of %d frames, %.0f", lengths[reply[0]], r.Frames, loud[reply[0]])
				}
				turns, err := h.app.stored.Turns.List(ctx, id, store.Page{})
				if err != nil || len(turns) != 1 {
					t.Fatal(turns, err)
				}
				rows, err := h.app.stored.Recordings.Of(ctx, turns[0].ID)
				if err != nil || len(rows) != len(lengths) || !strings.HasPrefix(rows[0].Path, "aa_bb_cc_dd_ee_01/"+turns[0].ConversationID+"/"+turns[0].ID) {
					t.Errorf("%+v %v", rows, err)
				}
			})
		})
	}
}

// TestSoundIsForgotten: with the talk that is erased, and with the device that is forgotten, their sound goes.
func TestSoundIsForgotten(t *testing.T) {
	const id = "aa:bb:cc:dd:ee:02"
	data := t.TempDir()
	s := script{
		data: data, asr: []providertest.Hearing{{Text: "one"}, {Text: "two"}}, llm: []providertest.Step{providertest.Say("First."), providertest.Say("Second.")},
		replace: recordingOf(func(cfg *config.Config) { cfg.Recording.Sound = config.RecordBoth }),
	}
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		d := h.dial(ctx, devicetest.Options{DeviceID: id, NoMCP: true})
		spokenTurn(ctx, t, h, d)
		turns, err := h.app.stored.Turns.List(ctx, id, store.Page{})
		if err != nil || len(turns) != 1 {
			t.Fatal(turns, err)
		}
		h.app.keeper(wire.Session{DeviceID: id}).Erase(turns[0].ConversationID)
		written(ctx, t, h)
		if lengths, _ := sounds(t, data); len(lengths) != 0 {
			t.Errorf("of a talk that was erased: %v", lengths)
		}
		spokenTurn(ctx, t, h, d)
		if lengths, _ := sounds(t, data); len(lengths) != 2 {
			t.Errorf("%v", lengths)
		}
		if err := h.app.book.Forget(ctx, id); err != nil {
			t.Fatal(err)
		}
		if _, err := h.app.forget(ctx, id); err != nil {
			t.Fatal(err)
		}
		if lengths, _ := sounds(t, data); len(lengths) != 0 {
			t.Errorf("of a device that was forgotten: %v", lengths)
		}
		if left, _ := filepath.Glob(filepath.Join(data, recordingsFolder, "*")); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// TestStalledRecordings: while the disk takes no sound, replies come as soon as without recording, and the program says
// what is wrong.
func TestStalledRecordings(t *testing.T) {
	const rounds = 80
	replies := func(t *testing.T, stalled bool) (times []time.Duration) {
		s := script{data: t.TempDir()}
		for range rounds {
			s.llm = append(s.llm, providertest.Say("It is so."))
		}
		var stall chan struct{} // of the bubble
		s.replace = func(h *harness, _ *agent.Options) {
			if !stalled {
				return
			}
			stall = make(chan struct{})
			h.app.cfg.Recording.Sound = config.RecordBoth
			h.app.recorders.turns = recording.New(h.t.Context(), recording.Options{
				Dir: filepath.Join(s.data, recordingsFolder), Table: h.app.stored.Recordings, Keep: time.Hour, Quota: 1 << 30, Log: h.app.log,
				Flush: func(context.Context) error { <-stall; return fs.ErrInvalid },
			})
		}
		inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
			d := h.dial(ctx, devicetest.Options{DeviceID: "aa:bb:cc:dd:ee:03", NoMCP: true})
			for range rounds {
				asked := time.Now()
				if err := d.Detect("how is it"); err != nil {
					t.Fatal(err)
				}
				r, err := d.WaitReply(ctx)
				if err != nil {
					t.Fatal(err)
				}
				times = append(times, r.FirstFrame.Sub(asked), r.Stopped.Sub(asked))
				time.Sleep(300 * time.Millisecond)
			}
			if stalled {
				if got := readiness(h.app); !strings.Contains(got, "the sound of some turns was not kept") {
					t.Errorf("/readyz says %q", got)
				}
				if s := h.app.recorders.turns.Stats(); s.Dropped == 0 || s.Waiting > 64 {
					t.Errorf("%+v", s)
				}
				close(stall)
				time.Sleep(10 * time.Second)
				if got := readiness(h.app); !strings.Contains(got, "recordings: sound of turns cannot be written") {
					t.Errorf("/readyz says %q", got)
				}
				h.app.recorders.turns.Close()
			} else if got := readiness(h.app); got != "ready" {
				t.Errorf("/readyz says %q", got)
			}
		})
		return times
	}
	well, ill := replies(t, false), replies(t, true)
	for i := range well {
		if i < len(ill) && ill[i] > well[i]+time.Millisecond {
			t.Errorf("reply %d: %v, and %v with a disk that does not answer", i/2, well[i], ill[i])
		}
	}
}

// TestRecordingIsTold: where sound is recorded, the start says by what, where and for how long.
func TestRecordingIsTold(t *testing.T) {
	a := without(t, t.TempDir(), nil)
	defer a.Close()
	if err := a.openStore(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a.recorders.report(a.cfg, a.options.Data, a.report, a.log)
	a.Report(&out)
	if strings.Contains(out.String(), "REC") {
		t.Errorf("by default: %s", &out)
	}
	a.cfg.Devices.ByID["aa:bb:cc:dd:ee:ff"] = config.Device{Record: config.RecordBoth}
	a.recorders.report(a.cfg, a.options.Data, a.report, a.log)
	a.Report(&out)
	for _, want := range []string{"REC  the sound of turns is recorded (devices.aa:bb:cc:dd:ee:ff.record: both), for 7 days and up to 2GiB, in ", "对话的声音会录下来"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %s", want, &out)
		}
	}
}

// TestSoundOfStoredAgent: an agent that somebody makes while devices talk is recorded from the next turn on, and the log
// says so.
func TestSoundOfStoredAgent(t *testing.T) {
	data := t.TempDir()
	inMemory(t, script{data: data}, func(ctx context.Context, t *testing.T, h *harness) {
		shop := &fakeShop{ready: company{}}
		shop.ready.engage("rules", providertest.Say("First."), providertest.Say("Second."), providertest.Say("Third."))
		h.app.crew.shop = shop
		d := h.dial(ctx, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		r, by := h.app.crew.roster, roster.Author{Name: "anna"}
		for i, doc := range []string{`{"llm":["rules"]}`, `{"llm":["rules"],"record":"both"}`, `{"llm":["rules"],"record":"off"}`} {
			if _, err := r.Set(ctx, by, "pirate", []byte(doc)); err != nil {
				t.Fatal(err)
			}
			if err := r.Assign(ctx, kitchen, "pirate"); err != nil {
				t.Fatal(err)
			}
			types(ctx, t, d, "say it")
			time.Sleep(time.Second)
			written(ctx, t, h)
			if lengths, _ := sounds(t, data); len(lengths) != min(i, 1) {
				t.Errorf("after turn %d: %v", i+1, lengths)
			}
		}
		if n := strings.Count(h.log.String(), "whose sound of turns is recorded has changed"); n != 2 {
			t.Errorf("the log says it %d times", n)
		}
	})
}

// TestStrangersAreNotRecorded: who says the Device-Id of another one is never recorded, whatever is set for it.
func TestStrangersAreNotRecorded(t *testing.T) {
	data := t.TempDir()
	s := script{
		data: data, llm: []providertest.Step{providertest.Say("First."), providertest.Say("Second.")},
		replace: recordingOf(func(cfg *config.Config) {
			cfg.Recording.Sound = config.RecordBoth
			cfg.Devices.ByID[kitchen] = config.Device{Record: config.RecordBoth}
		}),
	}
	inMemory(t, s, func(ctx context.Context, t *testing.T, h *harness) {
		for i, client := range []string{"8e0c6b2e-7c60-4a3c-9c1c-0d5a3ad1c001", "8e0c6b2e-7c60-4a3c-9c1c-0d5a3ad1c002"} {
			d := h.dial(ctx, devicetest.Options{DeviceID: kitchen, ClientID: client, NoMCP: true})
			types(ctx, t, d, "say it")
			time.Sleep(time.Second)
			written(ctx, t, h)
			if lengths, _ := sounds(t, data); len(lengths) != 1 {
				t.Errorf("after device %d: %v", i+1, lengths)
			}
		}
		if !strings.Contains(h.log.String(), kitchen+"~") {
			t.Error("the second one was no stranger")
		}
	})
}
