package app

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/speak"
	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/text"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// fakeLoad is as busy as a test says.
type fakeLoad struct{ busy bool }

func (l *fakeLoad) TooBusy(int) bool                        { return l.busy }
func (l *fakeLoad) Lag() time.Duration                      { return 50 * time.Millisecond }
func (l *fakeLoad) Watch(ctx context.Context, _ func() int) { <-ctx.Done() }
func (l *fakeLoad) Beats() uint64                           { return 0 }

// farewells runs f with a program that answers every text with a second of sound
// after think, and whose load is given.
func farewells(t *testing.T, think time.Duration, f func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad)) {
	t.Helper()
	l := &fakeLoad{}
	does := script{
		tts: []providertest.Speech{{Length: time.Second}},
		replace: func(h *harness, o *agent.Options) {
			h.app.load, o.Sounds = l, speak.NewCache(o.Prompts)
			h.llm.Answer = func(req providers.LLMRequest) providertest.Step {
				last := req.Messages[len(req.Messages)-1].Content
				return providertest.Say("You said " + last + ".").After(think)
			}
		},
	}
	inMemory(t, does, func(ctx context.Context, t *testing.T, h *harness) { f(ctx, t, h, l) })
}

// stop has the registry end all sessions; the function waits for that.
func (h *harness) stop(ctx context.Context) (wait func()) {
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := h.app.devices.Shutdown(ctx); err != nil {
			h.t.Error(err)
		}
	})
	return wg.Wait
}

// lines are the lines of the log that hold all of the words.
func (h *harness) lines(words ...string) (found []string) {
next:
	for line := range strings.Lines(h.log.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// told waits for the farewell, the whole of it, and for the end of the connection.
func told(ctx context.Context, t *testing.T, d *devicetest.Device, id string) {
	t.Helper()
	reply, err := d.WaitReply(ctx)
	if err != nil {
		t.Fatalf("nothing was said: %v", err)
	}
	if reply.Text() != phrase(t, id) || reply.Frames != soundFrames(t, id) || reply.Dropped != 0 || reply.Underruns != 0 {
		t.Errorf("the device heard %q, %d frames, %d dropped, %d underruns", reply.Text(), reply.Frames, reply.Dropped, reply.Underruns)
	}
	select {
	case <-d.Done():
	case <-ctx.Done():
		t.Error("the connection was not closed")
	}
	synctest.Wait()
	noViolations(t, d)
}

// phrase is a phrase in Chinese.
func phrase(t *testing.T, id string) string {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return set.Phrase(id, string(text.Chinese))
}

// soundFrames is how many frames its sound has.
func soundFrames(t *testing.T, id string) int {
	t.Helper()
	pcm, rate, err := file.ReadWAV(bytes.NewReader(prompts.Sound(id, string(text.Chinese))))
	if err != nil {
		t.Fatal(err)
	}
	length := audio.Format{Rate: rate}.Duration(len(pcm))
	return int((length + audio.Reply.Frame - 1) / audio.Reply.Frame)
}

// repliesOf are the replies so far.
func repliesOf(d *devicetest.Device) (all []*devicetest.Reply) {
	for _, e := range d.Events() {
		if e.Kind == devicetest.KindReply {
			all = append(all, e.Reply)
		}
	}
	return all
}

// closedBy is the code by which the connection of a device was closed, and when.
func closedBy(t *testing.T, d *devicetest.Device) (code string, at time.Time) {
	t.Helper()
	<-d.Done()
	events := d.Events()
	last := events[len(events)-1]
	if last.Kind != devicetest.KindClosed {
		t.Fatalf("the last event is %s %s", last.Kind, last.Text)
	}
	return last.Text, last.At
}

// TestTooBusyNotice: under load a new device is let in, told in its own
// language, and closed, whatever it is and whatever its first word is. Those
// that are here do not notice, and no engine is asked for it.
func TestTooBusyNotice(t *testing.T) {
	for name, o := range map[string]devicetest.Options{
		"firmware":         {Profile: devicetest.Firmware242},
		"firmware, manual": {Profile: devicetest.Firmware242, Mode: devicetest.Manual},
		"realtime":         {Profile: devicetest.Firmware242, Mode: devicetest.Realtime, Sound: devicetest.Sound{AEC: true}, Protocol: 2},
		"wake word":        {Profile: devicetest.Firmware242, Wake: devicetest.Wake{Word: "ni hao xiao zhi", Frames: 33}},
		"older firmware":   {Profile: devicetest.Firmware222Minus, Protocol: 3},
		"oldest firmware":  {Profile: devicetest.OldIoT162, Protocol: 3},
		"py":               {Profile: devicetest.PyXiaozhi},
		"browser":          {Profile: devicetest.Browser},
	} {
		t.Run(name, func(t *testing.T) {
			farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
				o.OpenListen, o.Tools = true, devicetest.NewBoard().Tools()
				old := h.dial(ctx, devicetest.Options{DeviceID: "old", OpenListen: true})
				synctest.Wait()
				l.busy = true
				d := h.dial(ctx, o)
				if err := old.Detect("hello"); err != nil {
					t.Fatal(err)
				}
				told(ctx, t, d, prompts.Overload)
				if reply, err := old.WaitReply(ctx); err != nil || reply.Text() != "You said hello." || reply.Cut || reply.Dropped != 0 || reply.Underruns != 0 {
					t.Errorf("the device that was here before: %+v, %v", reply, err)
				}
				noViolations(t, old)
				if len(h.lines("device left", "server is too busy")) != 1 || len(h.lines("level=WARN", "device turned away")) != 1 {
					t.Errorf("log:\n%s", h.log)
				}
				if len(h.tts.Spoken()) != 1 || len(h.llm.Asked()) != 1 || len(h.asr.Utterances()) > 1 {
					t.Errorf("engines were asked: %d sentences, %d questions", len(h.tts.Spoken()), len(h.llm.Asked()))
				}
				l.busy = false
				again := h.dial(ctx, devicetest.Options{DeviceID: "new", OpenListen: true})
				if err := again.Detect("hello"); err != nil {
					t.Fatal(err)
				}
				if reply, err := again.WaitReply(ctx); err != nil || reply.Text() != "You said hello." {
					t.Errorf("after the rush: %+v, %v", reply, err)
				}
			})
		})
	}
}

