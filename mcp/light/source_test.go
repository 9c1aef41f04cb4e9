package light_test

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/light"
	"xiaozhi/mcp/sourcetest"
)

func TestSourceContract(t *testing.T) {
	sourcetest.Run(t, sourcetest.Case{
		New: func(t *testing.T) mcp.Source {
			device := light.NewFakeLight(t)
			light := device.Light(light.Options{})
			device.Register() // even before Start: it is not lost
			return light
		},
		Tool:      "echo",
		Arguments: map[string]any{"text": "hello"},
		Slow:      "slow",
	})
}
