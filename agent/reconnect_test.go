package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature/remote"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// visit is one connection of a device that comes and goes.
type visit struct {
	c     *Conversation
	d     remote.Device
	box   *box
	tools *router.Router
	leave context.CancelFunc
	over  chan struct{}
}

// connect holds a conversation until bye.
func connect(t *testing.T, o Options, limits router.Options, sources ...mcp.Source) *visit {
	t.Helper()
	v := &visit{box: newBox(), tools: router.New(limits, sources...), over: make(chan struct{})}
	if o.Features == nil {
		o.Features = allFeatures(nil)
	}
	v.c = New(o, wire.Session{DeviceID: "d", Language: "en"}, v.box, v.tools)
	v.d = remote.New(v.c, "d", v.tools)
	ctx, cancel := context.WithCancel(t.Context())
	v.leave = cancel
	go func() {
		defer close(v.over)
		defer v.tools.Close()
		v.c.Run(ctx)
	}()
	synctest.Wait()
	return v
}

func (v *visit) bye() {
	v.leave()
	<-v.over
	synctest.Wait()
}

func (v *visit) types(t *testing.T, text string) {
	t.Helper()
	if err := v.c.Post(wire.Detect{Text: text}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// results are the tool results of the history, by the id of the call.
func results(t *testing.T, messages []providers.Message) map[string]string {
	t.Helper()
	checkHistory(t, messages)
	out := map[string]string{}
	for _, m := range messages {
		if m.Role == providers.RoleTool {
			out[m.ToolCallID] = m.Content
		}
	}
	return out
}

// TestReconnect: the device goes in the middle of a query, a control and a job,
// and comes back. Every call has exactly one result, nothing is done twice, and
// what is there to be told is told once.
func TestReconnect(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		tool  string
		job   string
		away  time.Duration
		first string // the result when the device has gone
		then  string // after it has come back
		told  string // what the second connection says by itself; "" for nothing
	}{
		"query": {tool: "look@device query 5s seen", away: time.Second, first: "the call was given up", then: "the call was given up"},
		"control": {
			tool: "push@device control 5s true", away: time.Second, first: "success", then: "ending the connection",
			told: "I do not know whether this was done, because the connection broke off: push.",
		},
		"job, away":     {tool: "dig@external:x query 20s Gold", job: "dig", away: time.Minute, first: "it has begun", then: "Gold", told: "Found gold."},
		"job, back":     {tool: "dig@external:x query 20s Gold", job: "dig", away: time.Second, first: "it has begun", then: "Gold", told: "Found gold."},
		"job of device": {tool: "dig@device query 20s Gold", job: "dig", away: time.Second, first: "it has begun", then: "Gold", told: "Found gold."},
		"job that says": {tool: "dig@external:x query 20s !say Gold!", job: "dig", away: time.Minute, first: "it has begun", then: "Gold!", told: "Gold!"},
		"job that fails": {
			tool: "dig@external:x query 20s !error no spade", job: "dig", away: time.Minute, first: "it has begun", then: "no spade",
			told: "Sorry, I could not dig: no spade.",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var detectors sync.WaitGroup
				var log strings.Builder
				tool, _, _ := strings.Cut(test.tool, "@")
				llm := &scriptLLM{lines: []string{"call " + tool + " {}", "end", "text Yes.", "end"}}
				if test.told == "Found gold." {
					llm.lines = append(llm.lines, "text Found gold.", "end")
				}
				o := Options{
					VAD: energyVAD{&detectors}, ASR: &scriptASR{}, LLM: llm, TTS: &toneTTS{rate: 16000}, Prompts: set,
					Devices: NewDevices(), Zone: time.UTC, Log: debugLog(&log),
				}
				limits := router.Options{Log: o.Log}
				if test.job != "" {
					limits.Jobs = []string{test.job}
				}
				source := newScriptSource("device", []string{test.tool})
				v := connect(t, o, limits, source)
				dev := v.c.dev
				v.types(t, "do it")
				time.Sleep(time.Second)
				v.bye()
				check := func(want string) {
					t.Helper()
					dev.history.Unpack()
					got := results(t, dev.history.Snapshot())
					if len(got) != 1 || !strings.Contains(fmt.Sprint(got), want) {
						t.Errorf("results %v, want one with %q", got, want)
					}
				}
				check(test.first)
				time.Sleep(test.away)
				v = connect(t, o, limits, source)
				if v.c.dev != dev {
					t.Fatal("another record")
				}
				time.Sleep(40 * time.Second)
				v.bye()
				check(test.then)
				said := v.box.String()
				if n := strings.Count(said, "tts start"); (test.told == "" && n != 0) || (test.told != "" && n != 1) {
					t.Errorf("%d replies of its own:\n%s", n, said)
				}
				if test.told != "" && !strings.Contains(said, "final "+test.told) {
					t.Errorf("does not say %q:\n%s", test.told, said)
				}
				if len(source.calls) != 1 {
					t.Errorf("calls: %q", source.calls)
				}
				o.Devices.Close()
				detectors.Wait()
				if t.Failed() {
					t.Log(log.String())
				}
			})
		})
	}
}

// TestAlarmWhileAway: a timer that was due without a connection is told on the next.
func TestAlarmWhileAway(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		o := Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, TTS: &toneTTS{rate: 16000}, Prompts: set, Devices: NewDevices(), Zone: time.UTC,
			LLM: &scriptLLM{lines: []string{"call set {}", "end"}}, Features: allFeatures(nil),
		}
		source := newScriptSource("local", []string{`set query 0s !handler mcp_handler_timer {"action":"set","due":"1h","reminder":true,"text":"Bread"}`})
		v := connect(t, o, router.Options{}, source)
		v.types(t, "bread in an hour")
		time.Sleep(5 * time.Second)
		v.bye()
		time.Sleep(2 * time.Hour)
		other := connect(t, o, router.Options{}) // has old records thrown away
		other.bye()
		v = connect(t, o, router.Options{}, source)
		time.Sleep(10 * time.Second)
		v.bye()
		if said := v.box.String() + other.box.String(); strings.Count(said, "final This is a reminder: Bread. It was due at 1:00.") != 1 {
			t.Errorf("said\n%s", said)
		}
		o.Devices.Close()
	})
}
