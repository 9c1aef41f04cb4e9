package lockout

import (
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of a log's lines about strangers.
const (
	lineEvery = 10 * time.Second // one line, after the first ones
	maxLines  = 20               // at once
)

// Lines writes what strangers do into the log, but not all of it. Its method may be
// called at the same time.
type Lines struct {
	mu         sync.Mutex
	allowed    *rate.Limiter
	suppressed int
}

// NewLines returns lines of which none was written.
func NewLines() *Lines {
	return &Lines{allowed: rate.NewLimiter(rate.Every(lineEvery), maxLines)}
}

// Log writes a line, or counts it; the next one says how many there were.
func (l *Lines) Log(write func(msg string, args ...any), msg string, args ...any) {
	l.mu.Lock()
	if !l.allowed.Allow() {
		l.suppressed++
		l.mu.Unlock()
		return
	}
	if l.suppressed > 0 {
		args = append(args, slog.Int("suppressed", l.suppressed))
	}
	l.suppressed = 0
	l.mu.Unlock()
	write(msg, args...)
}
