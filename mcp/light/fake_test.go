package light

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"testing"
)

// FakeLight is a scripted device of the light dialect in memory. It reads only
// what docs/mcp.md, Dialects 1, says, byte for byte.
type FakeLight struct {
	t     *testing.T
	light *Source

	// Answer, if set, gives the member of the answer to a call, such as
	// `"result":1`; "" for no answer.
	Answer func(tool string, input json.RawMessage) string

	mu    sync.Mutex
	got   []string
	calls []string        // ids, in their order
	ids   map[string]bool // seen
}

// lightTools registers three tools: echo answers, slow never does.
const lightTools = `{"jsonrpc":"2.0","method":"mcp/registerTools","params":{"mac_addr":"AA-BB-CC-DD-EE-FF","tools":[` +
	`{"name":"echo","description":"Says it again","main_type":"remote","sub_type":"query","parameters":{"type":"object","properties":{"text":{"type":"string"}}}},` +
	`{"name":"slow","description":"","main_type":"remote","sub_type":"query","parameters":{"type":"object","properties":{}}},` +
	`{"name":"lamp","description":"A lamp","main_type":"remote","sub_type":"control"}]},"id":"client-reg-001"}`

// NewFakeLight makes a device that echoes.
func NewFakeLight(t *testing.T) *FakeLight {
	t.Helper()
	return &FakeLight{t: t, ids: make(map[string]bool)}
}

// Light makes the source that talks to the device. o may be zero.
func (d *FakeLight) Light(o Options) *Source {
	o.Send = d.send
	d.light = New(o)
	return d.light
}

// Register delivers the usual registration.
func (d *FakeLight) Register() { d.Say(lightTools) }

// Say delivers a frame of the device's own.
func (d *FakeLight) Say(frame string) { d.light.Deliver(json.RawMessage(frame)) }

// Got are the frames that came so far, but for calls.
func (d *FakeLight) Got() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.got...)
}

// Calls are the ids of the calls that came so far.
func (d *FakeLight) Calls() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.calls...)
}

// executeFrame is mcp/tool/execute, to the byte.
var executeFrame = regexp.MustCompile(`^\{"jsonrpc":"2\.0","method":"mcp/tool/execute","params":\{"tool_name":("(?:[^"\\]|\\.)*"),"tool_input":(\{.*\})\},"id":"(tool-call-[0-9]+-[a-z0-9]{6})"\}$`)

func (d *FakeLight) send(frame json.RawMessage) error {
	m := executeFrame.FindSubmatch(frame)
	d.mu.Lock()
	if m == nil {
		d.got = append(d.got, string(frame))
		d.mu.Unlock()
		return nil
	}
	id := string(m[3])
	if d.ids[id] {
		d.t.Errorf("device got id %s twice", id)
	}
	d.ids[id] = true
	d.calls = append(d.calls, id)
	d.mu.Unlock()
	var tool string
	if err := json.Unmarshal(m[1], &tool); err != nil || !json.Valid(m[2]) {
		d.t.Errorf("device got %s: %v", frame, err)
	}
	if member := d.answer(tool, m[2]); member != "" {
		d.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s",%s}`, id, member))
	}
	return nil
}

func (d *FakeLight) answer(tool string, input json.RawMessage) string {
	switch {
	case d.Answer != nil:
		return d.Answer(tool, input)
	case tool == "slow":
		return ""
	}
	return `"result":` + string(input)
}
