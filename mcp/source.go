package mcp

import (
	"context"
	"errors"
)

// Source gives tools. Package sourcetest holds every source to this contract
// (docs/mcp.md, Dialects 8). All methods may be called at the same time.
type Source interface {
	// Start begins connecting and listing; it does not wait for either.
	Start(ctx context.Context) error
	// Stop ends it and fails all pending calls. It may be called twice.
	Stop() error
	// HasTool reports whether the tool is there now.
	HasTool(name string) bool
	// GetAvailableTools lists the tools in a stable order. The caller owns the slice.
	GetAvailableTools() []Tool
	// CallTool runs a tool and waits for its result: any JSON value, or an
	// ActionResponse. An unknown tool is ErrNoTool.
	CallTool(ctx context.Context, name string, arguments map[string]any) (any, error)
	// IsReady reports whether the list of tools has been read.
	IsReady() bool
	// ResetConnection forgets the list and reads it again.
	ResetConnection() error
}

// Group is a source that is made of others, which come and go. A router looks at the others
// each time, so that a call goes to the one that offered the tool.
type Group interface {
	Source
	// Sources are the others now, in a stable order. The caller owns the slice.
	Sources() []Source
}

var (
	// ErrNoTool says that a source has no tool of that name now.
	ErrNoTool = errors.New("no such tool")
	// ErrClosed says that the source is stopped or its peer is gone. Calls that
	// were waiting fail with it at once.
	ErrClosed = errors.New("tool source closed")
)

// ToolError is a failure that the tool, or the peer that runs it, reported. It says
// nothing about the connection, which lives on.
type ToolError struct {
	Code    int64  // of the JSON-RPC error; 0 when there was none (isError, or firmware, which sends no codes)
	Message string // as reported
}

// Error is the reported message.
func (e *ToolError) Error() string {
	if e.Message == "" {
		return "the tool failed and gave no reason"
	}
	return e.Message
}
