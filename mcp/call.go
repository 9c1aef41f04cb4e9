package mcp

// Call is a request of a model, or of a platform, to run a tool.
type Call struct {
	ID        string // the model's id of the call
	Name      string // LLMName of an offer
	Arguments string // JSON text; "" means {}
	Language  string // of the turn, in which a refusal is worded: "zh", else English
	// Outside says that it is not the conversation's own: it waits for the device
	// behind all those that are, and may be what somebody else wants too.
	Outside bool
}
