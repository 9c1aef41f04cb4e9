package mcp_test

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/sourcetest"
)

func TestLightIsASource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Case{
		New: func(t *testing.T) mcp.Source {
			device := mcp.NewFakeLight(t)
			light := device.Light(mcp.LightOptions{})
			device.Register() // even before Start: it is not lost
			return light
		},
		Tool:      "echo",
		Arguments: map[string]any{"text": "hello"},
		Slow:      "slow",
	})
}
