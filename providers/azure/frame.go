package azure

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A message is headers, a blank line and a body. In a binary one the length of the
// headers stands before them, two bytes, the higher first.

// frame is a message of the service.
type frame struct {
	path, id string
	body     []byte
}

// newID makes a number for a request or a connection: 32 hexadecimal digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// head writes the headers of a message, without the blank line.
func head(path, id, kind string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Path: %s\r\nX-RequestId: %s\r\nX-Timestamp: %s\r\n", path, id, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"))
	if kind != "" {
		fmt.Fprintf(&b, "Content-Type: %s\r\n", kind)
	}
	return b.String()
}

// textFrame makes a text message.
func textFrame(path, id, kind, body string) []byte {
	return []byte(head(path, id, kind) + "\r\n" + body)
}

// binaryFrame makes a binary message, which holds sound.
func binaryFrame(id, kind string, body []byte) []byte {
	h := head("audio", id, kind)
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(h)+len(body)), uint16(len(h)))
	return append(append(b, h...), body...)
}

// errFrame says that a message has no headers.
var errFrame = errors.New("a message has no headers")

// parseText reads a text message.
func parseText(message []byte) (f frame, err error) {
	headers, body, ok := bytes.Cut(message, []byte("\r\n\r\n"))
	if !ok {
		if headers, body, ok = bytes.Cut(message, []byte("\n\n")); !ok {
			return f, errFrame
		}
	}
	for line := range strings.Lines(string(headers)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.ToLower(strings.TrimSpace(name)) {
		case "path":
			f.path = strings.ToLower(value)
		case "x-requestid":
			f.id = value
		}
	}
	if f.path == "" {
		return f, errFrame
	}
	f.body = body
	return f, nil
}

// wavHeader is that of a WAV file of 16 bit mono sound whose length is not known.
func wavHeader(rate int) []byte {
	b := append([]byte("RIFF"), 0, 0, 0, 0)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(2*rate))
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	return append(b, "data\x00\x00\x00\x00"...)
}
