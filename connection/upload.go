package connection

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"sync"
)

// Limits of what a camera tool uploads.
const (
	maxPicture  = 4 << 20 // bytes
	maxQuestion = 8 << 10 // bytes
	maxParts    = 8
	maxUpload   = maxPicture + 1<<20 // bytes of the whole form
	maxUploads  = 32                 // at the same time, of all devices
)

// upload is a question and the picture that it is about.
type upload struct {
	question string
	kind     string // the picture's type, by its content
	data     []byte
}

// uploadError is a mistake in an upload, in words for the device's model.
type uploadError struct {
	zh, en string
	err    error // nil: en says it all
}

// Error is for the log.
func (e *uploadError) Error() string {
	if e.err == nil {
		return e.en
	}
	return e.en + " (" + e.err.Error() + ")"
}

// Unwrap is what caused it.
func (e *uploadError) Unwrap() error { return e.err }

// flawed is a mistake in both languages.
func flawed(err error, zh, en string) *uploadError { return &uploadError{zh: zh, en: en, err: err} }

// looks are the uploads going on: one of each device, maxUploads in all.
type looks struct {
	mu     sync.Mutex
	byID   map[string]struct{}
	atOnce int
}

func newLooks() *looks { return &looks{byID: make(map[string]struct{}), atOnce: maxUploads} }

// begin takes a device's place. Without an error the caller must call end.
func (l *looks) begin(deviceID string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.byID[deviceID]; ok {
		return flawed(nil, "上一张图片还没有看完。", "The picture before this one is still being looked at.")
	}
	if len(l.byID) >= l.atOnce {
		return flawed(nil, "现在看图的设备太多，请稍后再试。", "Too many devices want pictures looked at. Try again later.")
	}
	l.byID[deviceID] = struct{}{}
	return nil
}

// end gives the place back.
func (l *looks) end(deviceID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, deviceID)
}

// readUpload reads the form of section 5.6: the fields question and file, in
// any order; others are skipped. Its errors are *uploadError.
func readUpload(contentType string, body io.Reader) (upload, error) {
	var u upload
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || params["boundary"] == "" {
		return u, flawed(err, "上传的内容不是 multipart/form-data 表单。", "The upload is no multipart/form-data with a boundary.")
	}
	form := multipart.NewReader(&cappedReader{from: body, left: maxUpload}, params["boundary"])
	for n := 0; ; n++ {
		part, err := form.NextRawPart()
		if err == io.EOF { // the end of the form or of a head in it; a wrapped one is a form cut short
			return u, u.check()
		}
		if err != nil {
			return u, broken(err)
		}
		if n == maxParts {
			return u, flawed(nil, "上传的表单字段太多。", fmt.Sprintf("The form has more than %d fields.", maxParts))
		}
		if err := u.take(part); err != nil {
			return u, err
		}
	}
}

// take reads one field.
func (u *upload) take(part *multipart.Part) error {
	switch part.FormName() {
	case "question":
		if u.question != "" {
			return flawed(nil, "有不止一个问题。", "There is more than one question.")
		}
		text, err := readPart(part, maxQuestion)
		u.question = strings.TrimSpace(strings.ToValidUTF8(string(text), "\uFFFD"))
		if errors.Is(err, errTooLarge) {
			return flawed(err, "问题太长。", fmt.Sprintf("The question is longer than %d bytes.", maxQuestion))
		}
		return err
	case "file":
		if u.data != nil {
			return flawed(nil, "有不止一张图片。", "There is more than one picture.")
		}
		data, err := readPart(part, maxPicture)
		u.data = data
		if errors.Is(err, errTooLarge) {
			return flawed(err, "图片太大。", fmt.Sprintf("The picture is larger than %d bytes.", maxPicture))
		}
		return err
	}
	return nil
}

// check says what is missing, and finds out what the picture is.
func (u *upload) check() error {
	switch {
	case u.question == "":
		return flawed(nil, "没有收到关于图片的问题。", "There is no question about the picture (field question).")
	case len(u.data) == 0:
		return flawed(nil, "没有收到图片。", "There is no picture (field file).")
	}
	switch u.kind = http.DetectContentType(u.data); u.kind {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return nil
	}
	return flawed(nil, "收到的文件不是图片（支持 JPEG、PNG、GIF、WebP）。", "The file is no picture (JPEG, PNG, GIF or WebP) but "+u.kind+".")
}

// errTooLarge says that a field or the form is over its limit.
var errTooLarge = errors.New("too large")

// readPart reads a field of at most limit bytes.
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

// broken says why a form could not be read to its end.
func broken(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return flawed(err, "上传的内容太大。", fmt.Sprintf("The upload is larger than %d bytes.", maxUpload))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return flawed(err, "上传太慢，没有在规定时间内完成。", fmt.Sprintf("The upload took longer than %v.", uploadTime))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return flawed(err, "上传的内容不完整。", "The upload ended before it was complete.")
	}
	return flawed(err, "上传的内容无法读取。", "The upload cannot be read.")
}

// cappedReader reads at most left bytes and then fails with errTooLarge, unlike
// an io.LimitReader, whose end looks like that of the form.
type cappedReader struct {
	from io.Reader
	left int
}

// Read reads from the stream below.
func (c *cappedReader) Read(p []byte) (int, error) {
	if c.left == 0 {
		if n, err := c.from.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, errTooLarge
	}
	n, err := c.from.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
