package mcp

// Call is a request of a model, or of a platform, to run a tool.
type Call struct {
	ID        string // the model's id of the call
	Name      string // LLMName of an offer
	Arguments string // JSON text; "" means {}
	Language  string // of the turn, in which a refusal is worded: "zh", else English
	// Outside marks a call that is not the conversation's own. It waits for the
	// device behind all those that are, and may equal one that is running.
	Outside bool
}
