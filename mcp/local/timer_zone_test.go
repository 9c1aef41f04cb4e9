package local_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, wherever they run

	"xiaozhi/mcp"
	"xiaozhi/mcp/local"
	"xiaozhi/mcp/router"
)

// TestTimerZone: a reminder is at that hour where the speaker
// stands, wherever the server does, and a length of time is exact over a change
// of the clocks.
func TestTimerZone(t *testing.T) {
	for _, test := range []struct {
		zone, now       string
		tool, arguments string
		want            string
	}{
		{"Asia/Shanghai", "2026-11-21T16:30:00Z", "set_reminder", `{"time":"明天早上七点半","text":"开会"}`, "2026-11-23T07:30:00+08:00"}, // there it is the 22nd
		{"Asia/Shanghai", "2026-11-21T16:30:00Z", "set_reminder", `{"time":"下周三下午三点","text":"开会"}`, "2026-11-25T15:00:00+08:00"},
		{"America/Los_Angeles", "2026-11-21T05:00:00Z", "set_reminder", `{"time":"tomorrow at noon","text":"lunch"}`, "2026-11-21T12:00:00-08:00"}, // there it is the 20th
		{"America/New_York", "2026-03-08T03:00:00Z", "set_reminder", `{"time":"tomorrow at 7 am","text":"x"}`, "2026-03-08T07:00:00-04:00"},
		{"America/New_York", "2026-03-08T03:00:00Z", "set_timer", `{"duration":"8 hours"}`, "2026-03-08T07:00:00-04:00"},
		{"America/New_York", "2026-03-08T03:00:00Z", "set_timer", `{"seconds":28800}`, "2026-03-08T07:00:00-04:00"},
		{"Europe/London", "2026-10-24T22:00:00Z", "set_reminder", `{"time":"明天早上八点","text":"x"}`, "2026-10-25T08:00:00Z"},
		{"Europe/London", "2026-10-24T22:00:00Z", "set_timer", `{"duration":"after 90 minutes"}`, "2026-10-25T00:30:00+01:00"},
		{"Asia/Kolkata", "2028-02-28T18:31:00Z", "set_reminder", `{"time":"今晚八点","text":"x"}`, "2028-02-29T20:00:00+05:30"},
		{"Asia/Shanghai", "2026-11-21T07:04:05Z", "set_timer", `{"duration":"十分钟后叫我","text":"关火"}`, "2026-11-21T15:14:05+08:00"},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		s := local.New(local.Options{Now: func() time.Time { return now }})
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		box := router.New(router.Options{}, s)
		p, refused := box.Prepare(mcp.Call{ID: "c1", Name: test.tool, Arguments: test.arguments})
		if refused != nil {
			t.Fatalf("%s: %+v", test.arguments, refused)
		}
		r := box.Run(mcp.WithInfo(t.Context(), mcp.Info{Language: "zh", Zone: zone}), p)
		handed, ok := r.Result.(mcp.ActionResponseCall)
		args, isTimer := handed.Args.(mcp.TimerArgs)
		if !ok || !isTimer || args.Due.Format(time.RFC3339) != test.want {
			t.Errorf("%s, %s: %+v, want %s", test.zone, test.arguments, r.Result, test.want)
		}
		box.Close()
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
}
