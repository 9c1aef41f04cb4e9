package mcp

import "errors"

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
