package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/speechtest"
)

// workshop is a device whose tools note how often they ran.
type workshop struct {
	mu  sync.Mutex
	ran map[string]int
}

func (w *workshop) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ran[what]++
}

func (w *workshop) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.ran)
}

// tool is one that takes a while, and gives or refuses its result.
func (w *workshop) tool(name string, takes time.Duration, result string, err error) devicetest.Tool {
	low, high := 0, 100
	level := devicetest.Property{Name: "level", Type: "integer", Default: 0, Min: &low, Max: &high}
	return devicetest.Tool{
		Name: name, Description: "For a test: " + name, Properties: []devicetest.Property{level},
		Call: func(ctx context.Context, c devicetest.Call) (devicetest.Result, error) {
			w.note(fmt.Sprint(name, " ", c.Arguments["level"]))
			select {
			case <-time.After(takes):
			case <-ctx.Done():
			}
			return devicetest.Result{Text: result}, err
		},
	}
}

// tools are of both kinds, and one fails.
func (w *workshop) tools() []devicetest.Tool {
	return []devicetest.Tool{
		w.tool("self.lamp.set_level", 20*time.Millisecond, "true", nil),
		w.tool("self.gate.open", 200*time.Millisecond, "", errors.New("the gate is stuck")),
		w.tool("self.meter.get_reading", 100*time.Millisecond, "seventeen", nil),
	}
}

// workbench is a server, its model and a device with tools.
func workbench(ctx context.Context, t *testing.T, o devicetest.Options) (*openaitest.Server, *workshop, *devicetest.Device) {
	t.Helper()
	cloud, w := startCloud(t), &workshop{ran: map[string]int{}}
	s := start(t, setup{speaks: true, env: append(cloudEnv(cloud), "XIAOZHI_LLM=openai"), config: fmt.Sprintf(
		"asr: [ears]\ntools: {kinds: {self.gate.open: control}}\nproviders: {ears: {type: openai, base_url: %q, api_key: k, asr_model: ears-1}}\n", cloud.URL())})
	cloud.Reply(openaitest.Transcribe, openaitest.JSON(200, `{"text":"are you still there"}`))
	o.Tools = w.tools()
	d := s.dial(ctx, t, o)
	s.waitForTools(ctx, t, d)
	return cloud, w, d
}

