package camera

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"sync"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// Limits of what a camera tool uploads.
const (
	maxPicture  = 4 << 20 // bytes
	maxQuestion = 8 << 10 // bytes
	maxParts    = 8
	maxUpload   = maxPicture + 1<<20 // bytes of the whole form
	maxUploads  = 32                 // at the same time, of all devices
)

type upload struct {
	question string
	kind     string // the picture's type, by its content
	data     []byte
}

// uploadError is a mistake in an upload, in words for the device's model.
type uploadError struct {
	id   string // of the message
	args []any
	err  error // behind it; may be nil
}

func (e *uploadError) in(lang text.Lang) string { return message.In(lang, e.id, e.args...) }

// Error is the mistake in English, for the log.
func (e *uploadError) Error() string {
	if e.err == nil {
		return e.in(text.English)
	}
	return e.in(text.English) + " (" + e.err.Error() + ")"
}

// Unwrap gives the error behind it.
func (e *uploadError) Unwrap() error { return e.err }

// flawed is a mistake that a message describes.
func flawed(err error, id string, args ...any) *uploadError {
	return &uploadError{id: id, args: args, err: err}
}

// uploadSlots are the uploads going on: one of each device, maxUploads in all.
type uploadSlots struct {
	mu     sync.Mutex
	byID   map[string]struct{}
	atOnce int
}

func newUploadSlots() *uploadSlots {
	return &uploadSlots{byID: make(map[string]struct{}), atOnce: maxUploads}
}

// acquire takes a device's slot. Without an error the caller must release it.
func (l *uploadSlots) acquire(deviceID string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.byID[deviceID]; ok {
		return flawed(nil, "connection/picture-pending")
	}
	if len(l.byID) >= l.atOnce {
		return flawed(nil, "connection/picture-crowd")
	}
	l.byID[deviceID] = struct{}{}
	return nil
}

func (l *uploadSlots) release(deviceID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, deviceID)
}

// readUpload reads the form of docs/protocol.md 5.6: the fields question and file, in
// any order; others are skipped. Its errors are *uploadError.
func readUpload(contentType string, body io.Reader) (upload, error) {
	var u upload
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return u, flawed(err, "connection/picture-form")
	}
	form := multipart.NewReader(http.MaxBytesReader(nil, io.NopCloser(body), maxUpload), params["boundary"])
	for n := 0; ; n++ {
		part, err := form.NextRawPart()
		if err == io.EOF { // the end of the form or of a head in it; a wrapped one is a form cut short
			return u, u.check()
		}
		if err != nil {
			return u, broken(err)
		}
		if n == maxParts {
			return u, flawed(nil, "connection/picture-fields", maxParts)
		}
		if err := u.take(part); err != nil {
			return u, err
		}
	}
}

func (u *upload) take(part *multipart.Part) error {
	switch part.FormName() {
	case "question":
		if u.question != "" {
			return flawed(nil, "connection/picture-questions")
		}
		words, err := readPart(part, maxQuestion)
		u.question = strings.TrimSpace(strings.ToValidUTF8(string(words), "\uFFFD"))
		if errors.Is(err, errTooLarge) {
			return flawed(err, "connection/picture-long-question", maxQuestion)
		}
		return err
	case "file":
		if u.data != nil {
			return flawed(nil, "connection/picture-files")
		}
		data, err := readPart(part, maxPicture)
		u.data = data
		if errors.Is(err, errTooLarge) {
			return flawed(err, "connection/picture-large", maxPicture)
		}
		return err
	}
	return nil
}

// check reports what is missing, and detects the type of the picture.
func (u *upload) check() error {
	switch {
	case u.question == "":
		return flawed(nil, "connection/picture-no-question")
	case len(u.data) == 0:
		return flawed(nil, "connection/picture-none")
	}
	switch u.kind = http.DetectContentType(u.data); u.kind {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return nil
	}
	return flawed(nil, "connection/picture-kind", u.kind)
}

// errTooLarge says that a field is over its limit.
var errTooLarge = errors.New("too large")

func readPart(part io.Reader, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(part, int64(limit)+1))
	if err != nil {
		return nil, broken(err)
	}
	if len(data) > limit {
		return nil, errTooLarge
	}
	return data, nil
}

// broken is the mistake of a form that could not be read to its end.
func broken(err error) error {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return flawed(err, "connection/picture-too-much", int(large.Limit))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return flawed(err, "connection/picture-late", uploadTime)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return flawed(err, "connection/picture-cut")
	}
	return flawed(err, "connection/picture-broken")
}
