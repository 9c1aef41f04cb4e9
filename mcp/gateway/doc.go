// Package gateway serves what others may use of this server: its tools, its devices
// and what is known of them, by the Model Context Protocol over HTTP, SSE and
// WebSocket, and by plain HTTP.
//
//	request ─▶ Access ─▶ Gateway ─▶ catalog.View ─▶ catalog.Runner ─▶ tool
//
// Access control finds the caller of a request. The package catalog holds what is
// offered and shows each caller its part; the package offer fills it. The protocol
// is the official SDK's (imported as sdk); REST, SSE and the WebSocket are our own.
package gateway
