// Package lazylog makes loggers that cost little as long as they write little.
package lazylog

import (
	"context"
	"log/slog"
	"slices"
)

// New returns a handler that formats the attributes of a logger when it writes a line. The handlers of slog format them when
// the logger is made, each for itself; the loggers of a device, of which there are three, live long and write little (M12:
// 1.2 KiB of each device).
func New(to slog.Handler) slog.Handler { return handler{to: to} }

type handler struct {
	to    slog.Handler
	attrs []slog.Attr
}

// Enabled reports whether lines of a level are written.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.to.Enabled(ctx, level)
}

// Handle writes a line.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if len(h.attrs) == 0 {
		return h.to.Handle(ctx, r)
	}
	whole := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	whole.AddAttrs(h.attrs...)
	r.Attrs(func(a slog.Attr) bool { whole.AddAttrs(a); return true })
	return h.to.Handle(ctx, whole)
}

// WithAttrs keeps attributes for all lines.
func (h handler) WithAttrs(more []slog.Attr) slog.Handler {
	return handler{h.to, slices.Concat(h.attrs, more)}
}

// WithGroup has what is added from then on stand in a group.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{to: h.to.WithAttrs(h.attrs).WithGroup(name)}
}
