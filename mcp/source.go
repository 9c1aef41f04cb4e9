package mcp

import "context"

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

// Group is a source that is made of others, which come and go. A router looks
// at the others each time, so that what they offer has their own names and a
// call goes to the one that offered it.
type Group interface {
	Source
	// Sources are the others now, in a stable order. The caller owns the slice.
	Sources() []Source
}
