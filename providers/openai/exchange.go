package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strings"
	"time"

	"xiaozhi/providers"
)

const (
	maxStream  = 16 << 20               // bytes of one answer
	drainLimit = 100 * time.Millisecond // for the end of a finished stream, so that its connection can be used again
)

// exchange is the HTTP client of one chat request. go-openai makes the request
// and reads the events; exchange adds what its types have no field for and
// keeps what it does not hand out. It is for one goroutine.
type exchange struct {
	o    Options
	body *watchedBody // of the response; nil until there is one
}

// Do sends the request with our keys merged into its body. A refusal, and a
// reply that is no event stream, is an error.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if raw, err = mergeBody(raw, x.o); err != nil {
		return nil, &statusError{kind: providers.BadRequest, text: "merge the extra body keys: " + err.Error()}
	}
	req.Body = io.NopCloser(bytes.NewReader(raw))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	req.ContentLength = int64(len(raw))
	req.Header.Del("Connection") // HTTP/2 knows no such header, and HTTP/1.1 keeps alive anyway
	x.o.setHeaders(req)
	resp, err := x.o.HTTPClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer func() { _ = resp.Body.Close() }()
		return nil, readStatus(resp)
	}
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && (media == "application/json" || media == "text/html") {
		defer func() { _ = resp.Body.Close() }()
		return nil, notAStream(resp, media)
	}
	x.body = &watchedBody{ReadCloser: resp.Body, left: maxStream}
	resp.Body = x.body
	return resp, nil
}

// notAStream is the error for a reply of status 200 that holds no events.
func notAStream(resp *http.Response, media string) error {
	refusal := readStatus(resp)
	refusal.kind = providers.Unavailable
	if media != "application/json" || !strings.HasPrefix(refusal.text, "{") {
		return refusal
	}
	return errors.New("the reply is not an event stream: " + refusal.text)
}

// done says whether the server has ended the stream by its own end mark.
func (x *exchange) done() bool { return x.body != nil && x.body.done }

// drain reads to the end of a stream whose answer is complete.
func (x *exchange) drain() {
	if x.body == nil {
		return
	}
	// What is left is of no use: any error only costs the connection.
	_, _ = io.Copy(io.Discard, x.body)
}

// mergeBody puts into a chat request what go-openai cannot say: a temperature of
// zero, the token limit under the name that the model wants, a content in every
// message, and the configured extra keys.
func mergeBody(raw []byte, o Options) ([]byte, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	messages, err := fillContent(body["messages"])
	if err != nil {
		return nil, err
	}
	body["messages"] = messages
	extra := map[string]any{}
	if o.Temperature != nil {
		extra["temperature"] = *o.Temperature
	}
	if o.MaxTokens > 0 {
		extra[tokenLimitKey(o.Model)] = o.MaxTokens
	}
	maps.Copy(extra, o.Extra)
	for key, value := range extra {
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", key, err)
		}
		body[key] = encoded
	}
	return json.Marshal(body)
}

// fillContent gives every message a content: null beside tool calls, as the
// format's own reference clients send it, else an empty text. go-openai leaves
// the key out, which strict servers refuse.
func fillContent(raw json.RawMessage) (json.RawMessage, error) {
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &messages); err != nil {
		return nil, fmt.Errorf("messages: %w", err)
	}
	for _, m := range messages {
		if _, ok := m["content"]; ok {
			continue
		}
		if _, ok := m["tool_calls"]; ok {
			m["content"] = json.RawMessage("null")
		} else {
			m["content"] = json.RawMessage(`""`)
		}
	}
	return json.Marshal(messages)
}

// tokenLimitKey is the key of the token limit. OpenAI's reasoning models refuse
// the older name, most other servers know only that one.
func tokenLimitKey(model string) string {
	for _, prefix := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, prefix) {
			return "max_completion_tokens"
		}
	}
	return "max_tokens"
}

// watchedBody bounds a stream and remembers whether its end mark went by, which
// go-openai does not tell from a connection that broke.
type watchedBody struct {
	io.ReadCloser
	left int
	tail []byte // the last bytes read, fewer than the mark has
	done bool
}

// The end mark, as servers write it.
const (
	endMark      = "data: [DONE]"
	endMarkTight = "data:[DONE]"
)

// Read reads and looks for the end mark, also across two reads.
func (w *watchedBody) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxStream)
	}
	n, err := w.ReadCloser.Read(p[:min(len(p), w.left)])
	w.left -= n
	if n > 0 && !w.done {
		seen := append(w.tail, p[:n]...)
		w.done = bytes.Contains(seen, []byte(endMark)) || bytes.Contains(seen, []byte(endMarkTight))
		w.tail = append(w.tail[:0], seen[max(0, len(seen)-len(endMark)+1):]...)
	}
	return n, err
}
