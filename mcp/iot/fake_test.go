package iot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
)

// The descriptors that firmware of the IoT era sends.
const (
	lampDescriptor = `{"name":"Lamp","description":"一个测试用的灯","properties":{"power":{"description":"灯是否打开","type":"boolean"}},` +
		`"methods":{"TurnOn":{"description":"打开灯","parameters":{}},"TurnOff":{"description":"关闭灯","parameters":{}},` +
		`"SetLevel":{"description":"dim","parameters":{"level":{"description":"0-100","type":"number"}}},` +
		`"Blink":{"parameters":{"fast":{"type":"boolean"},"colour":{"description":"any","type":"string"}}}}}`
	speakerDescriptor = `{"name":"Speaker","description":"当前 AI 机器人的扬声器","properties":{"volume":{"description":"当前音量值","type":"number"}},` +
		`"methods":{"SetVolume":{"description":"设置音量","parameters":{"volume":{"description":"0到100之间的整数","type":"number"}}}}}`
	sensorDescriptor = `{"name":"Sensor","description":"a thermometer","properties":{"celsius":{"type":"number"}},"methods":{"Measure":{"description":"measure now"}}}`
)

// LegacyBoard is the far end of a Things: it takes commands as firmware does,
// and fails the test at one that would crash it.
type LegacyBoard struct {
	t           *testing.T
	descriptors []map[string]any
	refuse      error

	mu   sync.Mutex
	sent []string
	log  bytes.Buffer
}

// NewLegacyBoard makes a board of things with these descriptors.
func NewLegacyBoard(t *testing.T, descriptors ...string) *LegacyBoard {
	t.Helper()
	b := &LegacyBoard{t: t}
	for _, text := range descriptors {
		var d map[string]any
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
		b.descriptors = append(b.descriptors, d)
	}
	return b
}

// Things connects the board: nothing is described yet.
func (b *LegacyBoard) Things(o Options) *Source {
	o.Send = b.send
	o.Log = slog.New(slog.NewTextHandler(&lockedWriter{b}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return New(o)
}

// Describe sends the descriptors one by one.
func (b *LegacyBoard) Describe(things *Source) {
	for _, d := range b.descriptors {
		raw, err := json.Marshal([]any{d})
		if err != nil {
			b.t.Fatal(err)
		}
		things.Deliver(raw, nil)
	}
}

// Sent are the command arrays so far.
func (b *LegacyBoard) Sent() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.sent...)
}

// Log is what was logged so far.
func (b *LegacyBoard) Log() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

type lockedWriter struct{ b *LegacyBoard }

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	return w.b.log.Write(p)
}

func (b *LegacyBoard) send(commands json.RawMessage) error {
	if b.refuse != nil {
		return b.refuse
	}
	if err := b.run(commands); err != nil {
		b.t.Errorf("the board crashed at %s: %v", commands, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, string(commands))
	return nil
}

// run judges commands by the raw descriptors.
func (b *LegacyBoard) run(raw json.RawMessage) error {
	var commands []map[string]any
	if err := json.Unmarshal(raw, &commands); err != nil || len(commands) != 1 {
		return fmt.Errorf("not an array of one command: %w", err)
	}
	c := commands[0]
	given, ok := c["parameters"].(map[string]any)
	if !ok || len(c) != 3 {
		return fmt.Errorf("members are %v", c)
	}
	for _, d := range b.descriptors {
		methods, _ := d["methods"].(map[string]any)
		method, ok := methods[fmt.Sprint(c["method"])].(map[string]any)
		if d["name"] != c["name"] || !ok {
			continue
		}
		declared, _ := method["parameters"].(map[string]any)
		if len(declared) != len(given) {
			return fmt.Errorf("parameters %v, declared are %v", given, declared)
		}
		for name, p := range declared {
			if kind := p.(map[string]any)["type"]; !fitsType(kind, given[name]) {
				return fmt.Errorf("parameter %s is %v, not a %v", name, given[name], kind)
			}
		}
		return nil
	}
	return fmt.Errorf("there is no %v.%v", c["name"], c["method"])
}

func fitsType(kind, value any) bool {
	switch v := value.(type) {
	case bool:
		return kind == "boolean"
	case string:
		return kind == "string" && !strings.Contains(v, "\x00")
	case float64:
		return (kind == "number" || kind == "integer") && v == math.Trunc(v) && v >= math.MinInt32 && v <= math.MaxInt32
	}
	return false
}