// TestTooBusyCapacity: a device that is turned away is in no directory, and is
// given no conversation by registering tools either.
func TestTooBusyCapacity(t *testing.T) {
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
		l.busy = true
		d := h.dial(ctx, devicetest.Options{DeviceID: "d1"})
		if err := d.SendText([]byte(`{"jsonrpc":"2.0","id":"1","method":"mcp/registerTools","params":{"mac_addr":"aa:bb:cc:dd:ee:ff","tools":[]}}`)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := len(h.app.outside.List()); n != 0 {
			t.Errorf("%d devices are listed", n)
		}
		if code, _ := closedBy(t, d); !strings.Contains(code, "1013") {
			t.Errorf("closed by %s", code)
		}
	})
}

// The close code of a device that was turned away says that it may come again.
func TestTooBusyCloseCode(t *testing.T) {
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
		l.busy = true
		d := h.dial(ctx, devicetest.Options{OpenListen: true})
		if code, _ := closedBy(t, d); !strings.Contains(code, "1013") {
			t.Errorf("closed by %s", code)
		}
	})
}

// A device that never listens cannot be told, and is not kept either.
func TestTooBusyNeverListens(t *testing.T) {
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
		l.busy = true
		began := time.Now()
		d := h.dial(ctx, devicetest.Options{})
		_, at := closedBy(t, d)
		if lived := at.Sub(began); lived > 5*time.Second+time.Second || d.Stats().FramesIn != 0 {
			t.Errorf("lived for %v, got %d frames", lived, d.Stats().FramesIn)
		}
	})
}

// A device that is busy with its own connection comes back into its own place.
func TestTooBusyReplacement(t *testing.T) {
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
		h.dial(ctx, devicetest.Options{DeviceID: "d1", OpenListen: true})
		l.busy = true
		d := h.dial(ctx, devicetest.Options{DeviceID: "d1", OpenListen: true})
		if err := d.Detect("hello"); err != nil {
			t.Fatal(err)
		}
		if reply, err := d.WaitReply(ctx); err != nil || reply.Text() != "You said hello." {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

// The button ends a farewell like any reply: a silent frame, the stop, the end.
func TestNoticeCut(t *testing.T) {
	for name, reason := range map[string]string{"button": "", "wake word": devicetest.WakeWord} {
		t.Run(name, func(t *testing.T) {
			farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
				l.busy = true
				d := h.dial(ctx, devicetest.Options{OpenListen: true})
				if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(400 * time.Millisecond)
				if err := d.Abort(reason); err != nil {
					t.Fatal(err)
				}
				reply, err := d.WaitReply(ctx)
				if err != nil || !reply.Cut || reply.Frames >= soundFrames(t, prompts.Overload) {
					t.Errorf("reply %+v, %v", reply, err)
				}
				<-d.Done()
				synctest.Wait()
				noViolations(t, d)
			})
		})
	}
}

