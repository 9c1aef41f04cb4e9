package mcp

import (
	"context"
	"time"
)

// Info describes the turn that a tool is called in. The zero value is a turn of
// which nothing is known.
type Info struct {
	DeviceID string         // Device-Id in lower case; "" for none
	Language string         // "zh" or "en": the language to answer in; "" for none
	Zone     *time.Location // nil: the server's zone
	Pictures bool           // the caller takes pictures as they are: they are not described for it
}

type infoKey struct{}

// WithInfo returns a context that carries info to the tools called under it.
func WithInfo(ctx context.Context, info Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// InfoFrom is the Info that ctx carries, or the zero value.
func InfoFrom(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}