// dialogue reads the messages of a request: every call has exactly one result,
// right behind the message that made it.
func dialogue(t *testing.T, r *openaitest.Request) (results map[string]string, text string) {
	t.Helper()
	var body struct {
		Messages []struct {
			Role       string `json:"role"`
			Content    string `json:"content"`
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	results = map[string]string{}
	open := map[string]bool{}
	for i, m := range body.Messages {
		text += m.Role + ": " + m.Content + "\n"
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				t.Errorf("message %d: a result for %s, which is not open", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			results[m.ToolCallID] = m.Content
			continue
		}
		if len(open) > 0 {
			t.Errorf("message %d: no result for %v", i, open)
		}
		for _, c := range m.ToolCalls {
			if _, used := results[c.ID]; used || open[c.ID] {
				t.Errorf("message %d: id %s is used twice", i, c.ID)
			}
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		t.Errorf("no result for %v", open)
	}
	return results, text
}

func call(id, name, arguments string) openaitest.Call {
	return openaitest.Call{ID: id, Name: name, Arguments: arguments}
}

// toolTalk is one of the conversations with tools.
type toolTalk struct {
	replies []openaitest.Reply
	said    string            // what the device hears
	results map[string]string // what the model is told, by call id; each holds the text
	ran     map[string]int    // what the device did
}

func toolTalks() map[string]toolTalk {
	lamp, gate, meter := "self_lamp_set_level", "self_gate_open", "self_meter_get_reading"
	return map[string]toolTalk{
		"parallel": {
			replies: []openaitest.Reply{
				openaitest.Calls(call("p1", meter, `{"level":1}`), call("p2", "get_current_time", `{}`), call("p3", meter, `{"level":2}`)),
				openaitest.Text("Seventeen twice."),
			},
			said:    "Seventeen twice.",
			results: map[string]string{"p1": "seventeen", "p2": "20", "p3": "seventeen"},
			ran:     map[string]int{"self.meter.get_reading 1": 1, "self.meter.get_reading 2": 1},
		},
		"control then query": {
			replies: []openaitest.Reply{
				openaitest.Calls(call("q1", lamp, `{"level":3}`), call("q2", meter, `{"level":3}`)), openaitest.Text("Done, and seventeen."),
			},
			said: "Done, and seventeen.", results: map[string]string{"q1": "success", "q2": "seventeen"},
			ran: map[string]int{"self.lamp.set_level 3": 1, "self.meter.get_reading 3": 1},
		},
		"chain of four": {
			replies: []openaitest.Reply{
				openaitest.Calls(call("f1", meter, `{"level":4}`)), openaitest.Calls(call("f2", meter, `{"level":5}`)),
				openaitest.Calls(call("f3", meter, `{"level":6}`)), openaitest.Calls(call("f4", meter, `{"level":7}`)), openaitest.Text("Four times."),
			},
			said: "Four times.", results: map[string]string{"f1": "seventeen", "f2": "seventeen", "f3": "seventeen", "f4": "seventeen"},
			ran: map[string]int{"self.meter.get_reading 4": 1, "self.meter.get_reading 5": 1, "self.meter.get_reading 6": 1, "self.meter.get_reading 7": 1},
		},
		"unknown tool": {
			replies: []openaitest.Reply{openaitest.Calls(call("u1", "self_moon_land", `{}`)), openaitest.Text("I have no moon.")},
			said:    "I have no moon.", results: map[string]string{"u1": "no tool named self_moon_land"}, ran: map[string]int{},
		},
		"wrong arguments": {
			replies: []openaitest.Reply{openaitest.Calls(call("w1", lamp, `{"level":"loud"}`)), openaitest.Calls(call("w2", lamp, `{"level":"55"}`))},
			said:    "OK.", results: map[string]string{"w1": "level", "w2": "success"}, ran: map[string]int{"self.lamp.set_level 55": 1},
		},
		"late failure": {
			replies: []openaitest.Reply{openaitest.Calls(call("l1", gate, `{"level":9}`))},
			said:    "OK.", results: map[string]string{"l1": "the gate is stuck"}, ran: map[string]int{"self.gate.open 9": 1},
		},
	}
}

// TestToolConversations holds the conversations with tools over the real wire:
// what is heard, what the model is told, and what the device did.
func TestToolConversations(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud, w, d := workbench(ctx, t, devicetest.Options{})
	want := map[string]int{}
	for name, talk := range toolTalks() {
		t.Run(name, func(t *testing.T) {
			cloud.Reply(openaitest.Chat, append(talk.replies, openaitest.Text("All is well."))...)
			if r := ask(ctx, t, d, "now "+name); r.Text() != talk.said || r.Frames == 0 {
				t.Errorf("said %q in %d frames", r.Text(), r.Frames)
			}
			if name == "late failure" {
				if r := reply(ctx, t, d); !strings.Contains(r.Text(), "could not open the gate: the gate is stuck") {
					t.Errorf("the failure is told as %q", r.Text())
				}
			}
			cloud.Reply(openaitest.Chat, openaitest.Text("All is well."))
			ask(ctx, t, d, "how are you after that")
			requests := cloud.Requests(openaitest.Chat)
			results, _ := dialogue(t, requests[len(requests)-1])
			for id, text := range talk.results {
				if !strings.Contains(results[id], text) {
					t.Errorf("the result of %s is %q, want %q", id, results[id], text)
				}
			}
			maps.Copy(want, talk.ran)
			if got := w.counts(); !maps.Equal(got, want) {
				t.Errorf("the device did %v, want %v", got, want)
			}
		})
	}
}

// TestToolLoopIsForced lets the model call tools for ever.
func TestToolLoopIsForced(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud, w, d := workbench(ctx, t, devicetest.Options{})
	n := 0
	cloud.Handle(openaitest.Chat, func(r *openaitest.Request) openaitest.Reply {
		n++
		if r.JSON()["tools"] == nil || r.JSON()["tool_choice"] == "none" {
			return openaitest.Text("Enough of it.")
		}
		return openaitest.Calls(call(fmt.Sprint("e", n), "self_meter_get_reading", fmt.Sprintf(`{"level":%d}`, n)))
	})
	if r := ask(ctx, t, d, "for ever"); r.Text() != "Enough of it." {
		t.Errorf("said %q", r.Text())
	}
	requests := cloud.Requests(openaitest.Chat)
	if results, _ := dialogue(t, requests[len(requests)-1]); len(requests) != 6 || len(results) != 5 || len(w.counts()) != 5 {
		t.Errorf("%d requests, %d results, done %v", len(requests), len(results), w.counts())
	}
}

// TestToolInterrupted cuts in between two steps of a turn with tools, by button,
// by wake word and by voice: one result, done once, and the device is answered.
// (While a tool runs, a device does not even see its button.)
func TestToolInterrupted(t *testing.T) {
	t.Parallel()
	clip := clipNamed(t, speechtest.Prompts, "vm-msgsaved")
	for how, cut := range map[string]func(ctx context.Context, t *testing.T, d *devicetest.Device){
		"button": func(ctx context.Context, t *testing.T, d *devicetest.Device) {
			if err := d.Abort(""); err != nil {
				t.Fatal(err)
			}
			cutReply(ctx, t, d)
		},
		"wake word": func(ctx context.Context, t *testing.T, d *devicetest.Device) {
			if err := errors.Join(d.Abort(devicetest.WakeWord), d.Detect("hi xiaozhi")); err != nil {
				t.Fatal(err)
			}
			cutReply(ctx, t, d)
			if r := reply(ctx, t, d); !strings.Contains(r.Text(), "here") {
				t.Errorf("greeted with %q", r.Text())
			}
		},
		"voice": func(ctx context.Context, t *testing.T, d *devicetest.Device) {
			if err := errors.Join(d.Say(ctx, clip.PCM()), d.Silence(ctx, 1500*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			cutReply(ctx, t, d)
			if r := reply(ctx, t, d); r.Text() != "All is well." {
				t.Errorf("the voice is answered with %q", r.Text())
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			ctx := limit(t)
			o := devicetest.Options{}
			if how == "voice" {
				o.Mode, o.Sound.AEC = devicetest.Realtime, true
			}
			cloud, w, d := workbench(ctx, t, o)
			cloud.Reply(openaitest.Chat, openaitest.Calls(call("i1", "self_lamp_set_level", `{"level":1}`), call("i2", "self_meter_get_reading", `{"level":2}`)),
				openaitest.Text("Here is a long report.").After(8*time.Second), openaitest.Text("All is well."))
			if err := d.Detect("the report please"); err != nil {
				t.Fatal(err)
			}
			if _, err := d.WaitText(ctx, "tts", "start"); err != nil {
				t.Fatal(err)
			}
			if _, err := cloud.Await(ctx, openaitest.Chat, 2); err != nil { // the tools are done, the model thinks
				t.Fatal(err)
			}
			cut(ctx, t, d)
			if r := ask(ctx, t, d, "how are you"); r.Text() != "All is well." {
				t.Errorf("answered with %q", r.Text())
			}
			requests := cloud.Requests(openaitest.Chat)
			results, text := dialogue(t, requests[len(requests)-1])
			if len(results) != 2 || results["i1"] != "success" || results["i2"] != "seventeen" || strings.Contains(text, "a long report") {
				t.Errorf("results %v", results)
			}
			if got, want := w.counts(), (map[string]int{"self.lamp.set_level 1": 1, "self.meter.get_reading 2": 1}); !maps.Equal(got, want) {
				t.Errorf("the device did %v", got)
			}
		})
	}
}

// cutReply takes in the reply that was cut.
func cutReply(ctx context.Context, t *testing.T, d *devicetest.Device) {
	t.Helper()
	if r := reply(ctx, t, d); (!r.Cut && r.Frames > 0) || strings.Contains(r.Text(), "report") {
		t.Errorf("the reply was not cut: %q", r.Text())
	}
}
