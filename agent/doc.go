// Package agent holds conversations: it hears an utterance, thinks with a
// language model and tools, and speaks the answer. It never sees a socket or a
// vendor: it is given events, and speaks through Outbox and the provider contracts.
package agent
