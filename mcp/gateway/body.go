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

func reply(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	replyRaw(w, status, data)
}

// replyRaw answers with JSON that is written already, in time: a client that does
// not read its answer is hung up on.
func replyRaw(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(writeTime)) // recorders have none
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the other end may be gone
	_ = rc.Flush()                     // while there is a deadline
	_ = rc.SetWriteDeadline(time.Time{})
}

// readBody reads a body that is not too long and comes in time; problem says why it
// was not taken. After a problem the connection is closed. The rest of a body that is
// too long is taken in, if it comes soon, for many clients read no answer before they
// have sent all.
func (f *front) readBody(w http.ResponseWriter, r *http.Request, c catalog.Caller) (body []byte, status int, problem string) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(f.bodyTime)) // recorders have none
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, http.StatusUnsupportedMediaType, c.Say("gateway/body-encoded")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{})
		return body, 0, ""
	}
	w.Header().Set("Connection", "close")
	status, problem = http.StatusBadRequest, c.Say("gateway/body-unread")
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		status, problem = http.StatusRequestEntityTooLarge, c.Say("gateway/body-over", strconv.Itoa(maxBody))
		if r.ContentLength <= maxDrain {
			_, _ = io.CopyN(io.Discard, r.Body, maxDrain)
		}
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		problem = c.Say("gateway/body-late")
	}
	_ = rc.SetReadDeadline(time.Now())
	return nil, status, problem
}

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
