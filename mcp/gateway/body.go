package gateway

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/rawjson"
)

// errEncoded says that a body is compressed.
var errEncoded = errors.New("compressed bodies are not read")

// readBody reads a body that is not too long and comes in time. After an error
// the connection is closed. The rest of a body that is too long is taken in, if it
// comes soon, for many clients read no answer before they have sent all.
func (f *front) readBody(w http.ResponseWriter, r *http.Request) ([]byte, int, error) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(f.bodyTime)) // recorders have none
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, http.StatusUnsupportedMediaType, errEncoded
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{})
		return body, 0, nil
	}
	w.Header().Set("Connection", "close")
	status := http.StatusBadRequest
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		status = http.StatusRequestEntityTooLarge
		if r.ContentLength <= maxDrain {
			_, _ = io.CopyN(io.Discard, r.Body, maxDrain)
		}
	}
	_ = rc.SetReadDeadline(time.Now())
	return nil, status, err
}

// bodyProblem returns what is wrong with a body that readBody did not take.
func bodyProblem(c catalog.Caller, status int, err error) string {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return c.Say("gateway/body-over", strconv.Itoa(maxBody))
	case http.StatusUnsupportedMediaType:
		return c.Say("gateway/body-encoded")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return c.Say("gateway/body-late")
	}
	return c.Say("gateway/body-unread")
}

// deep reports whether JSON nests deeper than any honest message does.
func deep(data []byte) bool { return rawjson.Depth(data) > catalog.MaxDepth }

// decodeOne reads a body of one JSON object. A key that is not known is an
// error: arguments under another name would be lost without a word.
func decodeOne(body io.Reader, into any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return err
		}
		return errors.New("something follows the object")
	}
	return nil
}
