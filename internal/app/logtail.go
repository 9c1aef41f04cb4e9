package app

import (
	"bytes"
	"log/slog"
	"sync"

	"xiaozhi/internal/config"
)

// tailLines is the number of lines of the log that others may read.
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
