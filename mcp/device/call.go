package device

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// CallTool runs a tool of the device, once, and waits for its result as long as ctx allows:
// a string, an Image, or a []any of both in the device's order. Errors: ErrNoTool,
// ErrClosed, a *ToolError for what the device reports, and those of ctx.
func (c *Client) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	live, err := c.sessionFor(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", name, err)
	}
	if arguments == nil {
		arguments = map[string]any{} // null is an error to firmware
	}
	sent := &sentCall{tool: name}
	stop := mcp.AfterCaller(ctx, func() { live.link.abandon(sent) })
	defer stop()
	result, err := live.CallTool(context.WithValue(ctx, sentKey{}, sent), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return nil, callError(ctx, live.link, name, err)
	}
	if result.IsError {
		return nil, &mcp.ToolError{Message: textOf(result.Content)}
	}
	return plainResult(result.Content), nil
}

// session is the initialised session, made if there is none yet.
func (c *Client) session(ctx context.Context) (*liveSession, error) {
	c.mu.Lock()
	live := c.live
	c.mu.Unlock()
	if live != nil {
		return live, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	l := &link{client: c, log: c.log, closed: make(chan struct{}), pending: make(map[int64]request)}
	s, err := c.options.Lists.peer.Connect(ctx, l, &sdk.ClientSessionOptions{ProtocolVersion: pinnedVersion})
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	live = &liveSession{ClientSession: s, link: l}
	info := ServerInfo{}
	if r := s.InitializeResult(); r != nil && r.ServerInfo != nil {
		info = ServerInfo{Name: r.ServerInfo.Name, Version: r.ServerInfo.Version, Protocol: r.ProtocolVersion}
	}
	c.log.Info("device mcp initialized", "name", info.Name, "version", info.Version, "protocol", info.Protocol)
	c.tools.identified(info)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live, c.info = live, info
	close(c.up)
	if c.ended {
		_ = l.Close()
	}
	return live, nil
}

// sessionFor is the session in which a tool that is there can be called. One that is only
// remembered has to wait until initialize is answered, and may be gone by then.
func (c *Client) sessionFor(ctx context.Context, name string) (*liveSession, error) {
	for waited := false; ; waited = true {
		has := c.tools.has(name) // before ended, which is set first
		c.mu.Lock()
		ended, live := c.ended, c.live
		c.mu.Unlock()
		switch {
		case ended:
			return nil, mcp.ErrClosed
		case !has || live == nil && waited:
			return nil, mcp.ErrNoTool
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case live != nil:
			return live, nil
		}
		select {
		case <-c.up:
		case <-c.down:
		case <-ctx.Done():
		}
	}
}

// callError tells the causes of a failed call apart.
func callError(ctx context.Context, l *link, name string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("call %s: %w", name, ctx.Err())
	}
	select {
	case <-l.closed:
		return fmt.Errorf("call %s: %w", name, mcp.ErrClosed)
	default:
	}
	if reported, ok := errors.AsType[*jsonrpc.Error](err); ok && reported.Code != codeRejected {
		return &mcp.ToolError{Code: reported.Code, Message: reported.Message}
	}
	return fmt.Errorf("call %s: %w", name, err)
}

// plainResult is content as CallTool returns it.
func plainResult(content []sdk.Content) any {
	blocks := make([]any, 0, len(content))
	for _, block := range content {
		switch block := block.(type) {
		case *sdk.TextContent:
			blocks = append(blocks, block.Text)
		case *sdk.ImageContent:
			blocks = append(blocks, mcp.Image{MIMEType: block.MIMEType, Data: block.Data})
		}
	}
	switch {
	case !mcp.HasImage(blocks):
		return textOf(content)
	case len(content) == 1:
		return blocks[0]
	}
	return blocks
}

// textOf joins the text blocks, each on lines of its own.
func textOf(content []sdk.Content) string {
	var texts []string
	for _, block := range content {
		if text, ok := block.(*sdk.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

type sentKey struct{}

// sentCall is one tools/call on its way to the wire. It travels in the context, since only
// the link, whose mu guards it, learns the id under which the device knows the call.
type sentCall struct {
	tool      string
	id        int64 // on the wire; 0 until it is about to be sent
	abandoned bool  // if it was not sent before, it is not to be
}
