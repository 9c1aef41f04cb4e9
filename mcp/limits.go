package mcp

// Limits on what a device may send us and what we send to it.
const (
	MaxSend     = 7 << 10 // bytes of one payload to a device, which takes 8 KiB with the envelope
	MaxTools    = 256     // tools of one device
	MaxToolName = 256     // bytes of a tool's name
)
