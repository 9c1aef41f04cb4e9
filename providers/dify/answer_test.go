package dify

import (
	"encoding/json"
	"strings"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/platform"
	"xiaozhi/providers/sse"
)

// What a workflow without a stream has made is found.
func TestResult(t *testing.T) {
	for _, c := range []struct{ outputs, want string }{
		{`{"answer":"yes","x":"no"}`, "yes"}, {`{"text":"yes","n":3}`, "yes"}, {`{"a":"no","b":"no"}`, ""}, {`{}`, ""}, {`{"answer":7}`, ""},
	} {
		var outputs map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.outputs), &outputs); err != nil {
			t.Fatal(err)
		}
		text, err := (&answer{output: "answer"}).result(outputs)
		if text != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.outputs, text, err)
		}
	}
}

// Steps of a workflow may hold anything, and what has failed in one is said if nothing else tells.
func TestSteps(t *testing.T) {
	a, text := &answer{turn: &platform.Turn{}}, ""
	for _, raw := range []string{
		`{"event":"iteration_completed","data":{"outputs":[1,2],"error":{"a":1},"text":["x"]}}`, `{"event":"agent_log","data":"x"}`,
		`{"event":"message","answer":"Hi","data":7}`, `{"event":"workflow_finished","data":{"status":"failed","error":"no model","outputs":[]}}`,
	} {
		if complete, err := a.Event(sse.Event{Data: []byte(raw)}, func(d providers.Delta) { text += d.Text }); complete || err != nil {
			t.Errorf("%s: %v, %v", raw, complete, err)
		}
	}
	if err := a.EOF(nil); text != "Hi" || err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("%q, %v", text, err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"event":"agent_message","answer":"a"}`, `{"event":"message","answer":"a"}`)
	f.Add(`{"event":"message_replace","answer":"a"}`, `{"event":"workflow_finished","data":{"status":"failed","outputs":null}}`)
	f.Add(`{"event":"error","status":"x"}`, `{"event":"message","metadata":{"usage":null}}`)
	f.Fuzz(func(_ *testing.T, first, second string) {
		for _, flow := range []bool{false, true} {
			a := &answer{turn: &platform.Turn{}, workflow: flow}
			for _, raw := range []string{first, second} {
				if _, err := a.Event(sse.Event{Data: []byte(raw)}, func(providers.Delta) {}); err != nil {
					break
				}
			}
		}
	})
}
