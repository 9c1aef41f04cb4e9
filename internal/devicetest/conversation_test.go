package devicetest

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A conversation by the book breaks no rule, on every framing and profile.
func TestGoodConversation(t *testing.T) {
	tests := []struct {
		name string
		o    Options
	}{
		{"auto", Options{OpenListen: true}},
		{"manual", Options{OpenListen: true, Mode: Manual}},
		{"realtime", Options{OpenListen: true, Mode: Realtime, Sound: Sound{AEC: true}}},
		{"framing 2", Options{OpenListen: true, Protocol: 2}},
		{"framing 3", Options{OpenListen: true, Protocol: 3}},
		{"strict lead", Options{OpenListen: true, Limits: Limits{StrictLead: true}}},
		{"old", Options{OpenListen: true, Profile: OldIoT162}},
		{"before 2.2.2", Options{OpenListen: true, Profile: Firmware222Minus}},
		{"desktop", Options{OpenListen: true, Profile: PyXiaozhi}},
		{"browser", Options{OpenListen: true, Profile: Browser}},
		{"woken", Options{OpenListen: true, Wake: Wake{Word: "hi xiaozhi", Frames: 33}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := talk(t, tt.o, func(w *wire) {
				w.hello()
				w.await(`"state":"start"`)
				w.begin()
				for i := range 20 {
					w.binaryOut(frameUp(max(tt.o.Protocol, 1), 0, w.packet(false)))
					if i >= 3 {
						w.pause(60 * time.Millisecond)
					}
				}
				w.pause(280 * time.Millisecond)
				w.stop()
				w.pause(time.Second)
			}, nil)
			if got := d.Violations(); len(got) != 0 {
				t.Fatalf("violations: %v", got)
			}
			if s := d.Stats(); s.Dropped != 0 || s.Underruns != 0 || s.FramesIn != 20 || s.Replies != 1 {
				t.Errorf("stats: %+v", s)
			}
		})
	}
}

// One reply is collected whole: words, mood, sound and times.
func TestReply(t *testing.T) {
	d := talk(t, Options{OpenListen: true}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.reply(20)
		w.await(`"state":"start"`)
	}, func(ctx context.Context, d *Device) {
		r, err := d.WaitReply(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		if r.Heard != "what time is it" || r.Text() != "It is ten past nine." || r.Emotion != "happy" {
			t.Errorf("words: %+v", r)
		}
		if r.Frames != 20 || r.Dropped != 0 || r.Cut || r.Duration() != 1200*time.Millisecond {
			t.Errorf("sound: %d frames, %d dropped, cut %v, %s", r.Frames, r.Dropped, r.Cut, r.Duration())
		}
		if r.LeadMax != 240*time.Millisecond || r.LeadMin != 240*time.Millisecond {
			t.Errorf("lead %s to %s, want 240ms", r.LeadMin, r.LeadMax)
		}
		if got := r.FirstFrame.Sub(r.Started); got != 110*time.Millisecond {
			t.Errorf("first frame %s after tts start", got)
		}
		if got := r.Stopped.Sub(r.PlayedOut); got != 100*time.Millisecond {
			t.Errorf("tts stop %s after play-out", got)
		}
	})
	if got := d.Violations(); len(got) != 0 {
		t.Fatalf("violations: %v", got)
	}
}

