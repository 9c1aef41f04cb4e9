package openaitest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
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
	_ = json.Unmarshal(r.Body, &body) // what is none leaves it nil
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

// Picture is an image in a chat request, with the text of its message.
type Picture struct {
	Text string
	MIME string
	Data []byte
}

// Pictures returns all images of a chat request, in their order. A message whose content is not as the format says is
// an error: content is a text, null, or a list of parts; a picture is a part image_url whose url is a data URL in
// base64 of the type that it names.
func (r *Request) Pictures() ([]Picture, error) {
	var body struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return nil, fmt.Errorf("chat request: %w", err)
	}
	var all []Picture
	for i, m := range body.Messages {
		found, err := picturesIn(m.Content)
		if err == nil && len(found) > 0 && m.Role != "user" {
			err = fmt.Errorf("a picture from the %s", m.Role)
		}
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

func picturesIn(content json.RawMessage) ([]Picture, error) {
	if len(content) == 0 || content[0] != '[' {
		var text *string
		if len(content) > 0 && json.Unmarshal(content, &text) != nil {
			return nil, fmt.Errorf("content is neither text nor a list: %.40s", content)
		}
		return nil, nil
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		ImageURL *struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	var text strings.Builder
	var found []Picture
	for _, p := range parts {
		switch {
		case p.Type == "text" && p.Text != nil && p.ImageURL == nil:
			text.WriteString(*p.Text)
		case p.Type == "image_url" && p.ImageURL != nil && p.Text == nil:
			picture, err := readDataURL(p.ImageURL.URL)
			if err != nil {
				return nil, err
			}
			found = append(found, picture)
		default:
			return nil, fmt.Errorf("a part of type %q does not hold what it says", p.Type)
		}
	}
	for i := range found {
		found[i].Text = text.String()
	}
	return found, nil
}

// readDataURL takes data:TYPE;base64,DATA apart.
func readDataURL(url string) (p Picture, err error) {
	head, data, ok := strings.Cut(url, ",")
	kind, isData := strings.CutPrefix(head, "data:")
	kind, isBase64 := strings.CutSuffix(kind, ";base64")
	if !ok || !isData || !isBase64 {
		return p, fmt.Errorf("no data URL in base64: %.40s", url)
	}
	if p.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
		return p, fmt.Errorf("data URL: %w", err)
	}
	if len(p.Data) == 0 {
		return p, errors.New("an empty picture")
	}
	if p.MIME = http.DetectContentType(p.Data); p.MIME != kind {
		return p, fmt.Errorf("a picture that says it is %s is %s", kind, p.MIME)
	}
	return p, nil
}
