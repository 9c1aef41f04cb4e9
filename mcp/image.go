package mcp

// Image is a picture that a tool returned.
type Image struct {
	MIMEType string
	Data     []byte
}
