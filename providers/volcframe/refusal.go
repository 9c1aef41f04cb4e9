package volcframe

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// LogHeader is the header of an upgrade by which the vendor finds it.
const LogHeader = "X-Tt-Logid"

// KindOf maps a code and its words to the kind of failure.
func KindOf(code uint32, words string, otherwise providers.Kind) providers.Kind {
	words = strings.ToLower(words)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(words, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("types: concurrency", "types: qpm", "types: tpm", "too many requests", "rate limit"):
		return providers.RateLimited
	case has("arrear", "balance", "quota exceeded", "overdue"):
		return providers.NoCredit
	case code == 45000292:
		return providers.RateLimited
	case has("not granted", "permission denied", "invalid x-api-key", "unauthorized", "authenticate", "access denied"):
		return providers.Unauthorized
	case has("mismatched with speaker", "invalid model", "speaker not found", "invalid speaker"):
		return providers.BadRequest
	case code == 3003:
		return providers.RateLimited
	case code == 3001 || code == 3006 || code == 3010 || code == 3011 || code == 3050: // of the old service
		return providers.BadRequest
	case code == 45000001 || code == 45000151 || code == 40402003:
		return providers.BadRequest
	case code/1000000 == 45 && code != 45000081:
		return providers.BadRequest
	case code/1000000 == 55:
		return providers.Unavailable
	}
	return otherwise
}

// Refusal makes the error of an error's frame or of a failed event.
func Refusal(code uint32, payload []byte, logID string) *transport.Refusal {
	var body struct {
		Error      string      `json:"error"`
		Message    string      `json:"message"`
		StatusCode json.Number `json:"status_code"`
		Code       json.Number `json:"code"`
	}
	words := string(payload)
	if json.Unmarshal(payload, &body) == nil {
		words = cmp.Or(body.Error, body.Message, words)
		if n, err := strconv.ParseUint(cmp.Or(string(body.StatusCode), string(body.Code)), 10, 32); code == 0 && err == nil {
			code = uint32(n)
		}
	}
	r := transport.Refused(KindOf(code, words, providers.Unavailable), "", words)
	if code != 0 {
		r.Code = strconv.FormatUint(uint64(code), 10)
	}
	r.LogID = logID
	return r
}

// Read returns the next frame. An error's frame, and a text, which is one too, are a [*transport.Refusal].
func Read(s *transport.Socket, within time.Duration) (Frame, error) {
	text, message, err := s.Read(within)
	if err != nil {
		return Frame{}, err
	}
	logID := s.Header().Get(LogHeader)
	if text {
		return Frame{}, Refusal(0, message, logID)
	}
	f, err := Parse(message)
	if err != nil {
		return Frame{}, err
	}
	if f.Kind == TypeRefusal {
		return Frame{}, Refusal(f.Code, f.Payload, logID)
	}
	return f, nil
}

// NewID makes a random id of version 4.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0F|0x40, b[8]&0x3F|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Judged gives a refused upgrade the kind that its words mean: the status is 400 for many things.
func Judged(r *transport.Refusal) *transport.Refusal {
	var body struct {
		Code    json.Number `json:"code"`
		Message string      `json:"message"`
		Header  struct {
			Code    json.Number `json:"code"`
			Message string      `json:"message"`
		} `json:"header"`
	}
	if json.Unmarshal([]byte(r.Text), &body) == nil {
		r.Code = cmp.Or(string(body.Code), string(body.Header.Code), r.Code)
		r.Text = cmp.Or(body.Message, body.Header.Message, r.Text)
	}
	code, _ := strconv.ParseUint(r.Code, 10, 32)
	r.Kind = KindOf(uint32(code), r.Text, r.Kind)
	return r
}
