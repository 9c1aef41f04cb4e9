package device_test

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/sourcetest"
)

func TestClientContract(t *testing.T) {
	sourcetest.Run(t, sourcetest.Case{
		New: func(t *testing.T) mcp.Source {
			return device.NewFakeDevice(t).Client(device.Options{})
		},
		Tool:      "self.echo",
		Arguments: map[string]any{"text": "hello"},
		Slow:      "self.slow",
	})
}
