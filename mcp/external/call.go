package external

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// errTimeout is the cause when the server's own limit ends a call.
var errTimeout = errors.New("no answer in the time set for this server")

// CallTool runs a tool and waits for its result as long as ctx and the config's
// timeout allow. The result is text, an mcp.Image, a []any of both, or any JSON
// value. It is sent once; with Config.Defaults a server of 2026-07-28 may have it
// continued up to ten times, each with an answer to what it asked. Errors: mcp.ErrNoTool, also while the server is
// away; mcp.ErrClosed when it left meanwhile; a *mcp.ToolError for what it
// reports; those of ctx.
func (s *Server) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	own, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	own, stop := context.WithTimeoutCause(own, s.config.Timeout, errTimeout)
	defer stop()
	live, number, err := s.begin(name, cancel)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	defer s.finish(number)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	if arguments == nil {
		arguments = map[string]any{}
	}
	result, err := live.CallTool(own, &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return nil, s.callError(ctx, own, live, name, err)
	}
	if result.NeedsInput() {
		return nil, errQuestion
	}
	if result.IsError {
		return nil, &mcp.ToolError{Message: textOf(result)}
	}
	return resultOf(result), nil
}

// begin notes a call, so that it ends when the server leaves.
func (s *Server) begin(name string, cancel context.CancelCauseFunc) (*session, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, 0, mcp.ErrClosed
	}
	if s.live == nil || !s.has(name) {
		return nil, 0, mcp.ErrNoTool
	}
	s.number++
	s.calls[s.number] = cancel
	return s.live, s.number, nil
}

func (s *Server) finish(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, number)
}

// callError says whose fault a failed call is. own is the call's context, ctx
// its caller's.
func (s *Server) callError(ctx, own context.Context, live *session, name string, err error) error {
	if cause := context.Cause(own); errors.Is(cause, mcp.ErrClosed) {
		return s.left(name)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("call %s: %w", name, ctx.Err())
	}
	if own.Err() != nil {
		return fmt.Errorf("call %s: mcp server %s gave no answer in %v: %w", name, s.name, s.config.Timeout, own.Err())
	}
	if errors.Is(err, io.EOF) || live.over() {
		return s.left(name)
	}
	if errors.Is(err, sdk.ErrConnectionClosed) {
		_, message, _ := strings.Cut(err.Error(), `calling "tools/call": `)
		if strings.HasPrefix(message, "client is closing") || strings.HasPrefix(message, "server is closing") {
			return s.left(name)
		}
		// The server reported an error with a code that the SDK keeps for itself.
		return &mcp.ToolError{Message: message}
	}
	if reported, ok := errors.AsType[*jsonrpc.Error](err); ok && !unsent(err) {
		return &mcp.ToolError{Code: reported.Code, Message: reported.Message}
	}
	return fmt.Errorf("call %s: mcp server %s: %s", name, s.name, s.mask.err(err))
}

// left is the error of a call whose server went away.
func (s *Server) left(name string) error {
	return fmt.Errorf("call %s: mcp server %s has left: %w", name, s.name, mcp.ErrClosed)
}

// over reports whether the connection has ended.
func (s *session) over() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}
