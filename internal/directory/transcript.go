package directory

import (
	"slices"
	"sync"
	"time"

	"xiaozhi/internal/wire"
)

// maxLines is the number of lines that a transcript keeps.
const maxLines = 200

// Line is one thing that was said.
type Line struct {
	Time time.Time
	Role string // user or assistant
	Text string
}

// Transcript keeps the last 200 lines of one conversation. It may be read while it grows.
type Transcript struct {
	mu    sync.Mutex
	lines []Line
}

// Add appends a line; an empty text is none.
func (t *Transcript) Add(role, text string) {
	if text == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == maxLines {
		t.lines = slices.Delete(t.lines, 0, 1)
	}
	t.lines = append(t.lines, Line{Time: time.Now(), Role: role, Text: text})
}

// Lines returns a copy of all lines, the oldest first.
func (t *Transcript) Lines() []Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lines)
}

// Transcribe returns an outbox that passes everything on to out and adds what user
// and assistant say to t. The watcher is told of each line.
func (d *Devices) Transcribe(id string, t *Transcript, out wire.Outbox) wire.Outbox {
	return transcribing{out, t, func() {
		if d.watcher != nil {
			d.watcher.TranscriptChanged(id)
		}
	}}
}

// transcribing is the outbox of [Devices.Transcribe].
type transcribing struct {
	wire.Outbox
	transcript *Transcript
	changed    func()
}

// Send passes a message on.
func (t transcribing) Send(m wire.Message) {
	switch m.Kind { //nolint:exhaustive // the others hold nothing that was said
	case wire.MessageSTT:
		t.transcript.Add("user", m.Text)
		t.changed()
	case wire.MessageFinal:
		t.transcript.Add("assistant", m.Text)
		t.changed()
	}
	t.Outbox.Send(m)
}
