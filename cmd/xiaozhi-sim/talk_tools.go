package main

import (
	"bytes"
	"context"
	"time"

	"xiaozhi/internal/devicetest"
)

// Nobody types within milliseconds of the connection, before the server has
// asked for the tools and taken them in.
const (
	listingTime = time.Second // a server that asks for the tools at all has them by then
	takingIn    = 200 * time.Millisecond
)

// awaitTools lets a server learn of the tools before the first words are typed.
func (t *talker) awaitTools(ctx context.Context) {
	if t.o.noMCP || t.call.typed {
		return
	}
	t.call.typed = true
	select {
	case <-t.call.listed:
	case <-time.After(listingTime):
		return
	case <-t.call.device.Done():
	case <-ctx.Done():
	}
	select {
	case <-time.After(takingIn):
	case <-t.call.device.Done():
	case <-ctx.Done():
	}
}

// isLastTool says whether the device has just sent the last page of its tools.
func isLastTool(e devicetest.Event) bool {
	return e.Kind == devicetest.KindSent && e.Type == "mcp" &&
		bytes.Contains(e.Raw, []byte(`"tools":[`)) && !bytes.Contains(e.Raw, []byte(`"nextCursor"`))
}
