//lint:file-ignore SA1019 older clients still sample and log

package catalog

import (
	"context"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Client is the client that called a tool, as the tool may speak to it. What the
// client did not ask for, or cannot do, is left out or refused: it is never sent.
type Client struct {
	req  *sdk.CallToolRequest // nil: it cannot be spoken to
	view *View                // in which it called
}

// ErrNotDeclared says that a client did not declare that it can do what it was
// to be asked for, or that its connection does not let it be asked.
var ErrNotDeclared = errors.New("the client has not declared that it can do this")

type clientKey struct{}

func withClient(ctx context.Context, req *sdk.CallToolRequest) context.Context {
	return context.WithValue(ctx, clientKey{}, req)
}

// ClientFrom returns the client of the call that ctx belongs to. Its methods may be
// called at the same time, until the tool returns.
func ClientFrom(ctx context.Context) Client {
	req, _ := ctx.Value(clientKey{}).(*sdk.CallToolRequest)
	v, _ := ctx.Value(viewIn{}).(*View)
	return Client{req, v}
}

// Progress tells a client that asked for it how far a call is. total 0: unknown.
func (c Client) Progress(ctx context.Context, done, total float64, message string) {
	if c.req == nil || c.req.Params.GetProgressToken() == nil {
		return
	}
	_ = c.req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
		ProgressToken: c.req.Params.GetProgressToken(), Progress: done, Total: total, Message: message,
	})
}

// Log tells a client something, if it wants to hear of that level (debug, info,
// notice, warning, error, critical, alert, emergency).
func (c Client) Log(ctx context.Context, level, text string) {
	if c.req != nil {
		_ = c.req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: sdk.LoggingLevel(level), Logger: "xiaozhi", Data: text})
	}
}

// Sample has the client's own model answer a text. It returns [ErrNotDeclared] if
// the client did not declare one, or speaks a revision that knows no such request.
func (c Client) Sample(ctx context.Context, text string, maxTokens int64) (string, error) {
	if !c.can(func(d *sdk.ClientCapabilities) bool { return d.Sampling != nil }) {
		return "", ErrNotDeclared
	}
	r, err := c.req.Session.CreateMessage(ctx, &sdk.CreateMessageParams{
		MaxTokens: maxTokens, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}},
	})
	if err != nil {
		return "", err
	}
	if t, ok := r.Content.(*sdk.TextContent); ok {
		return t.Text, nil
	}
	return "", errors.New("the client's model answered with no text")
}

// viewIn is the key of the view in a context.
type viewIn struct{}

// Roots returns the folders that the client lets a server know of: as it named them
// last, if it tells of changes. [ErrNotDeclared] as for [Client.Sample].
func (c Client) Roots(ctx context.Context) ([]string, error) {
	if !c.can(func(d *sdk.ClientCapabilities) bool { return d.RootsV2 != nil }) {
		return nil, ErrNotDeclared
	}
	if c.view == nil {
		return nil, ErrNotDeclared
	}
	if !c.req.ClientCapabilities().RootsV2.ListChanged {
		return listRoots(ctx, c.req.Session)
	}
	return c.view.rootsOf(ctx, c.req.Session, false)
}

// can reports whether the client can be asked for what declared looks for.
func (c Client) can(declared func(*sdk.ClientCapabilities) bool) bool {
	if c.req == nil || c.req.Session == nil || c.req.ProtocolVersion() >= VersionModern {
		return false
	}
	d := c.req.ClientCapabilities()
	return d != nil && declared(d)
}