// TestNoticeCutByText: a text, or a wake word, ends a farewell as it ends a reply.
func TestNoticeCutByText(t *testing.T) {
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
		l.busy = true
		d := h.dial(ctx, devicetest.Options{Mode: devicetest.Auto, OpenListen: true})
		if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		began := time.Now()
		if err := d.Detect("tell me something"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.WaitText(ctx, "tts", "stop"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("tts stop after %v", took)
		}
		<-d.Done()
		synctest.Wait()
		noViolations(t, d)
	})
}

// TestNoticeAfterTheButton: who speaks with the button held is told when it is
// let go, for then the device is idle and would miss what plays; a farewell over a
// button that is held too long ends with it.
func TestNoticeAfterTheButton(t *testing.T) {
	for _, held := range []time.Duration{50 * time.Millisecond, 3 * time.Second} {
		t.Run(held.String(), func(t *testing.T) {
			farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
				l.busy = true
				d := h.dial(ctx, devicetest.Options{Mode: devicetest.Manual, OpenListen: true})
				time.Sleep(held)
				if err := d.ListenStop(); err != nil {
					t.Fatal(err)
				}
				told(ctx, t, d, prompts.Overload)
			})
		})
	}
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, l *fakeLoad) {
		l.busy = true
		d := h.dial(ctx, devicetest.Options{Mode: devicetest.Manual, OpenListen: true})
		if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		if err := d.ListenStop(); err != nil {
			t.Fatal(err)
		}
		<-d.Done()
		for _, v := range d.Violations() {
			// What was on its way when the button was let go is lost, and the stop is
			// for a reply that the device has left by itself.
			if v.Rule != devicetest.RuleFrameDropped && v.Rule != devicetest.RuleStopEarly {
				t.Errorf("violation: %v", v)
			}
		}
		if s := d.Stats(); s.Dropped > 2 {
			t.Errorf("%d frames for a device that is idle", s.Dropped)
		}
	})
}

// TestShutdownDuringReply stops the server in the middle of a turn: the
// device hears its reply to the end, or 9.5 s of it; whoever waits for nothing is
// closed at once.
func TestShutdownDuringReply(t *testing.T) {
	for name, c := range map[string]struct {
		think time.Duration
		sound time.Duration
		typed bool
		until string        // the state of tts that is waited for, before the server stops; "": none
		want  time.Duration // after which the connection is closed
		cut   bool
	}{
		"no turn":      {},
		"turn is over": {typed: true, sound: time.Second, until: "stop"},
		"thinking":     {typed: true, sound: time.Second, think: 2 * time.Second, want: 3225 * time.Millisecond},
		"speaking":     {typed: true, sound: time.Second, until: "sentence_start", want: 1120 * time.Millisecond},
		"endless":      {typed: true, sound: 20 * time.Second, until: "start", want: 9500 * time.Millisecond, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			farewells(t, c.think, func(ctx context.Context, t *testing.T, h *harness, _ *fakeLoad) {
				h.tts.Script[0].Length = c.sound
				d := h.dial(ctx, devicetest.Options{})
				if c.typed {
					if err := d.Detect("hello"); err != nil {
						t.Fatal(err)
					}
				}
				if c.until != "" {
					if _, err := d.WaitText(ctx, "tts", c.until); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				began := time.Now()
				h.stop(ctx)()
				code, at := closedBy(t, d)
				// The device is given half a second to close its side.
				if took := at.Sub(began); !strings.Contains(code, "1000") || took < c.want || took > c.want+600*time.Millisecond {
					t.Errorf("closed by %s after %v, want after %v", code, took, c.want)
				}
				replies := repliesOf(d)
				if !c.typed && len(replies) == 0 {
					return
				}
				if len(replies) != 1 || replies[0].Stopped.IsZero() || replies[0].Cut || !c.cut && replies[0].Frames != 17 {
					t.Errorf("replies %+v", replies[0])
				}
			})
		})
	}
}

// TestShutdownWhileListening: whoever may be about to say something hears
// that the server stops.
func TestShutdownWhileListening(t *testing.T) {
	for _, mode := range []devicetest.Mode{devicetest.Auto, devicetest.Realtime, devicetest.Manual} {
		t.Run(string(mode), func(t *testing.T) {
			farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, _ *fakeLoad) {
				d := h.dial(ctx, devicetest.Options{Mode: mode, OpenListen: true})
				time.Sleep(time.Second)
				began := time.Now()
				wait := h.stop(ctx)
				told(ctx, t, d, prompts.ShuttingDown)
				length := time.Duration(soundFrames(t, prompts.ShuttingDown)) * audio.Reply.Frame
				if wait(); time.Since(began) > length+time.Second {
					t.Errorf("stopped after %v", time.Since(began))
				}
			})
		})
	}
}

