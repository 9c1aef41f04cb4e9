package mcp_test

import (
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/sourcetest"
)

func TestThingsIsASource(t *testing.T) {
	sourcetest.Run(t, sourcetest.Case{
		New: func(t *testing.T) mcp.Source {
			b := mcp.NewLegacyBoard(t, `{"name":"Lamp","methods":{"TurnOn":{},"Measure":{}}}`)
			things := b.Things(mcp.ThingsOptions{})
			b.Describe(things)
			return things
		},
		Tool:      "self.lamp.turn_on",
		Arguments: map[string]any{},
		Slow:      "self.lamp.measure",
	})
}
