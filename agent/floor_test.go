package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio"
	"xiaozhi/mcp"
)

func newBox() *box { return &box{began: time.Now(), wake: make(chan struct{})} }

// lines are what a box got, without times.
func lines(b *box) string {
	var out []string
	for _, l := range b.lines {
		text := l.text
		if l.frames != nil {
			text = "frames"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestFloorUndoneSaysNothing(t *testing.T) {
	b := newBox()
	f := newFloor(b, 1, audio.Reply, 4)
	if !f.undo() {
		t.Fatal("nothing was committed, but it could not be undone")
	}
	if f.start() || f.commit() || f.send(Message{Kind: MessageChunk}) || f.cut() {
		t.Error("an undone turn still acts")
	}
	f.stop()
	if packet, err := f.encode(make([]int16, 1440)); packet != nil || err != nil {
		t.Error("an undone turn still encodes")
	}
	if got := lines(b); got != "" {
		t.Errorf("the device got %q", got)
	}
}

func TestFloorCommittedCannotBeUndone(t *testing.T) {
	for name, act := range map[string]func(*floor){
		"start":  func(f *floor) { f.start() },
		"commit": func(f *floor) { f.commit() },
		"stop":   func(f *floor) { f.stop() },
	} {
		f := newFloor(newBox(), 1, audio.Reply, 4)
		act(f)
		if f.undo() {
			t.Errorf("undone after %s", name)
		}
	}
}

func TestFloorCutBeforeAFrameHasNoSilentFrame(t *testing.T) {
	b := newBox()
	f := newFloor(b, 1, audio.Reply, 4)
	f.start()
	if !f.cut() || f.cut() {
		t.Error("one cut sends one stop")
	}
	if got := lines(b); got != "tts start; tts stop" {
		t.Errorf("the device got %q", got)
	}
}

func TestFloorHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox()
		f := newFloor(b, 1, audio.Reply, 4)
		f.start()
		say := func(text string, frames int, step int, keep bool) {
			s := newSentence(text, "en")
			s.keep = keep
			u := utterable{s, step, new(soundLength)}
			u.length.nanos.Store(int64(time.Duration(frames) * 60 * time.Millisecond))
			u.length.whole.Store(true)
			f.sentenceStart(u)
			for range frames {
				if d := time.Until(f.due(time.Now())); d > 0 {
					time.Sleep(d)
				}
				p, err := f.encode(make([]int16, 1440))
				if err != nil {
					t.Fatal(err)
				}
				f.frame(p)
			}
		}
		say("ten frames", 10, 0, true)
		say("a phrase", 5, 0, false)
		say("abcdefghijklmnopqrst", 20, 1, true)
		// 35 frames were sent; play-out has reached about frame 31.
		texts, partial := f.heard(time.Now(), 2)
		if texts[0] != "ten frames" || !partial || !strings.HasPrefix("abcdefghijklmnopqrst", texts[1]) || len(texts[1]) < 14 || len(texts[1]) > 18 {
			t.Errorf("heard %q, partial %v", texts, partial)
		}
		time.Sleep(time.Second)
		f.stop()
		if texts, partial = f.heard(time.Now(), 2); texts[1] != "abcdefghijklmnopqrst" || partial {
			t.Errorf("after play-out: heard %q, partial %v", texts, partial)
		}
	})
}

func TestDispatch(t *testing.T) {
	odd := func() {}
	for _, c := range []struct {
		name string
		in   mcp.ActionResponse
		want effect
	}{
		{"error", mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "broke"}, effect{result: "broke", again: true, failed: true}},
		{"error value", mcp.ActionResponse{Action: mcp.ActionTypeError, Result: errors.New("broke")}, effect{result: "broke", again: true, failed: true}},
		{"error without a word", mcp.ActionResponse{Action: mcp.ActionTypeError}, effect{result: "MCP工具调用失败", again: true, failed: true}},
		{"not found", mcp.ActionResponse{Action: mcp.ActionTypeNotFound, Result: "no x"}, effect{result: "no x", again: true, failed: true}},
		{"none", mcp.ActionResponse{Action: mcp.ActionTypeNone, Result: "done"}, effect{result: "done"}},
		{"response", mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: "hi"}, effect{result: "hi", say: "hi"}},
		{"response that is no string", mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: 42}, effect{result: "42", say: "42"}},
		{"for the model", mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: map[string]any{"a": 1}}, effect{result: `{"a":1}`, again: true}},
		{"nil for the model", mcp.ActionResponse{Action: mcp.ActionTypeReqLLM}, effect{again: true}},
		{"no handler", mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: odd}, effect{result: "调用工具失败", again: true, failed: true}},
		{"empty handler", mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: mcp.ActionResponseCall{}}, effect{result: "调用工具失败", again: true, failed: true}},
		{"unknown", mcp.ActionResponse{Action: 99}, effect{result: "unknown action 99", again: true, failed: true}},
	} {
		if got := dispatch(c.in, "zh"); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := dispatch(mcp.ActionResponse{Action: mcp.ActionTypeCallHandler}, "en"); got.result != "tool call failed" {
		t.Errorf("no handler in an English turn: %+v", got)
	}
	for _, call := range []any{
		mcp.ActionResponseCall{FuncName: "x"}, &mcp.ActionResponseCall{FuncName: "x"}, map[string]any{"funcName": "x"},
	} {
		got := dispatch(mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: call}, "en")
		if got.handler == nil || got.handler.FuncName != "x" {
			t.Errorf("%T: %+v", call, got)
		}
	}
}
