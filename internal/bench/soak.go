package bench

import (
	"context"
	"io"
)

// Soak is a stub for now.
func Soak(ctx context.Context, o Options, out io.Writer) error { return nil }
