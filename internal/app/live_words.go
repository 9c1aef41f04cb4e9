package app

import (
	"bytes"
	"log/slog"
	"sync"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/gateway"
)

// maxWords is how many lines of a conversation are kept for those who look on.
const maxWords = 200

// words are the last lines of one conversation. They may be read while they grow.
type words struct {
	mu    sync.Mutex
	lines []gateway.Line
}

func (w *words) add(role, text string) {
	if text == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, gateway.Line{Time: time.Now(), Role: role, Text: text})
	if len(w.lines) > maxWords {
		w.lines = append([]gateway.Line(nil), w.lines[len(w.lines)-maxWords:]...)
	}
}

func (w *words) list() []gateway.Line {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]gateway.Line(nil), w.lines...)
}

// tap is an outbox that also notes what is said on both sides.
type tap struct {
	wire.Outbox
	words   *words
	changed func()
}

// Send queues a message.
func (t tap) Send(m wire.Message) {
	switch m.Kind { //nolint:exhaustive // the others are no words
	case wire.MessageSTT:
		t.words.add("user", m.Text)
		t.changed()
	case wire.MessageFinal:
		t.words.add("assistant", m.Text)
		t.changed()
	}
	t.Outbox.Send(m)
}

// tailLines is how many lines of the log others may read.
const tailLines = 200

// logTail keeps the last lines of the log. It may be read while it is written.
type logTail struct {
	mu    sync.Mutex
	lines [][]byte
}

// Write takes one record, as slog's handlers write them.
func (t *logTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, bytes.Clone(p))
	if len(t.lines) > tailLines {
		t.lines = append([][]byte(nil), t.lines[len(t.lines)-tailLines:]...)
	}
	return len(p), nil
}

// Text is all lines, the oldest first.
func (t *logTail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.Join(t.lines, nil))
}

// tailOptions leave out of the tail what may hold people's words, unless these
// may be read.
func tailOptions(cfg *config.Config) *slog.HandlerOptions {
	if cfg.MCP.Transcripts {
		return nil
	}
	return &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "arguments" {
			return slog.Attr{}
		}
		return a
	}}
}

// spoke tells who looks on that something was said with a device.
func (l *liveDevices) spoke(id string) {
	if l.onWords != nil {
		l.onWords(id)
	}
}
