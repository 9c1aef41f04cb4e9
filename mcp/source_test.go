package mcp_test

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/sourcetest"
)

func TestClientIsASource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Case{
		New: func(t *testing.T) mcp.Source {
			return mcp.NewFakeDevice(t).Client(mcp.ClientOptions{})
		},
		Tool:      "self.echo",
		Arguments: map[string]any{"text": "hello"},
		Slow:      "self.slow",
	})
}
