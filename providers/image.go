package providers

// Image is a picture that goes with a message.
type Image struct {
	MIMEType string // image/jpeg, image/png, image/gif or image/webp
	Data     []byte // the file as it is; read-only
}
