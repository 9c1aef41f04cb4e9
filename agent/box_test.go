package agent

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

// box is an Outbox that notes what the device would get, and when.
type box struct {
	mu     sync.Mutex
	began  time.Time
	lines  []boxLine
	wake   chan struct{}
	hungUp error
}

// boxLine is one message, or a run of frames.
type boxLine struct {
	at     time.Duration
	text   string
	frames []time.Duration // when each of a run of frames came
	turn   uint64
	cut    bool
}

func (b *box) add(l boxLine) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l.at = time.Since(b.began)
	if n := len(b.lines); l.frames != nil && n > 0 && b.lines[n-1].frames != nil && b.lines[n-1].turn == l.turn {
		b.lines[n-1].frames = append(b.lines[n-1].frames, l.at)
	} else {
		if l.frames != nil {
			l.frames = []time.Duration{l.at}
		}
		b.lines = append(b.lines, l)
	}
	close(b.wake)
	b.wake = make(chan struct{})
}

func (b *box) Send(m wire.Message) {
	text := map[wire.MessageKind]string{
		wire.MessageSTT: "stt " + m.Text, wire.MessageTTSStart: "tts start", wire.MessageSentenceStart: "sentence " + m.Text,
		wire.MessageTTSStop: "tts stop", wire.MessageEmotion: "emotion " + m.Emotion + " " + m.Text,
		wire.MessageKeepAlive: "keep alive",
		wire.MessageChunk:     "chunk " + m.Text, wire.MessageFinal: "final " + m.Text, wire.MessageThought: "thought " + m.Text,
	}[m.Kind]
	if len(m.Closing) > 0 {
		text = "silent frame, " + text
	}
	b.add(boxLine{text: text, turn: m.Turn, cut: m.Cut})
}

func (b *box) Audio(turn uint64, packet []byte) (uint32, bool) {
	if d, err := audio.PacketDuration(packet); err != nil || d != 60*time.Millisecond {
		panic(fmt.Sprint("bad packet: ", d, err))
	}
	b.add(boxLine{turn: turn, frames: []time.Duration{}})
	return 0, true
}

func (b *box) Lag() time.Duration { return 0 }

func (b *box) HangUp(cause error) {
	b.mu.Lock()
	b.hungUp = cause
	b.mu.Unlock()
	b.add(boxLine{text: "hang up: " + cause.Error()})
}

// until waits for the n-th line that holds text.
func (b *box) until(text string, n int) bool {
	give := time.After(2 * time.Minute)
	for {
		b.mu.Lock()
		seen := 0
		for _, l := range b.lines {
			if strings.Contains(l.text, text) || (text == "frames" && l.frames != nil) {
				seen++
			}
		}
		wake := b.wake
		b.mu.Unlock()
		if seen >= n {
			return true
		}
		select {
		case <-wake:
		case <-give:
			return false
		}
	}
}

func (b *box) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var s strings.Builder
	for _, l := range b.lines {
		text := l.text
		if l.frames != nil {
			text = "frames " + runs(l.frames)
		}
		fmt.Fprintf(&s, "%6d %s\n", l.at.Milliseconds(), strings.TrimSpace(text))
	}
	return s.String()
}

// runs counts frames; where none came for longer than a lead lasts, it says for
// how long: "20, 840ms, 31".
func runs(frames []time.Duration) string {
	var s strings.Builder
	from := 0
	for i := 1; i < len(frames); i++ {
		if gap := frames[i] - frames[i-1]; gap > 300*time.Millisecond {
			fmt.Fprintf(&s, "%d, %v, ", i-from, gap.Round(time.Millisecond))
			from = i
		}
	}
	fmt.Fprintf(&s, "%d", len(frames)-from)
	return s.String()
}

// checkRules holds every scene to the rules of the wire (docs/protocol.md 3.4,
// 4.3). slack is how long a reply may go on in silence, waiting for somebody.
func checkRules(t *testing.T, b *box, slack time.Duration) {
	t.Helper()
	const frame = 60 * time.Millisecond
	speaking, startAt := false, time.Duration(0)
	var sent []time.Duration
	turn := uint64(0)
	for _, l := range b.lines {
		switch {
		case l.text == "tts start":
			if speaking {
				t.Errorf("%v: tts start within a reply", l.at)
			}
			speaking, startAt, sent, turn = true, l.at, nil, l.turn
		case strings.HasSuffix(l.text, "tts stop"):
			if strings.HasPrefix(l.text, "silent") && len(sent) == 0 {
				t.Errorf("%v: a silent frame, but no frame was sent", l.at)
			}
			if speaking && !l.cut && len(sent) > 0 {
				if end := playout(sent, frame); l.at < end || l.at > end+120*time.Millisecond+slack {
					t.Errorf("tts stop at %v, play-out ends at %v", l.at, end)
				}
			}
			speaking = false
		case l.frames != nil:
			if !speaking || l.turn != turn {
				t.Errorf("%v: frames outside their reply", l.at)
			}
			if len(sent) == 0 && l.at < startAt+100*time.Millisecond {
				t.Errorf("first frame %v after tts start", l.at-startAt)
			}
			sent = append(sent, l.frames...)
			checkLead(t, sent, frame)
		case strings.HasPrefix(l.text, "sentence") && !speaking, strings.HasPrefix(l.text, "emotion") && !speaking:
			t.Errorf("%v: %q outside a reply", l.at, l.text)
		}
	}
}

// checkFinals: a reply that was shown has exactly one final, after all its
// chunks, and none has more (docs/mcp.md, Dialects).
func checkFinals(t *testing.T, b *box) {
	t.Helper()
	owed := map[uint64]bool{} // by turn: a final must come
	had := map[uint64]bool{}
	for _, l := range b.lines {
		isFinal, isChunk := strings.HasPrefix(l.text, "final "), strings.HasPrefix(l.text, "chunk ")
		if (isFinal || isChunk) && had[l.turn] {
			t.Errorf("%v: %q after the final of turn %d", l.at, l.text, l.turn)
		}
		owed[l.turn] = (owed[l.turn] || isChunk) && !isFinal
		had[l.turn] = had[l.turn] || isFinal
	}
	for turn, missing := range owed {
		if missing {
			t.Errorf("turn %d has chunks but no final", turn)
		}
	}
}

// playout is when the model device has played all frames.
func playout(sent []time.Duration, frame time.Duration) time.Duration {
	var end time.Duration
	for _, at := range sent {
		end = max(end, at) + frame
	}
	return end
}

// checkLead holds the lead to 360 ms.
func checkLead(t *testing.T, sent []time.Duration, frame time.Duration) {
	t.Helper()
	var end time.Duration
	for _, at := range sent {
		end = max(end, at) + frame
		if lead := end - at; lead > 360*time.Millisecond {
			t.Errorf("lead %v at %v", lead, at)
			return
		}
	}
}

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