// TestShutdownWhileSpeaking: nothing that is said once the server stops is
// answered, nor is anything that is asked for from outside told: it waits; the farewell is whole.
func TestShutdownWhileSpeaking(t *testing.T) {
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, _ *fakeLoad) {
		d := h.dial(ctx, devicetest.Options{Mode: devicetest.Realtime, OpenListen: true})
		synctest.Wait()
		id := h.app.outside.List()[0].ID
		wait := h.stop(ctx)
		var said sync.WaitGroup
		said.Go(func() { sayAll(ctx, t, d, time.Second) })
		said.Go(func() {
			time.Sleep(300 * time.Millisecond)
			if said, err := h.app.outside.Say(ctx, id, "hello", true); err == nil && (said.Fate == "" || said.Heard != "") {
				t.Errorf("something was said from outside: %+v", said)
			}
		})
		told(ctx, t, d, prompts.ShuttingDown)
		wait()
		said.Wait()
		if len(repliesOf(d)) != 1 || len(h.llm.Asked()) != 0 {
			t.Errorf("%d replies, %d questions", len(repliesOf(d)), len(h.llm.Asked()))
		}
	})
}

// TestShutdownAfterAReply: a reply that runs is heard to its end; if the user
// cuts it to say something new, the farewell follows.
func TestShutdownAfterAReply(t *testing.T) {
	for name, cut := range map[string]bool{"heard": false, "cut": true} {
		t.Run(name, func(t *testing.T) {
			farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, _ *fakeLoad) {
				d := h.dial(ctx, devicetest.Options{OpenListen: true})
				if err := d.Detect("hello"); err != nil {
					t.Fatal(err)
				}
				if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
					t.Fatal(err)
				}
				wait := h.stop(ctx)
				time.Sleep(300 * time.Millisecond)
				if cut {
					if err := d.Abort(""); err != nil {
						t.Fatal(err)
					}
				}
				reply, err := d.WaitReply(ctx)
				if err != nil || reply.Text() != "You said hello." || reply.Cut != cut || !cut && (reply.Frames < 16 || reply.Dropped != 0) {
					t.Errorf("reply %+v, %v", reply, err)
				}
				if cut {
					told(ctx, t, d, prompts.ShuttingDown)
				}
				wait()
				<-d.Done()
				synctest.Wait()
				noViolations(t, d)
				if n := len(repliesOf(d)); !cut && n != 1 {
					t.Errorf("%d replies", n)
				}
			})
		})
	}
}

// TestShutdownBeforeAnswer: the button was let go, or something was
// typed, and nothing of the answer is there yet; it is still heard.
func TestShutdownBeforeAnswer(t *testing.T) {
	for name, o := range map[string]devicetest.Options{"button": {Mode: devicetest.Manual, OpenListen: true}, "typed": {}} {
		t.Run(name, func(t *testing.T) {
			farewells(t, 2*time.Second, func(ctx context.Context, t *testing.T, h *harness, _ *fakeLoad) {
				d := h.dial(ctx, o)
				h.asr.Script = []providertest.Hearing{{Text: "what time is it", Language: "en", Delay: 200 * time.Millisecond}}
				var err error
				if o.OpenListen {
					err = errors.Join(d.Say(ctx, speech(time.Second)), d.ListenStop())
				} else {
					err = d.Detect("what time is it")
				}
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				h.stop(ctx)()
				<-d.Done()
				if replies := repliesOf(d); len(replies) != 1 || replies[0].Text() != "You said what time is it." || replies[0].Cut || replies[0].Frames != 17 {
					t.Errorf("%d replies, %+v", len(replies), *replies[0])
				}
			})
		})
	}
}

// While the server stops, new connections are refused before the upgrade.
func TestShutdownRefusesDevices(t *testing.T) {
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, _ *fakeLoad) {
		d := h.dial(ctx, devicetest.Options{OpenListen: true})
		synctest.Wait() // the server has read that the device listens
		wait := h.stop(ctx)
		time.Sleep(500 * time.Millisecond)
		near, far := net.Pipe()
		h.ln.come <- atHome{far}
		_, err := devicetest.Dial(ctx, devicetest.Options{DeviceID: "late", URL: "ws://memory/xiaozhi/v1/", NetConn: near})
		if err == nil || !strings.Contains(err.Error(), http.StatusText(http.StatusServiceUnavailable)) {
			t.Errorf("dialled: %v", err)
		}
		told(ctx, t, d, prompts.ShuttingDown)
		wait()
	})
}

// A drain that is given too little time ends all the same, with a stop.
func TestShutdownCutShort(t *testing.T) {
	farewells(t, 0, func(ctx context.Context, t *testing.T, h *harness, _ *fakeLoad) {
		d := h.dial(ctx, devicetest.Options{OpenListen: true})
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		if err := h.app.devices.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown: %v", err)
		}
		<-d.Done()
	})
}
