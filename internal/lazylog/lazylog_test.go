package lazylog

import (
	"bytes"
	"log/slog"
	"testing"
)

// TestLinesAreTheSame: lines are the same as those of the handler behind it.
func TestLinesAreTheSame(t *testing.T) {
	var late, usual bytes.Buffer
	options := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	write := func(log *slog.Logger) {
		log.Debug("not written")
		log.Info("plain", "a", 1)
		device := log.With("device_id", "d")
		device.With("session_id", "s").Warn("with both", "b", "two words", "c", 3)
		device.Info("with one")
		device.WithGroup("g").With("in", 1).Info("in a group", "also", 2)
		device.WithGroup("g").WithGroup("h").Info("in two", "also", 2)
	}
	write(slog.New(New(slog.NewTextHandler(&late, options))))
	write(slog.New(slog.NewTextHandler(&usual, options)))
	if late.String() != usual.String() {
		t.Errorf("written:\n%s\nwant:\n%s", &late, &usual)
	}
}
