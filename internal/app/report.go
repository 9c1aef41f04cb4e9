package app

import (
	"fmt"
	"io"
	"log/slog"

	"xiaozhi/internal/text/message"
)

// report collects what was found and what was left out, in lines for people; both
// are logged too.
type report struct {
	lines []string
	log   *slog.Logger
}

// found adds an engine or service that is used.
func (r *report) found(role, what string) {
	r.line(fmt.Sprintf("  %-4s %s", role, what))
	r.log.Info("engine", "role", role, "found", what)
}

// missing adds an engine or service that is not used, with the reason.
func (r *report) missing(role, name string, why error) {
	r.line(fmt.Sprintf("  %-4s - %s: %s: %v", role, name, message.Both("app/left-out"), why))
	r.log.Warn("engine left out", "role", role, "provider", name, "err", why)
}

// line adds a line as it is.
func (r *report) line(text string) { r.lines = append(r.lines, text) }

// write prints all lines.
func (r *report) write(w io.Writer) {
	for _, line := range r.lines {
		fmt.Fprintln(w, line)
	}
}
