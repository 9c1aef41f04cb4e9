package agent

import (
	"xiaozhi/agent/turn"
	"xiaozhi/mcp"
)

// speaking returns who is speaking as tools and models are told.
func (c *Conversation) speaking(s turn.Speaker) mcp.Speaker {
	if c.o.Voices == nil || !c.o.Voices.On() {
		return mcp.Speaker{}
	}
	return mcp.Speaker{On: true, ID: s.ID, Name: s.Name, Sure: s.Sure, Certain: s.Certain, Before: s.Before, Other: s.Voice == turn.Stranger}
}
