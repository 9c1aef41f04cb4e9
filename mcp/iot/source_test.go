package iot_test

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/sourcetest"
)

func TestSourceContract(t *testing.T) {
	sourcetest.Run(t, sourcetest.Case{
		New: func(t *testing.T) mcp.Source {
			b := iot.NewLegacyBoard(t, `{"name":"Lamp","methods":{"TurnOn":{},"Measure":{}}}`)
			things := b.Things(iot.Options{})
			b.Describe(things)
			return things
		},
		Tool:      "self.lamp.turn_on",
		Arguments: map[string]any{},
		Slow:      "self.lamp.measure",
	})
}
