package gateway

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// reply answers with JSON.
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
