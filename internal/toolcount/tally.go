// Package toolcount counts calls of tools by where the tools are from: how many were made, how many of them failed, how
// many late, and how many were not made and why. What it has counted can be shown, or exported as metrics: its labels are
// few and fixed.
package toolcount

import (
	"strings"
	"sync"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// None is the label of calls of tools that there are not.
const None = "none"

// Labels lists the labels of sources, in the order in which they are shown. All servers of others are one.
func Labels() []string {
	return []string{mcp.SourceLocal, mcp.SourceFile, mcp.SourceDevice, mcp.SourceLight, mcp.SourceIoT, "external", None}
}

// labelOf returns the label of a tool's source.
func labelOf(source string) string {
	switch family, _, _ := strings.Cut(source, ":"); family {
	case mcp.SourceFile, mcp.SourceDevice, mcp.SourceLight, mcp.SourceIoT, "external":
		return family
	case mcp.SourceLocal, mcp.SourceGateway: // the core tools are this server's too
		return mcp.SourceLocal
	}
	return None
}

// Count holds what was counted of one source. Each number only grows.
type Count struct {
	Source  string                    `json:"source"`
	Calls   uint64                    `json:"calls"`  // that were made
	Failed  uint64                    `json:"failed"` // of these
	Late    uint64                    `json:"late"`   // of these, after their success was assumed
	Refused map[router.Refusal]uint64 `json:"refused"`
	Took    time.Duration             `json:"-"` // all of them together
}

// Tally counts. Its methods may be called at the same time.
type Tally struct {
	mu sync.Mutex
	of map[string]*Count
}

// New returns a tally of nothing.
func New() *Tally {
	t := &Tally{of: map[string]*Count{}}
	for _, label := range Labels() {
		t.of[label] = &Count{Source: label, Refused: map[router.Refusal]uint64{}}
	}
	return t
}

// Note counts a call that has ended, or was refused.
func (t *Tally) Note(rec router.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.of[labelOf(rec.Source)]
	if rec.Refusal != "" {
		c.Refused[rec.Refusal]++
		return
	}
	c.Calls++
	c.Took += rec.Took
	if rec.Late {
		c.Late++
	}
	if rec.Outcome == mcp.ActionTypeError.String() || rec.Outcome == mcp.ActionTypeNotFound.String() {
		c.Failed++
	}
}

// Counts returns what was counted, of all sources in the order of [Labels], with all refusals. The caller owns it.
func (t *Tally) Counts() []Count {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Count, 0, len(t.of))
	for _, label := range Labels() {
		c := *t.of[label]
		c.Refused = make(map[router.Refusal]uint64, len(router.Refusals()))
		for _, why := range router.Refusals() {
			c.Refused[why] = t.of[label].Refused[why]
		}
		out = append(out, c)
	}
	return out
}
