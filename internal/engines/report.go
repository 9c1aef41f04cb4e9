package engines

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"xiaozhi/internal/config"
	"xiaozhi/internal/text/message"
)

// Report collects what was found and what was left out, in lines for people. What was
// left out is logged too, and for who looks for faults all of it.
type Report struct {
	lines []string
	left  map[string]error // what is not used, by role and name
	log   *slog.Logger
}

// NewReport returns an empty one.
func NewReport(log *slog.Logger) *Report { return &Report{log: log} }

// Lines are those that were added, in order.
func (r *Report) Lines() []string { return r.lines }

// Left tells why what is not used could not be made, by role and name.
func (r *Report) Left() map[string]error { return r.left }

// Found adds an engine or service that is used.
func (r *Report) Found(role, what string) {
	r.Line(fmt.Sprintf("  %-4s %s", role, what))
	r.log.Debug("engine", "role", role, "found", what)
}

// Missing adds an engine or service that is not used, with the reason.
func (r *Report) Missing(role, name string, why error) { r.missingAt("", role, name, why) }

// missingAt is Missing with where its section stands; "": it has none.
func (r *Report) missingAt(place, role, name string, why error) {
	if place != "" {
		place += ": "
	}
	r.Line(fmt.Sprintf("  %-4s - %s: %s: %s%v", role, name, message.Both("app/left-out"), place, Readable(why)))
	if r.left == nil {
		r.left = map[string]error{}
	}
	r.left[role+" "+name] = why
	r.log.Warn("engine left out", "role", role, "provider", name, "err", why)
}

// Readable is the sentence of an error for people, in both languages where it has one.
func Readable(err error) string {
	if p, ok := errors.AsType[interface {
		error
		Both() string
	}](err); ok {
		return p.Both()
	}
	return err.Error()
}

// Line adds a line that is not logged.
func (r *Report) Line(text string) { r.lines = append(r.lines, text) }

// Write writes all lines.
func (r *Report) Write(w io.Writer) {
	for _, line := range r.lines {
		fmt.Fprintln(w, line)
	}
}

// leftOut adds an engine of the settings that is not used, with the reason and where its section stands.
func (r *Report) leftOut(c *config.Config, role, name string, why error) {
	place := c.Providers[name].Place
	if _, ok := errors.AsType[noKeyError](why); ok { // it says itself what is to be set
		place = ""
	}
	r.missingAt(place, role, name, why)
}
