package e2e

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
)

// TestRemindersSurviveKill: what was confirmed rings after kill -9, on the same data: a timer
// once and late, a reminder that recurs still there. What was deleted stays so.
func TestRemindersSurviveKill(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	dir, o := t.TempDir(), devicetest.Options{DeviceID: newDeviceID(), ClientID: "8e0c6b2e-7c60-4a3c-9c1c-0d5a3ad1c001"}
	boot := func() *server {
		s, err := launch(setup{}, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = s.end() // one was killed
			if t.Failed() {
				t.Logf("the server's log:\n%s", s.log.String())
			}
		})
		return s
	}
	s := boot()
	d := s.dial(ctx, t, o)
	for said, want := range map[string]string{
		"every weekday at 7 remind me to take the pills": "every weekday at 7:00",
		"明天早上八点提醒我开会":                                    "明天8点提醒你",
		"set a timer for twenty minutes":                 "20 minutes",
	} {
		if r := ask(ctx, t, d, said); !strings.Contains(r.Text(), want) {
			t.Errorf("%q: %q, want %q", said, r.Text(), want)
		}
	}
	if r := ask(ctx, t, d, "cancel the timer"); !strings.Contains(r.Text(), "cancelled") {
		t.Errorf("cancelled: %q", r.Text())
	}
	if r := ask(ctx, t, d, "remind me in 5 seconds to feed the cat"); !strings.Contains(r.Text(), "5 seconds") {
		t.Errorf("the last order: %q", r.Text())
	}
	confirmed := time.Now()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.over
	d.Close()
	time.Sleep(time.Until(confirmed.Add(6 * time.Second))) // it is due while nobody is there

	s = boot()
	d = s.dial(ctx, t, o)
	if r := reply(ctx, t, d); !strings.Contains(r.Text(), "feed the cat") {
		t.Errorf("after the end: %q", r.Text())
	}
	r := ask(ctx, t, d, "what reminders do I have")
	if !strings.Contains(r.Text(), "There are 2") || !strings.Contains(r.Text(), "take the pills, every weekday at 7:00") || !strings.Contains(r.Text(), "开会") {
		t.Errorf("what is kept: %q", r.Text())
	}
}

// TestTimeOfReminderFollows: who asks for a reminder without a time is asked for it, and only has to say that.
func TestTimeOfReminderFollows(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{})
	d := s.dial(ctx, t, devicetest.Options{})
	if r := ask(ctx, t, d, "remind me to take the bread out"); !strings.Contains(r.Text(), "say when") {
		t.Errorf("asked for: %q", r.Text())
	}
	if r := ask(ctx, t, d, "tomorrow at 7"); !strings.Contains(r.Text(), "7:00") {
		t.Errorf("once the time is said: %q", r.Text())
	}
	if r := ask(ctx, t, d, "what reminders do I have"); !strings.Contains(r.Text(), "take the bread out, tomorrow at 7:00") {
		t.Errorf("what is kept: %q", r.Text())
	}
}
