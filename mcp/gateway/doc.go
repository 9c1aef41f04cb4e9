// Package gateway is what others may use of this server: its tools, its devices
// and what is known of them, by the Model Context Protocol over HTTP, SSE and
// WebSocket, and by plain HTTP.
//
//	request ─▶ Access.Guard (who?) ─▶ Gateway (where?) ─▶ view (what may he see?) ─▶ entry (run it)
//
// A Registry holds what is offered, in groups called streams. A view is what one
// caller sees of one stream, or of all; it has an MCP server of its own, so that
// nothing can be reached through it that it does not show. The protocol is the
// official SDK's (imported as sdk); REST, SSE and the WebSocket are our own.
package gateway
