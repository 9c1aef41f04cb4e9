// Package catalog holds what the gateway offers, and shows each caller its part.
//
// A [Registry] holds tools, resources and prompts, in groups called streams. A
// [View] is the part of it that one [Caller] sees, of one stream or of all; it has
// an MCP server of its own (the official SDK, imported as sdk), so that nothing
// can be reached through it that it does not show. A [Runner] runs tools within
// the limits of the gateway and leaves a line in the log for each call.
package catalog