// After an early tts stop present firmware plays out before it listens; before
// 2.2.2 and on the desktop the rest is lost.
func TestRelisten(t *testing.T) {
	tests := []struct {
		profile Profile
		waits   time.Duration
		plays   time.Duration
	}{
		{Firmware242, 240 * time.Millisecond, 240 * time.Millisecond},
		{Firmware222Minus, 0, 60 * time.Millisecond},
		{PyXiaozhi, 0, 60 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.profile.String(), func(t *testing.T) {
			var stopped, listened time.Time
			d := talk(t, Options{OpenListen: true, Profile: tt.profile}, func(w *wire) {
				w.hello()
				w.await(`"state":"start"`)
				w.begin()
				w.tone(4)
				stopped = time.Now()
				w.stop()
				w.await(`"state":"start"`)
				listened = time.Now()
			}, func(ctx context.Context, d *Device) {
				r, err := d.WaitReply(ctx)
				if err != nil || r.Duration() != tt.plays {
					t.Errorf("played %s (%v), want %s", r.Duration(), err, tt.plays)
				}
			})
			if got := listened.Sub(stopped); got != tt.waits {
				t.Errorf("listens %s after tts stop, want %s", got, tt.waits)
			}
			if got := strings.Join(rules(d), " "); got != string(RuleStopEarly) {
				t.Errorf("violations: %s", got)
			}
		})
	}
}

// In realtime mode one listen start serves all turns, and the microphone stays open.
func TestRealtimeKeepsMicrophone(t *testing.T) {
	d := talk(t, Options{OpenListen: true, Mode: Realtime}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.reply(10)
		w.reply(10)
		w.pause(time.Second)
		if len(w.in) != 0 {
			t.Errorf("the device sent %s", <-w.in)
		}
		if len(w.binary) == 0 {
			t.Error("no microphone frames during the replies")
		}
	}, func(ctx context.Context, d *Device) {
		if err := d.Silence(ctx, time.Second); err != nil {
			t.Error(err)
		}
	})
	if s := d.Stats(); s.Replies != 2 || s.Unheard != 0 {
		t.Errorf("stats: %+v", s)
	}
}

// The button leaves the device speaking until tts stop comes; the wake word does not.
func TestAbort(t *testing.T) {
	tests := []struct {
		name, reason string
		profile      Profile
		after        State
	}{
		{"button", "", Firmware242, Speaking},
		{"wake word", WakeWord, Firmware242, Listening},
		{"desktop", "", PyXiaozhi, Listening},
		{"browser", "", Browser, Idle},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := talk(t, Options{OpenListen: true, Profile: tt.profile}, func(w *wire) {
				w.hello()
				w.await(`"state":"start"`)
				w.begin()
				w.tone(6)
				if m := w.await(`"type":"abort"`); strings.Contains(m, "reason") != (tt.reason != "") {
					t.Errorf("abort message: %s", m)
				}
				w.pause(10 * time.Millisecond) // the user looks at the state meanwhile
				w.binaryOut(w.packet(true))
				w.stop()
				w.pause(time.Second)
			}, func(ctx context.Context, d *Device) {
				if _, err := d.WaitText(ctx, "tts", "sentence_start"); err != nil {
					t.Error(err)
				}
				<-time.After(300 * time.Millisecond)
				if err := d.Abort(tt.reason); err != nil {
					t.Error(err)
				}
				if got := d.State(); got != tt.after {
					t.Errorf("%s after the abort, want %s", got, tt.after)
				}
				r, err := d.WaitReply(ctx)
				if err != nil || !r.Cut {
					t.Errorf("reply %+v, %v: want it cut", r, err)
				}
			})
			if got := d.Violations(); len(got) != 0 {
				t.Errorf("violations: %v", got)
			}
		})
	}
}

// A tool holds the main task: tts start is applied late, and sound sent meanwhile is lost. Whoever forgives lateness forgives that.
func TestToolFreezesDevice(t *testing.T) {
	slow := Tool{Name: "self.slow", Description: "slow", Call: func(context.Context, Call) (Result, error) {
		<-time.After(2 * time.Second)
		return Result{Text: "true"}, nil
	}}
	for _, tolerance := range []time.Duration{0, 3 * time.Second} {
		d := talk(t, Options{OpenListen: true, Tools: []Tool{slow}, Limits: Limits{Tolerance: tolerance}}, func(w *wire) {
			w.hello()
			w.await(`"state":"start"`)
			w.say(mcp(7, "tools/call", `{"name":"self.slow"}`))
			w.pause(10 * time.Millisecond)
			w.begin()
			w.tone(10)
			w.await(`"id":7`)
			w.pause(time.Second)
		}, nil)
		got := rules(d)
		if told := strings.Contains(strings.Join(got, " "), string(RuleFrameDropped)); told != (tolerance == 0) {
			t.Errorf("tolerance %s: violations %v", tolerance, got)
		}
		lost := 10
		if tolerance > 0 {
			lost = 0
		}
		if s := d.Stats(); s.Dropped != lost || s.ToolCalls != 1 {
			t.Errorf("tolerance %s: stats: %+v", tolerance, s)
		}
	}
}

