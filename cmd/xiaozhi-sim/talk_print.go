package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/text/message"
)

// transcript prints a conversation, each line with the time since the start.
// Its methods may be called at the same time.
type transcript struct {
	verbose bool
	start   time.Time

	mu sync.Mutex
	w  io.Writer

	sounding bool // the open reply has had its first frame; of event
}

func (t *transcript) print(what, text string) { t.at(time.Now(), what, text) }

func (t *transcript) at(when time.Time, what, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.w, "%9.3f  %-9s  %s\n", when.Sub(t.start).Seconds(), what, text)
}

func (t *transcript) event(e devicetest.Event) {
	if t.verbose && e.Raw != nil && e.Kind != devicetest.KindTool {
		arrow := "<<"
		if e.Kind == devicetest.KindSent {
			arrow = ">>"
		}
		t.at(e.At, arrow, string(e.Raw))
	}
	switch e.Kind {
	case devicetest.KindReceived, devicetest.KindSent:
		t.message(e)
	case devicetest.KindFrame:
		if !t.sounding {
			t.at(e.At, "reply", message.Both("talk/first-sound"))
		}
		t.sounding = true
	case devicetest.KindState:
		if e.Text != "" {
			e.State += ", " + e.Text
		}
		t.at(e.At, "state", e.State)
	case devicetest.KindTool:
		t.at(e.At, "tool", fmt.Sprintf("%s %s → %s", e.Type, e.Raw, brief(e.Text)))
	case devicetest.KindViolation:
		t.at(e.At, "WRONG", message.Both("talk/violation", e.Type, e.Text))
	case devicetest.KindClosed:
		t.at(e.At, "closed", e.Text)
	case devicetest.KindReply: // latency sums it up
	}
}

func (t *transcript) message(e devicetest.Event) {
	switch string(e.Kind) + " " + e.Type + " " + e.State {
	case "received stt ":
		t.at(e.At, "heard", e.Text)
	case "received llm ":
		t.at(e.At, "emotion", e.Emotion+" "+e.Text)
	case "received tts start":
		t.sounding = false
		t.at(e.At, "reply", "tts start")
	case "received tts sentence_start":
		t.at(e.At, "says", e.Text)
	case "received tts stop":
		t.at(e.At, "reply", "tts stop")
	case "sent listen detect":
		t.at(e.At, "you", e.Text)
	case "sent listen start", "sent listen stop":
		t.at(e.At, "device", "listen "+e.State)
	case "sent abort ":
		t.at(e.At, "device", message.Both("talk/abort"))
	}
}

func (t *transcript) latency(said time.Time, r *devicetest.Reply) {
	text := fmt.Sprintf("%d frames, %.1f s of sound", r.Frames, r.Duration().Seconds())
	if !r.FirstFrame.IsZero() {
		text = fmt.Sprintf("first sound %d ms after the end of speech, ", r.FirstFrame.Sub(said).Milliseconds()) + text
	}
	if r.LeadMin > 0 {
		text += fmt.Sprintf(", %d to %d ms ahead", r.LeadMin.Milliseconds(), r.LeadMax.Milliseconds())
	}
	if r.Cut {
		text += ", cut"
	}
	t.print("latency", message.Both("talk/latency", text))
}

func (t *talker) summary() {
	t.out.print("total", fmt.Sprintf("%d replies, %d frames, %d dropped, %d underruns, %d tool calls",
		len(t.replies), t.stats.FramesIn, t.stats.Dropped, t.stats.Underruns, t.stats.ToolCalls))
	if len(t.violations) == 0 {
		return
	}
	t.out.print("warning", message.Both("talk/violations", len(t.violations)))
	for _, v := range t.violations {
		t.out.at(v.At, "WRONG", v.String())
	}
}

// brief cuts a long result to what fits a line.
func brief(s string) string {
	const most = 160
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
