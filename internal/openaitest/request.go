package openaitest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"sync/atomic"
	"time"
)

const maxBody = 16 << 20 // bytes of a request that are read

// Request is one request to the server, with its times. Its fields do not change after the script has seen it.
type Request struct {
	Role   Role
	Header http.Header
	Body   []byte            // of chat and speech
	Fields map[string]string // of transcriptions: the form without the file
	File   []byte            // of transcriptions: the upload
	// Filename and FileType are what the upload calls itself.
	Filename, FileType string

	// Arrived is when all of the request had come.
	Arrived time.Time

	began atomic.Pointer[time.Time] // the first piece of the body was written
	ended chan struct{}
	end   time.Time // set before ended is closed
	gone  bool      // set before ended is closed
}

// Began returns the time at which the first piece of the reply's body was written; zero if none was yet.
func (r *Request) Began() time.Time {
	if at := r.began.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// EndedAt returns the time at which the request was over: its reply complete, or
// its client seen to have left. Like [Request.Gone] it waits until then.
func (r *Request) EndedAt() time.Time {
	<-r.ended
	return r.end
}

// Ended is closed when the request is over, by either side.
func (r *Request) Ended() <-chan struct{} { return r.ended }

// Gone reports whether the client left before the reply was complete. It is known
// once Ended is closed; until then it waits.
func (r *Request) Gone() bool {
	<-r.ended
	return r.gone
}

// JSON returns the body as a map. It is nil if the body is not a JSON object.
func (r *Request) JSON() map[string]any {
	var body map[string]any
	if json.Unmarshal(r.Body, &body) != nil {
		return nil
	}
	return body
}

func (s *Server) handle(role Role) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		request := &Request{Role: role, Header: r.Header.Clone(), ended: make(chan struct{})}
		if err := request.read(r); err != nil {
			http.Error(w, `{"error":{"message":"cannot read the request"}}`, http.StatusBadRequest)
			return
		}
		request.Arrived = time.Now()
		script := s.record(request)
		defer func() {
			request.end = time.Now()
			close(request.ended)
		}()
		request.gone = true // also if the reply is cut by a panic, see Reply.write
		request.gone = !script(request).write(r.Context(), w, func() {
			now := time.Now()
			request.began.CompareAndSwap(nil, &now)
		})
	}
}

// read takes the whole body; only then does the HTTP server notice a client that leaves.
func (r *Request) read(from *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(from.Body, maxBody))
	if err != nil {
		return err
	}
	media, params, err := mime.ParseMediaType(from.Header.Get("Content-Type"))
	if err != nil || media != "multipart/form-data" {
		r.Body = body
		return nil
	}
	form, err := multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(maxBody)
	if err != nil {
		return err
	}
	r.Fields = make(map[string]string)
	for name, values := range form.Value {
		r.Fields[name] = values[len(values)-1]
	}
	for _, files := range form.File {
		upload := files[len(files)-1]
		file, err := upload.Open()
		if err != nil {
			return err
		}
		defer file.Close()
		if r.File, err = io.ReadAll(file); err != nil {
			return err
		}
		r.Filename, r.FileType = upload.Filename, upload.Header.Get("Content-Type")
	}
	return nil
}