// A device that freezes reads and hears nothing while a tool runs. What was in
// its reply before the tool is forgiven; a reply that begins meanwhile is not.
func TestToolFreezesAll(t *testing.T) {
	slow := Tool{Name: "self.slow", Description: "slow", Call: func(context.Context, Call) (Result, error) {
		<-time.After(2 * time.Second)
		return Result{Text: "true"}, nil
	}}
	tests := map[string]struct {
		script  func(w *wire)
		dropped int // at most: frames behind a start that the main task has not seen yet may fall
		want    string
	}{
		"tts start before the tool": {func(w *wire) {
			w.begin()
			w.say(mcp(7, "tools/call", `{"name":"self.slow"}`))
			w.pause(10 * time.Millisecond)
			w.tone(10) // 600 ms, read 2 s later
			w.await(`"id":7`)
			w.pause(280 * time.Millisecond)
			w.stop()
		}, 0, ""},
		"tts start behind the tool": {func(w *wire) {
			w.say(mcp(7, "tools/call", `{"name":"self.slow"}`))
			w.pause(10 * time.Millisecond)
			w.begin()
			w.tone(10)
			w.await(`"id":7`)
			w.pause(280 * time.Millisecond)
			w.stop()
		}, 10, string(RuleEarlyFrame)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			heard := 0
			d := talk(t, Options{OpenListen: true, Mode: Realtime, Quirks: Quirks{Freezes: true}, Tools: []Tool{slow}}, func(w *wire) {
				w.hello()
				w.await(`"state":"start"`)
				test.script(w)
				w.pause(3 * time.Second)
				heard = len(w.binary)
			}, func(ctx context.Context, d *Device) {
				if err := d.Silence(ctx, 4*time.Second); err != nil {
					t.Error(err)
				}
			})
			if got := strings.Join(rules(d), " "); !strings.Contains(got, test.want) || test.want == "" && got != "" {
				t.Errorf("violations %s, want %s", got, test.want)
			}
			s := d.Stats()
			if s.Dropped > test.dropped || s.FramesIn != 10 || s.ToolCalls != 1 {
				t.Errorf("stats: %+v", s)
			}
			if s.Unheard < 33 || s.Unheard > 34 || heard == 0 { // 2 s at 60 ms
				t.Errorf("%d frames unheard, %d heard", s.Unheard, heard)
			}
		})
	}
}

// Push to talk: the device is idle at once when the button is let go, and speaks from there.
func TestManual(t *testing.T) {
	d := talk(t, Options{OpenListen: true, Mode: Manual}, func(w *wire) {
		w.hello()
		w.await(`"state":"start"`)
		w.await(`"state":"stop"`)
		w.pause(20 * time.Millisecond)
		w.reply(5)
		w.pause(time.Second)
		if len(w.in) != 0 {
			t.Errorf("the device sent %s", <-w.in)
		}
	}, func(ctx context.Context, d *Device) {
		if err := d.Say(ctx, buzz(0, 16000)); err != nil {
			t.Error(err)
		}
		if err := d.ListenStop(); err != nil {
			t.Error(err)
		}
		if got := d.State(); got != Idle {
			t.Errorf("%s after letting go", got)
		}
		if err := d.WaitState(ctx, Speaking); err != nil {
			t.Error(err)
		}
		if err := d.WaitState(ctx, Idle); err != nil {
			t.Error(err)
		}
	})
	if got := d.Violations(); len(got) != 0 {
		t.Errorf("violations: %v", got)
	}
}
