package transport

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"xiaozhi/providers"
)

// Limits of what is read of a refusal.
const (
	MaxErrorBody = 64 << 10 // bytes
	MaxErrorText = 320      // bytes of a server's words that are kept
)

// Refusal is the answer of a service that will not do as it was asked.
type Refusal struct { //nolint:errname // what a service says
	Status int            // of HTTP; 0 or 2xx if it came inside a reply
	Code   string         // the vendor's own; may be empty
	Kind   providers.Kind // what sort of failure it is
	Text   string         // the vendor's words
	LogID  string         // by which the vendor finds the request; may be empty
	After  time.Duration  // how long to wait until it may be asked again; 0: it did not say
	Skewed bool           // the clocks differ by more than a minute, and ours was put right: the request may be signed again
}

// Error returns the status, the vendor's code, its words and its log id.
func (e *Refusal) Error() string {
	var b strings.Builder
	if e.Status != 0 {
		fmt.Fprintf(&b, "status %d: ", e.Status)
	}
	if e.Code != "" && !strings.Contains(e.Text, e.Code) {
		fmt.Fprintf(&b, "%s: ", e.Code)
	}
	b.WriteString(e.Text)
	if e.LogID != "" {
		fmt.Fprintf(&b, " (log id %s)", e.LogID)
	}
	return b.String()
}

// Refused makes the refusal of a vendor's code and words.
func Refused(kind providers.Kind, code, text string) *Refusal {
	return &Refusal{Kind: kind, Code: code, Text: text}
}

// KindOf maps an HTTP status to the kind of failure.
func KindOf(status int) providers.Kind {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return providers.Unauthorized
	case http.StatusPaymentRequired:
		return providers.NoCredit
	case http.StatusTooManyRequests:
		return providers.RateLimited
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return providers.BadRequest
	}
	return providers.Unavailable
}

// logHeaders are those in which vendors say how they find a request.
var logHeaders = [...]string{"X-Tt-Logid", "X-Request-Id", "Dg-Request-Id", "Apim-Request-Id", "Request-Id"}

// ReadRefusal makes the error of a response that is a refusal. It reads, but does not
// close, the body.
func ReadRefusal(resp *http.Response) *Refusal {
	e := &Refusal{Status: resp.StatusCode, Kind: KindOf(resp.StatusCode), After: retryAfter(resp.Header)}
	for _, name := range logHeaders {
		if e.LogID == "" {
			e.LogID = resp.Header.Get(name)
		}
	}
	// A body that breaks off still says more than none.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, MaxErrorBody))
	message, ok := ErrorMessage(body)
	if !ok {
		message, ok = detailMessage(body)
	}
	if !ok {
		message = string(body)
	}
	if e.Text = strings.TrimSpace(message); e.Text == "" {
		e.Text = strings.TrimSpace(resp.Header.Get("Dg-Error"))
	}
	if e.Text == "" {
		e.Text = http.StatusText(resp.StatusCode)
	}
	return e
}

// longestAfter bounds the wait that a service may ask for.
const longestAfter = time.Hour

// retryAfter returns how long a service wants to be left alone; 0 if it does not say. It is
// told in seconds, in milliseconds by a header of its own, or as a date, which is compared
// with the service's own clock where that is told.
func retryAfter(h http.Header) time.Duration {
	said := strings.TrimSpace(h.Get("Retry-After"))
	for _, form := range []struct {
		number string
		unit   time.Duration
	}{{h.Get("Retry-After-Ms"), time.Millisecond}, {said, time.Second}} {
		n, err := strconv.ParseFloat(strings.TrimSpace(form.number), 64)
		if err == nil && n > 0 && n <= longestAfter.Seconds()*float64(time.Second/form.unit) { // so that NaN is none
			return time.Duration(n * float64(form.unit))
		}
	}
	until, err := http.ParseTime(said)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	if after := until.Sub(now); after > 0 && after <= longestAfter {
		return after
	}
	return 0
}

// ErrorMessage finds the words in {"error": {"message": …}}, {"error": "…"} and
// {"object": "error", "message": …}, the shapes in use.
func ErrorMessage(body []byte) (string, bool) {
	var reply struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Message string          `json:"message"`
	}
	if json.Unmarshal(body, &reply) != nil {
		return "", false
	}
	if len(reply.Error) == 0 || string(reply.Error) == "null" {
		return reply.Message, reply.Object == "error"
	}
	var plain string
	if json.Unmarshal(reply.Error, &plain) == nil {
		return plain, true
	}
	var nested struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(reply.Error, &nested) == nil && nested.Message != "" {
		return nested.Message, true
	}
	return string(reply.Error), true
}

// detailMessage finds the words in {"detail": "…"} and {"detail": [{"loc": […],
// "msg": …}]}, in which servers in Python say what is wrong with a request. The
// request itself, which they quote beside it, holds what the user said: it is
// left out.
func detailMessage(body []byte) (string, bool) {
	var reply struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &reply) != nil || len(reply.Detail) == 0 {
		return "", false
	}
	var plain string
	if json.Unmarshal(reply.Detail, &plain) == nil {
		return plain, true
	}
	var faults []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(reply.Detail, &faults) != nil || len(faults) == 0 {
		return "", false
	}
	var words []string
	for _, f := range faults {
		words = append(words, fmt.Sprint(f.Loc, " ", f.Msg))
	}
	return strings.Join(words, "; "), true
}
